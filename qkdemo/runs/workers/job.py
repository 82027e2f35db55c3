"""One job of a worker: a plan from where its record ends to a given step, at a given pace.

* `train(job, store, hand, emit)`: does it; `Job`: what is to be done;
* `Hand`: what may be changed meanwhile, from another thread: the pace, and the order to stop.

Every step is recorded before it is told of, so that what anybody has seen is kept. If the store cannot be written, the
job goes on, says so, and records what it missed as soon as it can.
"""

import sys
import threading
import time
from dataclasses import dataclass
from functools import partial
from typing import Final

from qkdemo.runs.kept.parking import Parking
from qkdemo.runs.kept.record import chunk_to_bytes
from qkdemo.runs.kept.store import Store, StoreError
from qkdemo.runs.plan import Plan
from qkdemo.runs.trainers import Course, Rows
from qkdemo.runs.workers.keeper import Emit, Keeper

FRAME_S: Final = 1 / 30  # between two chunks: what a screen can show
CEILING_S: Final = 600.0  # of computing, for what one press asks for
_LATE_S: Final = 0.5  # behind its pace by more, a run no longer tries to catch up


@dataclass
class Hand:
    """What a job heeds while it goes on."""

    pace: float = float("inf")  # steps per second

    def __post_init__(self) -> None:
        self._moved = threading.Condition()
        self.stopped = False
        self.abandoned = False
        self.beats = 0  # grows as long as the job goes on

    def beat(self) -> None:
        """Something was done."""
        self.beats += 1

    def stop(self) -> None:
        """End the job after the step it is in."""
        with self._moved:
            self.stopped = True
            self._moved.notify_all()

    def abandon(self) -> None:
        """End it as well, since whoever ordered it is gone: its record says that it was not brought to rest."""
        self.abandoned = True
        self.stop()

    def set_pace(self, pace: float) -> None:
        """Go on at `pace`."""
        with self._moved:
            self.pace = pace
            self._moved.notify_all()

    def goes_on(self, until: float) -> bool:
        """Whether the next step may be taken: nobody stopped the job, and the frame that ends then has time left."""
        return not self.stopped and time.monotonic() < until

    def rest(self, seconds: float) -> None:
        """Wait, unless something moves."""
        with self._moved:
            if not self.stopped:
                self._moved.wait(seconds)


@dataclass(frozen=True)
class Job:
    """A plan, the step to stop after, and the first step to tell of (steps before it are trained unseen)."""

    plan: Plan
    until: int
    after: int  # steps that whoever ordered the job has seen
    seconds: float = CEILING_S  # of computing, at most


def train(job: Job, store: Store | None, hand: Hand, emit: Emit, parking: Parking | None = None) -> None:
    """Do `job`: emits `rows` for every chunk, `unkept` if the store fails, `kept` when it takes it again.

    At the end it emits `rest`: after which step, whether the run can go on from there, and how long it computed.
    Raises SettingsError or RuntimeError for a plan that cannot be trained here.
    """
    begun = time.process_time()
    course = Course(job.plan, _start(job, store, parking))
    keeper = Keeper(job.plan, store, parking, emit)
    due = time.monotonic()
    while course.step < job.until and not hand.stopped:
        if time.process_time() - begun > job.seconds:
            emit("ceiling", {"step": course.step}, ())
            break
        behind = course.step < job.after
        left = (job.after if behind else job.until) - course.step
        steps = left if behind else min(left, _steps_due(hand.pace, due))
        if not steps:
            hand.rest(min(due - time.monotonic(), 1))
            hand.beat()
            continue
        chunk = course.advance(steps, partial(hand.goes_on, time.monotonic() + FRAME_S), hand.beat)
        due = max(due + len(chunk.curves) / hand.pace, time.monotonic() - _LATE_S)
        keeper.keep(chunk, course)
        if not behind:
            emit("rows", {"first": chunk.first, "count": len(chunk.curves)}, chunk_to_bytes(chunk))
    saved = keeper.end(course, told=not hand.abandoned)
    emit("rest", {"step": course.step, "saved": saved, "seconds": time.process_time() - begun}, ())


def _steps_due(pace: float, due: float) -> int:
    """How many steps are due by now; as fast as it goes, more than fit into a frame."""
    if pace == float("inf"):
        return sys.maxsize
    late = time.monotonic() - due
    return 1 + int(late * pace) if late >= 0 else 0


def _start(job: Job, store: Store | None, parking: Parking | None) -> Rows | None:
    """The latest state from which no step that nobody has seen is skipped; None: from the beginning."""
    at_most, found = job.after, list[Rows | None]()
    try:
        if store is not None:
            record = store.read(job.plan)
            at_most = min(job.after, record.chunk.last if record is not None else 0)
            found.append(store.state(job.plan, at_most))
    except StoreError:
        pass  # what is parked is there all the same
    found.append(parking.state(job.plan, at_most) if parking is not None else None)
    return max((state for state in found if state is not None), key=lambda state: state.step, default=None)
