"""Words in a text that drive the chart.

`words_of(text)` splits `at [scale 8](scale=8) [the plain curve](~plain) is high` into `Word`s: plain ones, ones that
turn dials (`name=value`, several joined by `&`), ones that pick out a role's lines (`~role`), ones that say where a
statement was read (`@key` of `qkdemo.facts.references`), and words of the field (`?term` of `qkdemo.tracks.glossary`).
`[rows](?)` is a plain word: the field's word is spelled alike, and means something else.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_LINK: Final = re.compile(r"\[([^\[\]]+)\]\(([^()]+)\)")


@dataclass(frozen=True)
class Word:
    """A stretch of text, and what it does."""

    text: str
    turns: Mapping[str, str] = field(default_factory=dict)  # dial → value, as a link writes it
    role: str = ""
    source: str = ""  # key of a reference
    term: str = ""  # a word of the glossary

    @property
    def written(self) -> str:
        """The word as it stands in the text that it was read from."""
        turns = "&".join(f"{name}={value}" for name, value in self.turns.items())
        marks = ((turns, ""), (self.role, "~"), (self.source, "@"), (self.term, "?"))
        target = next((sign + target for target, sign in marks if target), "")
        return f"[{self.text}]({target})" if target else self.text


def words_of(text: str) -> list[Word]:
    """The text as words, in order. Raises ValueError for a target that is none of these."""
    found, end = [], 0
    for link in _LINK.finditer(text):
        found += [Word(text[end : link.start()]), _driving(link[1], link[2])]
        end = link.end()
    return [word for word in [*found, Word(text[end:])] if word.text]


def without_targets(text: str) -> str:
    """The text as it is read."""
    return "".join(word.text for word in words_of(text))


def _driving(text: str, target: str) -> Word:
    if target.startswith("~"):
        return Word(text, role=target[1:])
    if target.startswith("@"):
        return Word(text, source=target[1:])
    if target.startswith("?"):
        return Word(text, term=target[1:])
    pairs = [pair.partition("=") for pair in target.split("&")]
    if not all(name and sign for name, sign, _ in pairs):
        raise ValueError(f"{target} is neither name=value nor ~role, @key or ?term")
    return Word(text, turns={name: value for name, _, value in pairs})
