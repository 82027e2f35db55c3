"""What is said in a language of which a part is translated: what holds, and English for the rest."""

from pathlib import Path

import pytest

from qkdemo.locale.faults import Fault, faults_of
from qkdemo.locale.tables import Translation, read_english
from qkdemo.messages import LANGUAGES, phrase, say
from tests.locale import GERMAN, made, opened, saved, speaking
from tests.web.visit import visit

ENGLISH = read_english()


def test_ten_sentences_of_german(german: Translation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LANGUAGES, "de", german)
    assert dict(german) == GERMAN
    with speaking("de"):
        assert say("list.and", head="a", last="b") == "a und b"
        assert say("note.more", count=1) == "1 weiterer Teil des Links wurde weggelassen."
        assert say("note.more", count="1.024") == "1.024 weitere Teile des Links wurden weggelassen."
        assert say("question.rope") == ENGLISH["question.rope"]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        ("1", "Jest 1 zbędna część."),
        ("2", "Są 2 zbędne części."),
        ("5", "Jest 5 zbędnych części."),
        ("22", "Są 22 zbędne części."),
        ("1,5", "Jest 1,5 zbędnej części."),
    ],
)
def test_polish_plurals(count: str, text: str, polish: Translation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LANGUAGES, "pl", polish)
    with speaking("pl"):
        assert say("note.more", count=count) == text


def test_what_is_not_translated_counts_as_english_does(polish: Translation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LANGUAGES, "pl", polish)
    with speaking("pl"):
        assert say("words.more", words="a", count=5) == "a or one of 5 other words"


def test_a_browser_is_given_no_forms(polish: Translation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LANGUAGES, "pl", polish)
    with speaking("pl"):
        assert phrase("list.and") == "{head} i {last}"
        assert phrase("arrows.counting.l2") == ENGLISH["arrows.counting.l2"]


def test_a_stale_a_fuzzy_and_a_faulty_translation_are_not_said(tmp_path: Path) -> None:
    path = made(tmp_path, "de", {**GERMAN, "number.less": "weniger als {y}"})
    catalog = opened(path)
    catalog.get(ENGLISH["list.and"], "list.and").flags.add("fuzzy")
    saved(path, catalog)
    today = ENGLISH | {"number.percent": "{x} percent"}
    said = Translation(path, today)
    assert GERMAN.keys() - said.keys() == {"list.and", "number.less", "number.percent"}
    assert len(said) == len(GERMAN) - 3


@pytest.mark.parametrize(
    ("english", "text", "faults"),
    [
        ("{a} of `b`", "`b`: {a}", []),
        ("{a}", "{b}", [Fault("lost", "{a}"), Fault("new", "{b}")]),
        ("{a}", "{a", [Fault("braces", "{a")]),
        ("{a}", "{a!r}", [Fault("braces", "{a!r}")]),
        ("{a}", "{a.__class__}", [Fault("braces", "{a.__class__}")]),
        ("{a}", "{a:{a}|x}", [Fault("braces", "{a:{a}|x}")]),
        ("{n:key|keys}", "{n} …", []),  # a language may say it without forms
        ("{n}", "{n:Schlüssel|Schlüssel}", []),  # and with forms where English needs none
        ("{n:key|keys}", "{n:Schlüssel}", [Fault("forms", "{n:one|other}")]),
        ("{n:=is|are}", "{n:=ist|sind|waren}", [Fault("forms", "{n:=one|other}")]),
        ("See `x`.", "Siehe x.", [Fault("lost", "`x`")]),
        ("[to](scale=1)", "[zu](scale=2)", [Fault("lost", "](scale=1)"), Fault("new", "](scale=2)")]),
        ("$x$ and --flag", "--flag und $x$", []),
        ("<b>x</b>", "<i>x</i>", [Fault("lost", "</b>, <b>"), Fault("new", "</i>, <i>")]),
    ],
)
def test_what_is_wrong_with_a_translation(english: str, text: str, faults: list[Fault]) -> None:
    assert faults_of(english, text, "de") == faults


def test_a_page_says_what_is_translated_and_writes_its_numbers(
    german: Translation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LANGUAGES, "de", german)
    app = visit("drift", {"lang": "de", "scale": "2.5"})
    assert not app.exception
    said = " ".join(element.value for element in app.main.markdown)
    assert GERMAN["question.drift"] in said
    (slider,) = (slider for slider in app.select_slider if slider.label == GERMAN["dial.scale.label"])
    assert "×2,5" in slider.options
    assert "×1.000" in slider.options
