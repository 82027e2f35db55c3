"""The page of the quizzes: from the link to a locked sheet, and what a class gets to see."""

import re
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Thread
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from qkdemo.messages import say
from qkdemo.tracks.quiz import Settings, marked, quiz, text
from qkdemo.tracks.results import Results
from qkdemo.web.quiz import class_results as quiz_class
from tests.web.visit import complaints, link_of, visit


@pytest.fixture(autouse=True)
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    url = f"sqlite:///{tmp_path}/runs.sqlite"
    monkeypatch.setenv("QKDEMO_STORE", url)
    quiz_class._results.cache_clear()
    return url


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
    assert asked == [f"**{at}.** {text('researcher', each, 'ask')}" for at, each in enumerate(quiz(state), 1)]


def test_another_track_is_chosen_on_the_page_and_the_link_follows() -> None:
    app = visit("quiz", {"track": "researcher", "class": "physics-1"})
    app.radio(key="quiz.track").set_value("developer").run()
    assert app.title[0].value == "Eight questions for developers"
    assert link_of(app) == {"track": "developer", "class": "physics-1"}
    app.radio(key="quiz.track").set_value("beginner").run()
    assert link_of(app) == {"class": "physics-1"}
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


def test_without_a_class_nothing_is_kept(url: str) -> None:
    send(visit("quiz"), Settings(), right=3)
    assert Results(url).of_class("") == []
    assert not (Path(url.removeprefix("sqlite:///")).exists() and Results(url).of_class("physics-1"))


def test_a_class_gets_the_first_answers_of_a_visitor_and_everybody_is_told(url: str) -> None:
    state = Settings(track="developer", seed=4)
    app = visit("quiz", state.to_texts() | {"class": "physics-1"})
    assert "Anyone who knows the class code can read" in app.info[0].value
    app = send(app, state, right=6)
    assert "were kept for the class physics-1" in app.success[0].value
    app.button(key="quiz:again").click().run()
    again = state.but(seed=int(link_of(app)["seed"]))
    assert link_of(app)["class"] == "physics-1"
    app = send(app, again, right=8)
    assert "these further ones are not" in words(app)
    assert [row.score for row in Results(url).of_class("physics-1")] == [6]


def test_whoever_knows_the_code_reads_means_and_rows() -> None:
    for when, right in (("pre", 2), ("post", 7)):
        state = Settings(when=when, seed=right)
        send(visit("quiz", state.to_texts() | {"class": "physics-1"}), state, right=right)
    app = visit("quiz", {"class": "physics-1"})
    assert not app.dataframe  # nothing is read before it is asked for
    app.session_state["quiz:class"] = True
    app.run()
    assert not app.exception
    assert say("quiz.class.no_votes") in words(app)
    assert "Sent with other numbers, and not counted here: 1." in words(app)
    means, by_question = (frame.value for frame in app.dataframe)
    assert means.iloc[0].to_list() == ["Beginner", "1", "2", "1", "7", "5"]
    assert by_question["pre"].to_list() == ["100 %"] * 2 + ["0 %"] * 6
    assert by_question["post"].to_list() == ["100 %"] * 7 + ["0 %"]


def test_votes_of_a_class_are_bars_in_the_order_of_the_choices() -> None:
    state = Settings(seed=5)
    for right in (8, 8, 0):
        send(visit("quiz", state.to_texts() | {"class": "physics-1"}), state, right=right)
    app = visit("quiz", state.to_texts() | {"class": "physics-1"})
    app.session_state["quiz:class"] = True
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
    app = send(visit("quiz", {"class": "physics-1"}), Settings(), right=1)
    assert not app.exception
    assert app.header[0].value == "1 of 8 right"
    assert "were not kept for the class physics-1" in complaints(app)[0]
    app.session_state["quiz:class"] = True
    app.run()
    assert not app.exception


def test_two_quick_clicks_are_one_vote(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their callbacks run beside each other, in threads: the second begins while the first still writes."""
    together = Barrier(2)
    writing = Results.add

    def slowly(*args: Any) -> None:
        with suppress(BrokenBarrierError):
            together.wait(0.2)
        writing(*args)

    monkeypatch.setattr(Results, "add", slowly)
    result = marked(Settings(), [each.choices[0] for each in quiz(Settings())])
    into: quiz_class.Kept = {}
    quiz_class._results(url)  # the table is there
    clicks = [Thread(target=quiz_class.keep, args=("physics-1", result, into)) for _ in range(2)]
    for click in clicks:
        click.start()
    for click in clicks:
        click.join()
    assert len(Results(url).of_class("physics-1")) == 1


def test_a_lecturer_makes_a_link_for_a_class() -> None:
    app = visit("quiz", {"track": "developer", "seed": "3"})
    app.session_state["quiz:class"] = True
    app.run()
    app.text_input(key="quiz:code").set_value("not a code").run()
    assert "1 to 40 letters" in complaints(app)[0]
    app.text_input(key="quiz:code").set_value("physics-2").run()
    link = app.code[0].value
    for part in ("track=developer", "when=pre", "seed=3", "class=physics-2", "hide=seed%2Ctrack%2Cwhen"):
        assert part in link


def test_in_a_lecture_a_quiz_lists_no_keys_of_a_lesson() -> None:
    app = visit("quiz", {"track": "developer", "lecture": "1"})
    listed = [html.proto.body for html in app.get("html") if "class='keys'" in html.proto.body]
    assert listed == [f"<span class='keys'>{say('lecture.keys')}</span>"]
    app = visit("drift", {"track": "developer", "lecture": "1"})
    assert any(say("lecture.lesson_keys") in html.proto.body for html in app.get("html"))
