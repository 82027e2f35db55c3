"""When each sentence of the placement lab that depends on a result is true, told from both passes' scores."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from qkdemo.attention.norms import NORMS, divisor
from qkdemo.attention.pipeline import CHOICES, Pipeline, trace
from qkdemo.attention.rotary import partners, turned
from qkdemo.labs.placement.mistakes import AS_WRITTEN, MISTAKES, pair_of
from qkdemo.messages import say
from qkdemo.notation import read
from tests.labs.placement.passes import ROUNDING, About, Pass, error, percent
from tests.labs.told import Truth, reads

NAMES: Final = (
    r"number\..*|list\.and|(choice|mistake)_name\..*|models\..*|choice\..*"
    r"|placement\.(unit|spread|spread_tied|with|on_block|gains|biases|no_biases|fresh\..*|several|left_who|right_who|contract\..*|differs|unit_gains|before_cap)"
)
SUPPOSED: Final[dict[str, dict[str, Any]]] = {
    "layernorm": {"norm": "layernorm"},
    "rms": {"norm": "rms"},
    "rotary_first": {"order": "rotary_norm"},
    "norm_first": {"order": "norm_rotary"},
    "no_norm": {"norm": "none"},
    "over_all_heads": {"place": "full_width"},
    "of_input": {"place": "input"},
    **{f"rotated_{share}": {"rotated": share} for share in ("all", "half", "quarter")},
    **{word: {} for word in ("gain", "q_gain_on_k", "gamma_as_one_plus", "one_plus_as_gamma", "gain_not_permuted")},
}


def finding_apart(it: About, v: Mapping[str, str]) -> bool:
    return (
        it.where(v["where"]) and percent(v["score"], it.off("logits")) and it.off("logits", it.exactly) > ROUNDING / 2
    )


def agreeing(it: About, v: Mapping[str, str]) -> bool:
    """Nothing sets them apart: neither logits nor output."""
    return placed(it, v) and it.off("logits") < 1e-11 and it.agree("output")


def placed(it: About, v: Mapping[str, str]) -> bool:
    """A headline says with which gains and biases."""
    return "where" not in v or it.where(v["where"])


def only_output(it: About, v: Mapping[str, str]) -> bool:
    """The logits agree, the output does not, and one side normalises weights or v in another way."""
    told = percent(v["output"], it.off("output")) if "where" in v else error(v["output"], it.off("output"))
    ways = {(side.norm, side.on, side.place, side.grouping) for side in (it.left, it.right)}
    return placed(it, v) and it.off("logits") < 1e-11 and told and len(ways) == 2


def narrow(it: About, v: Mapping[str, str]) -> bool:
    score = read(v["score"]) / (100 if "where" in v else 1)  # another order of the same sums rounds otherwise
    told = 0.5 * score < it.off("logits") < 2 * score
    if "weight" in v:  # which the format alone moves
        told = told and it.agree("output") and error(v["weight"], it.moved)
    return placed(it, v) and it.settings.format != "float64" and it.off("logits", it.exactly) < 1e-11 and told


def narrow_and_output(it: About, v: Mapping[str, str]) -> bool:
    """The format sets the logits apart, and what one side does to weights or v the output, in any format."""
    alone = {name: x for name, x in v.items() if name == "score"}
    return narrow(it, alone) and not it.agree("output") and error(v["output"], it.off("output"))


def apart(it: About, v: Mapping[str, str]) -> bool:
    return (
        error(v["score"], it.off("logits"))
        and error(v["raw"], it.off("raw"))
        and error(v["output"], it.off("output"))
        and error(v["weight"], it.moved)
        and it.finite
    )


def by_position(it: About, v: Mapping[str, str]) -> bool:
    first, last = it.settings.offset, it.settings.offset + it.settings.n_keys - 1
    places = (int(v["offset"]), int(v["last_position"])) == (first, last)
    return places and error(v["first"], it.at(0)) and error(v["last"], it.at(-1))


def sizes(it: About, what: str) -> NDArray[np.float64]:
    """What the norm divides q by times what it divides k by; over the same of all heads, or of the inputs."""
    norm, block = NORMS[it.left.norm], it.block
    made = trace(it.left, block)
    times = block.n_heads // block.n_kv_heads

    def of(side: str, place: str) -> torch.Tensor:
        heads = getattr(made, f"{side}_projected")
        if side not in it.left.on:
            found = torch.ones_like(heads[..., 0])
        elif place == "full_width":
            found = divisor(heads.permute(1, 0, 2).flatten(1), norm)[..., 0].expand(heads.shape[:2])
        elif place == "input":
            found = divisor(block.x, norm)[..., 0].expand(heads.shape[:2])
        else:
            found = divisor(heads, norm)[..., 0]
        if side == "q":
            return found[:, :, None]
        found = found.repeat_interleave(times, 0) if it.left.grouping == "repeat" else found.repeat(times, 1)
        return found[:, None, :]

    own = of("q", it.left.place) * of("k", it.left.place)
    own = own if what == "norm_skipped" else own / (of("q", what) * of("k", what))
    visible = np.ones(own.shape[1:], bool) if block.visible is None else block.visible.numpy()
    return np.asarray(own.numpy()[:, visible])


def fits(it: About, v: Mapping[str, str], **changes: Any) -> bool:
    """Some products of gains fit the logits of the second head, by numpy's own least squares over all its pairs."""
    told = v["misfit"].startswith("<") or read(v["misfit"]) <= 1e-6
    if it.left.cap != "none":
        return told  # the ends of tanh tell nothing
    carried = {"layout": stored(it), "conversion": "none"} if it.left.conversion == "weights_and_gain" else {}
    place = "per_head" if it.left.place == "in_product" else it.left.place
    supposed = it.left.but(gain="none", bias="none", scale="one", **{"place": place} | carried | changes)
    turned_after = supposed.order == "norm_rotary"
    made = trace(supposed.but(order="none") if turned_after else supposed, it.block)
    head = min(1, it.block.n_heads - 1)
    q, k = made.q[head].numpy(), made.k[head].numpy()
    columns = q[:, None, :] * k[None, :, :]
    if turned_after:
        width = turned(it.block.d_head, supposed.rotated)
        first, second = (x.numpy() for x in partners(width, supposed.layout))
        pairs = len(first)
        at = it.block.positions.numpy()
        angle = (at[:, None] - at[None, :])[..., None] * 10000.0 ** (-np.arange(pairs) / pairs)
        a, b = q[:, first][:, None], q[:, second][:, None]
        c, d = k[:, first][None], k[:, second][None]
        cos, sin = np.cos(angle), np.sin(angle)
        rest = columns[..., 2 * pairs :]
        columns = np.concatenate([a * c * cos, b * d * cos, a * d * sin, b * c * sin, rest], -1)
    seen = it.exactly[1].visible
    target = it.exactly[1].logits[head][seen]
    found, *_ = np.linalg.lstsq(columns[seen], target, rcond=None)
    left = np.linalg.norm(columns[seen] @ found - target) / np.linalg.norm(target)
    return told and bool(left < 1e-5)


def reached(it: About, **changes: Any) -> bool:
    """The left side with these changes, and its own gains and biases, has the logits of the right one."""
    changed = Pass(it.left.but(**changes), it.block, "float64").seen("logits")
    return bool(np.allclose(changed, it.exactly[1].seen("logits"), rtol=1e-9, atol=1e-9))


def one_change(it: About) -> bool:
    """The two differ by a single choice, in a way that a cause names."""
    changes = {name: getattr(it.right, name) for name in CHOICES if getattr(it.left, name) != getattr(it.right, name)}
    told = (name for name, made in changes.items() if NAMED.get(name, never)(it.left, getattr(it.left, name), made))
    return any(reached(it, **{name: changes[name]}) for name in told)


def never(left: Pipeline, was: str, made: str) -> bool:
    return False


def normed(left: Pipeline) -> bool:
    return left.norm != "none" and left.place != "weights"


def other_norm_named(left: Pipeline, was: str, made: str) -> bool:
    """L2 and RMSNorm differ by a factor, where no bias is added to it."""
    sized = {"rms", "layernorm"} if left.bias != "none" else {"rms", "l2", "layernorm"}
    return normed(left) and (made == "none" or {was, made} <= sized)


def other_place_named(left: Pipeline, was: str, made: str) -> bool:
    heads = {"per_head", "in_product"}
    over = was in heads and made not in heads
    return normed(left) and (made == "weights" or over or (was, made) == ("full_width", "input"))


# By a choice: whether a cause names that it was read as `made` instead of `was`.
NAMED: Final[dict[str, Callable[[Pipeline, str, str], bool]]] = {
    "norm": other_norm_named,
    "place": other_place_named,
    "order": lambda left, was, made: "none" not in (was, made),
    # The other pairs the other way round are two changes; and so is what is carried over to another layout.
    "layout": lambda left, was, made: (
        left.conversion == "none" and (was, made) != ("interleaved", "half_split_swapped")
    ),
    "rotated": lambda left, was, made: left.conversion == "none",
    "gain": lambda left, was, made: left.bias == "none" or "head_channel" not in (was, made),  # biases by head
    **dict.fromkeys(("stored", "key_gain", "scale", "cap", "grouping"), lambda left, was, made: True),
}


def either(it: About, v: Mapping[str, str], **changes: Any) -> bool:
    """Some gains fit with these changes, or the left side’s own ones and its biases do."""
    return fits(it, v, **changes) or (reached(it, **changes) if changes else gains_told(it))


def gains_told(it: About) -> bool:
    """The left side with the right one’s gains alone has its logits."""
    ways = (["gain"], ["key_gain"], ["stored"], ["layout", "conversion"])
    return any(reached(it, **{name: getattr(it.right, name) for name in way}) for way in ways)


def stored(it: About) -> str:
    """The layout of the checkpoint's rows, where those and the gain were carried over to the left side's."""
    over = it.left.conversion == "weights_and_gain"
    return {"interleaved": "half_split"}.get(it.left.layout, "interleaved") if over else it.left.layout


def other_layout(it: About) -> dict[str, Any]:
    return {"layout": "half_split" if stored(it) == "interleaved" else "interleaved"}


def other_way(it: About) -> dict[str, Any]:
    return {"layout": "half_split_swapped" if stored(it) == "half_split" else "half_split"}


def scaled(it: About, v: Mapping[str, str], value: float) -> bool:
    return reads(v["ratio"], value, 4, 1e-4) and it.constant(1.0, value)


def mistaken(it: About) -> dict[str, float]:
    """The error of the logits that each known mistake makes, in float64."""
    found = {}
    for name in MISTAKES:
        pair = pair_of(name)
        settings = as_written(it).settings.but(left_stored=pair[0].stored, format="float64")
        found[name] = About(settings, it.spread, pair=pair).off("logits")
    return found


def as_written(it: About) -> About:
    """The block of the known mistakes, whose tied gains are those of half-split pairs, whatever the two sides are."""
    usual = {f"left_{name}": getattr(AS_WRITTEN, name) for name in CHOICES}
    return About(it.settings.but(**usual), it.spread)


def some(it: About, v: Mapping[str, str]) -> bool:
    hidden = sum(x < 1e-11 for x in mistaken(it).values())
    return as_written(it).gains(v["gains"]) and 0 < int(v["hidden"]) == hidden and int(v["all"]) == len(MISTAKES)


def every(it: About, v: Mapping[str, str]) -> bool:
    errors = mistaken(it).values()
    least, most = reads(v["least"], 100 * min(errors), 2, 1e-3), reads(v["most"], 100 * max(errors), 3, 1e-3)
    return as_written(it).gains(v["gains"]) and least and most and min(errors) > ROUNDING / 10


def vanishing(it: About, v: Mapping[str, str]) -> bool:
    hidden = [name for name, x in mistaken(About(it.settings, 0.0)).items() if x < 1e-11]
    told = v["names"] == ", ".join(say(f"mistake_name.{name}") for name in hidden) and int(v["hidden"]) == len(hidden)
    uneven = mistaken(About(it.settings.but(gains="untied"), 0.5))  # uneven within pairs
    return told and all(uneven[name] > ROUNDING for name in hidden if it.settings.n_heads > 1 or name != "full_width")


def uneven(it: About) -> About:
    """The same two in float64, with gains that differ."""
    settings, kinds = it.settings, {"unit": "untied"}
    kind = kinds.get(settings.gains, settings.gains)
    return About(settings.but(gains=kind, format="float64"), settings.gain_spread or 0.5)


def caught(it: About, v: Mapping[str, str], *, fresh: str, grown: str) -> bool:
    """`fresh` and `grown`: what differs, logits, output or nothing."""
    later = uneven(it)
    first = About(later.settings, 0.0)
    for state, differs, told in ((first, fresh, "fresh"), (later, grown, "grown")):
        logits, output = state.off("logits") > ROUNDING / 2, state.off("output") > ROUNDING / 2
        if differs in ("logits", "output") and not {"logits": logits, "output": output}[differs]:
            return False
        if differs in ("", "output") and state.off("logits") > 1e-11:
            return False
        if differs == "" and not state.agree("output"):
            return False
        if differs == "logits" and not percent(v[told], state.off("logits")):
            return False
    return fresh_weights(v["weights"], first) and (grown != "logits" or later.where(f"With {v['learned']}"))


def fresh_weights(text: str, it: About) -> bool:
    """Gains and biases are told where there are some."""
    return (bool(re.search("gains are 1", text)), "bias" in text) == (it.moves("gain"), it.moves("bias"))


def narrow_test(it: About, v: Mapping[str, str]) -> bool:
    """The logits are one function, and a narrow format sets them so far apart."""
    told = 0.5 < it.off("logits") / (read(v["score"]) / 100) < 2  # another order of the same sums rounds otherwise
    return told and it.settings.format != "float64" and it.off("logits", it.exactly) < 1e-11


def narrow_with(it: About, v: Mapping[str, str]) -> bool:
    """The gains at hand hide the format, and uneven ones show it."""
    grown = About(uneven(it).settings.but(format=it.settings.format), it.settings.gain_spread or 0.5)
    return it.off("logits") < 1e-11 and narrow_test(grown, v)


def scale(it: About, v: Mapping[str, str], power: int) -> bool:
    """The left side has 1/√d, and the ratio is this power of √d."""
    return it.left.scale == "inverse_root" and scaled(it, v, it.settings.d_head ** (power / 2))


def other_scale(it: About, v: Mapping[str, str]) -> bool:
    """The left side with the other scale in the place of its own has the logits of the right one."""
    powers = {"1/√d": -0.5, "1": 0, "√d": 0.5, "1/d": -1}
    own = {"inverse_root": "1/√d", "one": "1", "root": "√d", "inverse": "1/d"}[it.left.scale]
    return v["own"] == own and scaled(it, v, it.settings.d_head ** (powers[v["other"]] - powers[own]))


def other_norm(it: About, of: str, other: str) -> bool:
    """The left side has that norm, and with the other one and its own scale it has the logits of the right one."""
    return it.left.norm == of and would(it, norm=other)


def would(it: About, **changes: Any) -> bool:
    """The left side with these changes has the logits of the right one."""
    changed = Pass(it.left.but(**changes, cap="none"), it.block, "float64").seen("logits")
    plain = Pass(it.left.but(cap="none"), it.block, "float64").seen("logits")
    return it.constant(1.0, float(np.median(changed / plain)))


TRUTHS: Final[dict[str, Truth]] = {
    "placement.finding.nothing": lambda it, v: it.left == it.right,
    **dict.fromkeys(("placement.finding.same", "placement.same"), agreeing),
    **dict.fromkeys(
        ("placement.finding.lost", "placement.lost"),
        lambda it, v: placed(it, v) and not it.finite and it.settings.format != "float64",
    ),
    **dict.fromkeys(("placement.finding.only_output", "placement.only_output"), only_output),
    **dict.fromkeys(("placement.finding.rounding", "placement.rounding"), narrow),
    "placement.nothing": lambda it, v: it.left == it.right and it.off("output") == 0,
    "placement.rounding_and_output": narrow_and_output,
    "placement.finding.apart": finding_apart,
    "placement.apart": apart,
    "placement.finding.some": some,
    "placement.finding.all": every,
    "placement.vanishing": vanishing,
    "placement.vanishing_with_one_head": lambda it, v: vanishing(it, v) and it.settings.n_heads == 1,
    "placement.by_position": by_position,
    "placement.caught.fresh": lambda it, v: caught(it, v, fresh="logits", grown="any"),
    "placement.caught.fresh_output": lambda it, v: caught(it, v, fresh="output", grown="logits"),
    "placement.caught.grown": lambda it, v: caught(it, v, fresh="", grown="logits"),
    "placement.caught.output": lambda it, v: caught(it, v, fresh="any", grown="output"),
    "placement.caught.none": lambda it, v: caught(it, v, fresh="", grown=""),
    "placement.caught.asked": lambda it, v: it.settings.format == "float64",
    "placement.caught.asked_exactly": lambda it, v: it.settings.format != "float64",
    "placement.caught.rounding": narrow_test,
    "placement.caught.rounding_with": narrow_with,
    "placement.caught.lost": lambda it, v: not it.finite and it.settings.format != "float64",
    "cause.cap": lambda it, v: it.left.cap != it.right.cap,
    "cause.scale_one": lambda it, v: scale(it, v, 1),
    "cause.scale_twice": lambda it, v: scale(it, v, -1),
    "cause.scale_root": lambda it, v: scale(it, v, 2),
    "cause.scale_other": other_scale,
    "cause.l2_too": lambda it, v: other_norm(it, "rms", "l2"),
    "cause.rms_too": lambda it, v: other_norm(it, "l2", "rms"),
    **dict.fromkeys(
        ("cause.gains_too", "cause.gains_alone"),
        lambda it, v: it.left.stored == "gamma" and would(it, stored="one_plus"),
    ),
    "cause.rms_alone": lambda it, v: other_norm(it, "l2", "rms"),
    "cause.unit_vectors": lambda it, v: it.constant(1.0, read(v["ratio"])) and other_norm(it, "rms", "l2"),
    "cause.near_one": lambda it, v: it.constant(1.0, read(v["ratio"])) and abs(read(v["ratio"]) - 1) < 0.004,
    "cause.constant": lambda it, v: it.constant(1.0, read(v["ratio"])),
    **{
        f"cause.{name}": lambda it, v, name=name: it.constant(sizes(it, name))
        for name in ("norm_skipped", "full_width", "input")
    },
    **{f"cause.{name}": lambda it, v, changes=changes: either(it, v, **changes) for name, changes in SUPPOSED.items()},
    "cause.layout": lambda it, v: either(it, v, **other_layout(it)),
    "cause.direction": lambda it, v: fits(it, v) or either(it, v, **other_way(it)),
    "cause.tiled": lambda it, v: either(it, v, grouping="tile" if it.left.grouping == "repeat" else "repeat"),
    "cause.too_few": lambda it, v: it.off("logits", it.exactly) > 1e-7,
    "cause.unknown": lambda it, v: it.off("logits", it.exactly) > 1e-7 and not one_change(it),
}
CAUSES: Final = (
    *(
        "cap",
        "scale_one",
        "scale_twice",
        "scale_root",
        "scale_other",
        "l2_too",
        "rms_too",
        "gains_too",
        "gains_alone",
        "rms_alone",
        "unit_vectors",
        "near_one",
        "constant",
        "norm_skipped",
        "full_width",
        "input",
    ),
    *(*SUPPOSED, "layout", "direction", "tiled", "too_few", "unknown"),
)
