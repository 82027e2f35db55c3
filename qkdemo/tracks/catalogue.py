"""Every track by name, and how a stop's evidence and sentences are come by.

* `TRACKS`: name → its stops, in order; `GUIDED`: those that lead somewhere, `CLAIMS`: the one that is a collection;
* `evidence(stop)`: what its lab says at its state, computed once a process; `is_trained(stop)`: whether it cannot be;
* `text(track, stop, part, numbers)`: a sentence of the stop, its numbers filled in; `told(...)`: with those it needs;
* `cited(found)`: where it was read.
"""

from collections.abc import Mapping
from typing import Any, Final

from qkdemo.dials import Declaration, Dial, Dials, declarations
from qkdemo.labs.lab import TrainedLab
from qkdemo.messages import has, in_each_language, say
from qkdemo.notation import counted, written
from qkdemo.tracks.beginner import stops as beginner
from qkdemo.tracks.claims import stops as claims
from qkdemo.tracks.developer import stops as developer
from qkdemo.tracks.researcher import stops as researcher
from qkdemo.tracks.stop import Evidence, Stop

TRACKS: Final[Mapping[str, tuple[Stop, ...]]] = {
    "beginner": beginner.STOPS,
    "developer": developer.STOPS,
    "researcher": researcher.STOPS,
    "claims": claims.STOPS,
}

CLAIMS: Final = "claims"
GUIDED: Final = tuple(track for track in TRACKS if track != CLAIMS)


def is_trained(stop: Stop) -> bool:
    """Whether its evidence is a recorded run, which somebody has to train first."""
    return isinstance(stop.lab, TrainedLab)


@in_each_language(128)
def evidence(stop: Stop) -> Evidence:
    """What a stop's lab says. Not for stops whose lab is trained: call `stop.evidence` with the recorded run."""
    return stop.evidence(stop.lab.run(stop.state))


def text(track: str, stop: Stop, part: str, numbers: Mapping[str, str] | None = None) -> str:
    """A sentence of a stop: `title`, `question`, `explain` or `choice.<word>`.

    What stands under `stop.<track>.any` serves all stops of the track. Raises KeyError for a number it lacks.
    """
    key = f"stop.{track}.{stop.name}.{part}"
    return say(key if has(key) else f"stop.{track}.any.{part}", **_states(stop), **(numbers or {}))


def told(track: str, stop: Stop, part: str) -> str:
    """A sentence of the stop; its lab is asked only if it quotes what that says. Not `explain` of a trained stop."""
    try:
        return text(track, stop, part)
    except KeyError:
        return text(track, stop, part, evidence(stop).numbers)


def cited(found: Evidence) -> str:
    """Where what the evidence leans on can be read, as links; evidence that has sources alone."""
    links = (f"[{words}]({address})" for words, address in found.sources.items())
    return say("claims.sources", sources="; ".join(links))


@in_each_language(128)
def _states(stop: Stop) -> dict[str, str]:
    return _dials("state", stop.state) | _dials("start", stop.start or stop.state)


def _dials(state: str, dials: Dials) -> dict[str, str]:
    declared = declarations(type(dials))
    return {f"{state}_{dial.name}": _written(dial, getattr(dials, dial.name)) for dial in declared}


def _written(dial: Declaration, value: Any) -> str:
    if not isinstance(dial.kind, Dial):
        return str(value)
    return counted(value) if dial.whole else written(value)
