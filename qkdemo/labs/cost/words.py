"""Costs in words: by formula (`finding`, `explain`) and by the clock (`time_finding`, `explain_times`, `spread`)."""

from qkdemo.labs.cost.lab import Result
from qkdemo.labs.cost.timing import Measured, Times
from qkdemo.messages import say
from qkdemo.notation import digits_apart, written


def finding(result: Result) -> str:
    """What a length of the text says."""
    parts = {part.part: part for part in result.parts}
    return say("cost.finding", keys=written(result.settings.n_keys), rms=written(100 * parts["rms"].share, 2))


def explain(result: Result) -> list[str]:
    """The share of each part on paper."""
    parts = {part.part: part for part in result.parts}
    values = {
        "attention": written(100 * parts["attention"].share, 3),
        "layernorm": written(100 * parts["layernorm"].share, 2),
        "l2": written(100 * parts["l2"].share, 2),
        "softcap": written(100 * parts["softcap"].share, 2),
        "moved": written(parts["rms"].bytes_moved / 2**20, 3),
        "logits": written(parts["softcap"].bytes_moved / 2**20, 3),
    }
    return [finding(result), *(say(f"cost.{name}", **values) for name in ("norms", "memory", "softcap"))]


def explain_times(measured: Measured) -> list[str]:
    """What the clock said of each way, and where it holds."""
    where = {"machine": measured.machine, "device": measured.device, "threads": measured.threads}
    ways = [
        say(f"cost.{'base' if times.way == 'sdpa' else 'time'}", way=say(f"choice.timed.{times.way}"), **spread(times))
        for times in measured.times
    ]
    return [time_finding(measured), *ways, say("cost.where", repeats=measured.settings.repeats, **where)]


def time_finding(measured: Measured) -> str:
    """What norms before fused attention cost here, if the rounds agree at all."""
    times = next(times for times in measured.times if times.way == "sdpa_norms")
    word = "unclear" if not times.is_apart else "slower" if times.ratio > 1 else "faster"
    return say(f"cost.clock.{word}", **spread(times))


def spread(times: Times) -> dict[str, str]:
    """Median and both ends, written."""
    return {
        "median": written(times.median_ms, 3),
        "lowest": written(min(times.each_ms), 3),
        "highest": written(max(times.each_ms), 3),
        "ratio": _ratio(times.ratio),
        "least": _ratio(min(times.ratios)),
        "most": _ratio(max(times.ratios)),
        "rounds": str(len(times.each_ms)),
    }


def _ratio(x: float) -> str:
    """In three digits, or in as many as tell it from 1, on one side of which all are said to lie or not."""
    return written(x, digits_apart(x, [1.0], least=3))
