"""A statement that people make, as a stop: true, false, outdated, or it depends.

* `VERDICTS`: the four words; `claim(...)`: the stop.

A verdict is worked out with `only` from what was measured, or read in the tables of `qkdemo.facts`. *Depends* means
that one measured state bears the statement out and another does not; *outdated*, that dated readings refute it now and
once bore it out. A condition names everything that the explanation leans on, so that a change of the numbers stops
the stop rather than leaving a sentence behind that is no longer so.
"""

from collections.abc import Callable, Mapping
from typing import Final

from qkdemo.labs.lab import Lab, R, S
from qkdemo.tracks.stop import Choose, Evidence, Read, Stop

VERDICTS: Final = Choose(("true", "false", "outdated", "depends"))


def claim(
    name: str,
    lab: Lab[S, R],
    state: S,
    evidence: Callable[[R], Evidence],
    points: tuple[int, ...],
    reads: Mapping[str, Read],
) -> Stop[S, R]:
    """A stop whose title is the statement; nothing is drawn before the verdict is predicted."""
    return Stop(name=name, lab=lab, state=state, evidence=evidence, ask=VERDICTS, points=points, reads=reads)
