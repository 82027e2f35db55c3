"""What a stop's lab says, also where its lab has to be trained first; as a program: pins answers anew.

* `pinned(stop)`: what is kept of it; `differences(found, kept)`: where it is no longer that, as numbers;
* `number(text)`: the number that a sentence writes.

Processors round differently: a pin is compared to the digits that a reader sees, never by its bits.
"""

import json
import math
import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from qkdemo.dials import Dials
from qkdemo.labs import training
from qkdemo.tracks.catalogue import TRACKS, evidence, is_trained
from qkdemo.tracks.stop import Evidence, Stop
from tests.runs.plans import trained_curves

PINS = Path(__file__).parent / "answers"
SAME = 1e-9  # relative difference up to which two computed answers are one
NOISE = (1e-18, 1e-14)  # what is left of numbers near 1 that are equal but for float64's rounding
_WRITTEN = re.compile(r"−?(\d[\d\u202f]*)(\.\d+)?(·10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?|−?∞|NaN")
_RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


@lru_cache(maxsize=8)
def trained(state: Dials) -> training.Result:
    assert isinstance(state, training.Settings)
    return training.LAB.read(state, [trained_curves(plan) for plan in training.LAB.plans(state)])


@lru_cache(maxsize=256)
def evidence_of(stop: Stop) -> Evidence:
    return stop.evidence(trained(stop.state)) if is_trained(stop) else evidence(stop)


def pinned(stop: Stop) -> dict[str, str | float]:
    """The answer and every number; of a run that was trained the answer alone: after a collapse digits are chaotic."""
    found = evidence_of(stop)
    return {"answer": found.answer, **({} if is_trained(stop) else found.numbers)}


def number(text: str) -> float:
    """The number that `written` or `counted` wrote as `text`. Raises ValueError for another text."""
    if not _WRITTEN.fullmatch(text):
        raise ValueError(f"{text!r} is no written number")
    mantissa, _, exponent = text.replace("\u202f", "").replace("−", "-").replace("∞", "inf").partition("·10")
    return float(mantissa) if not exponent else float(f"{mantissa}e{exponent.translate(_RAISED)}")


def differences(found: Mapping[str, str | float], kept: Mapping[str, str | float]) -> list[str]:
    """Names under which `found` and `kept` differ by more than another processor's rounding."""
    return [name for name in {**found, **kept} if not _agree(found.get(name, ""), kept.get(name, ""))]


def _agree(found: str | float, kept: str | float) -> bool:
    if isinstance(found, float) and isinstance(kept, float):
        return math.isclose(found, kept, rel_tol=SAME)
    if isinstance(found, float) or isinstance(kept, float):
        return False
    if found == kept:
        return True
    if not (_WRITTEN.fullmatch(found) and _WRITTEN.fullmatch(kept)):
        return False
    one, other = abs(number(found)), abs(number(kept))
    noise = all(NOISE[0] <= x <= NOISE[1] for x in (one, other))
    return noise or math.isclose(one, other, rel_tol=0, abs_tol=1.01 * _last_digit(kept))


def _last_digit(text: str) -> float:
    """What one unit of the last digit of a written number is worth; 0 of a whole number, which may be a count."""
    if "." not in text:
        return 0.0
    mantissa, _, exponent = text.partition("·10")
    return 10.0 ** (int(exponent.translate(_RAISED) or 0) - len(mantissa.partition(".")[2]))


if __name__ == "__main__":
    for track in sys.argv[1:] or TRACKS:
        answers = {stop.name: pinned(stop) for stop in TRACKS[track]}
        text = json.dumps(answers, indent=1, ensure_ascii=False)
        (PINS / f"{track}.json").write_text(text + "\n", encoding="utf-8")
