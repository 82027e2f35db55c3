"""The interface's sentences, in one folder of tables per language, so that a translation is one more folder.

* `say(key, **values)`: the sentence of that key, filled in;
* `phrase(key)`: the same, its `{names}` left for the browser to fill in;
* `has(key)`: whether the table knows it;
* `LANGUAGES`: the languages that lie in `locale/`, each a mapping from key to sentence.

A key is a dotted path into one of the TOML files of the language: `say("dial.scale.label")`. Numbers arrive
already written (see `notation`), because how a number is written does not depend on the sentence around it.

What a number counts agrees with it: `{n:key|keys}` is `1 key` or `2 keys`, and `{n:=is|are}` the word alone. The forms
stand in the order of the categories that CLDR has for the language, and the number as it is written says which: in
English, as in German, `one` for 1, and `other`.
"""

import tomllib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any, Final

_FOLDER: Final = Path(__file__).parent / "locale"


def _flatten(branch: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in branch.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, str(value).strip()


def _read(folder: Path) -> dict[str, str]:
    table: dict[str, str] = {}
    for path in sorted(folder.glob("*.toml")):
        for key, sentence in _flatten(tomllib.loads(path.read_text(encoding="utf-8"))):
            if key in table:
                raise ValueError(f"{path.name} says {key} again")
            table[key] = sentence
    return table


LANGUAGES: Final = {path.name: _read(path) for path in sorted(_FOLDER.iterdir()) if path.is_dir()}
language: ContextVar[str] = ContextVar("language", default="en")


def say(key: str, /, **values: object) -> str:
    """The sentence for `key` in the current language, with its `{names}` replaced by `values`.

    Raises KeyError for an unknown key: a missing sentence is a fault of ours, never of the visitor.
    """
    return _filled(LANGUAGES[language.get()][key], values)


def phrase(key: str) -> str:
    """The sentence for `key` with its `{names}` as they stand. Raises KeyError for an unknown key."""
    return LANGUAGES[language.get()][key]


def has(key: str) -> bool:
    """Whether the current language knows `key`."""
    return key in LANGUAGES[language.get()]


class _Count:
    """A number in a sentence, with what it counts."""

    def __init__(self, number: object) -> None:
        self._text = str(number)

    def __format__(self, forms: str) -> str:
        if not forms:
            return self._text
        one, other = forms.removeprefix("=").split("|")
        form = one if self._text == "1" else other
        return form if forms.startswith("=") else f"{self._text} {form}"


@cache
def _counts(sentence: str) -> frozenset[str]:
    """The names of a sentence that something else agrees with."""
    return frozenset(name for _, name, forms, _ in Formatter().parse(sentence) if name and forms and "|" in forms)


def _filled(sentence: str, values: Mapping[str, object]) -> str:
    """The sentence with its names replaced by `values`.

    >>> _filled("{n:hidden key gets|hidden keys get} weight", {"n": 1})
    '1 hidden key gets weight'
    >>> _filled("{part} of {of:entry|entries} {part:=is|are} lost", {"part": 1, "of": "1\u202f024"})
    '1 of 1\u202f024 entries is lost'
    """
    counts = _counts(sentence)
    if counts:
        values = {name: _Count(value) if name in counts else value for name, value in values.items()}
    return sentence.format(**values)
