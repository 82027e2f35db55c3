"""The columns of a training log: what they are called, and how rows become numbers over steps.

* `Log`: steps and named columns; `roles(log)`: which column is the loss, …, of all its `choices(log)`;
* `log_of(run, kind, rows)`: rows in any order and spelling as a `Log`;
* `names_loss(column)`, `names_attention(column)`: whether it is a loss of the training, or a logit of attention.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from qkdemo.diagnose.readers.cells.lacking import Lacking, lacking
from qkdemo.diagnose.readers.cells.restarts import Point, continued, restarts, without_replaced
from qkdemo.diagnose.readers.cells.table import Table, asked
from qkdemo.diagnose.readers.cells.unread import losses_of, of_another_kind, unread
from qkdemo.diagnose.readers.inputs import InputError
from qkdemo.diagnose.readers.steps import CALLS, counted_on, last_known, rows_counted, steps_among
from qkdemo.diagnose.readers.values import logged, real

_MOST_COLUMNS: Final = 2000
_LONGEST_NAME: Final = 200
ROLES: Final[Mapping[str, re.Pattern[str]]] = {
    "max_logit": re.compile(r"max.*(logit|score)|(logit|score).*max|qk_max", re.IGNORECASE),
    "entropy": re.compile(r"(?<!cross)(?<!cross[ _.-])entropy", re.IGNORECASE),  # cross-entropy is a loss
    "q_norm": re.compile(r"(^|[/_.])(q|query)_?(norm|rms|length)", re.IGNORECASE),
    "k_norm": re.compile(r"(^|[/_.])(k|key)_?(norm|rms|length)", re.IGNORECASE),
    "update_norm": re.compile(r"update.?norm|norm.*update", re.IGNORECASE),
    "grad_norm": re.compile(
        r"grad(ient)?s?[ _./-]?(global)?[ _]?norm|grad_(inf|[\d.]+)_norm_total|global_norm|gnorm", re.IGNORECASE
    ),
    "lr": re.compile(r"(^|[/_. ])(lr|learning[ _]rate)($|[/_.\-0-9])(?!.*(momentum|weight_decay))", re.IGNORECASE),
    "loss": re.compile(
        r"(^|[/_. ])(train[/_ ]?)?(lm[ _])?"
        r"(loss(?![/_. ](scal|weight|mask|std|var|coef|ppl|perpl))|nll|ce|cross[ _-]?entropy(loss)?)($|[/_. ]|_step$)",
        re.IGNORECASE,
    ),
}
_OF_ATTENTION: Final = re.compile(r"attn|attention|qk", re.IGNORECASE)
_OF_SOMETHING_ELSE: Final = re.compile(
    r"critic|reward|policy|actor|router|expert|output|vocab|lm[ _.]?head|z[ _.]?loss", re.IGNORECASE
)  # a reward has a score, a router an entropy, and the last layer logits
_BESIDE_A_LOSS: Final = re.compile(
    r"(^|(?<!cross)[/_. -])(z|aux|auxiliary|mtp|kl|critic|value|vf|reward|policy|actor|entropy)([/_. -]|$)"
    r"|balanc|router|expert",
    re.IGNORECASE,
)  # what is added to a loss, or is of another model: taken only where there is no other
OF_POLICY: Final = re.compile(r"(^|[/_. -])(policy|pg|actor[/_. -]loss)([/_. -]|$)", re.IGNORECASE)  # no critic
_OF_ALL: Final = re.compile(r"(^|[/_. -])total([/_. -]|$)|^(train(ing)?[/_. ])?loss$", re.IGNORECASE)  # no part
_OF_TOKENS: Final = re.compile(
    r"token_accuracy|completions?/|(^|[/_. ])(rewards?|kl|clip_ratio)([/_. ]|$)", re.IGNORECASE
)
_OF_WEIGHTS: Final = re.compile(r"grad|weight|param|gamma|gain|optim|exp_avg", re.IGNORECASE)
_OF_VECTORS: Final = ("q_norm", "k_norm")  # which a layer may be called, too: its weights have norms of their own
_MAY_BE_ANOTHERS: Final = ("max_logit", "entropy")
EVALUATED: Final = re.compile(r"(^|[/_. ])(eval|val|valid|validation|dev|test)([/_. ]|$)", re.IGNORECASE)
_WORST: Final = {"max_logit": np.fmax, "entropy": np.fmin, "q_norm": np.fmax, "k_norm": np.fmax}  # they leave out NaN
_WATCHED: Final = re.compile(  # as `watch` calls them for TensorBoard, Weights & Biases and MLflow
    r"(attention/).+(/(?:max_abs_logit|min_entropy_fraction|q_norm_max|k_norm_max))"
)
OVER_LAYERS: Final = "*"  # in the name of a column, in place of the layer
_DIGITS: Final = re.compile(r"\d+")
_MAY_BE_EMPTY: Final = ("loss", "grad_norm", "max_logit")  # of which an empty cell is told


@dataclass(frozen=True, eq=False)
class Log:
    """One run. Columns hold NaN where a step has no value, and ∞ where it has one that is not finite.

    `sampled`: whoever wrote it may have left out steps.
    """

    run: str
    kind: str  # a word of say("log.kind.…")
    step: NDArray[np.float64]
    columns: Mapping[str, NDArray[np.float64]]
    sampled: bool = False
    where: str = ""  # the worst head, in words, if the log names heads
    steps: Literal["named", "rows", "epochs", "passes"] = "named"  # or rows are counted, or steps that begin anew
    rows: int = 0  # that hold a number
    kept: int = 0  # of these, the ones of which one is left: a later row of the same step replaces it
    lacking: Mapping[str, Lacking] = field(default_factory=dict)  # by column, for each layer by that of their worst
    between: Mapping[str, tuple[str, int]] = field(default_factory=dict)  # the same: its own name, rows of NaN unread
    empty: Mapping[str, str] = field(default_factory=dict)  # role → a column of it that never has a value
    cut: bool = False  # whether the last line of its file could not be read


def roles(log: Log) -> dict[str, str]:
    """Role → the column that most likely has it; a role is one of `ROLES`, and none that no column fits is named."""
    return {role: columns[0] for role, columns in choices(log).items()}


def choices(log: Log) -> dict[str, list[str]]:
    """Role → every column that may have it, the likeliest first; of columns for each layer their worst alone."""
    found: dict[str, list[str]] = {}
    alone = [column for column in log.columns if column == _star(column) or _star(column) not in log.columns]
    for role, pattern in ROLES.items():
        fitting = [column for column in alone if pattern.search(column)]
        if role in _MAY_BE_ANOTHERS:
            fitting = [name for name in fitting if _OF_ATTENTION.search(name) or not _OF_SOMETHING_ELSE.search(name)]
        if role == "entropy" and any(map(_OF_TOKENS.search, log.columns)):  # as TRL logs that of the next token
            fitting = [name for name in fitting if _OF_ATTENTION.search(name)]
        if role in _OF_VECTORS:
            fitting = [name for name in fitting if not _OF_WEIGHTS.search(name)]
        training = [column for column in fitting if not EVALUATED.search(column)]
        if role == "loss":
            training = [column for column in training if not _BESIDE_A_LOSS.search(column)] or training
        else:  # one of an evaluation does not tell what became of the training
            training = training or fitting
        if training:
            others = [column for column in training if role in _MAY_BE_ANOTHERS and not names_attention(column)]
            parts = [column for column in training if role == "loss" and not _OF_ALL.search(column)]
            critics = [column for column in parts if not OF_POLICY.search(column)]
            taken = {columns[0] for columns in found.values()}
            found[role] = sorted(training, key=lambda x: (x in taken, x in others, x in parts, x in critics, len(x)))
    return found


def names_attention(column: str) -> bool:
    """Whether a column's name alone says that its largest logit is one of attention, and not of the last layer.

    >>> names_attention("attn/score_max"), names_attention("max_logit"), names_attention("logits/max")
    (True, True, False)
    """
    return bool(_OF_ATTENTION.search(column) or re.search(r"(^|[/_.])max_?(abs_?)?logit", column, re.IGNORECASE))


def log_of(run: str, kind: str, rows: list[dict[str, Any]], *, sampled: bool = False, where: str = "") -> Log:
    """One run's rows as its columns over steps. Raises InputError for more columns than any log has."""
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if len(str(name)) <= _LONGEST_NAME]
    if len(names) > _MOST_COLUMNS:
        raise InputError("wide_log", name=run, count=len(names), most=_MOST_COLUMNS)
    epoch = next((name for name in names if str(name).lower().rpartition("/")[2] == "epoch"), None)
    losses = {name: [real(row.get(name)) for row in rows] for name in names if names_loss(name)}
    loss = max(losses, key=lambda name: sum(map(math.isfinite, losses[name])), default="")
    steps = steps_among(names, rows, losses.get(loss, [math.nan] * len(rows)))
    table = Table(rows, asked(names, len(rows), [EVALUATED, *ROLES.values()]), ROLES["lr"])
    if steps is None:
        at = rows_counted(rows, of_another_kind(table, names), epoch, names_loss, EVALUATED)
    else:
        at = [real(row.get(steps)) for row in rows]
    if steps != CALLS and CALLS in names:
        at = last_known(at)
    counted: Literal["named", "rows", "epochs", "passes"] = "rows"
    if steps is not None:
        at, counted = counted_on(at, [real(row.get(epoch or "")) for row in rows], [logged(x.get(loss)) for x in rows])
    left_out, between = _unread(table, at)
    points = _points(rows, at, left_out, (steps, CALLS))
    starts = restarts(points.get(str(loss), []))
    curves = {name: left for name, each in points.items() if (left := without_replaced(each, starts))}
    series = {str(name): continued(curves[str(name)]) for name in names if str(name) in curves}
    order = sorted({step for each in series.values() for step in each})
    if steps is not None and order:
        last = max(place for each in points.values() for *_, place in each)
        order += sorted({step for step in at[last + 1 :] if order[-1] < step < math.inf})  # rows that hold nothing else
    columns = {
        name: np.array([each.get(step, (math.nan,))[0] for step in order], dtype=np.float64)
        for name, each in series.items()
    }
    columns = _over_layers(columns) | columns
    read = len({place for each in points.values() for *_, place in each})
    kept = len({place for each in series.values() for _, place in each.values()})
    told = [] if sampled else [name for name in _told_of(columns, names) if name in table.names and name not in between]
    none = np.zeros(len(rows), bool)
    found = {name: cells for name in told if (cells := lacking(table, name, left_out.get(name, none), at))}
    return Log(
        *(run, kind, np.array(order), columns, sampled, where, counted, read, kept),
        lacking={_of_all_layers(name, columns): cells for name, cells in found.items()},
        between={
            _of_all_layers(name, columns): (name, count)  # of the layers the one with most
            for count, name in sorted((count, str(name)) for name, count in between.items())
        },
        empty=_never([name for name in names if all(row.get(name) in (None, "") for row in rows)], columns),
    )


def _points(
    rows: list[dict[str, Any]],
    steps: Sequence[float],
    left_out: Mapping[str, NDArray[np.bool_]],
    counts: Sequence[str | None],
) -> dict[str, list[Point]]:
    """By column, what was logged: rows of one step belong together. `counts`: columns that hold steps."""
    points: dict[str, list[Point]] = {}
    for place, (step, row) in enumerate(zip(steps, rows, strict=True)):
        if math.isfinite(step):
            for name, value in row.items():
                if name in counts or (name in left_out and left_out[name][place]):
                    continue
                if not math.isnan(number := logged(value)):
                    points.setdefault(str(name), []).append((step, number, place))
    return points


def _unread(table: Table, steps: Sequence[float]) -> tuple[dict[str, NDArray[np.bool_]], dict[str, int]]:
    """By column, the rows in which NaN stands for no value; and, of some, how many these are."""
    if not (table.nan | table.zero).any():
        return {}, {}
    measures, others = list(filter(_is_measure, table.names)), [name for name in table.names if not _is_measure(name)]
    found, told = unread(table, others, steps)
    losses = losses_of(table, list(filter(names_loss, others)), others, found)
    measured, between = unread(table, measures, steps, losses)
    return found | measured, told | between


def _told_of(columns: Mapping[str, NDArray[np.float64]], names: Sequence[str]) -> list[str]:
    """Columns of which an empty cell is told; of those for each layer the one with the fewest values."""
    fitting = [x for x in names if str(x) in columns and any(ROLES[role].search(str(x)) for role in _MAY_BE_EMPTY)]
    groups: dict[str, list[str]] = {}
    for name in fitting:
        if not EVALUATED.search(str(name)):
            groups.setdefault(_of_all_layers(str(name), columns), []).append(name)
    return [min(group, key=lambda name: np.isfinite(columns[str(name)]).sum()) for group in groups.values()]


def _of_all_layers(name: str, columns: Mapping[str, NDArray[np.float64]]) -> str:
    """The column of the worst layer, if there is one; else the column itself."""
    return star if (star := _star(name)) in columns else name


def _never(names: Sequence[str], columns: Mapping[str, NDArray[np.float64]]) -> dict[str, str]:
    """Role → one of these columns without any value, where no column of that role has one."""
    found: dict[str, str] = {}
    for role in _MAY_BE_EMPTY:
        fitting = [str(x) for x in names if ROLES[role].search(str(x)) and not EVALUATED.search(str(x))]
        fitting = [x for x in fitting if not _BESIDE_A_LOSS.search(x) and (role != "max_logit" or names_attention(x))]
        if fitting and columns.keys().isdisjoint(fitting):
            found[role] = fitting[0]
    return found


def names_loss(column: Any) -> bool:
    """Whether a column is a loss of the training, by its name."""
    return bool(ROLES["loss"].search(str(column)) and not EVALUATED.search(str(column)))


def names_main_loss(column: Any) -> bool:
    """Whether a column is a loss of the training by its name, and none that is added to one."""
    return names_loss(column) and not _BESIDE_A_LOSS.search(str(column))


def _is_measure(name: str) -> bool:
    """Whether a column may be a measure of attention, by its name."""
    return any(ROLES[role].search(str(name)) for role in _WORST)


# ---- a column for every layer


def _over_layers(columns: Mapping[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    """For measures of attention with a column for each layer, that of the worst layer, under their name with a *."""
    groups: dict[tuple[str, str], list[NDArray[np.float64]]] = {}
    for name, column in columns.items():
        role = next((role for role in _WORST if ROLES[role].search(name) and not EVALUATED.search(name)), None)
        if role and (_OF_ATTENTION.search(name) or not _OF_SOMETHING_ELSE.search(name)):
            groups.setdefault((role, _star(name)), []).append(column)
    return {
        star: _WORST[role].reduce(np.abs(each) if role == "max_logit" else each)
        for (role, star), each in groups.items()
        if len(each) > 1
    }


def _star(name: str) -> str:
    """The name of a column with a * in place of the layer."""
    written = _WATCHED.fullmatch(name)
    return f"{written[1]}{OVER_LAYERS}{written[2]}" if written else _DIGITS.sub(OVER_LAYERS, name)
