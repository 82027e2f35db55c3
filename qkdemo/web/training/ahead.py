"""A stop's runs, trained while its question is still open, so that a hall sees them from the first step to the last.

* `train_ahead(stop)`: has them trained, as fast as it goes, if they are not recorded and not dear.
"""

from contextlib import suppress

from qkdemo.labs.lab import TrainedLab
from qkdemo.runs.budget import is_dear
from qkdemo.runs.workers.pool import PoolError
from qkdemo.tracks.stop import Stop
from qkdemo.web.serving.networks import here
from qkdemo.web.track.evidence import evidence_now
from qkdemo.web.training.shown import visitor
from qkdemo.web.training.stream import pool


def train_ahead(stop: Stop) -> None:
    """Begin what is not there yet; it ends when this visitor has gone."""
    workers = pool()
    plans = stop.lab.plans(stop.state) if isinstance(stop.lab, TrainedLab) else ()
    if workers is None or not plans or is_dear(plans) or evidence_now(stop) is not None:
        return
    if workers.still_wants(visitor(), plans):
        workers.attend(visitor())
        return
    with suppress(PoolError):  # no place is free: it is trained when the answer is asked for
        workers.start_all(plans, visitor(), here())
