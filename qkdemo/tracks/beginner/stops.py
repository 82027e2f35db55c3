"""The beginner's track: no formula, from arrows of any length to one dial, and to what that does not solve."""

import math
from typing import Final

import numpy as np

from qkdemo.attention.inputs import draw
from qkdemo.attention.measures import attend
from qkdemo.facts.models import MODELS
from qkdemo.labs import arrows, cost, drift, models, sphere
from qkdemo.labs import training as twins
from qkdemo.labs.drift.scale_sweep import scores_at
from qkdemo.notation import written
from qkdemo.runs.plan import outcomes
from qkdemo.tracks.stop import Choose, Estimate, Evidence, Read, Stop, closest, in_slots, only
from qkdemo.training.tasks import TASKS

ARROWS: Final = arrows.Settings()
FRESH: Final = drift.Settings(scale=1)
HALF: Final = FRESH.but(format="float16")
SHORT_QUERY: Final = FRESH.but(d_head=4, n_keys=64, query=0)  # in so narrow a head lengths differ most
_EVEN: Final = 0.99  # entropy fraction from which attention is called even
_FIRST: Final = {"scale": 1.0}
_BLUNT: Final = sphere.Settings(gain=3)


def _at_one(found: drift.Result, **changes: object) -> drift.Result:
    """The same state at weight scale 1, that scale alone."""
    return drift.run(found.settings.but(scale=1, **changes), [1])


def _share(x: float) -> str:
    return written(100 * x, 3)


def _arms(found: arrows.Result) -> Evidence:
    before, at = arrows.run(ARROWS, [1]), found.at
    row, fresh = found.plain.shares[at], before.plain.shares[0]
    leader, twin_leader = int(fresh.argmax()), int(found.twin.shares[at].argmax())
    keeps, unmoved = leader == int(row.argmax()), bool(np.allclose(row, fresh, atol=1e-3))
    answer = only(
        nothing=unmoved,
        swap=not keeps,
        lead=keeps and not unmoved and row[leader] > fresh[leader],
        even=keeps and not unmoved and row[leader] < fresh[leader],
    )
    shares = {
        "before": fresh[leader],
        "after": row[leader],
        "twin_before": before.twin.shares[0][twin_leader],
        "twin_after": found.twin.shares[at][twin_leader],
    }
    words = {"key": arrows.word_of(leader), "twin_key": arrows.word_of(twin_leader)}
    return Evidence(answer, words | {name: written(100 * share, 2) for name, share in shares.items()})


def _growth(found: drift.Result) -> Evidence:
    before, after = (float(x) for x in (_at_one(found).plain.max_abs_logit[0], found.plain.max_abs_logit[found.at]))
    times = found.settings.scale
    choices = {"same": 1.0, "times": times, "twice": 2 * times, "square": times * times}
    numbers = {"before": written(before), "after": written(after), "ratio": written(after / before)}
    return Evidence(closest(after / before, choices), numbers | {word: written(x) for word, x in choices.items()})


def _winner(found: drift.Result) -> Evidence:
    plain, fresh = found.plain, _at_one(found).plain
    width = float(plain.entropy_fraction[found.at])
    numbers = {"width": written(width, 3), "fresh": written(fresh.entropy_fraction[0], 3), "most": written(1)}
    return Evidence(
        width, numbers | {"top": _share(plain.top_weight[found.at]), "top_fresh": _share(fresh.top_weight[0])}
    )


def _stuck(found: drift.Result) -> Evidence:
    fresh = _at_one(found)
    fall = float(fresh.plain.softmax_slope[0] / found.plain.softmax_slope[found.at])
    twin = float(fresh.twin.softmax_slope[0] / found.twin.softmax_slope[found.at])
    answer = closest(fall, {"more": 0.1, "same": 1, "ten": 10, "thousands": 3000})
    numbers = {"fall": written(fall, 2), "twin": written(twin)}
    slopes = {"fresh": written(fresh.plain.softmax_slope[0]), "slope": written(found.plain.softmax_slope[found.at])}
    return Evidence(answer, numbers | slopes)


def _overflow(found: drift.Result) -> Evidence:
    plain, at, settings = found.plain, found.at, found.settings
    other, wide = (drift.run(settings.but(format=word), [settings.scale]).plain for word in ("bfloat16", "float32"))
    rows, pairs = settings.n_keys, settings.n_keys**2
    answer = only(
        capped=plain.raw_lost[at] == 0,
        fewer=plain.raw_lost[at] > 0 and plain.undefined_rows[at] == 0,
        nothing=plain.undefined_rows[at] == rows,
    )
    numbers = {
        "largest": written(float(np.finfo(np.float16).max), 5),
        "lost": written(pairs * plain.raw_lost[at]),
        "pairs": written(pairs),
        "rows": written(rows),
        "first": written(plain.first_raw_loss),
        "bfloat_lost": written(pairs * other.raw_lost[0]),
        "wide_lost": written(pairs * wide.raw_lost[0]),
        "bfloat_top": _share(other.top_weight[0]),
        "twin": _share(found.twin.entropy_fraction[at]),
    }
    return Evidence(answer, numbers)


def _fix(found: drift.Result) -> Evidence:
    twin, fresh, at = found.twin, _at_one(found).twin, found.at
    width = float(twin.entropy_fraction[at])
    answer = only(
        even=width > _EVEN,
        prefers=drift.DECIDED < width <= _EVEN and abs(width - fresh.entropy_fraction[0]) < drift.UNMOVED,
        collapses=width <= drift.DECIDED,
    )
    numbers = {
        "top": _share(twin.top_weight[at]),
        "even": _share(1 / found.settings.n_keys),
        "width": _share(width),
        "fresh": _share(fresh.entropy_fraction[0]),
        "plain": _share(found.plain.entropy_fraction[at]),
    }
    users = [next(model for model in MODELS if model.id == identity) for identity in _USERS]
    assert all(model.qk_norm == "yes" and model.default_on for model in users)
    numbers["users"] = ", ".join(model.model for model in users)
    return Evidence(answer, numbers, {model.model: model.link for model in users})


_USERS: Final = ("qwen3-dense-transformers", "gemma-3-transformers", "olmo-2-transformers")  # held against their class


def _dial(found: drift.Result) -> Evidence:
    twin, at = found.twin, found.at
    lower, early = _at_one(found, gain=FRESH.gain).twin, _at_one(found).twin
    sharper = twin.entropy_fraction[at] < lower.entropy_fraction[0] - drift.UNMOVED
    steady = abs(twin.entropy_fraction[at] - early.entropy_fraction[0]) < drift.UNMOVED
    numbers = {
        "lower": _share(lower.top_weight[0]),
        "top": _share(twin.top_weight[at]),
        "logit": written(twin.max_abs_logit[at]),
        "bound": written(twin.bound),
        "plain": written(found.plain.max_abs_logit[at]),
    }
    return Evidence(only(nothing=not sharper, drifts=sharper and not steady, stays=sharper and steady), numbers)


def _root(found: drift.Result) -> Evidence:
    narrow, logits = FRESH.d_head, found.plain.max_abs_logit
    start, end = float(_at_one(found).plain.max_abs_logit[0]), float(logits[found.at])
    wide, usual = end / start, _growth_of(found.settings.but(d_head=narrow))
    answer = closest(wide / usual, {"half": 0.5, "same": 1, "double": 2})
    numbers = {"wide": written(wide), "half": written(usual / 2), "same": written(usual), "double": written(2 * usual)}
    ratio = math.sqrt(found.settings.d_head / narrow)
    return Evidence(answer, numbers | {"divisor": written(ratio), "start": written(start), "end": written(end)})


def _growth_of(settings: drift.Settings) -> float:
    logits = drift.run(settings, [1, settings.scale]).plain.max_abs_logit
    return float(logits[1] / logits[0])


def _live(found: twins.Result) -> Evidence:
    plain, twin = outcomes(found.plan, found.curves)
    task = TASKS[found.plan.legs[0].runs[0].task]
    forgot = [one.learnt_first and one.outcome == "failed" for one in (plain, twin)]
    answer = only(
        both=forgot == [True, True],
        twin=forgot == [False, True],
        plain=forgot == [True, False],
        neither=forgot == [False, False],
    )
    numbers = {
        "since": str(plain.lost_at),
        "logit": written(plain.max_abs_logit, 1),
        "twin_logit": written(twin.max_abs_logit, 1),
        "loss": written(plain.final_loss, 2),
        "chance": written(task.chance(), 2),
        "twin_loss": written(twin.final_loss, 1),
    }
    return Evidence(answer, numbers)


def _confidence(found: drift.Result) -> Evidence:
    """What the first choice gets of a short and of a long query; the answer is that of all queries, by quarters."""
    short = drift.run(found.settings.but(query=SHORT_QUERY.query), [found.settings.scale])
    plain, twin = (_quarters(found.settings.but(variant=word)) for word in ("none", found.settings.variant))
    more = plain[1] / plain[0]
    numbers = {"times": written(found.plain.q_norm[found.at] / short.plain.q_norm[0], 2)} | _elsewhere()
    for name, side, of_short in (("plain", found.plain, short.plain), ("twin", found.twin, short.twin)):
        numbers |= {f"{name}_short": _share(of_short.row[0].max()), f"{name}_long": _share(side.row[found.at].max())}
    return Evidence(closest(twin[1] / twin[0], {"more": more, "same": 1, "less": 1 / more}), numbers)


def _quarters(settings: drift.Settings) -> tuple[float, float]:
    """The mean largest share of a row: over the quarter of the queries with the shortest q, and with the longest."""
    state = drift.state_of(settings)
    q, _ = draw(state.recipe)
    weights, _ = attend(scores_at(state, q.new_tensor([settings.scale])).logits)
    tops = weights[0, settings.head].amax(-1)[q[settings.head].norm(dim=-1).argsort()]
    quarter = len(tops) // 4
    return float(tops[:quarter].mean()), float(tops[-quarter:].mean())


def _elsewhere() -> dict[str, str]:
    """Who does without in the table of implementations, and what the norm costs on paper."""
    every = models.run(models.Settings(kind="model")).models
    without = models.run(models.Settings(kind="model", normed="no")).models
    share = next(part.share for part in cost.run(cost.Settings()).parts if part.part == "l2")
    return {"without": str(len(without)), "all": str(len(every)), "cost": written(100 * share, 2)}


def _remember(found: drift.Result) -> Evidence:
    plain, twin = found.plain, found.twin
    ratios = twin.max_abs_logit / plain.max_abs_logit
    answer = only(
        even=bool((twin.entropy_fraction > _EVEN).all()),
        divided=bool(np.allclose(ratios, ratios[0])),
        ceiling=bool((twin.max_abs_logit <= twin.bound).all() and (plain.max_abs_logit > twin.bound).any()),
    )
    numbers = {
        "low": written(found.scales[0]),
        "high": written(found.scales[-1]),
        "plain": written(plain.max_abs_logit[found.at]),
        "twin": written(twin.max_abs_logit.max()),
        "bound": written(twin.bound),
    }
    return Evidence(answer, numbers)


def _sphere(found: sphere.Result) -> Evidence:
    before = sphere.run(found.settings.but(gain=_BLUNT.gain)).twin
    after = found.twin
    moved = bool((before.winners != after.winners).any())
    answer = only(
        wander=moved,
        stay=not moved and after.decided > before.decided,
        mix=not moved and after.decided <= before.decided,
    )
    return Evidence(answer, {"before": _share(before.decided), "after": _share(after.decided)})


_SLOTS: Final = (
    *(
        "arms",
        "growth",
        "winner",
        "stuck",
        "overflow",
        "fix",
        "dial",
        "root",
    ),
    *(
        "live",
        "confidence",
        "remember",
        "sphere",
    ),
)
STOPS: Final = in_slots(
    _SLOTS,
    Stop(
        name="arms",
        lab=arrows.LAB,
        start=ARROWS,
        state=ARROWS.but(scale=2),
        ask=Choose(("nothing", "lead", "swap", "even")),
        evidence=_arms,
        points=(1, 13),
        reads={
            "before": Read(column="plain.row", turns=_FIRST, times=100),
            "after": Read(column="plain.row", times=100),
            "twin_before": Read(column="norm.row", turns=_FIRST, times=100),
            "twin_after": Read(column="norm.row", times=100),
        },
    ),
    Stop(
        name="growth",
        lab=drift.LAB,
        start=FRESH,
        state=FRESH.but(scale=8),
        ask=Choose(("same", "times", "twice", "square")),
        evidence=_growth,
        points=(1, 2),
        reads={
            "before": Read(column="plain.max_abs_logit", turns=_FIRST),
            "after": Read(column="plain.max_abs_logit"),
        },
    ),
    Stop(
        name="root",
        lab=drift.LAB,
        start=FRESH,
        state=FRESH.but(scale=8, d_head=256),
        ask=Choose(("half", "same", "double")),
        evidence=_root,
        points=(16,),
        reads={
            "start": Read(column="plain.max_abs_logit", turns=_FIRST),
            "end": Read(column="plain.max_abs_logit"),
        },
    ),
    Stop(
        name="winner",
        lab=drift.LAB,
        start=FRESH,
        state=FRESH.but(scale=4),
        ask=Estimate(0.001, 1, "plain.entropy_fraction"),
        evidence=_winner,
        points=(3,),
        reads={
            "width": Read(column="plain.entropy_fraction"),
            "fresh": Read(column="plain.entropy_fraction", turns=_FIRST),
            "top": Read(column="plain.top_weight", times=100),
            "top_fresh": Read(column="plain.top_weight", turns=_FIRST, times=100),
        },
    ),
    Stop(
        name="stuck",
        lab=drift.LAB,
        start=FRESH,
        state=FRESH.but(scale=16),
        ask=Choose(("thousands", "ten", "same", "more")),
        evidence=_stuck,
        points=(4,),
        reads={
            "slope": Read(column="plain.softmax_slope"),
            "fresh": Read(column="plain.softmax_slope", turns=_FIRST),
        },
    ),
    Stop(
        name="fix",
        lab=drift.LAB,
        start=FRESH,
        state=FRESH.but(scale=16),
        ask=Choose(("prefers", "even", "collapses")),
        evidence=_fix,
        points=(9, 13, 14),
        reads={
            "top": Read(column="norm.top_weight", times=100),
            "fresh": Read(column="norm.entropy_fraction", turns=_FIRST, times=100),
            "width": Read(column="norm.entropy_fraction", times=100),
            "plain": Read(column="plain.entropy_fraction", times=100),
        },
    ),
    Stop(
        name="overflow",
        lab=drift.LAB,
        start=HALF.but(scale=8),
        state=HALF.but(scale=400),
        ask=Choose(("capped", "fewer", "nothing")),
        evidence=_overflow,
        points=(6,),
        reads={
            "lost": Read(column="plain.raw_lost", times=FRESH.n_keys**2),
            "first": Read(column="plain.raw_lost", of="place"),
            "bfloat_lost": Read(column="plain.raw_lost", turns={"format": "bfloat16"}, times=FRESH.n_keys**2),
            "wide_lost": Read(column="plain.raw_lost", turns={"format": "float32"}, times=FRESH.n_keys**2),
            "bfloat_top": Read(column="plain.top_weight", turns={"format": "bfloat16"}, times=100),
            "twin": Read(column="norm.entropy_fraction", times=100),
        },
    ),
    Stop(
        name="dial",
        lab=drift.LAB,
        start=FRESH,
        state=FRESH.but(scale=100, gain=40),
        ask=Choose(("nothing", "drifts", "stays")),
        evidence=_dial,
        points=(15,),
        reads={
            "lower": Read(column="norm.top_weight", turns={"scale": 1.0, "gain": FRESH.gain}, times=100),
            "top": Read(column="norm.top_weight", times=100),
            "logit": Read(column="norm.max_abs_logit"),
            "bound": Read(column="bound"),
            "plain": Read(column="plain.max_abs_logit"),
        },
    ),
    Stop(
        name="sphere",
        lab=sphere.LAB,
        start=_BLUNT,
        state=_BLUNT.but(gain=50),
        ask=Choose(("wander", "stay", "mix")),
        evidence=_sphere,
        points=(13, 15),
    ),
    Stop(
        name="live",
        lab=twins.LAB,
        state=twins.Settings(),
        ask=Choose(("both", "plain", "twin", "neither")),
        evidence=_live,
        points=(2, 7, 8),
        reads={
            "loss": Read(column="plain.loss", of="last"),
            "twin_loss": Read(column="norm.loss", of="last"),
            "since": Read(column="plain.loss", of="place"),
            "logit": Read(column="plain.max_abs_logit", of="largest"),
            "twin_logit": Read(column="norm.max_abs_logit", of="largest"),
        },
    ),
    Stop(
        name="confidence",
        lab=drift.LAB,
        start=SHORT_QUERY,
        state=SHORT_QUERY.but(query=59),
        ask=Choose(("more", "less", "same")),
        evidence=_confidence,
        points=(29, 30, 33),
        reads={
            "plain_long": Read(column="plain.row", times=100),
            "twin_long": Read(column="norm.row", times=100),
            "plain_short": Read(column="plain.row", turns={"query": SHORT_QUERY.query}, times=100),
            "twin_short": Read(column="norm.row", turns={"query": SHORT_QUERY.query}, times=100),
        },
    ),
    Stop(
        name="remember",
        lab=drift.LAB,
        start=FRESH.but(scale=8),
        state=FRESH.but(scale=1000),
        ask=Choose(("ceiling", "even", "divided")),
        evidence=_remember,
        points=(9, 13, 14, 15, 16),
        reads={
            "plain": Read(column="plain.max_abs_logit"),
            "twin": Read(column="norm.max_abs_logit", of="largest"),
            "bound": Read(column="bound"),
        },
    ),
)
