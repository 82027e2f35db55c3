"""Classes that answer quizzes, kept in the database of the recorded runs.

* `Classes(url)`: `make` a class; `answer` its quizzes; `of_class`, `clear` its answers;
* `New`: a class that was just made: a short code with which one answers, and a secret with which one reads.

A class has two links. The short code is for the hall: whoever has it can answer, and do nothing else. The secret has
128 random bits, and only its hash is kept: whoever opened it once with a browser may read and clear there.

One browser has one answer to a quiz, the latest. What stands for the browser is another word for every quiz and class,
and leads to nobody (`mark` in `qkdemo.web.serving.visitors`). A class lives for `TERM_DAYS` after its last answer, or
for `UNUSED_DAYS` without one; until then it is dropped for no other. What is kept is bounded by `MOST_ROWS` and
`MOST_CLASSES`: beyond them nothing is taken, with a sentence that says so.
"""

import hashlib
import re
import secrets
import time
from dataclasses import dataclass, fields
from typing import Final

import sqlalchemy as sql

from qkdemo.messages import say
from qkdemo.runs.kept.database import Database, StoreError, TakenError, told
from qkdemo.tracks.results import Row

MOST_ROWS: Final = 2000  # of a class
MOST_CLASSES: Final = 500
TERM_DAYS: Final = 200
UNUSED_DAYS: Final = 14
_SECRET_BYTES: Final = 16
_LETTERS: Final = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"  # no two of which look alike
_CODE: Final = re.compile(f"[{_LETTERS}]{{4}}-[{_LETTERS}]{{4}}")
_MINUTE_S: Final = 60
_MINUTES_A_DAY: Final = 1440
_TABLES: Final = sql.MetaData()
_CLASSES: Final = sql.Table(
    "classes",
    _TABLES,
    sql.Column("code", sql.String(16), primary_key=True),
    sql.Column("secret", sql.String(64), nullable=False, index=True),  # its SHA-256
    sql.Column("ends", sql.Integer, nullable=False),  # minutes since 1970, UTC
)
_ANSWERS: Final = sql.Table(
    "class_answers",
    _TABLES,
    sql.Column("course", sql.ForeignKey(_CLASSES.c.code, ondelete="CASCADE"), primary_key=True),
    sql.Column("name", sql.String(32), primary_key=True),
    sql.Column("track", sql.String(16), nullable=False),
    sql.Column("when", sql.String(8), nullable=False),
    sql.Column("seed", sql.Integer, nullable=False),
    sql.Column("answers", sql.Text, nullable=False),
    sql.Column("score", sql.Integer, nullable=False),
    sql.Column("minute", sql.Integer, nullable=False),
)
_READERS: Final = sql.Table(
    "class_readers",
    _TABLES,
    sql.Column("course", sql.ForeignKey(_CLASSES.c.code, ondelete="CASCADE"), primary_key=True),
    sql.Column("reader", sql.String(32), primary_key=True),
)


@dataclass(frozen=True)
class New:
    """A class that was just made; its secret is told once."""

    code: str
    secret: str


def is_code(text: str) -> bool:
    """Whether `text` is written like the code of a class: two groups of four letters and digits."""
    return _CODE.fullmatch(text) is not None


class Classes(Database):
    """Safe to use from several threads, and on one database from several processes. Every method raises StoreError."""

    tables = _TABLES

    def make(self, most: int = MOST_CLASSES) -> New:
        """A new class. Raises StoreError also if there are too many."""
        groups = ("".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(2))
        new = New("-".join(groups), secrets.token_urlsafe(_SECRET_BYTES))
        with told("quiz.class.write"), self.engine.begin() as db:
            self._drop_ended(db)
            if (db.scalar(sql.select(sql.func.count()).select_from(_CLASSES)) or 0) >= most:
                raise StoreError(say("quiz.class.no_room", most=most, days=UNUSED_DAYS))
            db.execute(_CLASSES.insert().values(code=new.code, secret=_hashed(new.secret), ends=_in_days(UNUSED_DAYS)))
        return new

    def knows(self, code: str) -> bool:
        """Whether there is such a class, and its term has not ended."""
        found = sql.select(_CLASSES.c.code).where(_CLASSES.c.code == code, _CLASSES.c.ends > _in_days(0))
        with told("quiz.class.read"), self.engine.connect() as db:
            return db.scalar(found) is not None

    def of_secret(self, secret: str) -> str:
        """The code of the class that a secret opens; empty if it opens none."""
        found = sql.select(_CLASSES.c.code).where(_CLASSES.c.secret == _hashed(secret), _CLASSES.c.ends > _in_days(0))
        with told("quiz.class.read"), self.engine.connect() as db:
            return str(db.scalar(found) or "")

    def let_read(self, code: str, reader: str) -> None:
        """From now on that browser may read the class, without its secret."""
        try:
            with told("quiz.class.write"), self.engine.begin() as db:
                db.execute(_READERS.insert().values(course=code, reader=reader))
        except TakenError:  # it may
            pass

    def may_read(self, code: str, reader: str) -> bool:
        """Whether a browser may read the class."""
        found = sql.select(_READERS.c.reader).where(_READERS.c.course == code, _READERS.c.reader == reader)
        with told("quiz.class.read"), self.engine.connect() as db:
            return db.scalar(found) is not None

    def answer(self, code: str, row: Row, most_rows: int = MOST_ROWS) -> None:
        """Keep a quiz in place of one of the same name. Raises StoreError also if the class is full, or gone."""
        if not self.knows(code):
            raise StoreError(say("quiz.class.gone", code=code))
        try:
            self._put(code, row, most_rows)
        except TakenError:  # a second click of the same browser was quicker
            self._put(code, row, most_rows)

    def of_class(self, code: str) -> list[Row]:
        """The rows of a class, the earliest first; of one minute in the order of their random names."""
        columns = [_ANSWERS.c[field.name] for field in fields(Row)]
        chosen = sql.select(*columns).where(_ANSWERS.c.course == code).order_by(_ANSWERS.c.minute, _ANSWERS.c.name)
        with told("quiz.class.read"), self.engine.connect() as db:
            return [Row(*row) for row in db.execute(chosen)]

    def clear(self, code: str) -> int:
        """Delete the answers of a class, which stays; returns how many there were."""
        with told("quiz.class.write"), self.engine.begin() as db:
            return db.execute(_ANSWERS.delete().where(_ANSWERS.c.course == code)).rowcount

    def _put(self, code: str, row: Row, most_rows: int) -> None:
        mine = [_ANSWERS.c.course == code, _ANSWERS.c.name == row.name]
        with told("quiz.class.write"), self.engine.begin() as db:
            if not db.execute(_ANSWERS.update().where(*mine).values(**vars(row))).rowcount:
                here = sql.select(sql.func.count()).where(_ANSWERS.c.course == code)
                if (db.scalar(here) or 0) >= most_rows:
                    raise StoreError(say("quiz.class.full", most=most_rows))
                db.execute(_ANSWERS.insert().values(course=code, **vars(row)))
            db.execute(_CLASSES.update().where(_CLASSES.c.code == code).values(ends=_in_days(TERM_DAYS)))

    def _drop_ended(self, db: sql.Connection) -> None:
        ended = sql.select(_CLASSES.c.code).where(_CLASSES.c.ends <= _in_days(0))
        for table in (_ANSWERS, _READERS):
            db.execute(table.delete().where(table.c.course.in_(ended)))
        db.execute(_CLASSES.delete().where(_CLASSES.c.ends <= _in_days(0)))


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _in_days(days: int) -> int:
    return int(time.time()) // _MINUTE_S + days * _MINUTES_A_DAY
