"""What the lab of a stop says, wherever that is shown: on its page, on a card, in a handout.

* `evidence_now(stop)`: that; of a stop that trains, that of its finished run, and None before there is one;
* `finished(plan)`: the steps of a run, once it is finished;
* `train_here(stop, progress)`: finishes that run in this process, and keeps it for as long as that lives: for a shell.
"""

from functools import lru_cache
from typing import Final

from qkdemo.labs.training.lab import plan_of
from qkdemo.runs.batches import Progress
from qkdemo.runs.plan import Plan
from qkdemo.runs.record import Chunk
from qkdemo.runs.store import Store, StoreError, default_url
from qkdemo.runs.train_to_end import train_whole
from qkdemo.tracks.catalogue import evidence, is_trained
from qkdemo.tracks.stop import Evidence, Stop, Trained
from qkdemo.web.training.stream import pool

_TRAINED_HERE: Final[dict[str, Chunk]] = {}


def evidence_now(stop: Stop) -> Evidence | None:
    """What the stop's lab says; None as long as that has to be trained."""
    if not is_trained(stop):
        return evidence(stop)
    plan = plan_of(stop.state)
    chunk = finished(plan)
    return None if chunk is None else stop.evidence(Trained(plan, chunk.curves))


def finished(plan: Plan) -> Chunk | None:
    """The steps of a finished run, from the workers of this process, or from the store where there are none."""
    if plan.name in _TRAINED_HERE:
        return _TRAINED_HERE[plan.name]
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
    """Train the run of a stop that trains. Raises SettingsError or RuntimeError if it cannot be trained here."""
    plan = plan_of(stop.state)
    _TRAINED_HERE[plan.name] = train_whole(plan, progress)


@lru_cache(maxsize=2)
def _store(url: str) -> Store:
    return Store(url)
