"""A track as slides and as Markdown: every stop in it, the answer where it belongs, and nothing fetched."""

import re

import pytest

from qkdemo.tracks.catalogue import GUIDED, TRACKS, is_trained, told
from qkdemo.tracks.stop import Choose
from qkdemo.web.handout.deck import deck
from qkdemo.web.handout.markdown import markdown
from qkdemo.web.handout.page import main
from qkdemo.web.handout.sheet import in_html
from tests.tracks.finding import evidence_of

TRACK = GUIDED[0]
STOPS = [stop for stop in TRACKS[TRACK] if not is_trained(stop)][:4]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TRACKS, TRACK, tuple(STOPS))  # type: ignore[index]


def test_a_stop_has_a_slide_for_its_question_and_one_for_its_answer(short: None) -> None:
    html = deck(TRACK, "https://example.org")
    slides = html.split("<section class='slide")[1:]
    assert len(slides) == 2 + 2 * len(STOPS)
    for stop, asked, answered in zip(STOPS, slides[1:-1:2], slides[2:-1:2], strict=True):
        assert in_html(told(TRACK, stop, "question")) in asked
        assert "class='right'" not in asked
        if isinstance(stop.ask, Choose):
            right = in_html(told(TRACK, stop, f"choice.{evidence_of(stop).answer}"))
            assert f"<li class='right'>{right}</li>" in answered
        assert "<svg" in answered


def test_slides_fetch_nothing(short: None) -> None:
    html = deck(TRACK, "https://example.org")
    assert not re.search(r"\ssrc=|<link|@import|url\(|fetch\(|import\(", html)
    assert set(re.findall(r"href='([^']*)'", html)) == {"https://example.org"}


def test_markdown_holds_every_question_its_choices_and_what_was_found(short: None) -> None:
    text = markdown(TRACK, "https://example.org")
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == [
        f"{at} · {told(TRACK, stop, 'title')}" for at, stop in enumerate(STOPS, 1)
    ]
    for stop in STOPS:
        assert told(TRACK, stop, "question") in text
        for word in stop.ask.words if isinstance(stop.ask, Choose) else ():
            assert re.search(rf"- [A-D] – {re.escape(told(TRACK, stop, f'choice.{word}'))}\n", text)
        assert f"stop={stop.name}>" in text


@pytest.mark.parametrize(("form", "begins"), [("slides", "<!DOCTYPE html>"), ("markdown", "# Beginner")])
def test_the_command_writes_each_form(short: None, capsys: pytest.CaptureFixture[str], form: str, begins: str) -> None:
    assert main([TRACK, "--form", form]) == 0
    assert capsys.readouterr().out.startswith(begins)
