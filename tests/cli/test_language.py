"""The command line speaks the language that QKDEMO_LANG names: its help and its answers, not the words of flags."""

import re

import pytest

from qkdemo.__main__ import LANGUAGE, main
from qkdemo.cli.command import _APART, COMMANDS
from qkdemo.dials import declarations
from qkdemo.messages import PSEUDO, language
from qkdemo.training.sentences import WORDS

_CODE = re.compile(
    r"\[-.*?\]|--?[\w-]+|python -m \S+|\{[^}]*\}|[\w.-]*\|[\w.|-]*|\b[a-z]+_[a-z_]+\b|\b\w*\d\w*\b", re.DOTALL
)
_WORDS = {"qkdemo", "NAME", "FILE", "cpu", "cuda", "mps", "streamlit", "run", *COMMANDS, *_APART, *WORDS}


@pytest.mark.parametrize("words", [[], *([word] for word in COMMANDS)], ids=lambda words: " ".join(words) or "all")
def test_help_has_no_english_word_left(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(LANGUAGE, PSEUDO)
    monkeypatch.setattr("sys.argv", ["qkdemo", *words, "--help"])
    monkeypatch.setenv("COLUMNS", "200")
    before = language.get()
    try:
        assert main() == 0
    finally:
        language.set(before)
    usage, told = capsys.readouterr().out.split("\n\n", 1)
    assert "Ûšåĝé" in usage
    names = {name for word in COMMANDS for name in (*COMMANDS[word].presets, *_values(word))}
    left = set(re.findall(r"(?<!\w)[A-Za-z]{3,}(?!\w)", _CODE.sub(" ", told))) - _WORDS - names
    assert left == set()


def _values(word: str) -> set[str]:
    """The words of a command's flags, and those that they take."""
    dials = declarations(COMMANDS[word].settings)
    return {
        part
        for dial in dials
        for text in (dial.name, *dial.words, *getattr(dial.kind, "known", ()))
        for part in re.split(r"[_\W]", text)
    }
