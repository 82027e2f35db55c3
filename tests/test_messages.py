"""The string table: complete in every language, and harmless to fill in."""

from collections.abc import Callable
from pathlib import Path
from string import Formatter

import pytest

from qkdemo.locale.faults import faults_of
from qkdemo.locale.tables import read_english
from qkdemo.messages import LANGUAGES, has, language, say

MakeFolder = Callable[..., Path]


def placeholders(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name is not None}


@pytest.fixture
def folder(tmp_path: Path) -> MakeFolder:
    """Makes the folder of a language from file names and their texts."""

    def make(**files: str) -> Path:
        for name, text in files.items():
            (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
        return tmp_path

    return make


def test_english_is_there_and_spoken_unless_told_otherwise() -> None:
    assert "en" in LANGUAGES
    assert language.get() == "en"


def test_say_fills_in_the_names() -> None:
    assert say("list.and", head="none, l2", last="rms") == "none, l2 and rms"


def test_say_refuses_a_sentence_that_is_not_there() -> None:
    with pytest.raises(KeyError, match="no such sentence"):
        say("no such sentence")


def test_say_refuses_a_missing_value() -> None:
    with pytest.raises(KeyError, match="last"):
        say("list.and", head="none")


def test_values_are_never_read_as_placeholders() -> None:
    assert say("list.and", head="{last.__class__}", last="{0}") == "{last.__class__} and {0}"


def test_has_knows_the_sentences_and_nothing_else() -> None:
    assert has("list.and")
    assert not has("list")
    assert not has("list.or")


def test_say_and_has_follow_the_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LANGUAGES, "de", {"list.and": "{head} und {last}"})
    token = language.set("de")
    try:
        assert say("list.and", head="none", last="rms") == "none und rms"
        assert has("list.and")
        assert say("error.switch", name="a", value="b") == LANGUAGES["en"]["error.switch"].format(name="a", value="b")
    finally:
        language.reset(token)
    assert say("list.and", head="none", last="rms") == "none and rms"


@pytest.mark.parametrize("spoken", LANGUAGES)
def test_every_language_keeps_what_is_not_to_be_translated(spoken: str) -> None:
    """And its numbers have all their forms. What it does not say yet, English says."""
    assert LANGUAGES[spoken].keys() <= LANGUAGES["en"].keys()
    wrong = {key: faults_of(LANGUAGES["en"][key], text, spoken) for key, text in LANGUAGES[spoken].items()}
    assert {key: faults for key, faults in wrong.items() if faults} == {}


@pytest.mark.parametrize("spoken", LANGUAGES)
def test_no_sentence_looks_into_what_it_is_given(spoken: str) -> None:
    """Names alone: no attribute, no index, no position."""
    for key, sentence in LANGUAGES[spoken].items():
        assert all(name.isidentifier() for name in placeholders(sentence)), key


@pytest.mark.parametrize("spoken", LANGUAGES)
def test_no_sentence_is_empty_or_ends_in_a_blank(spoken: str) -> None:
    for key, sentence in LANGUAGES[spoken].items():
        assert sentence, key
        assert sentence == sentence.strip(), key


def test_tables_of_one_folder_are_one_table(folder: MakeFolder) -> None:
    table = read_english(folder(a='[x]\nb = "1"', b='[x.c]\nd = "ü"'))
    assert table == {"x.b": "1", "x.c.d": "ü"}


def test_a_key_said_twice_is_refused(folder: MakeFolder) -> None:
    with pytest.raises(ValueError, match=r"^x\.y stands in a\.toml already: delete it in b\.toml"):
        read_english(folder(a='x.y = "1"', b='x.y = "2"'))


def test_files_that_are_no_tables_are_left_alone(folder: MakeFolder) -> None:
    where = folder(a='x = "1"')
    (where / "notes.txt").write_text("not TOML", encoding="utf-8")
    assert read_english(where) == {"x": "1"}
