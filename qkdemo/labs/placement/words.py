"""Two pipelines in words.

* `findings(settings)`: a headline per spread of the gains; `explain(result)`: how far the sides are apart, and why;
* `pattern(verdict, reference, …)`: what the pattern of an error says; `contract(pipeline, other)`: what one side
  promises, beside the other one;
* `caught(settings)`: which test would find what sets the sides apart.
"""

import math
from typing import Final

from qkdemo.attention.blocks import Block
from qkdemo.attention.pipeline import Pipeline
from qkdemo.charts.columns import gap, gap_in_words
from qkdemo.dials.declaration import listed
from qkdemo.facts.models import acting_gain
from qkdemo.facts.nearest import in_words
from qkdemo.labs.placement.comparisons import Difference, differing
from qkdemo.labs.placement.diagnosis import EXACT, Verdict
from qkdemo.labs.placement.lab import (
    Result,
    Settings,
    apart_at_the_dial,
    mistakes_over_spreads,
    over_spreads,
    pair_of,
    spreads_of,
    swept_in,
)
from qkdemo.labs.placement.mistakes import ROUNDING, headlines, known_as, vanishing
from qkdemo.labs.placement.scales import TOLERANCE, gains_too, norm_too, other_scale
from qkdemo.messages import in_each_language, say
from qkdemo.notation import digits_apart, written

_NAMED: Final = 3  # differences that a headline names
_USUAL: Final = Pipeline()


def findings(settings: Settings) -> list[str]:
    """The headline at every spread of the gains."""
    return list(_findings(settings))


@in_each_language(64)
def _findings(settings: Settings) -> list[str]:
    if settings.compare == "all_mistakes":
        curves = mistakes_over_spreads(settings)
        return headlines(curves, [_gains(settings, spread) for spread in curves.spreads])
    name, swept, states = _name(settings), over_spreads(settings), _states(settings)
    return [
        say(
            f"placement.finding.{states[at] if name else 'nothing'}",
            name=name,
            where=_where(settings, swept.spreads[at]),
            format=settings.format,
            score=written(100 * apart.logits, 3),
            output=written(100 * apart.output, 3),
        )
        for at, apart in enumerate(swept.differences)
    ]


def _gains(settings: Settings, spread: float) -> str:
    if settings.gains == "unit" or spread == 0:
        return say("placement.unit")
    key = "spread_tied" if settings.gains == "tied" else "spread"
    return say(f"placement.{key}", low=written(1 - spread, 3), high=written(1 + spread, 3))


def _where(settings: Settings, spread: float) -> str:
    """With which gains and biases, as far as a side has them."""
    learned = _learned(settings, spread)
    return say("placement.with", learned=learned) if learned else say("placement.on_block")


def _learned(settings: Settings, spread: float) -> str:
    """Gains and biases in words, as far as a side multiplies or adds them; nothing if none does."""
    low, high = written(-spread, 3), written(spread, 3)
    parts = [say("placement.gains", gains=_gains(settings, spread))] * _read(settings, "gain")
    parts += [say("placement.biases", low=low, high=high) if spread else say("placement.no_biases")] * _read(
        settings, "bias"
    )
    return listed(parts) if parts else ""


def _read(settings: Settings, name: str) -> bool:
    """Whether q or k of either side gets a gain, or a bias."""
    return any(side.multiplied if name == "gain" else side.bias != "none" for side in pair_of(settings))


def _name(settings: Settings) -> str:
    """What differs, in words: the known mistake it is, or the choices; nothing if nothing differs."""
    pair = pair_of(settings)
    known, names = known_as(*pair), differing(*pair)
    if known:
        return say(f"mistake_name.{known}")
    words = "; ".join(say(f"choice_name.{name}") for name in names[:_NAMED])
    return say("placement.several", names=words, count=len(names) - _NAMED) if len(names) > _NAMED else words


def _states(settings: Settings) -> list[str]:
    """What sets the sides apart at each spread: the function, the format, what comes after the logits, or nothing."""
    pairs = zip(over_spreads(settings).differences, swept_in(settings, "float64").differences, strict=True)
    after = _differ_after(*pair_of(settings))
    return [_state(apart, exactly, after=after) for apart, exactly in pairs]


def _state(apart: Difference, exactly: Difference, *, after: bool) -> str:
    """`after`: whether what comes after the logits differs; else a difference of the output alone is rounding."""
    if not all(map(math.isfinite, (apart.raw, apart.logits, apart.weight))):  # an output beside nothing is ∞ off
        return "lost"
    if exactly.logits >= ROUNDING:
        return "apart"
    if apart.logits >= ROUNDING:
        return "rounding"
    return "only_output" if after and apart.output >= ROUNDING else "same"


def _differ_after(left: Pipeline, right: Pipeline) -> bool:
    """Whether the two do something else with the weights or with v."""
    return _after(left) != _after(right)


def _after(pipeline: Pipeline) -> tuple[object, ...]:
    of_weights = pipeline.norm if pipeline.place == "weights" else "none"
    return (of_weights, pipeline.grouping, *((pipeline.norm, pipeline.place) if pipeline.on == "qkv" else ("none", "")))


def contract(pipeline: Pipeline, other: Pipeline | None = None) -> str:
    """The choices that every implementation has to make, in the order in which a pass meets them.

    Then those in which it is unlike `other`, the pipeline beside it, or unlike most: what is usual is not said, nor
    what does nothing.
    """
    pipeline, other = (side.but(**acting_gain(side)) for side in (pipeline, other or pipeline))
    norm = say("placement.contract.norm", norm=_choice(pipeline, "norm"), place=_choice(pipeline, "place"))
    idle = _idle(pipeline)
    bare, of_weights = pipeline.norm == "none", pipeline.norm != "none" and pipeline.place == "weights"
    made = [say("placement.contract.no_norm") if bare or of_weights else norm]
    if pipeline.multiplied:
        word = "one_gain" if pipeline.gain == "scalar" else "gain"
        made.append(
            say(f"placement.contract.{word}", gain=_choice(pipeline, "gain"), stored=_choice(pipeline, "stored"))
        )
    made += [_more(pipeline, "bias")] if pipeline.bias != "none" else []
    of_none = "on" not in idle and (bare or of_weights)
    if of_none and pipeline.on in ("q", "k"):
        made.append(say("placement.contract.acting", on=_choice(pipeline, "on")))
    order: str = "rotary" if "order" in idle else pipeline.order
    if order == "rotary_norm" and (bare or pipeline.place in ("input", "weights")):  # where gain or bias alone is left
        order = "before_gain" if pipeline.multiplied else "before_bias"
    made += [say(f"placement.contract.{order}"), say("placement.contract.scale", scale=_choice(pipeline, "scale"))]
    made += [say("placement.contract.cap")] if pipeline.cap != "none" else []
    made += [norm] if of_weights else []
    made += [say("placement.contract.values")] if of_weights and pipeline.on == "qkv" else []
    unlike = dict.fromkeys([*differing(pipeline, other), *differing(pipeline, _USUAL)])
    said = _SAID | idle | ({"on"} if of_none else set())
    made += [_more(pipeline, name) for name in unlike if name not in said]
    return "; ".join(made) + "."


# What a contract names in a place of its own.
_SAID: Final = {"norm", "place", "gain", "stored", "bias", "order", "scale", "cap"}


def _more(pipeline: Pipeline, name: str) -> str:
    return say("placement.contract.more", name=say(f"choice_name.{name}"), choice=_choice(pipeline, name))


def _idle(pipeline: Pipeline) -> set[str]:
    """The choices that do nothing in this pipeline."""
    affine = bool(pipeline.multiplied) or pipeline.bias != "none"
    on_heads = pipeline.norm != "none" and pipeline.place not in ("input", "weights")
    alone = pipeline.on == "q" or (pipeline.on, pipeline.key_gain) == ("k", "own")  # the other side has no gain
    found = {"key_gain"} if alone or not pipeline.multiplied else set()
    # Inside the product nothing is cast between norm and gain.
    found |= set() if affine and pipeline.place != "in_product" else {"cast"}
    found |= set() if affine or on_heads or pipeline.order == "none" else {"order"}  # rotary comes before nothing
    found |= {"on"} if pipeline.norm == "none" and (pipeline.on in ("qk", "qkv") or not affine) else set()
    found |= {"on"} if pipeline.place == "weights" and pipeline.on != "qkv" and not affine else set()
    return found | ({"layout", "rotated"} if pipeline.order == pipeline.conversion == "none" else set())


def _choice(pipeline: Pipeline, name: str) -> str:
    by_head = name == "bias" and pipeline.bias != "none" and pipeline.gain == "head_channel"
    return say("choice.gain.head_channel" if by_head else f"choice.{name}.{getattr(pipeline, name)}")


def caught(settings: Settings) -> str:
    """Which test finds what sets the sides apart: one with fresh weights, one with uneven gains, one of the output."""
    uneven = settings.but(
        gains="untied" if settings.gains == "unit" else settings.gains,
        gain_spread=settings.gain_spread or Settings.gain_spread,
        format="float64",
    )
    swept, spread = over_spreads(uneven), uneven.gain_spread
    fresh, grown = swept.differences[0], swept.differences[spreads_of(uneven).index(spread)]
    numbers = {"fresh": written(100 * fresh.logits, 3), "grown": written(100 * grown.logits, 3)}
    numbers |= {"output": written(100 * grown.output, 3), "fresh_output": written(100 * fresh.output, 3)}
    first = say("placement.caught.asked" if settings.format == "float64" else "placement.caught.asked_exactly")
    kind = _caught(settings, fresh, grown)
    own = apart_at_the_dial(settings.but(format="float64")).output  # with the gains of the dials, whatever these are
    numbers |= {"output": written(100 * own, 3)} if kind == "output" and own >= ROUNDING else {}
    told = say(f"placement.caught.{kind}", weights=_fresh(settings), learned=_learned(uneven, spread), **numbers)
    return " ".join([first, told, *(_caught_by_rounding(settings, uneven) if kind == "none" else [])])


def _caught(settings: Settings, fresh: Difference, grown: Difference) -> str:
    """Where the sides differ: with fresh weights, with grown ones, in the output alone, or nowhere."""
    if fresh.logits >= ROUNDING:
        return "fresh"
    after = _differ_after(*pair_of(settings))
    if after and fresh.output >= ROUNDING:
        return "fresh_output" if grown.logits >= ROUNDING else "output"
    if grown.logits >= ROUNDING:
        return "grown"
    return "output" if after and grown.output >= ROUNDING else "none"


def _fresh(settings: Settings) -> str:
    """Weights before training, and what their gains and biases are, as far as a side has them."""
    what = "_and_".join(name for name in ("gain", "bias") if _read(settings, name))
    return say(f"placement.fresh.{what or 'alone'}")


def _caught_by_rounding(settings: Settings, uneven: Settings) -> list[str]:
    """What a number format alone tells apart of one function: with these gains, or else with uneven ones."""
    for tried in (settings, uneven.but(format=settings.format)):
        apart = apart_at_the_dial(tried)
        values = {"format": settings.format, "score": written(100 * apart.logits, 3)}
        if not math.isfinite(apart.logits):
            return [say("placement.caught.lost", format=settings.format)]
        if apart.logits >= ROUNDING and tried == settings:
            return [say("placement.caught.rounding", **values)]
        if apart.logits >= ROUNDING:
            return [say("placement.caught.rounding_with", learned=_learned(tried, tried.gain_spread), **values)]
    return []


def pattern(
    verdict: Verdict, reference: Pipeline, d_head: int, misfit: str, exact: float = EXACT, block: Block | None = None
) -> str:
    """What the pattern of the error says; that it holds before the softcap, where the reference has one.

    `exact`: that of the diagnosis, from which a ratio counts as a power of √d. `block`: if its gains are known.
    """
    tolerance = max(TOLERANCE, 2 * exact)
    values = {"ratio": written(verdict.ratio, digits_apart(verdict.ratio, [1.0])), "misfit": misfit, "d": d_head}
    values |= {} if verdict.epsilon is None else {"epsilon": written(verdict.epsilon, 2)}
    other = other_scale(verdict.ratio, reference, d_head, tolerance)
    values |= {"other": say(f"choice.scale.{other}"), "own": say(f"choice.scale.{reference.scale}")} if other else {}
    sentences = [say(f"cause.{verdict.cause}", **values)]
    if verdict.cause.startswith("scale") or verdict.cause == "constant":
        by_gains = block and gains_too(verdict.ratio, reference, block)
        too = norm_too(verdict.ratio, reference, d_head, tolerance), "gains" if by_gains else None
        sentences += [say(f"cause.{word}_{'alone' if verdict.cause == 'constant' else 'too'}") for word in too if word]
    if reference.cap != "none" and verdict.cause not in ("cap", "too_few", "unknown"):
        sentences.append(say("placement.before_cap"))
    return " ".join(sentences)


def explain(result: Result) -> list[str]:
    """How far the sides are apart, then what the pattern of the error points to."""
    return list(_sentences(result))


@in_each_language(64)
def _sentences(result: Result) -> list[str]:
    settings = result.settings
    if settings.compare == "all_mistakes":
        return [
            findings(settings)[spreads_of(settings).index(settings.gain_spread)],
            vanishing(mistakes_over_spreads(settings)),
        ]
    numbers = {
        "score": gap_in_words(result.relative_score_error, ROUNDING),
        "raw": gap_in_words(result.relative_raw_error, ROUNDING),
        "weight": gap_in_words(result.largest_weight_difference, ROUNDING),
        "output": gap_in_words(result.relative_output_error, ROUNDING),
    }
    at, names = spreads_of(settings).index(settings.gain_spread), differing(*pair_of(settings))
    state = _states(settings)[at]
    word = "nothing" if state == "same" and not names else state
    # What comes after the logits moves the weights too: that is none of the format's doing.
    if state == "rounding" and _differ_after(*pair_of(settings)):
        word += "_and_output" if swept_in(settings, "float64").differences[at].output >= ROUNDING else ""
    sentences = [say(f"placement.{word}", format=settings.format, **numbers)]
    if names:
        sentences.append(say("placement.differs", names=", ".join(say(f"choice_name.{name}") for name in names)))
    sides = zip(("left", "right"), pair_of(settings), strict=True)
    sentences += [say(f"placement.{side}_who", who=in_words(pipeline)) for side, pipeline in sides]
    verdict, last = result.verdict, settings.offset + settings.n_keys - 1
    if verdict.cause != "same":
        misfit = gap(verdict.misfit, EXACT, 2)
        sentences.append(pattern(verdict, result.left.pipeline, settings.d_head, misfit, block=result.left.block))
        ends = {name: gap_in_words(float(result.by_query[at]), ROUNDING) for name, at in (("first", 0), ("last", -1))}
        sentences.append(say("placement.by_position", offset=settings.offset, last_position=last, **ends))
    if state == "apart" and settings.gains == "unit" and _read(settings, "gain"):
        sentences.append(say("placement.unit_gains"))
    return sentences
