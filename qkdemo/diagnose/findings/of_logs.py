"""What is found in a training log, run by run."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from qkdemo.diagnose.curves import causes
from qkdemo.diagnose.curves.growth import LARGE, Growth
from qkdemo.diagnose.curves.other_columns import Cause
from qkdemo.diagnose.curves.stuck import ONE_HOT
from qkdemo.diagnose.findings.finding import Finding, Level, Report, by_level
from qkdemo.diagnose.findings.of_events import earlier, kind, rows_of, what, whole
from qkdemo.diagnose.readers.columns import EVALUATED, OVER_LAYERS, ROLES, Log, choices, names_attention
from qkdemo.diagnose.readers.inputs import some
from qkdemo.diagnose.readers.runs import LEAST_ROWS
from qkdemo.messages import say
from qkdemo.notation import at_least, at_most, counted, digits_apart, written

_CAUSES: Final[Mapping[str, Level]] = {
    "healthy": "good",
    "small_spikes": "good",
    "noisy_spikes": "good",
    "high_start": "watch",
    "no_loss": "watch",
    "few_losses": "watch",
    "loss_ends": "watch",
    "loss_gap": "watch",
    "cells_empty": "watch",
    "policy_loss": "good",
    "margin_zeros": "watch",
    "gradient_passed": "good",
    "logits_alone": "good",
    "growing_logits": "watch",
    "large_logits": "watch",
    "large_alone": "watch",
    "unsettled": "watch",
}


def of_logs(results: Sequence[causes.Result], name: str) -> Report:
    """What is found in a log, run by run."""
    found = [finding for result in results for finding in _of_log(result, several=len(results) > 1)]
    events = [
        {
            "run": result.log.run,
            "kind": kind(result, event),
            "from": _exact(result.log.step[event.start]),
            "to": _exact(result.log.step[event.stop]),
        }
        for result in results
        for event in result.events
    ]
    matched = [
        {"run": result.log.run, "role": role, "column": column}
        for result in results
        for role, column in result.roles.items()
    ]
    return Report(
        kind="log",
        name=name,
        findings=by_level(found),
        tables={"columns": matched} | ({"events": events} if events else {}),
        curves={result.log.run: result.log for result in results},
    )


def _of_log(result: causes.Result, *, several: bool) -> Iterator[Finding]:
    run = f"{say('finding.run', run=result.log.run)} " if several else ""
    for at, cause in enumerate(result.causes):
        if at and cause.key == "healthy":
            continue
        values: dict[str, object] = {
            name: whole(number) if name in _WHOLE else written(number) for name, number in cause.numbers.items()
        }
        values |= _beside_a_limit(result, cause)
        values |= _in_words(result, cause) | _order(result, cause)
        level = _CAUSES.get(cause.key, "bad" if at == 0 else "watch")
        if cause.key == "logits_alone" and cause.numbers["logit"] >= LARGE:
            level = "watch"
        yield Finding(level, cause.key, values | {"run": run}, _LABS.get(cause.key))
    yield from _of_rows(result.log, run)
    yield from _of_columns(result, run)
    if result.growth is not None and result.growth.grows:
        grown = result.growth
        values = {
            **doubling(grown),
            "run": run,
            "by": "" if grown.by == "unknown" else say(f"finding.by.{grown.by}"),
        }
        growing = grown.last >= LARGE or any(cause.key in _GROWING for cause in result.causes)
        yield Finding("watch" if growing else "good", "growth", values)
    if result.all_rows > len(result.log.step):
        rows = {"rows": counted(len(result.log.step)), "all": counted(result.all_rows)}
        yield Finding("good", "thinned", {"run": run} | rows)
    elif result.log.sampled:
        yield Finding("good", "sampled", {"run": run})


def _in_words(result: causes.Result, cause: Cause) -> dict[str, object]:
    """Words for what the loss did, and for whose entropy it is."""
    said = dict[str, object]()
    if result.event is not None:
        said["what"] = what(result, result.event)
        said["batch"] = say(f"finding.batch.{'many' if rows_of(result, result.event) > 1 else 'one'}")
    if "from_start" in cause.numbers:
        said["still"] = say(f"finding.still.{'start' if cause.numbers['from_start'] else 'tenth'}")
    if cause.key == "stuck_attention":
        said["hot"] = _hot(cause.numbers, _of_worst(result))
        first = "first" if cause.numbers["from_first"] else "after" if cause.numbers["stood"] else "later"
        said["large"] = say(f"finding.large.{first}", once=whole(cause.numbers["once"]))
        said["start"] = say(f"finding.start.{'large' if first == 'first' else 'small'}")
    if cause.key in ("gradient_overflow", "gradient_or_loss"):
        said["more"] = "".join(f"{words} " for words in _of_gradient(cause.numbers))
        words = ("alone", "unseen") if "alone" in cause.numbers else ("beside", "whole")
        said["loss"], said["whole"] = (say(f"finding.gradient.{word}") for word in words)
    if cause.key == "gradient_passed":
        steps = {name: whole(cause.numbers[name]) for name in ("step", "until") if name in cause.numbers}
        said["passed"] = say(f"finding.passed.{'until' if 'until' in steps else 'all'}", **steps)
    if cause.key == "cells_empty":
        said["cells"] = " ".join(_empty_cells(result, cause.numbers))
    if cause.key == "policy_loss":
        said["column"] = result.roles["loss"]
    if cause.key in _BY_ENTROPY:
        said["where"] = _of_worst(result)
    return said


def _of_gradient(numbers: Mapping[str, float]) -> Iterator[str]:
    """What is said of other rows in which the gradient is lost."""
    steps = {name: whole(numbers[name]) for name in ("once", "last", "count") if name in numbers}
    if numbers.get("lasts"):
        yield say("finding.gradient.lasts")
    if "once" in steps:
        yield say("finding.gradient.earlier", **steps)
    if "last" in steps and numbers["count"] > 1:
        yield say("finding.gradient.rows", **steps)


def _empty_cells(result: causes.Result, numbers: Mapping[str, float]) -> Iterator[str]:
    """Of each column, how many of its cells are empty."""
    for role, column in result.roles.items():
        if role in numbers:
            cells = result.log.unfilled[column]
            counts = {"count": counted(cells.cells), "rows": counted(cells.every)}
            word = "each" if cells.every == 1 else "apart"
            yield say(f"finding.cells.{word}", column=cells.column, step=whole(cells.first), **counts)


def _hot(numbers: Mapping[str, float], where: str) -> str:
    """Whether attention was one-hot: as its entropy says, if one is logged."""
    if "entropy" not in numbers:
        return say("finding.hot.unseen")
    word = "one_hot" if numbers["entropy"] <= 100 * ONE_HOT else "spread"
    return say(f"finding.hot.{word}", where=where, entropy=written(numbers["entropy"]))


def _of_worst(result: causes.Result) -> str:
    return say("finding.of_worst") if _over_heads(result, result.roles.get("entropy", "")) else ""


def _beside_a_limit(result: causes.Result, cause: Cause) -> dict[str, str]:
    """Numbers with as many digits as show that they are below 100, or beyond the log's last step."""
    found = dict[str, str]()
    logit, large_at = (cause.numbers.get(name) for name in ("logit", "large_at"))
    if logit is not None and logit < LARGE:
        text = at_most if cause.key == "logits_passed" else written
        found["logit"] = text(logit, digits_apart(logit, [LARGE], most=12 if text is at_most else 17, text=text))
    if large_at is not None:
        found["large_at"] = written(large_at, digits_apart(large_at, [float(result.log.step[-1])]))
    return found


def doubling(grown: Growth) -> dict[str, str]:
    """In how many `steps` a logit doubles, and from `low` to `high`: the interval, rounded outward."""
    rates = {"steps": (grown.rate, written), "low": (grown.high, at_least), "high": (grown.low, at_most)}
    return {name: rounded(math.log(2) / rate, 3) for name, (rate, rounded) in rates.items()}


def _order(result: causes.Result, cause: Cause) -> dict[str, object]:
    """Words for what came when: before updates jumped, from a column's first row on, or of a loss that is back."""
    numbers, said = cause.numbers, dict[str, object]()
    steps = {name: whole(numbers[name]) for name in ("since", "step", "low", "once") if name in numbers}
    if cause.key.startswith("updates"):
        after = any(other.numbers.get("earliest", math.inf) <= numbers["at"] for other in result.causes)
        order = "_rising" if "low" in numbers else "_later" if after else ""
        said["first"] = say(f"finding.first.{cause.key}{order}")
        said["moved"] = say(f"finding.moved.{'rising' if 'low' in numbers else 'after'}", **steps)
    if "earliest" in numbers:
        spike = result.event is not None and result.event.kind == "spike"
        passes = "passes" if spike and cause.key != "nearly_one_hot" else "stays"
        before = min(numbers["earliest"], numbers.get("low", math.inf))
        if result.event is not None and (rise := earlier(result, result.event)) is not None:
            before = min(before, result.log.step[rise.start])
        anew = "_anew" if before == result.log.step[0] else ""
        said["again"] = say(f"finding.again.{passes}{anew}", since=whole(before))
        if cause.key == "together_max_logit":  # no spike is in the first row
            said["then"] = say(f"finding.then.{passes}{anew}", since=whole(before))
    if cause.key.startswith(("attention_", "rising_")):
        since = "first" if numbers["from_first"] else "again" if "once" in numbers else "late"
        said["came"] = say(f"finding.since.{since}", **steps)
        said |= {"moved": say("finding.moved.rising", **steps)} if "low" in numbers else {}
    return said


def _by_entropy(cause: Cause) -> bool:
    return cause.key in _BY_ENTROPY or "entropy" in cause.numbers


def _over_heads(result: causes.Result, columns: str) -> bool:
    """Whether numbers of a step are those of the worst of its layers or heads."""
    return bool(columns) and (result.log.kind == "watch" or OVER_LAYERS in columns)


def _exact(step: float) -> float:
    """A step as a table writes it with every digit, where it is a whole number."""
    return int(step) if step == int(step) else float(step)


def _of_rows(log: Log, run: str) -> Iterator[Finding]:
    """How steps were counted, and which rows were not looked at."""
    if log.steps != "named":
        yield Finding("good", f"steps_of_{log.steps}", {"run": run})
    if log.kept < log.rows:
        yield Finding("good", "replaced", {"run": run, "all": counted(log.rows), "kept": counted(log.kept)})
    if log.cut:
        yield Finding("good", "cut_line", {})


def _of_columns(result: causes.Result, run: str) -> Iterator[Finding]:
    """How columns were read, and which head's they are."""
    column = result.roles.get("entropy", "")
    if column and "fraction" not in column and any(map(_by_entropy, result.causes)):
        yield Finding("watch", "entropy_share", {"run": run, "column": column})
    yield from _of_several(result, run)
    for role in _NAN_OF:
        unread = (name for name in result.log.between if ROLES[role].search(name) and not EVALUATED.search(name))
        name = result.roles.get(role) or next(unread, "")
        if name in result.log.between:
            numbers = name in result.log.columns and role != "max_logit"
            where = say(f"finding.nan.{'between' if numbers else 'beside'}")
            column, count = result.log.between[name]
            values = {"column": column, "count": counted(count), "where": where}
            yield Finding("watch", "between_nan", {"run": run} | values)
        if role in result.log.empty and role not in result.roles:
            yield Finding("watch", "empty_column", {"run": run, "column": result.log.empty[role]})
    logits = result.roles.get("max_logit", "")
    if _over_heads(result, logits + column):
        yield Finding("good", "worst_of_each", {"run": run})
    if logits and not names_attention(logits) and "max_logit" not in result.named:
        yield Finding("watch", "logit_read", {"run": run, "column": logits})
    if result.no_share:
        yield Finding("watch", "entropy_unread", {"run": run, "column": result.no_share})
    if result.log.where and any(cause.key in _GROWING for cause in result.causes):
        yield Finding("watch", "worst_head", {"run": run, "where": result.log.where})


def _of_several(result: causes.Result, run: str) -> Iterator[Finding]:
    """Which column was looked at, where others that hold as much may be the same."""
    for role, (column, *others) in choices(result.log).items():
        full = [name for name in others if (~np.isnan(result.log.columns[name])).sum() >= LEAST_ROWS]
        if full and role in _SAID_OF and result.roles.get(role) == column and role not in result.named:
            values = {"role": say(f"finding.role.{role}"), "column": column, "names": some(full, most=_NAMED)}
            yield Finding("good", "of_several", {"run": run} | values)


_SAID_OF: Final = ("loss", "grad_norm", "update_norm", "max_logit", "entropy", "q_norm", "k_norm")  # roles
_NAN_OF: Final = ("loss", "grad_norm", "update_norm", "max_logit")  # roles
_NAMED: Final = 4  # of many columns
_WHOLE: Final = ("step", "since", "earliest", "last_large", "at", "back", "count", "until", "low", "once")
_BY_ENTROPY: Final = (
    *("attention_entropy", "rising_entropy", "together_entropy", "entropy_alone"),
    *("stuck_one_hot", "stuck_calm", "stuck_late", "nearly_one_hot"),
)
_GROWING: Final = (
    *("growing_logits", "large_logits", "large_alone", "nearly_one_hot", "logits_lost"),
    *("attention_max_logit", "rising_max_logit", "together_max_logit", "stuck_attention", "stuck_late"),
)
_LABS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "attention_max_logit": ("training", {}),
    "attention_entropy": ("drift", {"scale": "16"}),
    "rising_max_logit": ("training", {}),
    "rising_entropy": ("drift", {"scale": "16"}),
    "together_max_logit": ("training", {}),
    "together_entropy": ("drift", {"scale": "16"}),
    "not_attention": ("sensitivity", {}),
    "logits_passed": ("sensitivity", {}),
    "growing_logits": ("drift", {}),
    "large_logits": ("drift", {"scale": "8"}),
    "large_alone": ("drift", {"scale": "8"}),
    "nearly_one_hot": ("drift", {"scale": "16"}),
    "stuck_attention": ("drift", {"scale": "16"}),
    "beyond_start": ("sensitivity", {}),
    "never_below": ("sensitivity", {}),
    "stuck_rate": ("sensitivity", {}),
    "gradient_overflow": ("formats", {}),
    "gradient_or_loss": ("formats", {}),
}
