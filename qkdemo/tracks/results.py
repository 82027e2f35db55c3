"""What a class answered in the quizzes, without a word about who answered.

* `Row`: one finished quiz; `row_of(result, name)`: a new one;
* `votes(rows, settings)`: in one quiz, how many took each choice;
* `means(rows)`, `shares(rows)`, `table(rows)`: before against after, by quiz and by question, and every row;
* `python -m qkdemo.tracks.results CODE`: the rows of a class of an earlier version, as CSV.

A row has a name that leads to nobody, which quiz it was, the answers, the score, and when, to the minute; nothing of
the browser, no address. `qkdemo.tracks.classes` keeps it.

Earlier versions let a lecturer choose the code, and whoever knew it read the class. Nothing is collected under such a
code any more, and no page reads it; what was collected is left where it is, for whoever runs the server.
"""

import csv
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import fmean
from typing import Final

import sqlalchemy as sql

from qkdemo.runs.kept.database import Database, default_url, told
from qkdemo.tracks.quiz import QUIZZES, Marked, Question, Settings, quiz

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


def row_of(result: Marked, name: str) -> Row:
    """A finished quiz as it is kept, of this minute, by the name that stands for its browser there."""
    state = result.settings
    answers = (
        "" if word is None else word + (_RIGHT if right else "")
        for word, right in zip(result.answers, result.right, strict=True)
    )
    minute = int(time.time()) // _MINUTE_S
    return Row(name, state.track, state.when, state.seed, ",".join(answers), result.score, minute)


class Earlier(Database):
    """The classes of earlier versions."""

    tables = _TABLES

    def of_class(self, course: str) -> list[Row]:
        """The rows of a class, the earliest first. Raises StoreError."""
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


def main(words: list[str]) -> int:
    """Writes the rows of an earlier class; returns the exit status."""
    if len(words) != 1:
        sys.stderr.write("Usage: python -m qkdemo.tracks.results CODE\n")
        return 2
    rows = table(Earlier(default_url()).of_class(words[0]))
    if rows:
        writer = csv.DictWriter(sys.stdout, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
