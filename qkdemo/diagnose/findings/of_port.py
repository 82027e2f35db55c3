"""What is found in a port beside its reference."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

import torch
from torch import Tensor

from qkdemo.attention.norms import RMS_EPSILON, NormWord
from qkdemo.attention.pipeline import Pipeline
from qkdemo.diagnose import port
from qkdemo.diagnose.apart import Row
from qkdemo.diagnose.findings.finding import Finding, Report, by_level
from qkdemo.floats.formats import dtype_name
from qkdemo.labs.placement import words
from qkdemo.labs.placement.diagnosis import Verdict
from qkdemo.labs.placement.scales import NEAR, TOLERANCE, norm_instead
from qkdemo.messages import say
from qkdemo.notation import digits_apart, power, written

_OF_SCALE: Final[Mapping[str, float]] = {  # the power of the head width that a cause leaves as ratio
    "scale_one": 0.5,
    "scale_twice": -0.5,
    "scale_root": 1.0,
    "unit_vectors": -1.0,
}
_ACTS: Final = {"rounded": "near_one", "rounded_or_epsilon": "near_one"}
_WAYS: Final = ("near_one", "scale_or_epsilon", *_OF_SCALE)  # causes with a sentence on a ratio
# Relative differences that one step or more in a narrower format may leave: one in float16 or TF32 leaves 2e-4.
_ROUGH: Final = torch.finfo(torch.float16).eps / 8, 0.1
_OF_EPSILON: Final = 0.5  # how far from 1 a factor may be that is put down to ε, too
_BESIDE_EPSILON: Final = {  # cause → if an ε does the same, and if none does
    "constant": ("scale_or_epsilon", "constant"),
    "near_one": ("rounded_or_epsilon", "rounded"),
    "unknown": ("epsilon", "unknown"),
}
_DIALS: Final = ("place", "norm", "gain", "stored", "order", "layout", "rotated", "scale", "cap", "grouping")
_USUAL: Final = {"cap": "none", "grouping": "repeat"}  # said of a pipeline where it is not so


def of_port(result: port.Result, name: str) -> Report:
    """What is found in two arrays of logits."""
    tables = {"errors": result.errors} | ({"choices": choices} if (choices := _choices(result)) else {})
    return Report(kind="port", name=name, findings=by_level(_of_port(result)), tables=tables)


def _choices(result: port.Result) -> list[dict[str, str]]:
    """What both pipelines do, where they differ; no row if one of them is not known, or no logit tells it."""
    if result.alike:
        return []
    sides = {"reference": (result.reference, result.factor), "mine": (result.mine, result.known.mine_factor)}
    return [
        {"choice": _choice_name(result, choice)}
        | {side: _word(result, made, choice, factor) for side, (made, factor) in sides.items() if made}
        for choice in result.differing
    ]


def _of_port(result: port.Result) -> Iterator[Finding]:
    made = result.port
    if made.sequences > 1:
        yield from _of_sequences(result)
    if not made.visible.any():
        yield Finding("watch", "port_nothing")
        return
    if missing := _lost(made.reference):
        yield Finding("bad", "port_lost_reference", {"count": missing})
        return
    if count := _lost(made.mine):
        yield Finding("bad", "port_lost", {"count": count})
    lost = bool((~made.mine.isfinite() & made.visible).any())  # and then no size of an error is a number
    if made.masked_otherwise:
        yield Finding("bad", "port_mask", {"count": made.masked_otherwise})
    if lost and (result.verdict is None or result.reference is None):
        return
    yield from _of_pipelines(result, lost=lost)


def _of_sequences(result: port.Result) -> Iterator[Finding]:
    """What is looked at of several. Where the first ones differ, nothing is said of the others."""
    of, later = len(result.port.later), result.differ_later
    said = result.alike and of > 0 and bool(result.port.visible.any())
    yield Finding("good", "port_part_same" if said and not later else "port_part", {"count": of})
    if said and later:
        yield Finding("bad", "port_sequences", {"count": len(later), "of": of, "at": later[0]})


def _lost(logits: Tensor) -> int:
    """How many are NaN or +∞, also where the other side hides the pair; −∞ is a mask's."""
    return int((logits.isnan() | logits.isposinf()).sum())


def _of_pipelines(result: port.Result, *, lost: bool) -> Iterator[Finding]:
    """Which pipeline the reference is, and how the port differs from it, if its logits are all numbers."""
    made = result.port
    if made.block is not None and made.fitted < made.queries:
        yield Finding("good", "port_fit", _part(made))
    if result.verdict is None or result.reference is None:
        if made.block is not None and _any(*map(made.part, (made.reference, made.visible))):  # 0 tells no pipeline
            values = {"theta": written(made.block.theta), "epsilon": power(RMS_EPSILON)}
            yield Finding("watch", "port_unknown_reference", values)
        yield from _from_logits(result)
        return
    if not lost and (result.alike or result.verdict.cause == "same" or not _any(made.mine, made.visible)):
        yield from _from_logits(result)
    elif not lost:
        yield _of_verdict(result, result.reference, result.verdict)
        if result.in_all_but_a_row and "cap" not in result.differing:  # a cap changes rows of large logits most
            yield _odd_row(result)
    values = {"pipeline": _in_words(result, result.reference)}
    if result.rough:
        yield Finding("good", "port_reference_rough", values | {"format": dtype_name(result.rough)})
    else:
        yield Finding("good", "port_reference", values)


def _of_same(result: port.Result) -> Finding:
    """Over all both are the same but for rounding: that of storing, that of every step, or not in every row."""
    kind, steps = map(dtype_name, (result.port.format, result.rounded))
    if result.within(result.port.stored):
        return Finding("good", "port_same", {"error": written(result.same, 2), "format": kind})
    wider = dtype_name(torch.float64 if result.rounded is torch.float32 else torch.float32)
    values = {"error": written(100 * result.same, 2), "format": kind, "steps": steps, "wider": wider}
    if result.within(result.exact):
        if result.same > result.port.stored:
            return Finding("watch", "port_near", values)
        return Finding("watch", "port_row_stored", values | _row(result.worst))
    return Finding("bad", "port_row", values | _row(result.worst))


def _of_steps(result: port.Result) -> str:
    """What else may leave a pattern of that size, where steps were not rounded as q and k are anyway."""
    wide = result.port.steps is torch.float32 and _ROUGH[0] < result.same < _ROUGH[1]
    return f" {say('finding.port_steps')}" if wide else ""


def _part(made: port.Port) -> dict[str, object]:
    """From which queries pipelines were told."""
    return {"first": made.first, "last": made.first + made.fitted - 1, "all": made.queries}


def _row(row: Row) -> dict[str, object]:
    return {"head": row.head, "query": row.query, "worst": written(100 * row.error, 2)}


def _ratio(result: port.Result) -> str:
    """With as many digits as tell it from 1: a scale that was rounded leaves a ratio near it."""
    return written(result.told, digits_apart(result.told, [1.0]))


def _odd_row(result: port.Result) -> Finding:
    """The row whose logits are not the ratio that all others are."""
    return Finding("bad", "port_ratio_row", _row(result.apart) | {"ratio": _ratio(result)})


def _ways(causes: Iterable[str], d: int = 0) -> str:
    """What may have left a ratio, a sentence for each cause that has one."""
    return "".join(f" {say(f'finding.port_ratio_{word}', d=d)}" for word in causes if word in _WAYS)


def _of_verdict(result: port.Result, reference: Pipeline, verdict: Verdict) -> Finding:
    assert result.port.block is not None
    known = "gain" in result.differing  # or, in 16 bits, a wrong turn looks like other gains, and so does 1 + γ
    several = bool(result.differing) and verdict.cause in ("unknown", "too_few", *(() if known else ("gain",)))
    d_head, misfit = result.port.block.d_head, written(verdict.misfit, 2)
    if verdict.cause in _OF_SCALE:  # without what rounding left of it
        verdict = replace(verdict, ratio=d_head ** _OF_SCALE[verdict.cause])
    if verdict.cause in _BESIDE_EPSILON:
        by_epsilon, by_scale = _BESIDE_EPSILON[verdict.cause]
        epsilon = result.known.epsilon
        verdict = replace(verdict, cause=by_scale if epsilon is None else by_epsilon, epsilon=epsilon)
    pattern = "" if several else words.pattern(verdict, reference, d_head, misfit, result.exact, result.port.block)
    odd = result.in_all_but_a_row and not math.isnan(verdict.ratio)
    if odd:  # a cause says it of every logit
        key = "port_ratio_over_all" if result.port.fitted == result.port.queries else "port_ratio_of_part"
        ways = _ways([_ACTS.get(verdict.cause, verdict.cause)], d_head) if result.shared else ""
        pattern = say(f"finding.{key}", ratio=_ratio(result), ways=ways, **_part(result.port))
    if result.differing:
        names = ", ".join(_choice_name(result, choice) for choice in result.differing)
        pattern += " " * bool(pattern) + say("finding.port_differs", names=names)
    look = None
    if result.mine and result.differing:  # or the lab would show the reference beside itself
        look = ("placement", _dials("left", reference) | _dials("right", result.mine))
    named = bool(result.differing) or verdict.cause not in ("unknown", "too_few", "rounded", "rounded_or_epsilon")
    act = "named" if named else _ACTS.get(verdict.cause, verdict.cause)
    act = "unknown" if odd and not result.shared and not result.differing else act
    pattern += _of_steps(result) if act == "unknown" and not odd else ""
    act += "_unturned" if act == "unknown" and reference.order == "none" else ""
    size = written(100 * result.same, 2)
    return Finding("bad", "port", {"error": size, "pattern": pattern, "act": say(f"finding.act.{act}")}, look)


def _epsilon(epsilon: float | None) -> str:
    return "" if epsilon is None else written(epsilon, 2)


def _choice_name(result: port.Result, choice: str) -> str:
    """What is told as a scale may be another ε, or another norm."""
    if choice != "scale":
        return say(f"choice_name.{choice}")
    own = (result.reference or Pipeline()).scale == "learned"
    epsilon = result.known.reference_epsilon if own and result.known.epsilon is None else result.known.epsilon
    return say(f"choice_name.scale{_or_norm(result) if epsilon is None else '_or_epsilon'}")


def _or_norm(result: port.Result) -> str:
    """`_or_norm` where the other norm does the same with the reference's scale."""
    if result.port.block is None or not result.reference or not result.mine or "norm" in result.differing:
        return ""
    sides = (result.reference, result.factor), (result.mine, result.known.mine_factor)
    norms: set[NormWord] = {"rms", "l2"} if "norm" in result.untold else {result.reference.norm}
    does = norm_instead(*sides, result.port.block, norms, max(TOLERANCE, 2 * result.exact))
    return "_or_norm" if does else ""


def _dials(side: str, pipeline: Pipeline) -> dict[str, str]:
    return {f"{side}_{choice}": getattr(pipeline, choice) for choice in _DIALS}


def _word(result: port.Result, pipeline: Pipeline, choice: str, factor: float = 1.0) -> str:
    """Of a pipeline without a norm no order of one is said; of a scale of its own, its `factor` over 1/√d."""
    if choice == "cap" and pipeline.cap != "none" and result.port.block:
        return say("finding.port_capped", softcap=written(result.port.block.softcap))
    if choice == "order" and pipeline.norm == "none" != pipeline.order:
        return say("finding.port_rotary_alone")
    if choice == "scale" and pipeline.scale == "learned":
        return say("finding.port_scale_times", factor=written(factor, digits_apart(factor, [1.0])))
    return say(f"choice.{choice}.{getattr(pipeline, choice)}")


def _in_words(result: port.Result, pipeline: Pipeline) -> str:
    """The choices that the reference has: without a norm it has no place, and without a rotation no layout.

    Its scale is the one that is named times a factor; a learned one is 1/√d times that. Of gains that were brought it
    is said how they are read, and of a choice that the logits do not tell, that they do not.
    """
    factor, epsilon = result.factor, result.known.reference_epsilon
    left_out = {"place"} if pipeline.norm == "none" else set[str]()
    left_out |= {"layout", "rotated"} if pipeline.order == "none" else set()
    words = {
        choice: _word(result, pipeline, choice)
        for choice in ("norm", "place", "stored", "order", "layout", "rotated", "scale")
        if choice not in left_out and (choice != "stored" or pipeline.gain != "none")
    }
    unusual = {choice for choice, usual in _USUAL.items() if getattr(pipeline, choice) != usual}
    words |= {choice: _word(result, pipeline, choice) for choice in _USUAL if choice in unusual | result.untold}
    words |= {choice: say("finding.port_untold", choice=words[choice]) for choice in result.untold & words.keys()}
    near = written(factor, digits_apart(factor, [1.0]))
    if pipeline.scale != "learned" and factor != 1:
        key = "rounded" if epsilon is None else "nearly"
        words["scale"] = say(f"finding.port_scale_{key}", scale=words["scale"], factor=near, epsilon=_epsilon(epsilon))
    elif pipeline.scale == "learned" and epsilon is not None:
        words["scale"] = say("finding.port_scale_other", factor=near, epsilon=_epsilon(epsilon))
    elif pipeline.scale == "learned":
        words["scale"] = say("finding.port_scale_times", factor=near)
    return "; ".join(f"{say(f'choice_name.{choice}')}: {word}" for choice, word in words.items())


def _any(logits: Tensor, visible: Tensor) -> bool:
    """Whether any logit that is seen is other than 0."""
    return bool(logits.masked_fill(~visible, 0).any())


def _from_logits(result: port.Result) -> Iterator[Finding]:
    """What can be told without q and k: that both are the same, or that they have a constant ratio."""
    if result.alike:
        yield _of_same(result)
        return
    shown = [_any(x, result.port.visible) for x in (result.port.mine, result.port.reference)]
    values = {"error": written(100 * result.same, 2)}
    if not all(shown):
        yield Finding("bad", "port_zero" if shown[1] else "port_zero_reference")
    elif math.isnan(result.ratio):
        yield Finding("bad", "port_pattern", values | {"hint": _of_steps(result)})
        if result.verdict and result.verdict.cause == "same" and result.alike_in_part:
            yield Finding("bad", "port_later", _row(result.worst) | _part(result.port))
    else:
        widths = {word: result.ratio ** (1 / of_width) for word, of_width in _OF_SCALE.items() if result.ratio > 0}
        if result.port.block is not None:  # and then the width is known
            widths = {word: d for word, d in widths.items() if round(d) == result.port.block.d_head}
        known = [(word, round(d)) for word, d in widths.items() if 8 <= d <= 1024 and abs(d - round(d)) < 0.01 * d]
        likely = [(word, d) for word, d in known if d % 8 == 0 or result.port.block]  # as head widths are
        near = math.isclose(result.ratio, 1, rel_tol=NEAR)
        small = not near and abs(result.ratio - 1) < _OF_EPSILON
        ways = _ways(["near_one"] * near + ["scale_or_epsilon"] * small) + "".join(
            _ways([word], d) for word, d in likely
        )
        act = "near_one" if near else "scale_or_epsilon" if small else "scaled"
        ways, act = (ways, act) if result.shared or not result.uneven else ("", "unknown_unturned")
        values |= {"ratio": _ratio(result), "ways": ways, "act": say(f"finding.act.{act}")}
        yield Finding("bad", "port_ratio_over_all" if result.uneven else "port_ratio", values)
        if result.uneven:
            yield _odd_row(result)
    if result.port.block is None:
        yield Finding("watch", "port_needs")
