"""The interface's sentences, in one folder of tables per language, so that a translation is one more folder.

* `say(key, **values)`: the sentence of that key, filled in;
* `phrase(key)`: the same, its `{names}` left for the browser to fill in;
* `has(key)`: whether the table knows it;
* `LANGUAGES`: the languages that lie in `locale/`, each a mapping from key to sentence; what one of them does not say
  yet is said in English;
* `language`: which one is spoken in this thread; `known(name)`: whether there is one of that name; `in_link()`: what a
  link has to say for it;
* `later(key, **values)`: a sentence that whoever reads it forms again, `now(text)`, in the language spoken there;
* `in_each_language(maxsize)`: keeps what a function returns, for every language apart: for whatever holds sentences.

`PSEUDO` is a language for tests: English in accents. What stands on a page without accents comes from no table.

A key is a dotted path into one of the TOML files of the language: `say("dial.scale.label")`. Numbers arrive
already written (see `notation`), because how a number is written does not depend on the sentence around it.

What a number counts agrees with it: `{n:key|keys}` is `1 key` or `2 keys`, and `{n:=is|are}` the word alone. The forms
stand in the order of the categories that CLDR has for the language, and the number as it is written says which: in
English, as in German, `one` for 1, and `other`.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache, lru_cache, wraps
from pathlib import Path
from string import Formatter
from typing import Any, Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
ENGLISH: Final = "en"
LANGUAGE: Final = "lang"  # its name in a link
PSEUDO: Final = "en-XA"  # as Unicode's CLDR names it
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
language: ContextVar[str] = ContextVar("language", default=ENGLISH)
# What a pseudo-language leaves as it is: names, code, where links lead, tags, formulas, addresses, flags and icons.
_NO_WORDS: Final = re.compile(
    r"(\{\w+|`[^`]*`|\]\([^)]*\)|<[^<>]*>|\$[^$]*\$|&\w+;|https?://\S+|:material/\w+:|(?<!\w)--[a-z][\w-]*)"
)
_ACCENTS: Final = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "åƀçðéƒĝĥîĵķļɱñöþǫŕšţûṽŵẋýžÅƁÇÐÉƑĜĤÎĴĶĻṀÑÖÞǪŔŠŢÛṼŴẊÝŽ",
)


def say(key: str, /, **values: object) -> str:
    """The sentence for `key` in the current language, with its `{names}` replaced by `values`.

    Raises KeyError for an unknown key: a missing sentence is a fault of ours, never of the visitor.
    """
    return _filled(_sentence(key), values)


def phrase(key: str) -> str:
    """The sentence for `key` with its `{names}` as they stand. Raises KeyError for an unknown key."""
    return _sentence(key)


def has(key: str) -> bool:
    """Whether there is a sentence for `key`."""
    return key in LANGUAGES[ENGLISH]


class Later(str):
    """A sentence in the language of who wrote it, with what it is formed from."""

    __slots__ = ("key", "values")
    key: str
    values: Mapping[str, object]


def later(key: str, /, **values: object) -> Later:
    """What `say` gives now, and can be said again in another language: for what one thread notes and others read."""
    text = Later(say(key, **values))
    text.key, text.values = key, values
    return text


def now(text: str) -> str:
    """What was noted, in the language that is spoken here."""
    return say(text.key, **text.values) if isinstance(text, Later) else text


def known(name: str) -> bool:
    """Whether there is a language of this name."""
    return name in LANGUAGES or name == PSEUDO


def in_link() -> dict[str, str]:
    """The query that asks for the current language; empty for English, which needs no word."""
    return {} if language.get() == ENGLISH else {LANGUAGE: language.get()}


def in_each_language(maxsize: int | None) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """As `functools.lru_cache`, with a place of its own for every language."""

    def decorate(make: Callable[P, T]) -> Callable[P, T]:
        @lru_cache(maxsize=maxsize)
        def kept(spoken: str, *args: P.args, **kwargs: P.kwargs) -> T:
            return make(*args, **kwargs)

        @wraps(make)
        def found(*args: P.args, **kwargs: P.kwargs) -> T:
            return kept(language.get(), *args, **kwargs)  # type: ignore[arg-type]  # hashable, as for lru_cache

        return found

    return decorate


def _sentence(key: str) -> str:
    spoken = language.get()
    if spoken == ENGLISH:
        return LANGUAGES[ENGLISH][key]
    return (_pseudo() if spoken == PSEUDO else LANGUAGES[spoken]).get(key) or LANGUAGES[ENGLISH][key]


@cache
def _pseudo() -> dict[str, str]:
    return {key: accented(sentence) for key, sentence in LANGUAGES[ENGLISH].items()}


def accented(sentence: str) -> str:
    """The sentence in the pseudo-language.

    >>> accented("At `scale` {x} the row is [one-hot](scale=8).")
    'Åţ `scale` {x} ţĥé ŕöŵ îš [öñé-ĥöţ](scale=8).'
    >>> accented("{n:key|keys}")
    '{n:ķéý|ķéýš}'
    """
    parts = _NO_WORDS.split(sentence)
    return "".join(part if at % 2 else part.translate(_ACCENTS) for at, part in enumerate(parts))


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
