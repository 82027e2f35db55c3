"""What a class answered is kept without names, bounded, and refused in a sentence where it cannot be."""

import sqlite3
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkdemo.runs.database import StoreError
from qkdemo.runs.store import Store
from qkdemo.tracks.quiz import QUIZZES, Settings, marked, quiz
from qkdemo.tracks.results import Results, Row, is_code, means, row_of, shares, table, votes


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(f"sqlite:///{tmp_path}/runs.sqlite")


def row(name: str, answers: str = "a!,b,,d!,e!,f!,g!,h!", minute: int = 1, **but: object) -> Row:
    values = {"track": "beginner", "when": "pre", "seed": 0, "score": answers.count("!")} | but
    return Row(name=name, answers=answers, minute=minute, **values)  # type: ignore[arg-type]


def test_what_is_kept_is_what_was_answered_and_nothing_else(results: Results) -> None:
    state = Settings(track="developer", when="post", seed=42)
    answers: list[str | None] = [each.answer for each in quiz(state)]
    answers[1] = None
    answers[2] = next(word for word in quiz(state)[2].choices if word != answers[2])
    kept = row_of(marked(state, answers))
    results.add("physics-1", kept)
    (found,) = results.of_class("physics-1")
    assert found == kept
    assert (found.track, found.when, found.seed, found.score) == ("developer", "post", 42, 6)
    assert found.right == (True, None, False, True, True, True, True, True)
    assert abs(found.minute - time.time() / 60) < 2
    assert len({row_of(marked(state, answers)).name for _ in range(20)}) == 20


def test_the_table_of_the_database_has_no_place_for_a_name(results: Results, tmp_path: Path) -> None:
    results.add("a", row("1"))
    with sqlite3.connect(tmp_path / "runs.sqlite") as db:
        columns = [line[1] for line in db.execute("PRAGMA table_info(quizzes)")]
    assert columns == ["name", "course", "track", "when", "seed", "answers", "score", "minute"]


def test_a_class_sees_its_own_rows_alone_and_the_same_row_once(results: Results) -> None:
    results.add("a", row("1", minute=5))
    results.add("a", row("1", minute=5))
    results.add("a", row("2", minute=3))
    results.add("b", row("3"))
    assert [each.name for each in results.of_class("a")] == ["2", "1"]
    assert [each.name for each in results.of_class("b")] == ["3"]
    assert results.of_class("c") == []


def test_a_full_class_is_told_so(results: Results) -> None:
    for name in "123":
        results.add("a", row(name), most_rows=3)
    with pytest.raises(StoreError, match=r"^The class is full: 3 finished quizzes are kept\. Choose another code\.$"):
        results.add("a", row("4"), most_rows=3)
    assert len(results.of_class("a")) == 3


def test_beyond_the_total_the_class_that_was_written_to_longest_ago_goes(results: Results) -> None:
    results.add("old", row("1", minute=1))
    results.add("older", row("2", minute=0))
    results.add("older", row("3", minute=2))  # written to again
    results.add("new", row("4", minute=3), most_in_all=3)
    assert [len(results.of_class(course)) for course in ("old", "older", "new")] == [0, 2, 1]
    results.add("newest", row("5", minute=3), most_in_all=1)  # never the one that is written
    assert [len(results.of_class(course)) for course in ("older", "new", "newest")] == [0, 0, 1]


def test_results_lie_beside_the_recorded_runs(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.sqlite"
    store, results = Store(url), Results(url)
    results.add("a", row("1"))
    assert store.trim(most_runs=0) == 0
    assert len(Results(url).of_class("a")) == 1


@given(st.text(max_size=50))
def test_a_code_is_letters_digits_and_dashes(text: str) -> None:
    plain = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-")
    assert is_code(text) == (0 < len(text) <= 40 and set(text) <= plain)


@pytest.mark.parametrize(("code", "good"), [("physics-1", True), ("a" * 40, True), ("a" * 41, False), ("", False)])
def test_codes_and_their_nearest_illegal_neighbours(code: str, good: bool, results: Results) -> None:
    assert is_code(code) is good
    if good:
        results.add(code, row("1"))
    else:
        with pytest.raises(StoreError, match="1 to 40 letters"):
            results.add(code, row("1"))


@pytest.mark.parametrize("code", ["a b", "ä", "a\n", "x'; DROP TABLE quizzes; --", "٣"])
def test_hostile_codes_are_none(code: str) -> None:
    assert not is_code(code)


def test_a_disk_that_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Results(f"sqlite:///{tmp_path}/runs.sqlite").close()
    read_only = Results(f"sqlite:///file:{tmp_path}/runs.sqlite?mode=ro&uri=true")
    with pytest.raises(StoreError, match=r"^The results cannot be written: attempt to write a readonly database\.$"):
        read_only.add("a", row("1"))
    assert read_only.of_class("a") == []
    assert not (tmp_path / "file:").exists()  # an address is no folder to be made


def test_a_place_that_is_no_database_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    with pytest.raises(StoreError, match="cannot be opened"):
        Results(f"sqlite:///{tmp_path}/file/runs.sqlite")


def test_votes_count_who_took_which_choice_of_this_very_quiz(results: Results) -> None:
    state = Settings(track="developer", when="post", seed=42)
    questions = quiz(state)
    for at in (0, 0, 1, 2):
        results.add("a", row_of(marked(state, [None, *(each.choices[at] for each in questions[1:])])))
    results.add("a", row_of(marked(state.but(seed=43), [each.answer for each in quiz(state.but(seed=43))])))
    results.add("a", row("another version", "no such word!,", track="developer", when="post", seed=42))
    first, *others = votes(results.of_class("a"), state)
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
