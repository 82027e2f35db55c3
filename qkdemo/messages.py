"""The interface's sentences, in the language that is read: `locale` holds what each language says.

* `say(key, **values)`: the sentence of that key, filled in;
* `phrase(key)`: the same, its `{names}` left for the browser to fill in;
* `has(key)`: whether the table knows it;
* `LANGUAGES`: the languages that there are, each a mapping from key to sentence; what one of them does not say yet is
  said in English;
* `language`: which one is spoken in this thread; `known(name)`: whether there is one of that name; `in_link()`: what a
  link has to say for it;
* `later(key, **values)`: a sentence that whoever reads it forms again, `now(text)`, in the language spoken there;
* `in_each_language(maxsize)`: keeps what a function returns, for every language apart: for whatever holds sentences.

`PSEUDO` is a language for tests: English in accents. What stands on a page without accents comes from no table.

A key is a dotted path into the English TOML files: `say("dial.scale.label")`. Numbers arrive already written (see
`notation`), because how a number is written does not depend on the sentence around it.

What a number counts agrees with it: `{n:key|keys}` is `1 key` or `2 keys`, and `{n:=is|are}` the word alone. The forms
stand in the order of the categories that CLDR has for the language (`locale.cldr`), and the number as it is written
says which: in English `one` for 1, and `other`; in Polish `one`, `few`, `many`, and `other` for 1,5.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, wraps
from string import Formatter
from typing import Final, ParamSpec, TypeVar

from qkdemo.locale import ENGLISH, PSEUDO, language
from qkdemo.locale.cldr import place
from qkdemo.locale.faults import KEPT
from qkdemo.locale.tables import LANGUAGES

__all__ = [
    "ENGLISH",
    "LANGUAGE",
    "LANGUAGES",
    "PSEUDO",
    "Later",
    "accented",
    "has",
    "in_each_language",
    "in_link",
    "known",
    "language",
    "later",
    "now",
    "phrase",
    "say",
]

P = ParamSpec("P")
T = TypeVar("T")
LANGUAGE: Final = "lang"  # its name in a link
# What a pseudo-language leaves as it is: names, and what no translation changes.
_NO_WORDS: Final = re.compile(rf"(\{{\w+|{KEPT}|&\w+;)")
_POINT: Final = re.compile(r"(?<=\d)\.(?=\d)")
_ACCENTS: Final = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "åƀçðéƒĝĥîĵķļɱñöþǫŕšţûṽŵẋýžÅƁÇÐÉƑĜĤÎĴĶĻṀÑÖÞǪŔŠŢÛṼŴẊÝŽ",
)


def say(key: str, /, **values: object) -> str:
    """The sentence for `key` in the current language, with its `{names}` replaced by `values`.

    Raises KeyError for an unknown key: a missing sentence is a fault of ours, never of the visitor.

    >>> say("server.descriptors", limit=1, visitors="1\u202f024", hall=30)[:71]
    'This process may have 1 file and connections open, enough for about 1\u202f0'
    """
    sentence = _sentence(key)
    if counts := _counts(sentence):
        spoken = language.get()
        if spoken != ENGLISH and sentence is LANGUAGES[ENGLISH][key]:
            spoken = ENGLISH  # not translated: the forms are those of English
        for name in counts & values.keys():
            values[name] = _Count(values[name], spoken)
    return sentence.format(**values)


def phrase(key: str) -> str:
    """The sentence for `key` with its `{names}` as they stand. Raises KeyError for an unknown key.

    It is English if the translation has forms for a number: the browser cannot choose between them.
    """
    sentence = _sentence(key)
    return LANGUAGES[ENGLISH][key] if _counts(sentence) else sentence


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

        found.cache_clear = kept.cache_clear  # type: ignore[attr-defined]  # as lru_cache has it
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
    """The sentence in the pseudo-language, its decimals with a comma.

    >>> accented("At `scale` {x} the row is [one-hot](scale=8).")
    'Åţ `scale` {x} ţĥé ŕöŵ îš [öñé-ĥöţ](scale=8).'
    >>> accented("{n:key|keys}")
    '{n:ķéý|ķéýš}'
    """
    parts = _NO_WORDS.split(sentence)
    return "".join(part if at % 2 else _POINT.sub(",", part.translate(_ACCENTS)) for at, part in enumerate(parts))


class _Count:
    """A number in a sentence of a language, with what it counts."""

    def __init__(self, number: object, spoken: str) -> None:
        self._text, self._spoken = str(number), spoken

    def __format__(self, forms: str) -> str:
        if not forms:
            return self._text
        at = int(self._text != "1") if self._spoken == ENGLISH else place(self._text, self._spoken)
        form = forms.removeprefix("=").split("|")[at]
        return form if forms.startswith("=") else f"{self._text} {form}"


@cache
def _counts(sentence: str) -> frozenset[str]:
    """The names of a sentence that something else agrees with."""
    return frozenset(name for _, name, forms, _ in Formatter().parse(sentence) if name and forms)
