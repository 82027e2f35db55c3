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
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from qkdemo.runs.live import Live
from qkdemo.runs.store import VARIABLE
from qkdemo.runs.worker import read_frame

_ROOT: Final = Path(__file__).parents[2]


class WorkerProcess:
    """One process, and the run it has. Whoever uses it holds the pool's lock."""

    def __init__(self, url: str, heard: Callable[["WorkerProcess", dict[str, Any] | None, list[bytes]], None]) -> None:
        self._url, self._heard = url, heard
        self.process: subprocess.Popen[bytes] | None = None
        self.live: Live | None = None
        self.busy = False  # it still comes to rest from a job that nobody wants any more
        self.number = 0
        self.heard = time.monotonic()
        self._pace: float | None = None

    def start(self) -> None:
        """Start the process, unless it runs."""
        if self.process is not None:
            return
        path = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        quiet = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": path, VARIABLE: self._url}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "qkdemo.runs.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | quiet,
        )
        self.heard = time.monotonic()
        threading.Thread(target=self._read, args=(self.process,), daemon=True, name="worker").start()

    def _read(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        while (frame := read_frame(process.stdout.read)) is not None:
            self._heard(self, *frame)
        process.kill()
        process.wait()
        if self.process is process:
            self._heard(self, None, [])

    def train(self, live: Live, pace: float) -> None:
        """Give it a run."""
        self.live, self.busy, self.heard = live, False, time.monotonic()
        self.number += 1
        live.touched, live.timed = time.monotonic(), False
        self._pace = pace
        self._send(do="train", plan=live.plan.to_json(), until=live.until, after=live.steps, pace=_finite(pace))

    def set_pace(self, pace: float) -> None:
        """Steps per second from now on."""
        if pace != self._pace:
            self._pace = pace
            self._send(do="pace", pace=_finite(pace))

    def order(self, do: str) -> None:
        """A word about its run."""
        self._send(do=do)

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
        self.process, self.live, self.busy = None, None, False

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
