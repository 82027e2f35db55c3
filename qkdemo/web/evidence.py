"""What the lab of a stop says, wherever that is shown: on its page, on a card, in a handout.

* `evidence_now(stop)`: that; of a stop that trains, that of its finished run, and None before there is one;
* `finished(plan)`: the steps of a run, once it is finished.
"""

from functools import lru_cache

from qkdemo.tracks.catalogue import evidence, is_trained
from qkdemo.tracks.stop import Evidence, Stop, Trained
from qkdemo.training.plan import Plan
from qkdemo.training.record import Chunk
from qkdemo.training.store import Store, StoreError, default_url
from qkdemo.training.twins import plan_of
from qkdemo.web.live import pool


def evidence_now(stop: Stop) -> Evidence | None:
    """What the stop's lab says; None as long as that has to be trained."""
    if not is_trained(stop):
        return evidence(stop)
    plan = plan_of(stop.state)
    chunk = finished(plan)
    return None if chunk is None else stop.evidence(Trained(plan, chunk.curves))


def finished(plan: Plan) -> Chunk | None:
    """The steps of a finished run, from the workers of this process, or from the store where there are none."""
    workers = pool()
    if workers is not None:
        live = workers.look(plan)
        return live.chunk if live is not None and live.state == "finished" else None
    try:
        record = _store(default_url()).read(plan)
    except StoreError:
        return None
    return record.chunk if record is not None and record.finished else None


@lru_cache(maxsize=2)
def _store(url: str) -> Store:
    return Store(url)
