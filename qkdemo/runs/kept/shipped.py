"""Finished runs that come with the app, so that a page opens with a picture and trains nothing for it.

* `Shipped(path)`: `record(plan)`: what it holds of a plan, `plan(name)`; read-only, and in memory once per process;
* `shipped()`: the file beside this module; `write(path, records)`: makes such a file.

It is a zip archive, compressed by LZMA: `index.json`, then per run `<name>.curves` and `<name>.maps`. Curves are the
float32 numbers exactly, as differences of their bit patterns from step to step, byte by byte; NaN where nobody reads
them. Maps are kept of some steps, in 51 shades of √weight. Runs of another engine, or a file of another format or a
damaged one, are not used, and the log says so: the pages then train, as they do for any other state.

`python -m tests.shipped` makes the file, and says which runs are in it, and what of them.
"""

import json
import logging
import threading
import time
import zipfile
import zlib
from collections.abc import Mapping
from functools import lru_cache
from lzma import LZMAError
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from qkdemo.messages import say
from qkdemo.runs.kept.record import BRIGHTEST, UNDEFINED, Chunk
from qkdemo.runs.kept.store import Record
from qkdemo.runs.plan import Plan
from qkdemo.training.settings import ENGINE
from qkdemo.training.telemetry import CURVES

FILE: Final = Path(__file__).with_suffix(".zip")
FORMAT: Final = 1
SHADE: Final = 5  # codes of a map that become one
assert BRIGHTEST % SHADE == UNDEFINED % SHADE == 0
_INDEX: Final = "index.json"
_UNREADABLE: Final = (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, LZMAError, zlib.error, EOFError)


class Shipped:
    """Threads share it. It raises nothing: what cannot be read is not there."""

    def __init__(self, path: Path = FILE) -> None:
        self._path, self._lock = path, threading.Lock()
        self._records: dict[str, Record | None] = {}
        self._when, self._plans = 0.0, dict[str, str]()
        try:
            told = json.loads(self._bytes(_INDEX))
            if (told["format"], told["engine"]) == (FORMAT, ENGINE):
                self._when, self._plans = float(told["recorded"]), dict(told["plans"])
            else:
                _log(
                    "server.shipped.other", path, format=told["format"], engine=told["engine"], ours=FORMAT, now=ENGINE
                )
        except _UNREADABLE as error:
            _log("server.shipped.unreadable", path, why=error)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its runs."""
        return tuple(self._plans)

    def plan(self, name: str) -> Plan | None:
        """The plan of that name."""
        try:
            return Plan.from_json(self._plans[name])
        except _UNREADABLE:  # none of that name, or one that this machine could not train
            return None

    def record(self, plan: Plan) -> Record | None:
        """What there is of `plan`, from its first step to its last; None if there is nothing."""
        with self._lock:
            if plan.name in self._plans and plan.name not in self._records:
                self._records[plan.name] = self._read(plan)
            return self._records.get(plan.name)

    def _read(self, plan: Plan) -> Record | None:
        try:
            curves = _numbers(plan, self._bytes(f"{plan.name}.curves"))
            mapped, codes = _codes(plan, self._bytes(f"{plan.name}.maps"))
        except _UNREADABLE as error:
            _log("server.shipped.unreadable", self._path, why=error)
            return None
        for array in (curves, codes):
            array.setflags(write=False)
        return Record(plan, Chunk(1, curves, codes, mapped), "finished", ENGINE, self._when, shipped=True)

    def _bytes(self, name: str) -> bytes:
        with zipfile.ZipFile(self._path) as archive:  # which checks what it reads by its checksum
            return archive.read(name)


@lru_cache(maxsize=1)
def shipped() -> Shipped:
    """Those beside this module."""
    return Shipped()


def write(path: Path, records: Mapping[Plan, Chunk]) -> None:
    """Write whole records, each from step 1 to its plan's last one."""
    plans = {plan.name: plan.to_json() for plan in records}
    index = {"format": FORMAT, "engine": ENGINE, "recorded": round(time.time()), "plans": plans}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr(_INDEX, json.dumps(index))
        for plan, chunk in records.items():
            archive.writestr(f"{plan.name}.curves", _of_numbers(chunk.curves))
            archive.writestr(f"{plan.name}.maps", _of_codes(chunk))


def _of_numbers(curves: NDArray[np.float32]) -> bytes:
    bits = np.ascontiguousarray(curves.transpose(2, 1, 0), "<f4").view("<u4")
    steps = np.diff(bits, axis=-1, prepend=np.uint32(0))  # modulo 2³²
    return np.moveaxis(steps.astype("<u4")[..., np.newaxis].view(np.uint8), -1, 0).tobytes()


def _numbers(plan: Plan, data: bytes) -> NDArray[np.float32]:
    planes = np.frombuffer(data, np.uint8).reshape(4, len(CURVES), plan.width, plan.steps)
    steps = np.ascontiguousarray(np.moveaxis(planes, 0, -1)).view("<u4")[..., 0]
    bits = np.cumsum(steps, axis=-1, dtype=np.uint32)
    return np.ascontiguousarray(bits.view(np.float32).transpose(2, 1, 0))


def _of_codes(chunk: Chunk) -> bytes:
    head = json.dumps(chunk.mapped).encode()
    return head + b"\n" + np.rint(chunk.maps / SHADE).astype(np.uint8).tobytes()


def _codes(plan: Plan, data: bytes) -> tuple[tuple[int, ...], NDArray[np.uint8]]:
    head, _, shades = data.partition(b"\n")
    mapped = tuple(int(step) for step in json.loads(head))
    codes = np.frombuffer(shades, np.uint8) * np.uint8(SHADE)
    return mapped, codes.reshape(len(mapped), plan.width, *plan.map_shape)


def _log(key: str, path: Path, **values: Any) -> None:
    logging.getLogger(__name__).warning(say(key, file=path.name, **values))
