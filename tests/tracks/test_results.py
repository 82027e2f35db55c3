"""What rows of a class say: votes, means, shares; and the classes of an earlier version."""

import csv
import io
import sqlite3
from pathlib import Path

import pytest

from qkdemo.tracks.quiz import QUIZZES, Settings, marked, quiz
from qkdemo.tracks.results import Earlier, Row, main, means, row_of, shares, table, votes


def row(name: str, answers: str = "a!,b,,d!,e!,f!,g!,h!", minute: int = 1, **but: object) -> Row:
    values = {"track": "beginner", "when": "pre", "seed": 0, "score": answers.count("!")} | but
    return Row(name=name, answers=answers, minute=minute, **values)  # type: ignore[arg-type]


def test_votes_count_who_took_which_choice_of_this_very_quiz() -> None:
    state = Settings(track="developer", when="post", seed=42)
    questions = quiz(state)
    rows = [row_of(marked(state, [None, *(each.choices[at] for each in questions[1:])]), "1") for at in (0, 0, 1, 2)]
    rows.append(row_of(marked(state.but(seed=43), [each.answer for each in quiz(state.but(seed=43))]), "2"))
    rows.append(row("another version", "no such word!,", track="developer", when="post", seed=42))
    first, *others = votes(rows, state)
    assert (first.question, first.left_open, sum(first.counts)) == (questions[0], 5, 0)
    for each, question in zip(others, questions[1:], strict=True):
        assert each.question == question
        assert each.counts[:3] == (2, 1, 1)
        assert sum(each.counts) == 4
        assert each.left_open == 1


def test_means_hold_before_against_after() -> None:
    rows = [
        *(row(str(at), when="pre", score=score) for at, score in enumerate((2, 4))),
        *(row(str(at), when="post", score=score) for at, score in enumerate((6, 7, 8), 2)),
        row("9", track="developer", when="post", score=5),
    ]
    beginner, developer = means(rows)
    assert beginner == {
        "track": "beginner",
        "before": 2,
        "mean_before": 3,
        "after": 3,
        "mean_after": 7,
        "gain": 4,
    }
    assert developer["mean_before"] is None
    assert developer["gain"] is None


def test_shares_count_what_was_left_open_as_not_right() -> None:
    rows = [row("1", "a!,b,,d!,e!,f!,g!,h!"), row("2", "a!,b!,,d,e,f,g,h"), row("3", "a!", when="post")]
    found = shares(rows)
    assert [line["question"] for line in found] == list(QUIZZES["beginner"])
    assert [line["pre"] for line in found] == [1, 0.5, 0, 0.5, 0.5, 0.5, 0.5, 0.5]
    assert found[0]["post"] == 1
    assert found[1]["post"] is None  # a row of another version


def test_the_table_says_right_wrong_and_open() -> None:
    (line,) = table([row("1", minute=29_000_000)])
    assert [line[f"question_{at}"] for at in range(1, 9)] == [1, 0, None, 1, 1, 1, 1, 1]
    assert line["answers"] == "a,b,,d,e,f,g,h"
    assert line["utc"] == "2025-02-19 21:20"


def test_a_class_of_an_earlier_version_can_be_taken_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QKDEMO_STORE", f"sqlite:///{tmp_path}/runs.sqlite")
    Earlier(f"sqlite:///{tmp_path}/runs.sqlite").close()
    with sqlite3.connect(tmp_path / "runs.sqlite") as db:
        for name, minute in (("2", 29_000_001), ("1", 29_000_000)):
            db.execute(
                "INSERT INTO quizzes VALUES (?, 'physics-1', 'beginner', 'pre', 0, 'a!,b,,d!', 2, ?)", (name, minute)
            )
    assert main(["physics-1"]) == 0
    lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(line["row"], line["utc"], line["answers"]) for line in lines] == [
        ("1", "2025-02-19 21:20", "a,b,,d"),
        ("2", "2025-02-19 21:21", "a,b,,d"),
    ]
    assert main(["physics-2"]) == 1
    assert main([]) == 2
