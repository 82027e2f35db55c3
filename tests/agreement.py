"""Whether a number and what it counts agree: “1 heads” is found wherever it is written.

* `disagreements(text)`: what is wrong in it, as it stands there;
* `texts_in(drawn)`: every text of a view, a table, a list of rows, whatever holds them;
* `PLURALS`: the words that are counted, from the sentences' own forms.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from string import Formatter
from typing import Any, Final

import pyarrow as pa

from qkdemo.messages import LANGUAGES

# Counted in sentences whose number is never 1, and in texts that are put together elsewhere.
_OTHERS: Final = frozenset(("models", "seeds", "queries", "visitors", "questions", "pairs"))


def forms_of(sentence: str) -> Iterator[tuple[str, str, str]]:
    """Of each number in it that something agrees with: its name, the form for 1 and the form for others."""
    for _, name, forms, _ in Formatter().parse(sentence):
        if name and forms:
            one, other = forms.removeprefix("=").split("|")
            yield name, one, other


def _nouns() -> Iterator[str]:
    for sentence in LANGUAGES["en"].values():
        for _, name, forms, _ in Formatter().parse(sentence):
            if name and forms and not forms.startswith("="):
                one, other = (form.replace(",", "").split() for form in forms.split("|"))
                yield from (
                    many for single, many in zip(one, other, strict=False) if single != many and many[-1] == "s"
                )


PLURALS: Final = frozenset(_nouns()) | _OTHERS
ADJECTIVE: Final = r"(?:(?!the |of |and |a |both )[a-z]+ )?"
_ONE_OF_MANY: Final = re.compile(rf"(?<![\w.,·×−=/^‖\u202f-])1 {ADJECTIVE}(?:{'|'.join(sorted(PLURALS))})\b")


def disagreements(text: str) -> list[str]:
    """Every “1 heads” in it.

    >>> disagreements("1 hidden keys, 21 heads, 0.1 steps, 1 head, 1 runs")
    ['1 hidden keys', '1 runs']
    """
    return _ONE_OF_MANY.findall(text)


def texts_in(drawn: Any) -> Iterator[str]:
    """Every text in `drawn`, however deep."""
    if isinstance(drawn, str):
        yield drawn
    elif isinstance(drawn, pa.Table):
        for column in drawn.columns:
            if pa.types.is_string(column.type):
                yield from filter(None, column.unique().to_pylist())
    elif isinstance(drawn, Mapping):
        yield from (text for value in drawn.values() for text in texts_in(value))
    elif is_dataclass(drawn) and not isinstance(drawn, type):
        yield from texts_in(asdict(drawn))
    elif isinstance(drawn, list | tuple):
        yield from (text for value in drawn for text in texts_in(value))
