"""A worker process as its server sees it: orders go in, frames come out.

* `WorkerProcess`: starts it, gives it a run, hears of its end.
"""

import json
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

from qkdemo.runs.kept.store import VARIABLE
from qkdemo.runs.workers.live import Live
from qkdemo.runs.workers.worker import read_frame

_ROOT: Final = Path(__file__).parents[3]


Heard: TypeAlias = Callable[["WorkerProcess", dict[str, Any] | None, Sequence[bytes]], None]


class WorkerProcess:
    """One process, and the run it has. Whoever uses it holds the pool's lock."""

    def __init__(self, url: str, heard: Heard, clock: Callable[[], float] = time.monotonic) -> None:
        self._url, self._heard, self._clock = url, heard, clock
        self.process: subprocess.Popen[bytes] | None = None
        self.live: Live | None = None
        self.leaving: Live | None = None  # the run whose job still comes to rest
        self.number = 0
        self.heard = clock()  # when its work last moved
        self.since = clock()  # when it got its run
        self.ready = self.hung = False
        self.beats: Any = None
        self._pace: float | None = None

    def start(self) -> None:
        """Start the process, unless it runs."""
        if self.process is None:
            self.heard, self.ready, self.hung, self.beats = self._clock(), False, False, None
            self.process = self._launched()
            threading.Thread(target=self._read, args=(self.process,), daemon=True, name="worker").start()

    def _launched(self) -> "subprocess.Popen[bytes]":
        path = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        quiet = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": path, VARIABLE: self._url}
        return subprocess.Popen(
            [sys.executable, "-m", "qkdemo.runs.workers.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | quiet,
        )

    def _read(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        while (frame := read_frame(process.stdout.read)) is not None:
            self._heard(self, *frame)
        process.kill()
        process.wait()
        if self.process is process:
            self._heard(self, None, [])

    def train(self, live: Live, pace: float, seconds: float) -> None:
        """Give it a run, for so many seconds of computing at most."""
        self.start()
        now = self._clock()
        self.live, self.leaving, self.heard, self.since = live, None, now, now
        self.number += 1
        live.touched, live.timed = now, False
        self._pace = pace
        order = {"plan": live.plan.to_json(), "until": live.until, "after": live.steps, "seconds": seconds}
        self._send(do="train", pace=_finite(pace), **order)

    def release(self) -> None:
        """Take its run away: it stops after the step it is in, and puts down where the run is."""
        self._send(do="stop")
        self.leaving, self.live = self.live, None

    def set_pace(self, pace: float) -> None:
        """Steps per second from now on."""
        if pace != self._pace:
            self._pace = pace
            self._send(do="pace", pace=_finite(pace))

    def _send(self, **order: Any) -> None:
        if self.process is None or self.process.stdin is None:
            return
        try:
            self.process.stdin.write(json.dumps(order | {"number": self.number}).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:  # it just died; whoever reads its output will say so
            pass

    def forget(self) -> None:
        """The process is gone."""
        self.process = self.live = self.leaving = None

    def kill(self) -> None:
        """End a process that does not answer."""
        if self.process is not None:
            self.process.kill()

    def close(self) -> None:
        """Let it finish what it writes, and end."""
        if self.process is not None and self.process.stdin is not None:
            with suppress(OSError):
                self.process.stdin.close()


def _finite(pace: float) -> float | None:
    return None if math.isinf(pace) else pace
