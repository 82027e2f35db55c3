"""Lines as trainers print them: Megatron's `key: value | …`, nanoGPT's and torchtitan's `step N: …`.

* `rows_of(text)`: a row for every line with a step and a number; `names_step(line)`: whether a line has one.

Every repetition in a pattern is bounded, or cannot be split in two ways: a line of any length is read in a time like
its length.
"""

import re
from typing import Any, Final

_NUMBER: Final = (
    r"[-+]?(?:\d{1,40}(?:\.\d{0,40})?(?:[eE][-+]?\d{1,9})?|\.\d{1,40}(?:[eE][-+]?\d{1,9})?|nan|inf|NaN|Infinity)"
)
_PAIR: Final = re.compile(rf"([A-Za-z_][\w/.\- ]{{0,80}}?)\s{{0,9}}[:=]\s{{0,9}}({_NUMBER})(?![\w.])")
_BARE: Final = re.compile(rf"\b((?:train |val |lm )?loss|lr|grad norm|time|[Ee]poch)\s{{1,9}}\[?({_NUMBER})(?![\w.])")
_LINE_STEP: Final = re.compile(r"\b(?:step|iter|iteration)\b\s{0,9}[:=]?\s{0,9}\[?(\d{1,40})", re.IGNORECASE)
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")


def names_step(line: str) -> bool:
    """Whether a line names a step, as a printed one does and a header does not."""
    return _LINE_STEP.search(line) is not None


def rows_of(text: str) -> list[dict[str, Any]]:
    """Step and numbers of every line that has both, as they are written."""
    rows: list[dict[str, Any]] = []
    for line in _COLOUR.sub("", text).splitlines():
        step = _LINE_STEP.search(line)
        pairs = [*_PAIR.findall(line), *_BARE.findall(line)]
        if step and pairs:
            rows.append({"step": step[1]} | {key.strip(" |").lower(): value for key, value in reversed(pairs)})
    for row in rows:
        for word in ("iter", "iteration"):
            row.pop(word, None)
    return rows
