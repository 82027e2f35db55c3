"""What a class answered in the quizzes, without a word about who answered.

* `Results(url)`: kept in the database of the recorded runs; `add`, `of_class`;
* `Row`: one finished quiz; `row_of(marked)`: a new one;
* `is_code(text)`: whether a text can name a class;
* `votes(rows, settings)`: in one quiz, how many took each choice;
* `means(rows)`, `shares(rows)`, `table(rows)`: before against after, by quiz and by question, and every row.

A row has a random name, the class, which quiz it was, the answers, the score, and when, to the minute; no name, no
address, nothing of the browser. Whoever knows the code of a class can read its rows. What is kept is bounded: a class
takes `MOST_ROWS`, and beyond `MOST_IN_ALL` the classes that were written to longest ago are dropped.
"""

import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import fmean
from typing import Final

import sqlalchemy as sql

from qkdemo.messages import say
from qkdemo.runs.database import Database, StoreError, told
from qkdemo.tracks.quiz import QUIZZES, Marked, Question, Settings, quiz

MOST_ROWS: Final = 2000  # of a class
MOST_IN_ALL: Final = 20_000
_CODE: Final = re.compile(r"[A-Za-z0-9-]{1,40}")
_MINUTE_S: Final = 60
_RIGHT: Final = "!"
_TABLES: Final = sql.MetaData()
_QUIZZES: Final = sql.Table(
    "quizzes",
    _TABLES,
    sql.Column("name", sql.String(16), primary_key=True),
    sql.Column("course", sql.String(40), nullable=False, index=True),
    sql.Column("track", sql.String(16), nullable=False),
    sql.Column("when", sql.String(8), nullable=False),
    sql.Column("seed", sql.Integer, nullable=False),
    sql.Column("answers", sql.Text, nullable=False),
    sql.Column("score", sql.Integer, nullable=False),
    sql.Column("minute", sql.Integer, nullable=False),  # since 1970, UTC
)


@dataclass(frozen=True)
class Row:
    """One finished quiz. `answers` are words in the order of its questions, a right one marked: `square!,,plain!`."""

    name: str
    track: str
    when: str
    seed: int
    answers: str
    score: int
    minute: int

    @property
    def right(self) -> tuple[bool | None, ...]:
        """Question by question; None where it was left open."""
        return tuple(answer.endswith(_RIGHT) if answer else None for answer in self.answers.split(","))

    @property
    def words(self) -> tuple[str, ...]:
        """What was chosen, question by question; empty where it was left open."""
        return tuple(self.answers.replace(_RIGHT, "").split(","))


@dataclass(frozen=True)
class Votes:
    """How many took each choice of a question, in the order in which they are shown, and how many took none."""

    question: Question
    counts: tuple[int, ...]
    left_open: int


def is_code(text: str) -> bool:
    """Whether `text` can be the code of a class: 1 to 40 letters, digits and dashes."""
    return _CODE.fullmatch(text) is not None


def row_of(result: Marked) -> Row:
    """A finished quiz as it is kept, of this minute."""
    state = result.settings
    answers = (
        "" if word is None else word + (_RIGHT if right else "")
        for word, right in zip(result.answers, result.right, strict=True)
    )
    minute = int(time.time()) // _MINUTE_S
    return Row(secrets.token_hex(8), state.track, state.when, state.seed, ",".join(answers), result.score, minute)


class Results(Database):
    """Safe to use from several threads, and on one database from several processes. Every method raises StoreError."""

    tables = _TABLES

    def add(self, course: str, row: Row, most_rows: int = MOST_ROWS, most_in_all: int = MOST_IN_ALL) -> None:
        """Keep a finished quiz of a class; the same row again changes nothing. Raises StoreError also if it is full."""
        if not is_code(course):
            raise StoreError(say("quiz.class.no_code"))
        with told("quiz.class.write"), self.engine.begin() as db:
            mine = _QUIZZES.c.course == course
            if db.scalar(sql.select(sql.func.count()).where(_QUIZZES.c.name == row.name)):
                return
            if (db.scalar(sql.select(sql.func.count()).where(mine)) or 0) >= most_rows:
                raise StoreError(say("quiz.class.full", most=most_rows))
            db.execute(_QUIZZES.insert().values(course=course, **vars(row)))
            _drop_oldest(db, most_in_all, course)

    def of_class(self, course: str) -> list[Row]:
        """The rows of a class, the earliest first; of one minute in the order of their random names."""
        columns = [_QUIZZES.c[field.name] for field in fields(Row)]
        chosen = sql.select(*columns).where(_QUIZZES.c.course == course).order_by(_QUIZZES.c.minute, _QUIZZES.c.name)
        with told("quiz.class.read"), self.engine.connect() as db:
            return [Row(*row) for row in db.execute(chosen)]


def votes(rows: Sequence[Row], settings: Settings) -> list[Votes]:
    """What was chosen in one quiz, question by question; rows with other numbers had other choices and are not counted.

    A word that is no choice of its question, as in a row of another version, counts as none.
    """
    state = (settings.track, settings.when, settings.seed)
    mine = [row.words for row in rows if (row.track, row.when, row.seed) == state]
    found = []
    for at, question in enumerate(quiz(settings)):
        chosen = [words[at] if at < len(words) else "" for words in mine]
        counts = tuple(chosen.count(word) for word in question.choices)
        found.append(Votes(question, counts, len(mine) - sum(counts)))
    return found


def means(rows: Sequence[Row]) -> list[dict[str, str | int | float | None]]:
    """One line per track that was answered: how many before and after it, their mean scores, and the difference."""
    lines: list[dict[str, str | int | float | None]] = []
    for track in QUIZZES:
        before, after = (
            [row.score for row in rows if (row.track, row.when) == (track, when)] for when in ("pre", "post")
        )
        if before or after:
            lines.append(
                {
                    "track": track,
                    "before": len(before),
                    "mean_before": fmean(before) if before else None,
                    "after": len(after),
                    "mean_after": fmean(after) if after else None,
                    "gain": fmean(after) - fmean(before) if before and after else None,
                }
            )
    return lines


def shares(rows: Sequence[Row]) -> list[dict[str, str | float | None]]:
    """One line per question that was asked: the share of all who were asked that was right, before and after."""
    lines: list[dict[str, str | float | None]] = []
    for track, questions in QUIZZES.items():
        for at, question in enumerate(questions):
            line: dict[str, str | float | None] = {"track": track, "question": question}
            for when in ("pre", "post"):
                asked = [row.right for row in rows if (row.track, row.when) == (track, when)]
                right = [bool(answers[at]) for answers in asked if at < len(answers)]
                line[when] = fmean(right) if right else None
            if line["pre"] is not None or line["post"] is not None:
                lines.append(line)
    return lines


def table(rows: Sequence[Row]) -> list[dict[str, str | int | None]]:
    """Every row: which quiz, when, the score, 1 for right and 0 for wrong, and the words that were chosen."""
    return [
        {
            "row": row.name,
            "track": row.track,
            "when": row.when,
            "seed": row.seed,
            "utc": time.strftime("%Y-%m-%d %H:%M", time.gmtime(row.minute * _MINUTE_S)),
            "score": row.score,
            **{f"question_{at}": None if right is None else int(right) for at, right in enumerate(row.right, 1)},
            "answers": ",".join(row.words),
        }
        for row in rows
    ]


def _drop_oldest(db: sql.Connection, most: int, spared: str) -> None:
    """Whole classes but `spared`, those that were written to longest ago first, until the rest is within bounds."""
    sizes = sql.select(_QUIZZES.c.course, sql.func.count()).group_by(_QUIZZES.c.course)
    newest_first = (_QUIZZES.c.course != spared, sql.func.max(_QUIZZES.c.minute).desc(), _QUIZZES.c.course)
    kept = 0
    for course, count in db.execute(sizes.order_by(*newest_first)).all():
        kept += count
        if kept > most and course != spared:
            db.execute(_QUIZZES.delete().where(_QUIZZES.c.course == course))
