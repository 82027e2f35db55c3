"""What the beginner's stops read off their labs."""

import math
from typing import Final

import numpy as np

from qkdemo.attention.inputs import draw
from qkdemo.attention.measures import attend
from qkdemo.facts.models import MODELS
from qkdemo.labs import arrows, cost, drift, models, sphere
from qkdemo.labs import training as twins
from qkdemo.labs.drift.state import scores_at
from qkdemo.notation import written
from qkdemo.runs.plan import outcomes
from qkdemo.tracks.stop import Evidence, closest, only
from qkdemo.training.tasks import TASKS

ARROWS: Final = arrows.Settings()
FRESH: Final = drift.Settings(scale=1)
HALF: Final = FRESH.but(format="float16")
SHORT_QUERY: Final = FRESH.but(d_head=4, n_keys=64, query=0)  # in so narrow a head lengths differ most
BLUNT: Final = sphere.Settings(gain=3)
_EVEN: Final = 0.99  # entropy fraction from which attention is called even


def _at_one(found: drift.Result, **changes: object) -> drift.Result:
    """The same state at weight scale 1, that scale alone."""
    return drift.run(found.settings.but(scale=1, **changes), [1])


def _share(x: float) -> str:
    return written(100 * x, 3)


def arms(found: arrows.Result) -> Evidence:
    """Which arrow leads when all are twice as long."""
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


def growth(found: drift.Result) -> Evidence:
    """How much the largest logit grows with the weight scale."""
    before, after = (float(x) for x in (_at_one(found).plain.max_abs_logit[0], found.plain.max_abs_logit[found.at]))
    times = found.settings.scale
    choices = {"same": 1.0, "times": times, "twice": 2 * times, "square": times * times}
    numbers = {"before": written(before), "after": written(after), "ratio": written(after / before)}
    return Evidence(closest(after / before, choices), numbers | {word: written(x) for word, x in choices.items()})


def winner(found: drift.Result) -> Evidence:
    """How little of its freedom attention keeps once the logits are large."""
    plain, fresh = found.plain, _at_one(found).plain
    width = float(plain.entropy_fraction[found.at])
    numbers = {"width": written(width, 3), "fresh": written(fresh.entropy_fraction[0], 3), "most": written(1)}
    return Evidence(
        width, numbers | {"top": _share(plain.top_weight[found.at]), "top_fresh": _share(fresh.top_weight[0])}
    )


def stuck(found: drift.Result) -> Evidence:
    """How far the softmax slope falls."""
    fresh = _at_one(found)
    fall = float(fresh.plain.softmax_slope[0] / found.plain.softmax_slope[found.at])
    twin = float(fresh.twin.softmax_slope[0] / found.twin.softmax_slope[found.at])
    answer = closest(fall, {"more": 0.1, "same": 1, "ten": 10, "thousands": 3000})
    numbers = {"fall": written(fall, 2), "twin": written(twin)}
    slopes = {"fresh": written(fresh.plain.softmax_slope[0]), "slope": written(found.plain.softmax_slope[found.at])}
    return Evidence(answer, numbers | slopes)


def overflow(found: drift.Result) -> Evidence:
    """What float16 loses of the logits, and other formats keep."""
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


def fix(found: drift.Result) -> Evidence:
    """What attention with a norm does at the same weight scale."""
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
    numbers["users"] = ", ".join(model.model.partition(" (")[0] for model in users)  # no “(dense)”: not explained here
    return Evidence(answer, numbers, {model.model: model.link for model in users})


_USERS: Final = ("qwen3-dense-transformers", "gemma-3-transformers", "olmo-2-transformers")  # held against their class


def dial(found: drift.Result) -> Evidence:
    """What a lower gain does to the largest share."""
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


def root(found: drift.Result) -> Evidence:
    """What dividing by √d_head leaves of a wide head."""
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


def live(found: twins.Result) -> Evidence:
    """How the recorded run ends, plain and normalised."""
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
        "logit": written(plain.max_abs_logit, 2),
        "twin_logit": written(twin.max_abs_logit, 2),
        "loss": written(plain.final_loss, 2),
        "chance": written(task.chance(), 2),
        "twin_loss": written(twin.final_loss, 1),
    }
    return Evidence(answer, numbers)


def confidence(found: drift.Result) -> Evidence:
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


def remember(found: drift.Result) -> Evidence:
    """How the two sides compare over all that was seen."""
    plain, twin = found.plain, found.twin
    ratios = twin.max_abs_logit / plain.max_abs_logit
    answer = only(
        even=bool((twin.entropy_fraction > _EVEN).all()),
        divided=bool(np.allclose(ratios, ratios[0])),
        ceiling=bool((twin.max_abs_logit <= twin.bound).all() and (plain.max_abs_logit > twin.bound).any()),
    )
    assert np.allclose(twin.max_abs_logit, twin.max_abs_logit[0])
    numbers = {
        "low": written(found.scales[0]),
        "high": written(found.scales[-1]),
        "plain": written(plain.max_abs_logit[found.at]),
        "twin": written(twin.max_abs_logit.max()),
        "bound": written(twin.bound),
    }
    return Evidence(answer, numbers)


def territory(found: sphere.Result) -> Evidence:
    """How much of the sphere is decided when g grows, and whether borders wander."""
    before = sphere.run(found.settings.but(gain=BLUNT.gain)).twin
    after = found.twin
    moved = bool((before.winners != after.winners).any())
    answer = only(
        wander=moved,
        stay=not moved and after.decided > before.decided,
        mix=not moved and after.decided <= before.decided,
    )
    whole = sphere.whole_percent
    return Evidence(answer, {"before": whole(before.decided), "after": whole(after.decided)})
