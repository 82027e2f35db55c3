"""The words of the field: which there are, and where they stand in a text.

* `TERMS`: their names, in the order of the glossary; `Entry`, `entry(term)`: name, sentence, formula;
* `marked(text)`: the text with the first mention of each word as `[word](?term)`;
* `terms_in(text)`: the words that a text uses, in its order.

A word is found by its forms, which stand in the string table: `glossary.<term>.forms`. The longest form wins, so that
“attention weight” is not “attention”. What is code, or drives a chart already, is left alone, and so is a word that
is marked as `[rows](?)`, here and further on in the text: those of a table are not those of the field.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from qkdemo.messages import ENGLISH, LANGUAGES, in_each_language, say

_OTHERWISE: Final = r"\[([^\[\]]*)\]\(\?\)"  # a word that is meant in another sense
_LEFT_ALONE: Final = r"`[^`]*`|\[[^\[\]]*\]\([^()]*\)|\{[^}]*\}"
TERMS: Final = tuple(
    key.split(".")[1] for key in LANGUAGES[ENGLISH] if key.startswith("glossary.") and key.endswith(".forms")
)


@dataclass(frozen=True)
class Entry:
    """A word of the glossary."""

    term: str
    name: str
    sentence: str
    formula: str


def entry(term: str) -> Entry:
    """A word of the glossary, in the current language. Raises KeyError for a word that it does not have."""
    return Entry(term, *(say(f"glossary.{term}.{part}") for part in ("name", "sentence", "formula")))


def marked(text: str) -> str:
    """The text with the first mention of each word as `[word](?term)`.

    >>> marked("One-hot rows; the entropy of a row. [The entropy](~plain) falls.")
    '[One-hot](?one_hot) [rows](?row); the [entropy](?entropy) of a row. [The entropy](~plain) falls.'
    >>> marked("The [rows](?) of a table: one row is one norm.")
    'The [rows](?) of a table: one row is one [norm](?norm).'
    """
    seen = _meant_otherwise(text)

    def mark(found: re.Match[str]) -> str:
        term = _term_of(found)
        if not term or term in seen:
            return found[0]
        seen.add(term)
        return f"[{found[0]}](?{term})"

    return _pattern()[0].sub(mark, text)


def terms_in(text: str) -> list[str]:
    """The words that a text uses, each once; words that drive a chart count as well.

    >>> terms_in("[Plain attention](~plain) has a lower entropy")
    ['attention', 'entropy']
    """
    bare = re.sub(r"\]\([^()]*\)", "", re.sub(_OTHERWISE, "", text).replace("[", ""))
    return [term for term in dict.fromkeys(_found(bare)) if term not in _meant_otherwise(text)]


def _meant_otherwise(text: str) -> set[str]:
    return {term for word in re.findall(_OTHERWISE, text) for term in _found(word)}


def _found(text: str) -> Iterator[str]:
    for match in _pattern()[0].finditer(text):
        if term := _term_of(match):
            yield term


def _term_of(found: re.Match[str]) -> str:
    return _pattern()[1].get(found["form"].lower(), "") if found["form"] else ""


@in_each_language(8)
def _pattern() -> tuple[re.Pattern[str], dict[str, str]]:
    """What finds a form, or what is left alone; and the term of each form, in small letters."""
    forms = {form.lower(): term for term in TERMS for form in say(f"glossary.{term}.forms").split(", ")}
    longest_first = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
    return re.compile(rf"{_LEFT_ALONE}|(?<![\w·])(?P<form>{longest_first})(?![\w])", re.IGNORECASE), forms
