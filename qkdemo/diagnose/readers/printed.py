"""Lines as trainers print them: Megatron's `key: value | …`, nanoGPT's and torchtitan's `step N: …`, the Trainer's {…}.

* `printed(text)`: a row for every line that is one of these, or has a place as [10/100];
* `printed_dicts(text)`: for dictionaries of Python alone;
* `rows_of(text)`: a row for every line with a step and a number, and what stands in a block below it;
* `names_step(line)`: whether a line has a step.

Every repetition in a pattern is bounded, or cannot be split in two ways: a line of any length is read in a time like
its length.
"""

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from qkdemo.diagnose.readers.columns import names_loss

_WHOLE: Final = r"(?:\d{1,3}(?:,\d{3}){1,5}(?!\d)|\d{1,40})"  # also as in 1,000
_EXPONENT: Final = r"[eE][-+]?\d{1,9}"
_NUMBER: Final = (
    r"[-+]?(?:[1-9]\d{0,2}(?:,\d{3}){1,5}(?:\.\d{1,40})?(?!,?\d)"  # 1,234.5
    rf"|\d{{1,40}}(?:\.\d{{0,40}}(?:{_EXPONENT})?|{_EXPONENT}|(?!,\d))"  # no 0 of 0,912
    rf"|\.\d{{1,40}}(?:{_EXPONENT})?|(?i:(?:nan|inf)(?:\.0{{0,9}})?|infinity))"  # Lightning's bar fills nan up to nan.0
)
_PAIR: Final = re.compile(
    rf"(?<!\d)([A-Za-z_][\w/.\- ]{{0,80}}?)\s{{0,9}}[:=]\s{{0,9}}(?:tensor\()?({_NUMBER})(?![\w.])"
)
_BARE: Final = re.compile(
    rf"\b((?i:(?:train |val |lm )?loss|lr|grad[ _]norm|time|epoch))\s{{1,9}}\[?({_NUMBER})(?![\w.])"
)
_ROUNDED: Final = r"(?:\.\d{1,9})?(?:[eE]\+?\d{1,2}|(?-i:[kKMB]))(?!\w)"  # 1K of LeRobot, 1.4e+5 of NeMo's bar
_STEP: Final = rf"(?P<step>{_WHOLE}(?:{_ROUNDED})?)"
_LINE_STEP: Final = re.compile(
    rf"\b(?:global_|train_|training_)?(?:step|iter|iteration)\b\s{{0,9}}[:=]?\s{{0,9}}\[?{_STEP}", re.IGNORECASE
)
_TIMES: Final = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9}
_OUT_OF: Final = r"\s{0,9}/\s{0,9}\d"
_LINE_PLACES: Final = (  # where no line of a text names a step; what counts out of how many is sought first
    re.compile(rf"\bnum_updates\s{{0,9}}[:=]\s{{0,9}}{_STEP}", re.IGNORECASE),
    re.compile(  # [1/300][10/1251]
        rf"\[\s{{0,9}}(?P<epoch>\d{{1,9}})(?:{_OUT_OF}{{1,40}})?\s{{0,9}}\]\s{{0,9}}\[\s{{0,9}}{_STEP}{_OUT_OF}"
    ),
    re.compile(rf"(?<![/\w])(?:it|steps|batch)\b\s{{0,9}}[:=]?\s{{0,9}}\[?{_STEP}{_OUT_OF}", re.IGNORECASE),
    re.compile(rf"(?<!epoch )\[\s{{0,9}}{_STEP}{_OUT_OF}", re.IGNORECASE),
    re.compile(rf"\|\s{{0,9}}{_STEP}/\s{{0,9}}\d{{1,40}}\s{{0,9}}(?:batches\b|\[)"),
    re.compile(rf"(?<![/\w])(?:it|steps|batch)\b\s{{0,9}}[:=]?\s{{0,9}}\[?{_STEP}(?![\w.])", re.IGNORECASE),
    re.compile(rf"\[\s{{0,9}}{_STEP}{_OUT_OF}"),
    re.compile(rf"^\s{{0,9}}\[\s{{0,9}}(?P<epoch>\d{{1,9}}),\s{{0,9}}{_STEP}\s{{0,9}}\]"),  # [1,  2000]
    re.compile(rf"^\s{{0,9}}{_STEP}/\d{{1,40}}\s{{1,9}}[━\[-]"),  # Keras: 10/1875 ━━━
)
_LINE_EPOCH: Final = re.compile(
    r"\b(?:epoch(?:\s?\(\w{1,20}\))?\s{0,9}[:=]?\s{0,9}\[?\s{0,9}|train: (?=\d{1,9} {1,9}\[))(\d{1,9})(?=[\s\],:/|]|$)",
    re.IGNORECASE,
)
_EVALUATION: Final = re.compile(  # a line of one, whose places and losses are none of the training
    r"\b(?:(?:test|val|valid|validation|eval)(?: \(\w{1,20}\))?\s{0,9}:?\s{0,9}\[\s{0,9}\d|epoch\s?\((?:val|test)\))",
    re.IGNORECASE,
)
_COUNT: Final = re.compile(  # before a name, as in: step 10 loss: 2.5
    rf"\b(?:step|iter|iteration|it|batch|epoch)\b\s{{1,9}}\[?{_WHOLE}(?:\s{{0,9}}/\s{{0,9}}{_WHOLE})?\]?(?![\w.])",
    re.IGNORECASE,
)
_DICT: Final = re.compile(r"\{'[^{}]{1,4000}\}")
_BARE_NUMBER: Final = re.compile(r"(?<=: )-?(?:nan|inf)\b")  # which Python prints, and does not read
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m|\x08")  # and what goes back in a bar
_OF_BLOCK: Final = re.compile(  # below OLMo's [step=10/100], and Composer's [batch=20/3125]:
    rf"(?: {{2,8}}|\t ?)([A-Za-z_][\w/.\- ()]{{0,80}})(?:=|: )({_NUMBER})"
)


def names_step(line: str) -> bool:
    """Whether a line names a step, as a printed one does and a header does not."""
    return _LINE_STEP.search(line) is not None


def printed(text: str) -> list[dict[str, Any]]:
    """Named numbers with a step; or dictionaries, where only these have a loss, as the Trainer's beside DeepSpeed's.

    If neither has one, numbers of lines with a place in another form: [10/100], it 10, batch 10/900, a progress bar.
    """
    found = [_told_apart(rows_of(text), text), printed_dicts(text)]
    if not any(map(_with_loss, found)):
        found.append(rows_of(text, _LINE_PLACES))
    return next(filter(_with_loss, found), found[0] or found[1])


def rows_of(text: str, places: Sequence[re.Pattern[str]] = (_LINE_STEP,)) -> list[dict[str, Any]]:
    """Step and numbers of every line that has both, as they are written."""
    rows: list[dict[str, Any]] = []
    epoch = ""  # of the line, or of one above it that names an epoch alone
    for line in _COLOUR.sub("", text).splitlines():
        if _EVALUATION.search(line):
            continue
        step = next(filter(None, (place.search(line) for place in places)), None)
        pairs = [*_PAIR.findall(_COUNT.sub("|", line).replace(" - ", " | ")), *_BARE.findall(line)]
        if named := _LINE_EPOCH.search(line):
            epoch = named[1]
        if step and pairs:
            row = {key.strip(" |").lower(): value.replace(",", "") for key, value in reversed(pairs)}
            of = step.groupdict().get("epoch") or epoch
            rows.append({"step": _written_out(step["step"])} | ({"epoch": of} if of else {}) | row)
        elif rows and (below := _OF_BLOCK.fullmatch(line.rstrip())):
            rows[-1][below[1].lower()] = below[2].replace(",", "")
    if len({row["step"] for row in rows}) == 1 and len({row.get("epoch") for row in rows}) > 1:
        rows = [{name: x for name, x in row.items() if name != "step"} for row in rows]  # each epoch's last step
    for row in rows:
        for word in ("iter", "iteration"):
            row.pop(word, None)
    return rows


def _written_out(step: str) -> str:
    """A step in digits; what is rounded is marked as a fraction is.

    >>> [_written_out(step) for step in ("1,000", "12K", "1,200k", "1.4e+5")]
    ['1000', '12000.0', '1200000.0', '140000.0']
    """
    plain = step.replace(",", "")
    if plain[-1] in _TIMES:
        return str(float(plain[:-1]) * _TIMES[plain[-1]])
    return plain if plain.isdigit() else str(float(plain))


def _told_apart(rows: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    """Rows, two of which have no step that is rounded to the same: by what is counted out of how many, or in order."""
    steps = [row.get("step", "") for row in rows]
    if len(set(steps)) == len(steps) or not any("." in step for step in steps):
        return rows
    by_place = rows_of(text, _LINE_PLACES)
    without = [{name: x for name, x in row.items() if name != "step"} for row in rows]
    return by_place if len(by_place) >= len(rows) else without


def _with_loss(rows: Iterable[Mapping[Any, Any]]) -> bool:
    return any(names_loss(name) for row in rows for name in row)


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
