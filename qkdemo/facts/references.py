"""Where statements of fact were read that no lab computes.

* `REFERENCES`: every source of `references.toml`, by its key;
* `linked(text)`: a text whose `[words](@key)` lead to the sources, as Markdown;
* `named_in(text)`: the sources that a text names, in its order.

A sentence of the interface that states such a fact names its source; a test finds those that do not.
"""

import re
import tomllib
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final, Literal, TypeAlias

KindWord: TypeAlias = Literal["paper", "abstract", "code", "thread", "notes"]
_NAMED: Final = re.compile(r"\]\(@(\w+)\)")


@dataclass(frozen=True, kw_only=True)
class Reference:
    """One source: what it says, in our words, where, and how and when that was read."""

    who: str
    title: str
    link: str
    part: str
    says: str
    read: date
    kind: KindWord  # what was read; notes: the source itself was not opened here
    instead: str = ""  # the notes by others that were read then


def _read() -> dict[str, Reference]:
    text = (Path(__file__).parent / "references.toml").read_text(encoding="utf-8")
    return {
        key: Reference(**row | {"read": date.fromisoformat(row["read"])}) for key, row in tomllib.loads(text).items()
    }


REFERENCES: Final = _read()


def linked(text: str) -> str:
    """The text with `[words](@key)` as Markdown links. Raises KeyError for an unknown key.

    >>> linked("as reported ([Crouch et al. 2004](@crouch))")
    'as reported ([Crouch et al. 2004](https://doi.org/10.1119/1.1707018))'
    """
    return _NAMED.sub(lambda found: f"]({REFERENCES[found[1]].link})", text)


def named_in(text: str) -> list[str]:
    """The keys that a text names, each once.

    >>> named_in("[one](@crouch), [two](scale=1), [three](@crouch)")
    ['crouch']
    """
    return list(dict.fromkeys(_NAMED.findall(text)))
