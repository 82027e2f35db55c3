"""What is wrong with a translation: `faults_of(english, text, spoken)`.

Checked is what a translator must leave as it is, because the app or a reader's tools read it, not its grammar.
"""

import re
from collections.abc import Iterator
from string import Formatter
from typing import Final, NamedTuple

from qkdemo.locale.cldr import categories

# What no language translates: code, where links lead, tags, formulas, addresses, icons and flags.
KEPT: Final = r"`[^`]*`|\]\([^)]*\)|<[^<>]*>|\$[^$]*\$|https?://\S+|:material/\w+:|(?<!\w)--[a-z][\w-]*"
_KEPT: Final = re.compile(KEPT)


class Fault(NamedTuple):
    """One thing that is wrong: `translating.<word>` says it, with `what`."""

    word: str
    what: str


def faults_of(english: str, text: str, spoken: str) -> list[Fault]:
    """What is wrong with `text` as that language's translation of an English sentence.

    >>> faults_of("{n:key|keys} of `{name}`", "{n:klucz|klucze|kluczy|klucza} `{nazwa}`", "pl")
    [Fault(word='lost', what='{name}'), Fault(word='new', what='{nazwa}'), Fault(word='lost', what='`{name}`'), \
Fault(word='new', what='`{nazwa}`')]
    >>> faults_of("{n:key|keys}", "{n:klucz|klucze}", "pl")
    [Fault(word='forms', what='{n:one|few|many|other}')]
    """
    try:
        fields = list(_fields(text))
    except ValueError:
        return [Fault("braces", text)]
    pairs = (
        ({f"{{{name}}}" for name, _ in _fields(english)}, {f"{{{name}}}" for name, _ in fields}),
        (set(_KEPT.findall(english)), set(_KEPT.findall(text))),
    )
    found = [
        Fault(word, ", ".join(sorted(what)))
        for wanted, there in pairs
        for word, what in (("lost", wanted - there), ("new", there - wanted))
        if what
    ]
    order = categories(spoken)
    wrong = {name: forms for name, forms in fields if forms and len(forms.split("|")) != len(order)}
    return found + [Fault("forms", f"{{{name}:{equals(forms)}{'|'.join(order)}}}") for name, forms in wrong.items()]


def equals(forms: str) -> str:
    """The sign of forms that stand without their number."""
    return "=" * forms.startswith("=")


def _fields(sentence: str) -> Iterator[tuple[str, str]]:
    """The names of a sentence and their forms. Raises ValueError where its braces are no names."""
    for _, name, forms, conversion in Formatter().parse(sentence):
        if name is not None:
            if not name.isidentifier() or conversion or "{" in (forms or ""):
                raise ValueError(name)
            yield name, forms or ""
