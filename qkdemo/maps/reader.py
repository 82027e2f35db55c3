"""A process that reads rows, as its server sees it.

* `Reader(came)`: rows go in by `read`; `came(row, columns)` is called for each, in order; with None if it ended.
"""

import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from qkdemo.labs.lab import Columns
from qkdemo.maps.cells import Row
from qkdemo.maps.worker import as_order

Found: TypeAlias = Mapping[str, Columns]
_ROOT: Final = Path(__file__).parents[2]


class Reader:
    """Started with its first row, and again after it has ended."""

    def __init__(self, came: Callable[[Row, Found | None], None]) -> None:
        self._came = came
        self._lock = threading.Lock()
        self._waiting: deque[Row] = deque()
        self._process: subprocess.Popen[str] | None = None

    @property
    def waiting(self) -> int:
        """How many rows it has."""
        with self._lock:
            return len(self._waiting)

    @property
    def pid(self) -> int | None:
        """Of the process, if it runs."""
        with self._lock:
            return None if self._process is None else self._process.pid

    def read(self, row: Row) -> None:
        """Give it one more row."""
        with self._lock:
            if self._process is None:
                self._process = _launched()
                threading.Thread(target=self._listen, args=(self._process,), daemon=True, name="map reader").start()
            self._waiting.append(row)
            assert self._process.stdin is not None
            with suppress(OSError):  # it just ended; whoever listens will say so
                self._process.stdin.write(json.dumps(as_order(row)) + "\n")
                self._process.stdin.flush()

    def close(self) -> None:
        """Let it end after the row that it is at."""
        with self._lock:
            if self._process is not None and self._process.stdin is not None:
                with suppress(OSError):
                    self._process.stdin.close()

    def _listen(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            with self._lock:
                row = self._waiting.popleft()
            sides = json.loads(line)
            self._came(
                row, {role: {name: np.array(each) for name, each in side.items()} for role, side in sides.items()}
            )
        process.kill()
        process.wait()
        with self._lock:
            lost, self._waiting, self._process = list(self._waiting), deque(), None
        for row in lost:
            self._came(row, None)


def _arrays(side: Mapping[str, list[float]]) -> Columns:
    return {name: np.array(column, dtype=np.float64) for name, column in side.items()}


def _launched() -> "subprocess.Popen[str]":
    path = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    quiet = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": path}
    return subprocess.Popen(
        [sys.executable, "-m", "qkdemo.maps.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env=os.environ | quiet,
    )
