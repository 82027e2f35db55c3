"""A check of understanding: eight questions of a track, before it and after it, whose numbers a seed draws.

* `Settings`, `PRESETS`: which track, before or after, and the seed, declared like a lab's dials;
* `quiz(settings)`: its questions; the same settings give the same ones on every machine;
* `text(track, question, part)`: a sentence of a question, its numbers filled in;
* `marked(settings, answers)`: what was answered, question by question, and how much of it is right.

A question is a function that draws its parameters and runs a lab: the right answer, the wrong ones and every number
come from there (`qkdemo.tracks.asked`). Its sentences stand in the string table under `quiz.<track>.<name>`: `ask`,
`explain`, `choice.<word>`, and `about`, a few words for tables. A number without a sentence of its own is written by
`choice.any`. A question that is asked in several ways has `ask.<form>` and `explain.<form>`. What stands under
`quiz.<track>.any` serves all questions of the track.
"""

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from qkdemo.dials import Choice, Dial, Dials
from qkdemo.messages import has, in_each_language, say
from qkdemo.tracks.asked import Asked, Maker
from qkdemo.tracks.beginner import quiz as beginner
from qkdemo.tracks.developer import quiz as developer
from qkdemo.tracks.researcher import quiz as researcher

TrackWord: TypeAlias = Literal["beginner", "developer", "researcher"]
WhenWord: TypeAlias = Literal["pre", "post"]
QUIZZES: Final[Mapping[TrackWord, Mapping[str, Maker]]] = {
    "beginner": beginner.QUESTIONS,
    "developer": developer.QUESTIONS,
    "researcher": researcher.QUESTIONS,
}


@dataclass(frozen=True, kw_only=True)
class Settings(Dials):
    """Which quiz. One before the track and one after it draw other numbers from the same seed."""

    track: Annotated[TrackWord, Choice()] = "beginner"
    when: Annotated[WhenWord, Choice()] = "pre"
    seed: Annotated[int, Dial(0, 9999)] = 0


PRESETS: Final[dict[str, Settings]] = {"before": Settings(), "after": Settings(when="post")}


@dataclass(frozen=True)
class Question:
    """One question: its choices are words, in the order in which they are shown, and `answer` is the right one."""

    name: str
    numbers: Mapping[str, str]
    choices: tuple[str, ...]
    answer: str
    form: str = ""


@dataclass(frozen=True)
class Marked:
    """What was answered: a word for each question, or None where it was left open."""

    settings: Settings
    answers: tuple[str | None, ...]
    right: tuple[bool, ...]

    @property
    def score(self) -> int:
        """How many are right."""
        return sum(self.right)


@in_each_language(64)
def quiz(settings: Settings) -> tuple[Question, ...]:
    """The questions, computed once a process and language."""
    return tuple(_question(settings, name, make) for name, make in QUIZZES[settings.track].items())


def text(track: str, question: Question, part: str) -> str:
    """A sentence of a question: `ask`, `explain` or `choice.<word>`."""
    value = question.numbers.get(part.removeprefix("choice."), "")
    return say(_key(track, question, part), value=value, **question.numbers)


def marked(settings: Settings, answers: Sequence[str | None]) -> Marked:
    """The answers beside the right ones. A word that is no choice of its question counts as left open."""
    given = tuple(
        word if word in question.choices else None for question, word in zip(quiz(settings), answers, strict=True)
    )
    right = tuple(word == question.answer for question, word in zip(quiz(settings), given, strict=True))
    return Marked(settings, given, right)


def rows(result: Marked) -> list[dict[str, str | int | bool]]:
    """What a visitor takes along: one row per question, in words."""
    state = result.settings
    return [
        {
            "track": state.track,
            "when": state.when,
            "seed": state.seed,
            "question": text(state.track, question, "ask"),
            "answered": "" if word is None else text(state.track, question, f"choice.{word}"),
            "answer": text(state.track, question, f"choice.{question.answer}"),
            "right": right,
        }
        for question, word, right in zip(quiz(state), result.answers, result.right, strict=True)
    ]


def _key(track: str, question: Question, part: str) -> str:
    own = f"quiz.{track}.{question.name}"
    candidates = (f"{own}.{part}.{question.form}", f"{own}.{part}", f"quiz.{track}.any.{part}", f"{own}.choice.any")
    return next(key for key in candidates if has(key))


def _question(settings: Settings, name: str, make: Maker) -> Question:
    asked, draw = _drawn(settings, name, make)
    choices = list(asked.choices)
    draw.shuffle(choices)
    return Question(name, asked.numbers, tuple(choices), asked.answer, asked.form)


def _drawn(settings: Settings, name: str, make: Maker) -> tuple[Asked, random.Random]:
    """What the seed draws; after the track anew, until it asks the same with numbers other than before the track."""
    before = _drawn(settings.but(when="pre"), name, make)[0] if settings.when == "post" else None
    for attempt in itertools.count():
        draw = random.Random(f"{settings.track} {settings.when} {settings.seed} {name} {attempt}")  # noqa: S311  no secret
        asked = make(draw)
        if before is None or (asked.form == before.form and asked.numbers != before.numbers):
            break
    return asked, draw
