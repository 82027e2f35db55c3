"""Runs, recorded as they go, so that a crash, a kill or a full disk loses nothing that was shown.

* `Store(url)`: where they are kept, see `qkdemo.runs.kept.database`;
* `Record`: what is stored of a plan.

One transaction per chunk, in write-ahead mode: whoever dies in mid-write leaves the chunks before it whole. Writing a
chunk again replaces it by the same numbers, since a plan determines them. Each chunk and each state has a checksum:
one whose bytes were altered counts as missing. What a store holds is bounded: beyond `MOST_RUNS` or `MOST_BYTES` the
runs that were written to longest ago are dropped, never one that goes on.
"""

import time
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import sqlalchemy as sql

from qkdemo.runs.kept.database import VARIABLE, Database, StoreError, TakenError, default_url, told
from qkdemo.runs.kept.record import (
    Chunk,
    chunk_from_bytes,
    chunk_to_bytes,
    cut,
    joined_chunks,
    state_from_bytes,
    widened,
)
from qkdemo.runs.plan import Plan
from qkdemo.training.settings import ENGINE
from qkdemo.training.trainer import State

Ending: TypeAlias = Literal["going", "stopped", "finished"]

__all__ = ["MOST_BYTES", "MOST_RUNS", "VARIABLE", "Ending", "Record", "Store", "StoreError", "default_url"]

MOST_RUNS: Final = 300
MOST_BYTES: Final = 1 << 30
_FORGOTTEN_S: Final = 86400  # a run that goes on and was not written to for so long has lost its server
_LIVELY_S: Final = 2.0  # a run that goes on, perhaps elsewhere, was written to that recently
_TABLES: Final = sql.MetaData()
_RUNS: Final = sql.Table(
    "runs",
    _TABLES,
    sql.Column("name", sql.String(24), primary_key=True),
    sql.Column("plan", sql.Text, nullable=False),
    sql.Column("engine", sql.String(16), nullable=False),
    sql.Column("ending", sql.String(16), nullable=False),
    sql.Column("begun", sql.Float, nullable=False),  # seconds since 1970
    sql.Column("touched", sql.Float, nullable=False),
    sql.Column("size", sql.BigInteger, nullable=False),  # bytes of its chunks and states
)
_CHUNKS: Final = sql.Table(
    "chunks",
    _TABLES,
    sql.Column("name", sql.ForeignKey(_RUNS.c.name, ondelete="CASCADE"), primary_key=True),
    sql.Column("first", sql.Integer, primary_key=True),
    sql.Column("count", sql.Integer, nullable=False),
    sql.Column("curves", sql.LargeBinary, nullable=False),
    sql.Column("maps", sql.LargeBinary, nullable=False),
    sql.Column("checksum", sql.BigInteger),  # none in what was recorded before there were checksums
)
_STATES: Final = sql.Table(
    "states",
    _TABLES,
    sql.Column("name", sql.ForeignKey(_RUNS.c.name, ondelete="CASCADE"), primary_key=True),
    sql.Column("step", sql.Integer, primary_key=True),
    sql.Column("state", sql.LargeBinary, nullable=False),
    sql.Column("checksum", sql.BigInteger),
)


@dataclass(frozen=True, eq=False)
class Record:
    """What is stored of a plan: the steps from 1 on without a gap, and when it was last written to."""

    plan: Plan
    chunk: Chunk
    ending: Ending
    engine: str
    touched: float  # seconds since 1970
    damaged: bool = False  # steps beyond the last one are damaged, or stand behind a gap
    shipped: bool = False  # it came with the app

    @property
    def finished(self) -> bool:
        """Whether all its steps are there."""
        return self.chunk.last >= self.plan.steps

    @property
    def broken_off(self) -> bool:
        """Whether it went on, beyond the trunk of a fork, and whoever trained it is gone."""
        silent = time.time() - self.touched > _LIVELY_S
        return self.ending == "going" and silent and self.plan.legs[-1].after < self.chunk.last < self.plan.steps

    def as_far_as(self, fork: Plan) -> "Record | None":
        """What a fork of this plan has in common with it; None if it is recorded by another stride."""
        if fork.map_stride != self.plan.map_stride:
            return None
        chunk = cut(self.chunk, min(self.chunk.last, fork.legs[-1].after))
        return Record(fork, widened(fork, chunk), "stopped", self.engine, self.touched)


class Store(Database):
    """Safe to use from several threads, and on one database from several processes. Every method raises StoreError."""

    tables = _TABLES

    def begin(self, plan: Plan) -> None:
        """Make room for `plan`; what is already recorded stays. A fork gets the steps of its trunk."""
        try:
            self._begin(plan)
        except TakenError:  # somebody else began it at the same time
            self._begin(plan)

    def _begin(self, plan: Plan) -> None:
        with told("store.error.write"), self.engine.begin() as db:
            now = time.time()
            if db.scalar(sql.select(_RUNS.c.name).where(_RUNS.c.name == plan.name)) is None:
                values = {"plan": plan.to_json(), "engine": ENGINE, "ending": "going", "begun": now}
                db.execute(_RUNS.insert().values(name=plan.name, touched=now, size=0, **values))
                if plan.trunk is not None:
                    self._copy_trunk(db, plan, plan.trunk)
            else:
                db.execute(_RUNS.update().where(_RUNS.c.name == plan.name).values(ending="going", touched=now))

    def append(self, plan: Plan, chunk: Chunk, state: bytes | None = None) -> None:
        """Record steps, and perhaps a state to go on from, in one transaction."""
        with told("store.error.write"), self.engine.begin() as db:
            self._put_chunk(db, plan.name, chunk)
            if state is not None:
                self._put_state(db, plan.name, chunk.last, state)

    def keep_state(self, plan: Plan, step: int, state: bytes) -> None:
        """Record a state after `step`."""
        with told("store.error.write"), self.engine.begin() as db:
            self._put_state(db, plan.name, step, state)

    def end(self, plan: Plan, ending: Ending) -> None:
        """Say how a run came to rest, and drop what is beyond the bounds.

        Of many runs at once that are finished, the states on the way are dropped: nobody goes on from one of them.
        """
        with told("store.error.write"), self.engine.begin() as db:
            db.execute(_RUNS.update().where(_RUNS.c.name == plan.name).values(ending=ending, touched=time.time()))
            if ending == "finished" and not plan.maps:
                passed = [_STATES.c.name == plan.name, _STATES.c.step < plan.steps]
                size = db.scalar(sql.select(sql.func.sum(sql.func.length(_STATES.c.state))).where(*passed)) or 0
                db.execute(_STATES.delete().where(*passed))
                db.execute(_RUNS.update().where(_RUNS.c.name == plan.name).values(size=_RUNS.c.size - size))
        self.trim()

    def read(self, plan: Plan) -> Record | None:
        """What is recorded of `plan`; None if nothing is, or if it cannot be understood."""
        with told("store.error.read"), self.engine.connect() as db:
            run = db.execute(sql.select(_RUNS).where(_RUNS.c.name == plan.name)).one_or_none()
            if run is None:
                return None
            rows = db.execute(sql.select(_CHUNKS).where(_CHUNKS.c.name == plan.name).order_by(_CHUNKS.c.first)).all()
        chunks = _without_gap(plan, rows)
        chunk = joined_chunks(plan, chunks)
        last = max((row.first + row.count - 1 for row in rows), default=0)
        return Record(plan, chunk, run.ending, run.engine, run.touched, damaged=chunk.last < last)

    def plan(self, name: str) -> Plan | None:
        """The plan of that name."""
        with told("store.error.read"), self.engine.connect() as db:
            text = db.scalar(sql.select(_RUNS.c.plan).where(_RUNS.c.name == name))
        try:
            return None if text is None else Plan.from_json(text)
        except ValueError:  # of a machine that had more, or of another version
            return None

    def state(self, plan: Plan, at_most: int) -> State | None:
        """The latest whole state of `plan` after at most `at_most` steps; else one of its trunk's."""
        with told("store.error.read"), self.engine.connect() as db:
            own = sql.select(_STATES).where(_STATES.c.name == plan.name, _STATES.c.step <= at_most)
            for row in db.execute(own.order_by(_STATES.c.step.desc())):
                if row.checksum in (None, _checksum(row.step, row.state)):
                    with suppress(ValueError):
                        return state_from_bytes(row.state)
        return self.state(plan.trunk, min(at_most, plan.legs[-1].after)) if plan.trunk is not None else None

    def trim(self, most_runs: int = MOST_RUNS, most_bytes: int = MOST_BYTES) -> int:
        """Drop the runs that were written to longest ago until the rest is within bounds; returns how many."""
        with told("store.error.write"), self.engine.begin() as db:
            forgotten = time.time() - _FORGOTTEN_S
            chosen = sql.select(_RUNS.c.name, _RUNS.c.size, _RUNS.c.ending, _RUNS.c.touched).order_by(
                _RUNS.c.touched.desc()
            )
            kept, size, dropped = 0, 0, []
            for run in db.execute(chosen):
                kept, size = kept + 1, size + run.size
                if (run.ending != "going" or run.touched < forgotten) and (kept > most_runs or size > most_bytes):
                    dropped.append(run.name)
                    kept, size = kept - 1, size - run.size
            for table in (_STATES, _CHUNKS, _RUNS):
                db.execute(table.delete().where(table.c.name.in_(dropped)))
            return len(dropped)

    def _copy_trunk(self, db: sql.Connection, plan: Plan, trunk: Plan) -> None:
        last = plan.legs[-1].after
        rows = db.execute(sql.select(_CHUNKS).where(_CHUNKS.c.name == trunk.name).order_by(_CHUNKS.c.first)).all()
        if plan.map_stride != trunk.map_stride:
            return  # it is trained again, and recorded by its own stride
        for chunk in _without_gap(trunk, rows):
            if chunk.first <= last:
                self._put_chunk(db, plan.name, widened(plan, cut(chunk, min(chunk.last, last))))

    def _put_chunk(self, db: sql.Connection, name: str, chunk: Chunk) -> None:
        curves, maps = chunk_to_bytes(chunk)
        count = len(chunk.curves)
        values = {"count": count, "curves": curves, "maps": maps}
        values["checksum"] = _checksum(chunk.first, curves, maps)
        self._put(db, _CHUNKS, {"name": name, "first": chunk.first}, values)

    def _put_state(self, db: sql.Connection, name: str, step: int, state: bytes) -> None:
        values = {"state": state, "checksum": _checksum(step, state)}
        self._put(db, _STATES, {"name": name, "step": step}, values)

    def _put(self, db: sql.Connection, table: sql.Table, key: dict[str, Any], values: dict[str, Any]) -> None:
        """Insert or replace, and count the bytes."""
        found = [table.c[column] == value for column, value in key.items()]
        new = sum(len(value) for value in values.values() if isinstance(value, bytes))
        if db.execute(table.update().where(*found).values(**values)).rowcount:
            new = 0  # the same numbers again
        else:
            db.execute(table.insert().values(**key, **values))
        run = _RUNS.update().where(_RUNS.c.name == key["name"])
        db.execute(run.values(size=_RUNS.c.size + new, touched=time.time()))


def _without_gap(plan: Plan, rows: Iterable[Any]) -> list[Chunk]:
    """The chunks from step 1 on, up to the first step that no whole one has. One that was rerun may overlap."""
    chunks: list[Chunk] = []
    step = 0
    for row in rows:
        if row.first > step + 1:
            break
        chunk = _whole(plan, row)
        if chunk is None or chunk.last <= step:
            continue
        if chunk.first <= step:
            chunks[-1] = cut(chunks[-1], chunk.first - 1)
            if not len(chunks[-1].curves):
                chunks.pop()
        chunks.append(chunk)
        step = chunk.last
    return chunks


def _whole(plan: Plan, row: Any) -> Chunk | None:
    """What a row holds; None if its bytes are not those that were written."""
    if row.checksum not in (None, _checksum(row.first, row.curves, row.maps)):
        return None
    try:
        return chunk_from_bytes(plan, row.first, row.count, row.curves, row.maps)
    except ValueError:
        return None


def _checksum(number: int, *parts: bytes) -> int:
    """CRC-32 of bytes and of the number of the step where they stand: of what stands in another place it is another."""
    value = zlib.crc32(number.to_bytes(8, "big"))
    for part in parts:
        value = zlib.crc32(part, value)
    return value
