"""A database in which something is kept, whatever it is.

* `Database(url)`: SQLite through SQLAlchemy; the URL of a PostgreSQL database can take its place. With `later` it is
  opened when it is first asked, and asked again where that failed: one that is away may come back;
* `default_url()`: that of the environment variable QKDEMO_STORE, else a file in the user's cache folder;
* `told(key)`: turns what a database says into a `StoreError`, a sentence.
"""

import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import sqlalchemy as sql
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from qkdemo.messages import say

VARIABLE: Final = "QKDEMO_STORE"
_LAYOUT: Final = 1  # of the tables; another layout gets another file
_NO_FILES: Final = ("file:", ":memory:")
_OWNER_ALONE: Final = 0o600
_PATIENCE_S: Final = 5.0  # for another process that writes
_AWAY_S: Final = 3.0  # for so long a database that could not be opened is not tried again


class StoreError(Exception):
    """A store that cannot be opened, read or written, in a sentence."""


class TakenError(StoreError):
    """What was to be inserted is there."""


class Database:
    """The tables of a subclass, made where they are missing. Raises StoreError where it cannot be opened."""

    tables: ClassVar[sql.MetaData]

    def __init__(self, url: str, *, later: bool = False, patience_s: float = _PATIENCE_S) -> None:
        self.url, self._patience_s = url, patience_s
        self._opened: sql.Engine | None = None
        self._away: tuple[float, StoreError] | None = None  # since when, and why
        if not later:
            self._opened = self._open()

    @property
    def engine(self) -> sql.Engine:
        """The database; raises StoreError, at once if it could not be opened a moment ago."""
        if self._opened is None:
            if self._away is not None and time.monotonic() - self._away[0] < _AWAY_S:
                raise StoreError(str(self._away[1]))
            try:
                self._opened = self._open()
            except StoreError as error:
                self._away = (time.monotonic(), error)
                raise
        return self._opened

    def _open(self) -> sql.Engine:
        with told("store.error.open", url=_safe(self.url)):
            address = sql.make_url(self.url)
            file = address.database if address.get_backend_name() == "sqlite" else None
            if file and not file.startswith(_NO_FILES):
                _make_private(Path(file), ours=not os.environ.get(VARIABLE))
            engine = sql.create_engine(address)
            if address.get_backend_name() == "sqlite":
                sql.event.listen(engine, "connect", partial(_set_up, self._patience_s))
            self.tables.create_all(engine)
            _widen(engine, self.tables)
            return engine

    def close(self) -> None:
        """Let go of the database."""
        if self._opened is not None:
            self._opened.dispose()


def default_url() -> str:
    """Where things are kept."""
    named = os.environ.get(VARIABLE)
    return named or f"sqlite:///{cache_folder() / f'runs-{_LAYOUT}.sqlite'}"


class told:  # noqa: N801  used like a function
    """Turns what a database says into a sentence, with the cause after it."""

    def __init__(self, key: str, **values: str) -> None:
        self.key, self.values = key, values

    def __enter__(self) -> None: ...

    def __exit__(self, _: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, SQLAlchemyError | OSError | ImportError):
            cause = str(error.orig if isinstance(error, DBAPIError) else error).splitlines()[0]
            kind = TakenError if isinstance(error, IntegrityError) else StoreError
            raise kind(say(self.key, cause=cause, **self.values)) from error


def _make_private(path: Path, *, ours: bool) -> None:
    """A new file is its owner's alone, as SQLite then makes those beside it; so is an old one in our own folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, _OWNER_ALONE))
    except FileExistsError:
        if ours:  # where somebody named it, its mode is theirs
            path.chmod(_OWNER_ALONE)


def _set_up(patience_s: float, connection: Any, _: Any) -> None:
    patience = f"busy_timeout={round(1000 * patience_s)}"
    for order in (patience, "journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {order}")


def _widen(engine: sql.Engine, tables: sql.MetaData) -> None:
    """Give tables of an earlier version the columns that they lack: all of these may be empty."""
    for table in tables.tables.values():
        there = _columns(engine, table)
        for column in table.columns:
            if column.name not in there:
                _add(engine, table, column)


def _add(engine: sql.Engine, table: sql.Table, column: "sql.Column[Any]") -> None:
    quoted = engine.dialect.identifier_preparer.quote
    kind = column.type.compile(engine.dialect)
    try:
        with engine.begin() as db:
            db.execute(sql.text(f"ALTER TABLE {quoted(table.name)} ADD COLUMN {quoted(column.name)} {kind}"))
    except DBAPIError:  # another server did so at the same time
        if column.name not in _columns(engine, table):
            raise


def _columns(engine: sql.Engine, table: sql.Table) -> set[str]:
    return {column["name"] for column in sql.inspect(engine).get_columns(table.name)}


def _safe(url: str) -> str:
    """The URL without its password."""
    try:
        return sql.make_url(url).render_as_string(hide_password=True)
    except SQLAlchemyError:
        return "…"


def cache_folder() -> Path:
    """Where this user's programs keep what can be made again."""
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "qkdemo"
