"""Who a visitor is: a random name that this server gave, and nobody can make up.

* `issue()`: a new name, signed, as the browser keeps it; `name_in(cookies)`: the name of a browser that was given one;
* `mark(name, use)`: what stands for a visitor in one place, and leads neither back to the name nor to other places.

The name is in a cookie that scripts cannot read and other sites cannot send along (`HttpOnly`, `SameSite=Lax`). It is
never taken from a link. What signs it lies in the store, so that a name outlives a restart, and all processes of one
store know it. While the store cannot be asked, a key of this process signs; when it can be, that key is still believed.
"""

import hmac
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

import sqlalchemy as sql
from itsdangerous import BadSignature, Signer

from qkdemo.runs.kept.database import Database, StoreError, TakenError, default_url, told

COOKIE: Final = "qkdemo_visitor"
_NAME: Final = re.compile(r"[0-9a-f]{32}")
_BYTES: Final = 32
_PATIENCE_S: Final = 0.5  # for a store that another process has locked: a visitor waits
_RETRY_S: Final = 3.0  # for so long a store that could not be asked is not asked again
_TABLES: Final = sql.MetaData()
_KEYS: Final = sql.Table(
    "keys",
    _TABLES,
    sql.Column("use", sql.String(16), primary_key=True),
    sql.Column("secret", sql.LargeBinary, nullable=False),
)


class _Keys(Database):
    tables = _TABLES

    def secret(self, use: str) -> bytes:
        """The key for `use`, made when it is first asked for. Raises StoreError."""
        found = sql.select(_KEYS.c.secret).where(_KEYS.c.use == use)
        try:
            with told("store.error.write"), self.engine.begin() as db:
                if db.scalar(found) is None:
                    db.execute(_KEYS.insert().values(use=use, secret=secrets.token_bytes(_BYTES)))
        except TakenError:  # another process was quicker
            pass
        with told("store.error.read"), self.engine.connect() as db:
            return bytes(db.execute(found).scalar_one())


class _Ring:
    """What signs names: the store's key, and one of this process's own if there was a name to sign before that came."""

    def __init__(self, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock = _Keys(url, later=True, patience_s=_PATIENCE_S), clock
        self._lock = threading.Lock()
        self._own: bytes | None = None
        self._kept: bytes | None = None
        self._failed_at: float | None = None

    @property
    def keys(self) -> list[bytes]:
        """All that are believed; the last one signs."""
        with self._lock:
            now = self._clock()
            if self._kept is None and (self._failed_at is None or now - self._failed_at >= _RETRY_S):
                try:
                    self._kept = self._store.secret("visitor")
                except StoreError:
                    self._failed_at = now
                    self._own = self._own or secrets.token_bytes(_BYTES)
            return [key for key in (self._own, self._kept) if key is not None]


@lru_cache(maxsize=4)
def _ring(url: str) -> _Ring:
    return _Ring(url)


def _signer() -> Signer:
    return Signer(_ring(default_url()).keys, salt=COOKIE)


def new_name() -> str:
    """Somebody who has no name yet."""
    return secrets.token_hex(16)


def issue() -> str:
    """A new name with its signature, for a cookie."""
    return _signer().sign(new_name()).decode()


def name_in(cookies: Mapping[str, str]) -> str:
    """The name that a browser was given; empty if it has none, or one that this server never gave."""
    try:
        name = _signer().unsign(cookies.get(COOKIE, "")).decode()
    except (BadSignature, ValueError):
        return ""
    return name if _NAME.fullmatch(name) else ""


def mark(name: str, use: str) -> str:
    """32 hexadecimal digits: the same for the same name and use, and without the key nobody can tell whose."""
    return hmac.new(_ring(default_url()).keys[-1], f"{use}:{name}".encode(), "sha256").hexdigest()[:32]
