"""The page of the quizzes: from the link to a locked sheet, and what a class gets to see."""

import re
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from qkdemo.messages import say
from qkdemo.runs.kept.database import default_url
from qkdemo.tracks.quiz import Settings, quiz, text
from qkdemo.web.quiz import classes
from qkdemo.web.serving.limits import Limit
from tests.web.visit import complaints, link_of, visit


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QKDEMO_STORE", f"sqlite:///{tmp_path}/runs.sqlite")
    classes._classes.cache_clear()
    monkeypatch.setattr(classes, "here", lambda: "192.0.2.1")
    for name in ("_SENT", "_NEW", "_TRIED"):
        monkeypatch.setattr(classes, name, Limit(most=100, every_s=1))


def radios(app: AppTest, state: Settings) -> list[Any]:
    found = [radio for radio in app.radio if (radio.key or "").startswith("quiz:")]
    assert len(found) in (0, len(quiz(state)))
    return found


def send(app: AppTest, state: Settings, right: int, left_open: int = 0) -> AppTest:
    """Answer so many rightly, leave the last ones open, the others wrongly; and send."""
    questions = quiz(state)
    for at, (radio, question) in enumerate(zip(radios(app, state), questions, strict=True)):
        wrong = next(word for word in question.choices if word != question.answer)
        if at < len(questions) - left_open:
            radio.set_value(question.answer if at < right else wrong)
    return next(button for button in app.button if button.label == say("quiz.page.send")).click().run()


def words(app: AppTest) -> str:
    return " ".join(element.value for kind in (app.markdown, app.header, app.success, app.info) for element in kind)


def test_a_link_opens_its_quiz_and_a_track_in_it_is_no_lesson() -> None:
    state = Settings(track="researcher", when="post", seed=12)
    app = visit("quiz", state.to_texts())
    assert not app.exception
    assert not complaints(app)
    assert link_of(app) == state.to_texts()
    assert app.title[0].value == "Eight questions for researchers"
    asked = [radio.label for radio in radios(app, state)]
    assert asked == [f"{at}.\u00a0{text('researcher', each, 'ask')}" for at, each in enumerate(quiz(state), 1)]


def test_another_track_is_chosen_on_the_page_and_the_link_follows() -> None:
    _, code, _ = made()
    app = visit("quiz", {"track": "researcher", "class": code})
    app.radio(key="quiz.track").set_value("developer").run()
    assert app.title[0].value == "Eight questions for developers"
    assert link_of(app) == {"track": "developer", "class": code}
    app.radio(key="quiz.track").set_value("beginner").run()
    assert link_of(app) == {"class": code}
    assert not complaints(app)


def test_a_stop_in_the_link_does_not_lead_away_from_the_quiz() -> None:
    app = visit("quiz", {"track": "beginner", "stop": "growth", "said": "!"})
    assert not app.exception
    assert app.title[0].value == "Eight questions for beginners"


@pytest.mark.parametrize(
    "link", [{"track": "kale"}, {"when": "never"}, {"seed": "-1"}, {"seed": "x"}, {"class": "a b"}]
)
def test_a_bad_link_is_mended_and_said(link: dict[str, str]) -> None:
    app = visit("quiz", link)
    assert not app.exception
    assert len(complaints(app)) == 1
    assert app.title[0].value == "Eight questions for beginners"


def test_answers_are_marked_explained_and_locked() -> None:
    state = Settings(seed=5)
    app = send(visit("quiz", state.to_texts()), state, right=5, left_open=2)
    assert not app.exception
    assert app.header[0].value == "5 of 8 right · 2 left open"
    assert radios(app, state) == []  # locked
    said = words(app)
    for question in quiz(state):
        assert text("beginner", question, "explain") in said
    assert said.count("**Right.**") == 5
    assert said.count("**Not right.**") == 1
    assert said.count("**Left open.**") == 2
    assert len(app.get("download_button")) == 1


def test_another_one_asks_other_numbers_and_leaves_the_first_locked() -> None:
    state = Settings()
    app = send(visit("quiz"), state, right=8)
    assert app.header[0].value == "8 of 8 right"
    app.button(key="quiz:again").click().run()
    assert not app.exception
    seed = int(link_of(app)["seed"])
    assert seed != 0
    assert len(radios(app, state.but(seed=seed))) == 8
    app.slider(key="quiz.seed").set_value(0).run()
    assert app.header[0].value == "8 of 8 right"


def opened(app: AppTest) -> AppTest:
    """With the lecturer's part open."""
    app.session_state["quiz:class"] = True
    return app.run()


def made(query: dict[str, str] | None = None) -> tuple[AppTest, str, str]:
    """A lecturer who has just made a class; its code, and its secret."""
    app = opened(visit("quiz", query))
    app = app.button(key="quiz:make").click().run()
    assert not app.exception
    hall, own = (urlsplit(code.value).query for code in app.code)
    code = dict(parse_qsl(hall))["class"]
    assert "results" not in hall
    return app, code, dict(parse_qsl(own))["results"]


def test_without_a_class_nothing_is_kept(tmp_path: Path) -> None:
    send(visit("quiz"), Settings(), right=3)
    file = tmp_path / "runs.sqlite"
    assert not (file.exists() and sqlite3.connect(file).execute("SELECT * FROM sqlite_master").fetchall())


def test_a_lecturer_makes_a_class_with_two_links() -> None:
    app, code, secret = made({"track": "developer", "seed": "3"})
    hall = app.code[0].value
    for part in ("track=developer", "when=pre", "seed=3", f"class={code}", "hide=seed%2Ctrack%2Cwhen"):
        assert part in hall
    assert secret not in hall
    assert link_of(app)["class"] == code  # the lecturer stands in it, so that lecture mode shows its link
    assert "There are no answers of this class." in words(app)


def test_a_class_gets_one_answer_of_a_browser_and_it_can_be_changed() -> None:
    _, code, _ = made()
    state = Settings(track="developer", seed=4)
    app = visit("quiz", state.to_texts() | {"class": code})
    assert "No name, no address" in app.info[0].value
    app = send(app, state, right=6)
    assert f"were kept for the class {code}" in app.success[0].value
    app = app.button(key="quiz:change").click().run()
    chosen = [radio.value for radio in radios(app, state)]
    assert chosen[:6] == [question.answer for question in quiz(state)[:6]]  # as they were sent
    app = send(app, state, right=8)
    assert app.header[0].value == "8 of 8 right"
    app.button(key="quiz:again").click().run()
    again = state.but(seed=int(link_of(app)["seed"]))
    app = send(app, again, right=3)
    assert "even with other numbers, the new answers take their place" in app.success[0].value
    assert [row.score for row in classes._classes(default_url()).of_class(code)] == [3]
    send(visit("quiz", state.to_texts() | {"class": code}), state, right=5)  # another browser
    assert sorted(row.score for row in classes._classes(default_url()).of_class(code)) == [3, 5]


def test_who_knows_the_code_can_answer_and_reads_nothing() -> None:
    _, code, _ = made()
    app = opened(visit("quiz", {"class": code}))
    assert not app.exception
    assert not app.dataframe
    assert "are read by whoever has opened its lecturer’s link" in words(app)
    assert not [button for button in app.button if button.key == "quiz:clear"]


def test_the_lecturers_link_opens_the_results_on_any_device_and_its_secret_leaves_the_address() -> None:
    _, code, secret = made()
    for when, right in (("pre", 2), ("post", 7)):
        state = Settings(when=when, seed=right)
        send(visit("quiz", state.to_texts() | {"class": code}), state, right=right)
    app = visit("quiz", {"results": secret})
    assert link_of(app) == {"class": code}
    assert not app.dataframe  # nothing is read before it is asked for
    app = opened(app)
    assert not app.exception
    assert say("quiz.class.no_votes") in words(app)
    assert "Sent with other numbers, and not counted here: 1." in words(app)
    means, by_question = (frame.value for frame in app.dataframe)
    assert means.iloc[0].to_list() == ["Beginner", "1", "2", "1", "7", "5"]
    assert by_question["pre"].to_list() == ["100 %"] * 2 + ["0 %"] * 6
    assert by_question["post"].to_list() == ["100 %"] * 7 + ["0 %"]


def test_the_lecturer_clears_a_class_after_a_second_word() -> None:
    lecturer, code, _ = made()
    send(visit("quiz", {"class": code}), Settings(), right=2)
    app = lecturer.run()
    assert app.button(key="quiz:clear").disabled
    assert app.checkbox(key="quiz:sure").label.endswith("Finished quizzes: 1")
    app.checkbox(key="quiz:sure").check().run()
    app.button(key="quiz:clear").click().run()
    assert not app.exception
    assert "There are no answers of this class." in words(app)  # somebody had sent some
    assert classes._classes(default_url()).of_class(code) == []


@pytest.mark.parametrize("secret", ["", "wrong", "A" * 22, "%27", "x" * 5000])
def test_another_secret_opens_nothing(secret: str) -> None:
    made()
    app = visit("quiz", {"results": secret} if secret else {})
    assert bool(complaints(app)) == bool(secret)
    app = opened(app)
    assert not app.exception
    assert "results" not in link_of(app)
    assert not app.dataframe


@pytest.mark.parametrize("code", ["physics-1", "abcd-2345", "ABCD-23"])
def test_a_code_that_is_none_may_be_mistyped_or_of_an_earlier_version(code: str) -> None:
    app = send(visit("quiz", {"class": code}), Settings(), right=2)
    (said,) = complaints(app)
    assert "Nothing is collected under it" in said
    assert "is of an earlier version" not in said  # nobody knows that
    assert "python -m qkdemo.tracks.results" in said
    assert not app.success


def test_what_is_done_too_often_from_one_address_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    _, code, secret = made()
    for name in ("_SENT", "_NEW", "_TRIED"):
        monkeypatch.setattr(classes, name, Limit(most=1, every_s=1000))
    first = send(visit("quiz", {"class": code}), Settings(), right=1)
    assert first.success
    second = send(visit("quiz", {"class": code}), Settings(), right=1)
    assert "too often from this address" in complaints(second)[0]
    assert second.header[0].value == "1 of 8 right"  # marked all the same
    visit("quiz", {"results": "wrong"})
    assert "too often" in complaints(visit("quiz", {"results": secret}))[0]
    made()
    app = opened(visit("quiz"))
    app = app.button(key="quiz:make").click().run()
    assert "too often" in complaints(app)[0]


def test_votes_of_a_class_are_bars_in_the_order_of_the_choices() -> None:
    state = Settings(seed=5)
    app, code, _ = made(state.to_texts())
    for right in (8, 8, 0):
        send(visit("quiz", state.to_texts() | {"class": code}), state, right=right)
    app.run()
    assert not app.exception
    assert "Choices in this quiz, question by question; sent by 3" in words(app)
    tables = [html.proto.body for html in app.get("html") if html.proto.body.startswith("<table class='votes'")]
    for question, table in zip(quiz(state), tables, strict=True):
        counts = [int(count) for count in re.findall(r"<td>(\d+)</td>", table)]
        assert dict(zip(question.choices, counts, strict=False))[question.answer] == 2
        assert sum(counts) == 3
        assert counts[-1] == 0  # left open
        assert table.index("66.7%") > table.index(text("beginner", question, f"choice.{question.answer}"))


def test_a_disk_that_cannot_be_written_is_said_and_the_sheet_is_marked_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    monkeypatch.setenv("QKDEMO_STORE", f"sqlite:///{tmp_path}/file/runs.sqlite")
    app = send(visit("quiz", {"class": "ABCD-2345"}), Settings(), right=1)
    assert not app.exception
    assert app.header[0].value == "1 of 8 right"
    assert "cannot be opened" in complaints(app)[0]
    app = opened(visit("quiz"))
    app = app.button(key="quiz:make").click().run()
    assert not app.exception
    assert "cannot be opened" in complaints(app)[0]


def test_in_a_lecture_a_quiz_lists_no_keys_of_a_lesson() -> None:
    assert [say("lecture.does.leave") in bar_of("quiz"), say("lecture.does.show") in bar_of("quiz")] == [True, False]
    assert say("lecture.does.show") in bar_of("drift")


def bar_of(page: str) -> str:
    """The keys that a page lists in a lecture."""
    app = visit(page, {"track": "developer", "lecture": "1"})
    return " ".join(html.proto.body for html in app.get("html") if "<kbd>" in html.proto.body)
