"""The file of a language: made, brought up to date, and what the command says of it."""

from pathlib import Path

import pytest

from qkdemo.locale import __main__ as command
from qkdemo.locale import catalogue
from qkdemo.locale.catalogue import updated
from qkdemo.locale.tables import PO
from tests.locale import opened, saved

ONE = """
[a]
title = "50 % done"
keys = "{n:key|keys} of `x`"
gone = "Gone"
old = "Moved"
"""
FUZZY = """
#: qkdemo/locale/en/one.toml
#, fuzzy
#| msgid "50 % done"
msgctxt "a.title"
msgid "Half of it is done"
msgstr "50 % fertig"
"""


@pytest.fixture
def english(tmp_path: Path) -> Path:
    folder = tmp_path / "en"
    folder.mkdir()
    (folder / "one.toml").write_text(ONE, encoding="utf-8")
    return folder


def translated(path: Path, **texts: str) -> None:
    catalog = opened(path)
    for message in catalog:
        if message.context and message.context.removeprefix("a.") in texts:
            message.string = texts[message.context.removeprefix("a.")]
    saved(path, catalog)


def test_a_new_file_holds_every_sentence_with_what_a_translator_needs(english: Path, tmp_path: Path) -> None:
    found = updated(tmp_path / "pl" / PO, english)
    assert (found.all, found.said, found.fuzzy, found.wrong, found.taken) == (4, 0, [], {}, 0)
    text = (tmp_path / "pl" / PO).read_text(encoding="utf-8")
    assert '"Language: pl\\n"' in text
    assert '#: qkdemo/locale/en/one.toml\nmsgctxt "a.title"\nmsgid "50 % done"\nmsgstr ""\n' in text
    assert "#. n: one (1) | few (2) | many (5) | other (1,5)\n" in text


def test_a_second_time_changes_nothing(english: Path, tmp_path: Path) -> None:
    path = tmp_path / "pt-BR" / PO
    updated(path, english)
    translated(path, title="50 % feitos", gone="Foi-se")
    updated(path, english)
    before = path.read_bytes()
    assert updated(path, english).said == 2
    assert path.read_bytes() == before


def test_what_has_changed_is_marked_what_is_gone_is_kept(english: Path, tmp_path: Path) -> None:
    path = tmp_path / "de" / PO
    updated(path, english)
    translated(path, title="50 % fertig", gone="Weg", old="Umgezogen", keys="{n:Schlüssel|Schlüssel} von `x`")
    text = ONE.replace('"50 % done"', '"Half of it is done"').replace('gone = "Gone"\n', "").replace("old", "new")
    (english / "one.toml").write_text(text, encoding="utf-8")
    for _ in range(3):  # the mark stays, with the English that was translated
        found = updated(path, english)
        assert (found.said, found.fuzzy) == (1, ["a.title", "a.new"])
        assert FUZZY in path.read_text(encoding="utf-8")
        assert opened(path).get("Moved", "a.new").string == "Umgezogen"
        assert '#~ msgstr "Weg"' in path.read_text(encoding="utf-8")


def test_sentences_in_toml_files_of_the_language_are_taken_over(english: Path, tmp_path: Path) -> None:
    path = tmp_path / "de" / PO
    path.parent.mkdir()
    (path.parent / "one.toml").write_text('[a]\ntitle = "50 % fertig"\nelse = "?"\n', encoding="utf-8")
    found = updated(path, english)
    assert (found.taken, found.said) == (1, 1)
    assert updated(path, english).taken == 0


def test_faults_are_found(english: Path, tmp_path: Path) -> None:
    path = tmp_path / "pl" / PO
    updated(path, english)
    translated(path, keys="{n:klucz|klucze} z `y`", title="50 % gotowe")
    found = updated(path, english)
    assert found.said == 1
    assert [fault.word for fault in found.wrong["a.keys"]] == ["lost", "new", "forms"]


def test_the_command_says_how_far_a_language_is(
    english: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    monkeypatch.setattr(catalogue, "updated", lambda path: updated(path, english))
    assert command.main(["de"]) == 0
    assert "0 of 4 sentences are translated and shown." in capsys.readouterr().out
    translated(tmp_path / "de" / PO, title="50 % fertig", keys="Schlüssel")
    assert command.main(["de"]) == 1
    said = capsys.readouterr().out
    assert "1 of 4 sentences are translated and shown." in said
    assert "1 sentence has a fault." in said
    assert "  a.keys: this is missing: {n}" in said
    (tmp_path / "de" / PO).write_text('msgid "never closed\n', encoding="utf-8")
    assert command.main(["de"]) == 1
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["de", "fr"], ["--help"], ["en"], ["en-XA"], ["tlh"], ["../de"], ["de_DE"]])
def test_the_command_refuses_what_is_no_language(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(words) == 2
    assert capsys.readouterr().err
