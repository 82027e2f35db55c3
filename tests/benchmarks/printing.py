"""How a measurement is printed: ours, the baseline of the same run, and their ratio."""

import os
import statistics
from collections.abc import Sequence


def head(title: str) -> None:
    """A title, and how busy the machine is: the numbers below it are worth comparing only with each other."""
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores" if hasattr(os, "getloadavg") else ""
    print(f"\n{title}  ({load})")


def line(what: str, ours: float, baseline: float | None = None, unit: str = "ms") -> None:
    """One measurement, beside its baseline if it has one."""
    beside = "" if baseline is None else f"  baseline {baseline:8.1f} {unit}  ratio {ours / baseline:5.2f}"
    print(f"  {what:<52}{ours:8.1f} {unit}{beside}")


def median(values: Sequence[float]) -> float:
    """The middle value; NaN if there is none."""
    return statistics.median(values) if values else float("nan")


def late(values: Sequence[float]) -> float:
    """The value that 95 of 100 stay below; NaN if there is none."""
    return sorted(values)[int(0.95 * (len(values) - 1))] if values else float("nan")
