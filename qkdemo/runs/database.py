"""A database in which something is kept, whatever it is.

* `Database(url)`: SQLite through SQLAlchemy; the URL of a PostgreSQL database can take its place;
* `default_url()`: that of the environment variable QKDEMO_STORE, else a file in the user's cache folder;
* `told(key)`: turns what a database says into a `StoreError`, a sentence.
"""

import os
import sys
from pathlib import Path
from typing import Any, ClassVar, Final

import sqlalchemy as sql
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from qkdemo.messages import say

VARIABLE: Final = "QKDEMO_STORE"
_LAYOUT: Final = 1  # of the tables; another layout gets another file
_NO_FILES: Final = ("file:", ":memory:")
_OWNER_ALONE: Final = 0o600
_PATIENCE_S: Final = 5  # for another process that writes


class StoreError(Exception):
    """A store that cannot be opened, read or written, in a sentence."""


class TakenError(StoreError):
    """What was to be inserted is there."""


class Database:
    """The tables of a subclass, made where they are missing. Raises StoreError if it cannot be opened."""

    tables: ClassVar[sql.MetaData]

    def __init__(self, url: str) -> None:
        self.url = url
        with told("store.error.open", url=_safe(url)):
            address = sql.make_url(url)
            file = address.database if address.get_backend_name() == "sqlite" else None
            if file and not file.startswith(_NO_FILES):
                _make_private(Path(file), ours=not os.environ.get(VARIABLE))
            self.engine = sql.create_engine(address)
            if address.get_backend_name() == "sqlite":
                sql.event.listen(self.engine, "connect", _set_up)
            self.tables.create_all(self.engine)
            self._widen()

    def _widen(self) -> None:
        """Give tables of an earlier version the columns that they lack: all of these may be empty."""
        there = sql.inspect(self.engine)
        for table in self.tables.tables.values():
            names = {column["name"] for column in there.get_columns(table.name)}
            for column in table.columns:
                if column.name not in names:
                    self._add(table, column)

    def _add(self, table: sql.Table, column: "sql.Column[Any]") -> None:
        quoted = self.engine.dialect.identifier_preparer.quote
        kind = column.type.compile(self.engine.dialect)
        try:
            with self.engine.begin() as db:
                db.execute(sql.text(f"ALTER TABLE {quoted(table.name)} ADD COLUMN {quoted(column.name)} {kind}"))
        except DBAPIError:  # another server did so at the same time
            if column.name not in {told["name"] for told in sql.inspect(self.engine).get_columns(table.name)}:
                raise

    def close(self) -> None:
        """Let go of the database."""
        self.engine.dispose()


def default_url() -> str:
    """Where things are kept."""
    named = os.environ.get(VARIABLE)
    return named or f"sqlite:///{_cache_folder() / f'runs-{_LAYOUT}.sqlite'}"


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


def _set_up(connection: Any, _: Any) -> None:
    for order in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", f"busy_timeout={1000 * _PATIENCE_S}"):
        connection.execute(f"PRAGMA {order}")


def _safe(url: str) -> str:
    """The URL without its password."""
    try:
        return sql.make_url(url).render_as_string(hide_password=True)
    except SQLAlchemyError:
        return "…"


def _cache_folder() -> Path:
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "qkdemo"
