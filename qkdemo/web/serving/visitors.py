"""Who a visitor is: a random name that this server gave, and nobody can make up.

* `issue()`: a new name, signed, as the browser keeps it; `name_in(cookies)`: the name of a browser that was given one;
* `mark(name, use)`: what stands for a visitor in one place, and leads neither back to the name nor to other places.

The name is in a cookie that scripts cannot read and other sites cannot send along (`HttpOnly`, `SameSite=Lax`). It is
never taken from a link. What signs it lies in the store, so that a name outlives a restart, and all processes of one
store know it.
"""

import hmac
import re
import secrets
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import sqlalchemy as sql
from itsdangerous import BadSignature, Signer

from qkdemo.runs.database import Database, StoreError, TakenError, default_url, told

COOKIE: Final = "qkdemo_visitor"
_NAME: Final = re.compile(r"[0-9a-f]{32}")
_BYTES: Final = 32
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


@lru_cache(maxsize=4)
def _secret(url: str) -> bytes:
    """What signs names; where there is no store, they live as long as this process."""
    try:
        return _Keys(url).secret("visitor")
    except StoreError:
        return secrets.token_bytes(_BYTES)


def _signer() -> Signer:
    return Signer(_secret(default_url()), salt=COOKIE)


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
    return hmac.new(_secret(default_url()), f"{use}:{name}".encode(), "sha256").hexdigest()[:32]
