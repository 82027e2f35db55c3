"""Which fused kernels, and which frameworks that call one, cap logits: readings with a date, each of a public thread.

* `READINGS`: every row of `softcap_kernels.json`, in order of date;
* `latest()`: the last word on each kernel; `first_acceptance()`: when the first of them took a cap.

A reading says what held on its day. Kernels move on: the file is a record, not a promise.
"""

import json
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Whether a fused kernel, or a framework with one, accepts a softcap, on that day."""

    kernel: str
    kind: str  # kernel, or framework: one that calls a kernel, and may or may not hand the cap on
    version: str
    date: date
    accepts: bool
    repo: str
    thread: str
    note: str

    @property
    def link(self) -> str:
        """The thread that says so."""
        return f"https://github.com/{self.repo}/{self.thread}"


def _read() -> tuple[Reading, ...]:
    rows = json.loads((Path(__file__).parent / "softcap_kernels.json").read_text(encoding="utf-8"))
    found = (Reading(**row | {"date": date.fromisoformat(row["date"])}) for row in rows)
    return tuple(sorted(found, key=lambda reading: reading.date))


READINGS: Final = _read()


def latest() -> dict[str, Reading]:
    """The last reading of each kernel.

    >>> latest()["FlashAttention"].version
    '2.6.2: backward, too'
    """
    return {reading.kernel: reading for reading in READINGS}


def first_acceptance() -> Reading:
    """The earliest reading of a kernel or framework that accepts a cap."""
    return next(reading for reading in READINGS if reading.accepts)
