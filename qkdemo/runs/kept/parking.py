"""States of runs that are too large for the store, one file a plan, so that a run that rests goes on where it was.

* `Parking(folder)`: `park` writes one, `state` finds it again, `drop` forgets it;
* `folder_beside(url)`: where they lie: beside the store, or in the user's cache folder.

A file holds a row of float32 numbers per run and is written group by group, so that no second copy is in memory. Its
name gives plan, step and checksum; one whose bytes are others is dropped. What lies there is bounded, and never needed:
a run whose state is gone is trained again from its beginning, unseen.
"""

import re
import shutil
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import sqlalchemy as sql
import torch
from sqlalchemy.exc import SQLAlchemyError

from qkdemo.runs.kept.database import cache_folder
from qkdemo.runs.plan import Plan
from qkdemo.runs.trainers import Trainers
from qkdemo.training.network.parameters import power_vectors
from qkdemo.training.trainer import State

MOST_BYTES: Final = 2 << 30  # for all files
_LEFT_FREE: Final = 512 << 20  # of the disk
_BLOCK: Final = 1 << 23
_NAME: Final = re.compile(r"([0-9a-f]{24})-(\d{1,5})-([0-9a-f]{8})\.state")


@dataclass(frozen=True)
class Parked:
    """A file with the state of every run of a plan after `step`."""

    path: Path
    step: int
    n_runs: int
    n_vectors: int  # numbers of σReparam's vectors, which stand behind weights and moments

    def rows(self, indices: Sequence[int]) -> State:
        """A copy of those of some runs, in that order. Raises ValueError if the file is gone or of another size."""
        try:
            numbers = np.memmap(self.path, "<f4", "r").reshape(self.n_runs, -1)
        except OSError as error:
            raise ValueError(str(error)) from error
        n = (numbers.shape[1] - self.n_vectors) // 3
        parts = (slice(n), slice(n, 2 * n), slice(2 * n, 3 * n), slice(3 * n, None))
        return State(self.step, *(torch.from_numpy(numbers[list(indices), part].astype(np.float32)) for part in parts))


class Parking:
    """A folder of such files. Nothing here raises for a disk that is full, read-only or away."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.folder, self._most = folder, most_bytes

    def park(self, plan: Plan, trainers: Trainers) -> bool:
        """Write where the runs of `plan` stand, in place of what was there; whether that could be done."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            size = trainers.n_runs * sum(4 * tensor.shape[1] for tensor in trainers.rows([0]).tensors())
            if not self._make_room(size, plan):
                return False
            half = self.folder / f"{plan.name}.part"
            checksum = 0
            with half.open("wb") as file:
                for group in trainers.groups:
                    row = torch.cat(trainers.rows(group).tensors(), dim=1).numpy().astype("<f4").tobytes()
                    checksum = zlib.crc32(row, checksum)
                    file.write(row)
            path = self.folder / f"{plan.name}-{trainers.step}-{checksum:08x}.state"
            half.replace(path)
            self._drop(plan, but=path)
        except OSError:
            with suppress(OSError):
                (self.folder / f"{plan.name}.part").unlink(missing_ok=True)
            return False
        return True

    def state(self, plan: Plan, at_most: int) -> Parked | None:
        """That of `plan` after at most `at_most` steps; else one of its trunk's."""
        for path in self._files():
            name, step, checksum = _told(path)
            if name != plan.name or step > at_most:
                continue
            with suppress(OSError):
                if _checksum(path) == checksum:
                    return Parked(path, step, _width_at(plan, step), len(power_vectors(plan.legs[0].runs[0])))
                path.unlink()
        if plan.trunk is not None:
            return self.state(plan.trunk, min(at_most, plan.legs[-1].after))
        return None

    def drop(self, plan: Plan) -> None:
        """Nobody goes on from it any more."""
        self._drop(plan, but=None)

    def _drop(self, plan: Plan, but: Path | None) -> None:
        for path in self._files():
            if _told(path)[0] == plan.name and path != but:
                with suppress(OSError):
                    path.unlink()

    def _make_room(self, size: int, plan: Plan) -> bool:
        """Drop other plans' files, the oldest first, until `size` bytes more are within bounds."""
        held = [(path.stat(), path) for path in self._files() if _told(path)[0] != plan.name]
        total = size + sum(stat.st_size for stat, _ in held)
        for stat, path in sorted(held, key=lambda one: one[0].st_mtime):
            if total <= self._most:
                break
            path.unlink(missing_ok=True)
            total -= stat.st_size
        return total <= self._most and shutil.disk_usage(self.folder).free >= size + _LEFT_FREE

    def _files(self) -> list[Path]:
        try:
            return [path for path in self.folder.iterdir() if _NAME.fullmatch(path.name)]
        except OSError:
            return []


def folder_beside(url: str) -> Path:
    """Where the large states of the runs in that store lie."""
    with suppress(SQLAlchemyError):
        address = sql.make_url(url)
        if address.get_backend_name() == "sqlite" and address.database and not address.database.startswith("file:"):
            return Path(address.database).with_suffix(".states")
    return cache_folder() / "states"


def _told(path: Path) -> tuple[str, int, int]:
    match = _NAME.fullmatch(path.name)
    assert match is not None
    return match[1], int(match[2]), int(match[3], 16)


def _width_at(plan: Plan, step: int) -> int:
    return len(plan.legs[plan.leg_of(step)].runs)


def _checksum(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            value = zlib.crc32(block, value)
    return value
