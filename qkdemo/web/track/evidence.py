"""What the lab of a stop says and draws, wherever that is shown: on its page, on a card, in a handout.

* `evidence_now(stop)`: what it says; of a lab that trains, what its finished runs say, and None before there are any;
* `drawn(stop, state)`: its exhibit in a state, without a page;
* `train_here(stop, progress)`: finishes its runs in this process, and keeps them while that lives: for a shell.
"""

from functools import lru_cache
from typing import Any, Final

from qkdemo.charts.spec import Drawn
from qkdemo.dials import Dials
from qkdemo.labs.lab import TrainedLab
from qkdemo.runs.batches import Progress
from qkdemo.runs.kept.record import Chunk
from qkdemo.runs.kept.shipped import shipped
from qkdemo.runs.kept.store import Store, StoreError, default_url
from qkdemo.runs.plan import Plan
from qkdemo.runs.train_to_end import train_whole
from qkdemo.tracks.catalogue import evidence
from qkdemo.tracks.stop import Evidence, Stop
from qkdemo.web.training.stream import pool

_TRAINED_HERE: Final[dict[str, Chunk]] = {}


def evidence_now(stop: Stop) -> Evidence | None:
    """What the stop's lab says; None as long as that has to be trained."""
    if not isinstance(stop.lab, TrainedLab):
        return evidence(stop)
    result = _recorded(stop.lab, stop.state)
    return None if result is None else stop.evidence(result)


def drawn(stop: Stop, state: Dials) -> Drawn | None:
    """The exhibit of the stop's lab in that state; None if the lab has none, or its runs are not recorded."""
    if stop.lab.exhibit is None:
        return None
    result = _recorded(stop.lab, state) if isinstance(stop.lab, TrainedLab) else stop.lab.run(state)
    return None if result is None else stop.lab.exhibit(result)


def finished(plan: Plan) -> Chunk | None:
    """The steps of a finished run, from this server or its store; else of one that came with the app."""
    if plan.name in _TRAINED_HERE:
        return _TRAINED_HERE[plan.name]
    found = _finished_here(plan)
    if found is None:
        came = shipped().record(plan)
        found = came.chunk if came is not None else None
    return found


def _finished_here(plan: Plan) -> Chunk | None:
    workers = pool()
    if workers is not None:
        live = workers.look(plan)
        return live.chunk if live is not None and live.state == "finished" else None
    try:
        record = _store(default_url()).read(plan)
    except StoreError:
        return None
    return record.chunk if record is not None and record.finished else None


def train_here(stop: Stop, progress: Progress = lambda done, total: None) -> None:
    """Train the runs of a stop that trains. Raises SettingsError or RuntimeError if they cannot be trained here."""
    if isinstance(stop.lab, TrainedLab):
        for plan in stop.lab.plans(stop.state):
            _TRAINED_HERE[plan.name] = train_whole(plan, progress)


def _recorded(lab: TrainedLab, state: Dials) -> Any:
    """What the lab's runs say, once all are finished."""
    chunks = [finished(plan) for plan in lab.plans(state)]
    return None if None in chunks else lab.read(state, [chunk.curves for chunk in chunks if chunk is not None])


@lru_cache(maxsize=2)
def _store(url: str) -> Store:
    return Store(url)
