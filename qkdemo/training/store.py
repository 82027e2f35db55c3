"""Runs, recorded as they go, so that nothing that was shown is lost.

* `Store(url)`: a database; SQLite in a file, or whatever else SQLAlchemy has a URL for;
* `Store.begin`, `append`, `finish`: what a worker calls; `find`, `read`, `state`: what everybody may.

A run is known by its identity, so that equal requests meet in one record. Every call is one transaction: after a crash
at any moment the record ends with the last chunk that was appended, whole. Telemetry lies in chunks of consecutive
steps; beside the newest stands the state after it, from which the run goes on exactly.
"""

import hashlib
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import sqlalchemy as sql
import torch
from numpy.typing import NDArray
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from qkdemo.settings import SettingsError
from qkdemo.strings import say
from qkdemo.training.settings import ENGINE, Settings, identity
from qkdemo.training.telemetry import ARRAYS, Telemetry, joined
from qkdemo.training.trainer import State

StatusWord: TypeAlias = Literal["running", "finished", "stopped", "failed"]

_LOCK_WAIT_S: Final = 10  # how long a writer waits for another
_SETTINGS: Final = "settings"


class StoreError(Exception):
    """What the database could not do, in a sentence. What was recorded before it stands."""


@dataclass(frozen=True)
class Record:
    """What is known of a run besides its telemetry."""

    name: str
    settings: Settings
    engine: str
    parent: str | None  # of a fork: the run it left
    forked_at: int  # the step after which it left; 0 for a run of its own
    status: StatusWord
    last_step: int
    begun: datetime
    changed: datetime


_METADATA: Final = sql.MetaData()
_RUNS: Final = sql.Table(
    "runs",
    _METADATA,
    sql.Column("name", sql.String(24), primary_key=True),
    sql.Column("settings", sql.Text, nullable=False),
    sql.Column("engine", sql.String(16), nullable=False),
    sql.Column("parent", sql.String(24)),
    sql.Column("forked_at", sql.Integer, nullable=False),
    sql.Column("status", sql.String(8), nullable=False),
    sql.Column("last_step", sql.Integer, nullable=False),
    sql.Column("begun", sql.DateTime(timezone=True), nullable=False),
    sql.Column("changed", sql.DateTime(timezone=True), nullable=False),
    sql.Column("state", sql.LargeBinary),
)
_CHUNKS: Final = sql.Table(
    "chunks",
    _METADATA,
    sql.Column("name", sql.ForeignKey("runs.name", ondelete="CASCADE"), primary_key=True),
    sql.Column("first_step", sql.Integer, primary_key=True),
    sql.Column("arrays", sql.LargeBinary, nullable=False),
)
_DESCRIBED: Final = [column for column in _RUNS.columns if column.name != "state"]


class Store:
    """A database of runs. Raises StoreError if it cannot be opened; `now` tells the time."""

    def __init__(self, url: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        waiting = {"connect_args": {"timeout": _LOCK_WAIT_S}} if url.startswith("sqlite") else {}
        self._engine = sql.create_engine(url, **waiting)
        if self._engine.dialect.name == "sqlite":
            sql.event.listen(self._engine, "connect", _for_many_readers)
        with self._transaction() as connection:
            _METADATA.create_all(connection)

    def begin(self, settings: Settings, parent: str | None = None, forked_at: int = 0) -> Record:
        """The record of this run, made if it is new. A fork is named after the run and the step that it left."""
        name = name_of(settings, parent, forked_at)
        now = self._now()
        row = {
            "name": name,
            _SETTINGS: json.dumps(settings.to_texts(defaults=True)),
            "engine": ENGINE,
            "parent": parent,
            "forked_at": forked_at,
            "status": "running",
            "last_step": forked_at,
            "begun": now,
            "changed": now,
        }
        found = self.find(name)
        if found is None:
            try:
                with self._transaction() as connection:
                    connection.execute(sql.insert(_RUNS).values(row))
            except _TakenError:  # somebody else began it meanwhile
                pass
            found = self.find(name)
        assert found is not None
        return found

    def append(self, name: str, telemetry: Telemetry, state: State) -> None:
        """Records the next steps of one run, and where it stands after them; both or neither.

        `telemetry` and `state` are of this run alone. Raises StoreError if the steps do not follow those recorded.
        """
        last = telemetry.first_step + len(telemetry) - 1
        follows = (_RUNS.c.name == name) & (_RUNS.c.last_step == telemetry.first_step - 1)
        with self._transaction() as connection:
            changes = {"last_step": last, "changed": self._now(), "state": packed_state(state)}
            if connection.execute(sql.update(_RUNS).where(follows).values(changes)).rowcount != 1:
                raise StoreError(say("training.error.gap", name=name, first=telemetry.first_step))
            chunk = {"name": name, "first_step": telemetry.first_step, "arrays": packed(telemetry)}
            connection.execute(sql.insert(_CHUNKS).values(chunk))

    def finish(self, name: str, status: StatusWord) -> None:
        """Says how the run ended, or that it goes on."""
        with self._transaction() as connection:
            changes = {"status": status, "changed": self._now()}
            connection.execute(sql.update(_RUNS).where(_RUNS.c.name == name).values(changes))

    def find(self, name: str) -> Record | None:
        """The record of that name, if there is one that can still be read."""
        with self._transaction() as connection:
            row = connection.execute(sql.select(*_DESCRIBED).where(_RUNS.c.name == name)).mappings().first()
        return _record(dict(row)) if row is not None else None

    def running(self) -> list[str]:
        """Names of the runs that were not ended: what a restarted server takes up again. The oldest first."""
        query = sql.select(_RUNS.c.name).where(_RUNS.c.status == "running").order_by(_RUNS.c.begun, _RUNS.c.name)
        with self._transaction() as connection:
            return list(connection.execute(query).scalars())

    def read(self, name: str, after: int = 0) -> Telemetry | None:
        """What was recorded after step `after`, one column; None if that is nothing."""
        query = sql.select(_CHUNKS.c.first_step, _CHUNKS.c.arrays).where(_CHUNKS.c.name == name)
        with self._transaction() as connection:
            rows = connection.execute(query.order_by(_CHUNKS.c.first_step)).all()
        chunks = [unpacked(first, arrays) for first, arrays in rows]
        later = [chunk.after(after) for chunk in chunks if chunk.first_step + len(chunk) - 1 > after]
        return joined(later) if later else None

    def state(self, name: str) -> State | None:
        """Where the run stands after its last recorded step; None before the first."""
        with self._transaction() as connection:
            row = connection.execute(sql.select(_RUNS.c.last_step, _RUNS.c.state).where(_RUNS.c.name == name)).first()
        return unpacked_state(row[0], row[1]) if row is not None and row[1] is not None else None

    @contextmanager
    def _transaction(self) -> Iterator[sql.Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except IntegrityError as error:
            raise _TakenError(say("training.error.store", reason=error.orig)) from error
        except SQLAlchemyError as error:
            raise StoreError(say("training.error.store", reason=getattr(error, "orig", error))) from error


class _TakenError(StoreError):
    pass


def name_of(settings: Settings, parent: str | None = None, forked_at: int = 0) -> str:
    """A run's name: its identity; of a fork, a hash of that with the run and the step that it left."""
    own = identity(settings)
    return own if parent is None else hashlib.sha256(f"{own} {parent} {forked_at}".encode()).hexdigest()[: len(own)]


def packed(telemetry: Telemetry) -> bytes:
    """The arrays of one run, compressed."""
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **{name: getattr(telemetry, name) for name in ARRAYS})
    return file.getvalue()


def unpacked(first_step: int, arrays: bytes) -> Telemetry:
    """The inverse of `packed`. Nothing in it is evaluated."""
    return Telemetry(first_step, **_unzipped(arrays))


def packed_state(state: State) -> bytes:
    """A state's tensors; weights do not compress."""
    tensors = {field.name: getattr(state, field.name).numpy() for field in fields(State) if field.name != "step"}
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **tensors)
    return file.getvalue()


def unpacked_state(step: int, tensors: bytes) -> State:
    """The inverse of `packed_state`."""
    return State(step, **{name: torch.from_numpy(array) for name, array in _unzipped(tensors).items()})


def _unzipped(data: bytes) -> dict[str, NDArray[Any]]:
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return dict(arrays)


def _record(row: dict[str, Any]) -> Record | None:
    """None where a dial of an older version is gone: such a run can no longer be told."""
    try:
        texts: dict[str, str] = json.loads(row.pop(_SETTINGS))
        settings = Settings(**{name: Settings.from_text(name, text) for name, text in texts.items()})  # type: ignore[arg-type]
    except SettingsError:
        return None
    times = {name: row[name].replace(tzinfo=UTC) if row[name].tzinfo is None else row[name] for name in _TIMES}
    return Record(settings=settings, **row | times)


_TIMES: Final = ("begun", "changed")  # SQLite forgets that they are UTC


def _for_many_readers(connection: Any, _: Any) -> None:
    """Readers do not wait for the writer; after a crash the file is whole (https://sqlite.org/wal.html)."""
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
