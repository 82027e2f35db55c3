"""A process that trains: `python -m qkdemo.runs.worker`. It takes one job at a time and holds nothing between jobs.

* `train(job, store, hand, emit)`: a plan from where its record ends to a given step, at a given pace;
* `Hand`: what may be changed meanwhile, from another thread: the pace, and the order to stop;
* `main()`: orders arrive as lines of JSON on standard input; frames leave on standard output. The store is the one
  that the environment names.

Every step is recorded before it is told of, so that what anybody has seen is kept. If the store cannot be written, the
run goes on unrecorded and says so. The process ends when its input does: a server that dies leaves no worker behind.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, Final

import torch

from qkdemo.dials import SettingsError
from qkdemo.runs.batches import keep_freed_memory
from qkdemo.runs.plan import Plan
from qkdemo.runs.record import Chunk, chunk_of, chunk_to_bytes, cut, state_to_bytes
from qkdemo.runs.store import Store, StoreError, default_url
from qkdemo.training.parameters import n_parameters, shape_of
from qkdemo.training.trainer import State, Trainer

Emit = Callable[[str, dict[str, Any], tuple[bytes, ...]], None]  # kind of frame, what it says, bytes

FRAME_S: Final = 1 / 30  # between two chunks: what a screen can show
CEILING_S: Final = 600.0  # of computing, for one job
_LATE_S: Final = 0.5  # behind its pace by more, a run no longer tries to catch up
_STATE_BYTES: Final = 8 << 20  # for all states of one run
_STATE_EVERY: Final = 25  # steps, at least
_NICE: Final = 5
_LAST_S: Final = 10.0  # to come to rest, for a worker whose server is gone


@dataclass
class Hand:
    """What a job heeds while it goes on."""

    pace: float = float("inf")  # steps per second

    def __post_init__(self) -> None:
        self._moved = threading.Condition()
        self.stopped = False
        self.abandoned = False

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


def train(job: Job, store: Store | None, hand: Hand, emit: Emit) -> None:
    """Do `job`: emits `rows` for every chunk, `unkept` once if the store fails, and `rest` at the end.

    Raises SettingsError or RuntimeError for a plan that cannot be trained here.
    """
    course = _Course(job.plan, _start(job, store))
    keeper = _Keeper(job.plan, store, emit)
    begun = time.process_time()
    due = time.monotonic()
    while course.step < job.until and not hand.stopped:
        if time.process_time() - begun > CEILING_S:
            emit("ceiling", {"step": course.step}, ())
            break
        behind = course.step < job.after
        left = (job.after if behind else job.until) - course.step
        steps = left if behind else min(left, _steps_due(hand.pace, due))
        if not steps:
            hand.rest(due - time.monotonic())
            continue
        chunk = course.advance(steps, partial(hand.goes_on, time.monotonic() + FRAME_S))
        due = max(due + len(chunk.curves) / hand.pace, time.monotonic() - _LATE_S)
        keeper.keep(chunk, course)
        if not behind:
            emit("rows", {"first": chunk.first, "count": len(chunk.curves)}, chunk_to_bytes(chunk))
    keeper.end(course, told=not hand.abandoned)
    emit("rest", {"step": course.step}, ())


def _steps_due(pace: float, due: float) -> int:
    """How many steps are due by now; as fast as it goes, more than fit into a frame."""
    if pace == float("inf"):
        return sys.maxsize
    late = time.monotonic() - due
    return 1 + int(late * pace) if late >= 0 else 0


def _start(job: Job, store: Store | None) -> State | None:
    """The latest recorded state from which no step that nobody has seen is skipped; None: from the beginning."""
    if store is None:
        return None
    try:
        record = store.read(job.plan)
        return store.state(job.plan, min(job.after, record.chunk.last)) if record is not None else None
    except StoreError:
        return None


class _Course:
    """A plan under way: a trainer, and the next leg's when its time comes."""

    def __init__(self, plan: Plan, state: State | None) -> None:
        self.plan = plan
        self._leg = plan.leg_of(state.step) if state is not None and state.step else 0
        self._trainer = Trainer(plan.legs[self._leg].runs, state, maps=plan.maps)

    @property
    def step(self) -> int:
        """The last step taken."""
        return self._trainer.step

    @property
    def state(self) -> State:
        """Where its runs stand."""
        return self._trainer.state

    def advance(self, steps: int, goes_on: Callable[[], bool]) -> Chunk:
        """At most that many steps, until `goes_on` says no: a chunk does not reach over the end of a leg."""
        legs = self.plan.legs
        if self._leg + 1 < len(legs) and self.step >= legs[self._leg + 1].after:
            self._leg += 1
            self._trainer = Trainer(legs[self._leg].runs, self.state.rows(legs[self._leg].rows), maps=self.plan.maps)
        last = legs[self._leg + 1].after if self._leg + 1 < len(legs) else self.plan.steps
        return chunk_of(self.plan, self._trainer.advance(min(steps, last - self.step), goes_on))


class _Keeper:
    """Writes what a run leaves behind, as long as the store takes it."""

    def __init__(self, plan: Plan, store: Store | None, emit: Emit) -> None:
        self._plan, self._store, self._emit = plan, store, emit
        self._last = 0
        size = 12 * n_parameters(shape_of(plan.legs[0].runs[0])) * plan.width  # weights and two moments, float32
        self._every = max(_STATE_EVERY, -(-plan.steps * size // _STATE_BYTES))
        self._states = size <= _STATE_BYTES  # else a run that goes on is trained again from its beginning
        if store is not None:
            try:
                store.begin(plan)
                record = store.read(plan)
                self._last = record.chunk.last if record is not None else 0
            except StoreError as error:
                self._give_up(error)

    def keep(self, chunk: Chunk, course: _Course) -> None:
        """Record a chunk whose steps are not recorded yet, and now and then a state."""
        if self._store is None or chunk.last <= self._last:
            return
        if chunk.first <= self._last:
            chunk = _after(self._plan, chunk, self._last)
        try:
            self._store.append(self._plan, chunk, self._state_due(chunk, course))
            self._last = chunk.last
        except StoreError as error:
            self._give_up(error)

    def end(self, course: _Course, *, told: bool) -> None:
        """Record the state in which a run comes to rest, and, if it was `told` to, how."""
        if self._store is None:
            return
        try:
            if self._states:
                self._store.keep_state(self._plan, course.step, state_to_bytes(course.state))
            if told or self._last >= self._plan.steps:
                self._store.end(self._plan, "finished" if self._last >= self._plan.steps else "stopped")
        except StoreError as error:
            self._give_up(error)

    def _state_due(self, chunk: Chunk, course: _Course) -> bytes | None:
        ends = chunk.last in {leg.after for leg in self._plan.legs}
        due = ends or chunk.last // self._every > (chunk.first - 1) // self._every
        if not (due and self._states):
            return None
        return state_to_bytes(course.state)

    def _give_up(self, error: StoreError) -> None:
        self._store = None
        self._emit("unkept", {"why": str(error), "step": self._last}, ())


def _after(plan: Plan, chunk: Chunk, last: int) -> Chunk:
    """The steps of `chunk` after `last`."""
    dropped = cut(plan, chunk, last)
    return Chunk(last + 1, chunk.curves[len(dropped.curves) :], chunk.maps[len(dropped.maps) :])


# ---- the process


def main() -> None:
    """Serve orders until standard input ends."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no frame
    torch.set_num_threads(1)
    keep_freed_memory()
    if hasattr(os, "nice"):
        os.nice(_NICE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches this process too, whose server ends it
    desk = _Desk(output, default_url())
    desk.emit("ready", {}, ())
    threading.Thread(target=desk.listen, args=(sys.stdin.buffer,), daemon=True).start()
    desk.work()


class _Desk:
    """Where orders wait for the one job at a time."""

    def __init__(self, output: BinaryIO, url: str) -> None:
        self._output, self._url = output, url
        self._writing = threading.Lock()
        self._ordered = threading.Condition()
        self._orders: list[dict[str, Any]] = []
        self._hand = Hand()
        self._number = -1
        self._store: Store | None = None
        self._ended = False

    def listen(self, lines: BinaryIO) -> None:
        """Take orders: a job with its number, or a word about the job of that number."""
        for line in lines:
            order = json.loads(line)
            with self._ordered:
                if order["do"] == "train":
                    self._orders.append(order)
                    self._number, self._hand = order["number"], Hand(order["pace"] or float("inf"))
                    self._ordered.notify()
                elif order["number"] == self._number and order["do"] == "stop":
                    self._hand.stop()
                elif order["number"] == self._number and order["do"] == "pace":
                    self._hand.set_pace(order["pace"] or float("inf"))
        last = threading.Timer(_LAST_S, os._exit, (1,))  # whatever the job is busy with
        last.daemon = True
        last.start()
        with self._ordered:
            self._ended = True
            self._hand.abandon()
            self._ordered.notify()

    def work(self) -> None:
        """Do jobs until the input has ended."""
        while True:
            with self._ordered:
                self._ordered.wait_for(lambda: self._orders or self._ended)
                if self._ended:
                    return
                order, hand = self._orders.pop(0), self._hand
            self._do(order, hand)

    def _do(self, order: dict[str, Any], hand: Hand) -> None:
        number = order["number"]

        def emit(kind: str, told: dict[str, Any], data: tuple[bytes, ...]) -> None:
            self.emit(kind, told | {"number": number}, data)

        try:
            job = Job(Plan.from_json(order["plan"]), order["until"], order["after"])
            train(job, self._opened(emit), hand, emit)
        except (
            SettingsError,
            ValueError,
            RuntimeError,
            MemoryError,
        ) as error:  # torch says RuntimeError when it is full
            emit("failed", {"why": str(error).splitlines()[0] if str(error) else type(error).__name__}, ())

    def _opened(self, emit: Emit) -> Store | None:
        try:
            self._store = self._store or Store(self._url)
            return self._store
        except StoreError as error:
            emit("unkept", {"why": str(error), "step": 0}, ())
            return None

    def emit(self, kind: str, told: dict[str, Any], data: tuple[bytes, ...]) -> None:
        """Write a frame: the length of a line of JSON, the line, the bytes whose lengths it gives."""
        head = json.dumps({"kind": kind, "sizes": [len(part) for part in data], **told}).encode()
        try:
            with self._writing:
                self._output.write(len(head).to_bytes(4, "big") + head + b"".join(data))
                self._output.flush()
        except BrokenPipeError:
            os._exit(0)


def read_frame(read: Callable[[int], bytes]) -> tuple[dict[str, Any], list[bytes]] | None:
    """The next frame, or None at the end, also at one in mid-frame."""
    length = read(4)
    if len(length) < 4:
        return None
    head = read(int.from_bytes(length, "big"))
    try:
        told = json.loads(head)
    except ValueError:
        return None
    data = [read(size) for size in told["sizes"]]
    whole = all(len(part) == size for part, size in zip(data, told["sizes"], strict=True))
    return (told, data) if whole else None


if __name__ == "__main__":
    main()
