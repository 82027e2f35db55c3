"""A class has two links; what it answered is kept without names, bounded, and refused in a sentence."""

import sqlite3
import string
import time
from pathlib import Path
from threading import Thread

import pytest

from qkdemo.messages import LANGUAGES
from qkdemo.runs.kept.database import StoreError
from qkdemo.runs.kept.store import Store
from qkdemo.tracks import classes as module
from qkdemo.tracks.classes import TERM_DAYS, UNUSED_DAYS, Classes, is_code
from qkdemo.tracks.quiz import Settings, marked, quiz
from qkdemo.tracks.results import row_of
from tests.tracks.test_results import row


@pytest.fixture
def classes(tmp_path: Path) -> Classes:
    return Classes(f"sqlite:///{tmp_path}/runs.sqlite")


def later(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    now = time.time()
    monkeypatch.setattr(module.time, "time", lambda: now + 86400 * days)


def test_what_is_kept_is_what_was_answered_and_nothing_else(classes: Classes) -> None:
    state = Settings(track="developer", when="post", seed=42)
    answers: list[str | None] = [each.answer for each in quiz(state)]
    answers[1] = None
    answers[2] = next(word for word in quiz(state)[2].choices if word != answers[2])
    kept = row_of(marked(state, answers), "one")
    code = classes.make().code
    classes.answer(code, kept)
    (found,) = classes.of_class(code)
    assert found == kept
    assert (found.track, found.when, found.seed, found.score) == ("developer", "post", 42, 6)
    assert found.right == (True, None, False, True, True, True, True, True)
    assert abs(found.minute - time.time() / 60) < 2


def test_the_tables_have_no_place_for_a_name_nor_for_the_secret(classes: Classes, tmp_path: Path) -> None:
    new = classes.make()
    classes.answer(new.code, row("1"))
    with sqlite3.connect(tmp_path / "runs.sqlite") as db:
        columns = [line[1] for line in db.execute("PRAGMA table_info(class_answers)")]
        (secret,) = db.execute("SELECT secret FROM classes").fetchone()
    assert columns == ["course", "name", "track", "when", "seed", "answers", "score", "minute"]
    assert new.secret not in secret
    assert new.secret not in (tmp_path / "runs.sqlite").read_bytes().decode("latin-1")


def test_a_code_is_short_and_a_secret_cannot_be_guessed(classes: Classes) -> None:
    made = [classes.make() for _ in range(50)]
    assert len({new.code for new in made}) == 50
    assert len({new.secret for new in made}) == 50
    assert all(is_code(new.code) for new in made)
    assert {len(new.secret) for new in made} == {22}  # 128 bits, six to a letter


def test_a_secret_opens_its_class_and_the_code_opens_none(classes: Classes) -> None:
    one, other = classes.make(), classes.make()
    assert classes.of_secret(one.secret) == one.code
    assert classes.of_secret(other.secret) == other.code
    for wrong in (one.code, "", one.secret[:-1], one.secret + "a", "%"):
        assert classes.of_secret(wrong) == ""


def test_a_browser_that_was_let_in_may_read_its_class_alone(classes: Classes) -> None:
    one, other = classes.make().code, classes.make().code
    assert not classes.may_read(one, "me")
    for _ in range(2):
        classes.let_read(one, "me")
    assert classes.may_read(one, "me")
    assert not classes.may_read(other, "me")
    assert not classes.may_read(one, "you")


def test_one_browser_has_one_answer_the_latest(classes: Classes) -> None:
    code = classes.make().code
    for score in (1, 7, 4):
        classes.answer(code, row("me", score=score))
    classes.answer(code, row("you", score=2))
    assert {each.name: each.score for each in classes.of_class(code)} == {"me": 4, "you": 2}


def test_many_clicks_at_once_are_one_answer(classes: Classes) -> None:
    code = classes.make().code
    clicks = [Thread(target=classes.answer, args=(code, row("me", score=score))) for score in range(6)]
    for click in clicks:
        click.start()
    for click in clicks:
        click.join()
    assert len(classes.of_class(code)) == 1


def test_a_class_sees_its_own_rows_alone_and_clearing_it_leaves_the_others(classes: Classes) -> None:
    one, other = classes.make().code, classes.make().code
    classes.answer(one, row("1", minute=5))
    classes.answer(one, row("2", minute=3))
    classes.answer(other, row("3"))
    assert [each.name for each in classes.of_class(one)] == ["2", "1"]
    assert classes.clear(one) == 2
    assert classes.of_class(one) == []
    assert [each.name for each in classes.of_class(other)] == ["3"]
    assert classes.knows(one)


def test_a_full_class_is_told_so_and_a_change_still_passes(classes: Classes) -> None:
    code = classes.make().code
    for name in "123":
        classes.answer(code, row(name), most_rows=3)
    with pytest.raises(StoreError, match=r"^The class is full: 3 finished quizzes are kept"):
        classes.answer(code, row("4"), most_rows=3)
    classes.answer(code, row("3", score=8), most_rows=3)
    assert [each.score for each in classes.of_class(code)].count(8) == 1


def test_no_class_is_dropped_for_another_before_its_term(classes: Classes, monkeypatch: pytest.MonkeyPatch) -> None:
    used, unused = classes.make(most=2).code, classes.make(most=2).code
    classes.answer(used, row("1"))
    with pytest.raises(StoreError, match="2 classes already, and none is dropped before its term"):
        classes.make(most=2)
    later(monkeypatch, UNUSED_DAYS - 1)
    assert classes.knows(used)
    assert classes.knows(unused)
    later(monkeypatch, UNUSED_DAYS + 1)
    assert not classes.knows(unused)
    assert classes.make(most=2).code  # in the place of the one that ended
    assert [each.name for each in classes.of_class(used)] == ["1"]
    later(monkeypatch, TERM_DAYS + 1)
    assert not classes.knows(used)
    classes.make(most=2)
    assert classes.of_class(used) == []


def test_a_class_that_ended_or_never_was_takes_no_answers(classes: Classes, monkeypatch: pytest.MonkeyPatch) -> None:
    code = classes.make().code
    later(monkeypatch, UNUSED_DAYS + 1)
    for gone in (code, "ABCD-2345"):
        with pytest.raises(StoreError, match="its term has ended, or the code is not the one"):
            classes.answer(gone, row("1"))


NO_CODES = ["", "ABCD-234", "abcd-2345", "ABCD-2340", "ABCD-2345\n", "x'; DROP TABLE", "physics-1"]


@pytest.mark.parametrize("code", NO_CODES)
def test_what_is_no_code(code: str) -> None:
    assert is_code("ABCD-2345")
    assert not is_code(code)


def test_classes_lie_beside_the_recorded_runs(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.sqlite"
    store, classes = Store(url), Classes(url)
    code = classes.make().code
    classes.answer(code, row("1"))
    assert store.trim(most_runs=0) == 0
    assert len(Classes(url).of_class(code)) == 1


def test_a_disk_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    there = Classes(f"sqlite:///{tmp_path}/runs.sqlite")
    code = there.make().code
    there.close()
    read_only = Classes(f"sqlite:///file:{tmp_path}/runs.sqlite?mode=ro&uri=true")
    with pytest.raises(StoreError, match=r"^The results cannot be written: attempt to write a readonly database\.$"):
        read_only.answer(code, row("1"))
    assert read_only.of_class(code) == []


def test_a_place_that_is_no_database_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    with pytest.raises(StoreError, match="cannot be opened"):
        Classes(f"sqlite:///{tmp_path}/file/runs.sqlite")


def test_what_the_page_says_of_a_code_is_what_a_code_may_hold() -> None:
    """“digits from 2 on and capital letters other than I and O”."""
    said = LANGUAGES["en"]["quiz.class.earlier"]
    assert "two groups of four, of digits from 2 on and capital letters other than I and O" in said
    allowed = {sign for sign in map(chr, range(33, 127)) if is_code(f"ABCD-{4 * sign}")}
    assert allowed == {*"23456789"} | {*string.ascii_uppercase} - {*"IO"}
