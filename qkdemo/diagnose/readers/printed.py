"""Lines as trainers print them: Megatron's `key: value | …`, nanoGPT's and torchtitan's `step N: …`, the Trainer's {…}.

* `printed(text)`: a row for every line that is one of these; `printed_dicts(text)`: for dictionaries of Python alone;
* `rows_of(text)`: a row for every line with a step and a number; `names_step(line)`: whether a line has one.

Every repetition in a pattern is bounded, or cannot be split in two ways: a line of any length is read in a time like
its length.
"""

import ast
import re
from typing import Any, Final

from qkdemo.diagnose.readers.columns import names_loss

_NUMBER: Final = (
    r"[-+]?(?:\d{1,40}(?:\.\d{0,40})?(?:[eE][-+]?\d{1,9})?|\.\d{1,40}(?:[eE][-+]?\d{1,9})?|(?i:nan|inf(?:inity)?))"
)
_PAIR: Final = re.compile(rf"([A-Za-z_][\w/.\- ]{{0,80}}?)\s{{0,9}}[:=]\s{{0,9}}(?:tensor\()?({_NUMBER})(?![\w.])")
_BARE: Final = re.compile(rf"\b((?i:(?:train |val |lm )?loss|lr|grad norm|time|epoch))\s{{1,9}}\[?({_NUMBER})(?![\w.])")
_WHOLE: Final = r"(?:\d{1,3}(?:,\d{3}){1,5}(?!\d)|\d{1,40})"  # also as in 1,000
_LINE_STEP: Final = re.compile(
    rf"\b(?:global_|train_|training_)?(?:step|iter|iteration)\b\s{{0,9}}[:=]?\s{{0,9}}\[?({_WHOLE})", re.IGNORECASE
)
_COUNT: Final = re.compile(  # before a name, as in: step 10 loss: 2.5
    rf"\b(?:step|iter|iteration|epoch)\b\s{{1,9}}\[?{_WHOLE}(?:\s{{0,9}}/\s{{0,9}}{_WHOLE})?\]?(?![\w.])", re.IGNORECASE
)
_DICT: Final = re.compile(r"\{'[^{}]{1,4000}\}")
_BARE_NUMBER: Final = re.compile(r"(?<=: )-?(?:nan|inf)\b")  # which Python prints, and does not read
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")


def names_step(line: str) -> bool:
    """Whether a line names a step, as a printed one does and a header does not."""
    return _LINE_STEP.search(line) is not None


def printed(text: str) -> list[dict[str, Any]]:
    """Named numbers with a step; or dictionaries, where only these have a loss, as the Trainer's beside DeepSpeed's."""
    found = [rows_of(text), printed_dicts(text)]
    return next((rows for rows in found if any(names_loss(name) for row in rows for name in row)), found[0] or found[1])


def rows_of(text: str) -> list[dict[str, Any]]:
    """Step and numbers of every line that has both, as they are written."""
    rows: list[dict[str, Any]] = []
    for line in _COLOUR.sub("", text).splitlines():
        step = _LINE_STEP.search(line)
        pairs = [*_PAIR.findall(_COUNT.sub("|", line)), *_BARE.findall(line)]
        if step and pairs:
            rows.append(
                {"step": step[1].replace(",", "")} | {key.strip(" |").lower(): value for key, value in reversed(pairs)}
            )
    for row in rows:
        for word in ("iter", "iteration"):
            row.pop(word, None)
    return rows


def printed_dicts(text: str) -> list[dict[str, Any]]:
    """The dictionaries that Hugging Face's Trainer prints, {'loss': 2.1, 'epoch': 0.1}, also beside a bar."""
    rows: list[Any] = []
    for line in text.splitlines():
        for found in _DICT.findall(line):
            try:
                rows.append(ast.literal_eval(_BARE_NUMBER.sub(r"'\g<0>'", found)))
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
    return [row for row in rows if isinstance(row, dict)]
