"""Numbers and plurals of a language, as Unicode's CLDR has them; Babel reads it, for other languages than English.

* `Marks`, `marks_of(spoken)`: the decimal sign, the sign between groups of digits, and how long the groups are;
* `localised(text, spoken)`: a number that English has written, in those signs; `in_english(text, spoken)`: and back;
* `categories(spoken)`: the plural categories of a language, in CLDR's order; `sample(category, spoken)`: a number;
* `place(text, spoken)`: which of a sentence's forms a number asks for, as it stands there.

Digits, the minus sign (−), powers of ten, ∞ and NaN are the same in every language. English keeps its thin spaces.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from qkdemo.locale import ENGLISH, PSEUDO

if TYPE_CHECKING:
    from babel import Locale

_THIN_SPACE: Final = "\u202f"
_CATEGORIES: Final = ("zero", "one", "two", "few", "many", "other")
_NUMBER: Final = re.compile(r"\d[\d\u202f]*(?:\.\d+)?(?:·10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?|∞|NaN")
_RAISED: Final = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_SAMPLES: Final = ("1", "2", "3", "5", "0", "6", "8", "11", "20", "1.5", "0.2", "1\u202f000\u202f000")


@dataclass(frozen=True)
class Marks:
    """How a language writes numbers; after the thousands it groups `further` digits, as in 12,34,567."""

    decimal: str = "."
    group: str = _THIN_SPACE
    further: int = 3


_OF_ENGLISH: Final = Marks()
_OF_PSEUDO: Final = Marks(",", "’")  # a number that comes from elsewhere is found, as a word without accents is


@cache
def marks_of(spoken: str) -> Marks:
    """The signs of a language; those of English for one that Babel does not know.

    >>> marks_of("de")
    Marks(decimal=',', group='.', further=3)
    """
    if spoken == PSEUDO:
        return _OF_PSEUDO
    found = locale_of(spoken)
    if found is None:
        return _OF_ENGLISH
    symbols = found.number_symbols["latn"]
    return Marks(symbols["decimal"], symbols["group"], found.decimal_formats[None].grouping[1])


def localised(text: str, spoken: str) -> str:
    """A number as English writes it, in the signs of another language.

    >>> localised("−1\u202f048\u202f576.5", "de"), localised("1.362·10⁻³", "pl"), localised("1\u202f048\u202f576", "hi")
    ('−1.048.576,5', '1,362·10⁻³', '10,48,576')
    """
    marks = marks_of(spoken)
    whole, point, rest = text.partition(".")
    if _THIN_SPACE in whole:
        digits = whole.replace(_THIN_SPACE, "")
        whole = re.sub(rf"\B(?=(?:\d{{{marks.further}}})*\d{{3}}$)", marks.group, digits)
    return f"{whole}{marks.decimal}{rest}" if point else whole


def in_english(text: str, spoken: str) -> str:
    """A text whose numbers are written as in that language, with the signs that English has.

    >>> in_english("1.024,5 nats", "de")
    '1\u202f024.5 nats'
    """
    marks = marks_of(spoken)
    if marks == _OF_ENGLISH:
        return text
    grouped = re.sub(rf"(?<=\d){re.escape(marks.group)}(?=\d{{{marks.further}}})", _THIN_SPACE, text)
    return re.sub(rf"(?<=\d){re.escape(marks.decimal)}(?=\d)", ".", grouped)


def categories(spoken: str) -> tuple[str, ...]:
    """What a number can be to a language, in CLDR's order: `{n:key|keys}` holds a form for each.

    >>> categories("en"), categories("pl"), categories("ja")
    (('one', 'other'), ('one', 'few', 'many', 'other'), ('other',))
    """
    found = locale_of(spoken)
    if found is None:
        return "one", "other"
    return tuple(category for category in _CATEGORIES if category in {*found.plural_form.tags, "other"})


@lru_cache(maxsize=4096)
def place(text: str, spoken: str) -> int:
    """Which form a number asks for: the place of its category. Of two numbers the second decides, as in “3–5 keys”.

    >>> [categories("pl")[place(text, "pl")] for text in ("1", "22", "5", "1,5", "1\xa0024", "∞")]
    ['one', 'few', 'many', 'other', 'few', 'other']
    """
    found = locale_of(spoken)
    if found is None:
        return int(text != "1")
    return categories(spoken).index(_category(found, in_english(text, spoken)))


def sample(category: str, spoken: str) -> str:
    """A number of that category, as the language writes it; nothing if none of a few common ones is.

    >>> sample("few", "pl"), sample("other", "pl")
    ('2', '1,5')
    """
    written = (localised(text, spoken) for text in _SAMPLES)
    return next((text for text in written if categories(spoken)[place(text, spoken)] == category), "")


@cache
def locale_of(spoken: str) -> "Locale | None":
    """What Babel knows of a language; None of English and its pseudo-language, which need nothing of it.

    Languages are named as in a page's `lang`: `de`, `pt-BR`. None, too, of a name that is no language's, and where
    Babel is not installed: whoever only watches a model needs PyTorch alone, and reads English.
    """
    if spoken in (ENGLISH, PSEUDO):
        return None
    try:
        from babel import Locale, UnknownLocaleError  # noqa: PLC0415  English does not wait for it
    except ModuleNotFoundError:
        return None
    try:
        return Locale.parse(spoken, sep="-")
    except (UnknownLocaleError, ValueError):
        return None


def _category(language: "Locale", text: str) -> str:
    numbers = _NUMBER.findall(text)
    if not numbers or numbers[-1] in ("∞", "NaN"):
        return "other"
    digits, _, power = numbers[-1].replace(_THIN_SPACE, "").partition("·10")
    return language.plural_form(Decimal(f"{digits}e{power.translate(_RAISED) or 0}"))
