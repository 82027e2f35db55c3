"""What was measured: a row for every step, layer and head, and ways to read and keep it.

* `Report`: the rows; `worst()`, `by_layer()`, `write(file)`, and a short text of itself;
* `keeper(to)`: what writes rows to a file, to TensorBoard, W&B, MLflow or a function, as they come.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]
Keep: TypeAlias = Callable[[int, list[Row]], None]


@dataclass
class Report:
    """Rows as dictionaries: step, layer, head, and every measure of `heads.MEASURES`.

    `steps` are other numbers of a step: of the optimiser, if one is watched, and what was noted.
    """

    rows: list[Row] = field(default_factory=list)
    steps: list[Row] = field(default_factory=list)

    def worst(self, count: int = 5) -> list[Row]:
        """The heads with the largest |logit| in the last step that was measured, worst first."""
        last = self.last()
        return sorted(last, key=lambda row: -_size(row["max_logit"]))[:count]

    def last(self) -> list[Row]:
        """The rows of the last step that was measured."""
        step = self.rows[-1]["step"] if self.rows else None
        return [row for row in self.rows if row["step"] == step]

    def by_layer(self) -> dict[str, Row]:
        """Per layer of the last step: the largest |logit|, the least entropy fraction, and what a format loses."""
        found: dict[str, Row] = {}
        for row in self.last():
            layer = found.setdefault(
                row["layer"], {"max_abs_logit": 0.0, "entropy_fraction": math.inf, "beyond_float16": 0.0}
            )
            layer["max_abs_logit"] = max(layer["max_abs_logit"], _size(row["max_logit"]))
            layer["entropy_fraction"] = _least(layer["entropy_fraction"], row["entropy_fraction"])
            layer["beyond_float16"] = max(layer["beyond_float16"], row["beyond_float16"])
        return found

    def write(self, file: str | Path) -> None:
        """All rows as JSON lines, or as Parquet if the name ends so (that needs pyarrow). Raises OSError."""
        path = Path(file)
        if path.suffix == ".parquet":
            _write_parquet(path, [*self.rows, *self.steps])
        else:
            path.write_text("".join(map(_line, [*self.rows, *self.steps])), encoding="utf-8")

    def __str__(self) -> str:
        """The worst heads of the last step, a line each."""
        if not self.rows:
            return "No attention call was seen. Where a model forms q·k by itself: report.see(layer, q, k, scale=…)."
        head = f"step {self.rows[-1]['step']}, worst heads:"
        return "\n".join([head, *(_in_words(row) for row in self.worst())])


def keeper(to: Any) -> tuple[Keep, Callable[[], None]]:
    """What keeps the rows of a step, and what ends it.

    `to` is a file (.jsonl or .parquet), a TensorBoard `SummaryWriter`, a W&B run, the `mlflow` module, or a function of
    step and rows. Raises TypeError for anything else.
    """
    if isinstance(to, str | Path):
        return _file_keeper(Path(to))
    if hasattr(to, "add_scalar"):
        return _scalars(to.add_scalar), lambda: None
    if hasattr(to, "log_metrics"):
        return lambda step, rows: to.log_metrics(dict(summary(rows)), step=step), lambda: None
    if hasattr(to, "log"):
        return lambda step, rows: to.log(dict(summary(rows)), step=step), lambda: None
    if callable(to):
        return to, lambda: None
    raise TypeError(
        f"to is {type(to).__name__}, which cannot keep rows. It can be a file name, a TensorBoard SummaryWriter, "
        "a W&B run, the mlflow module, or a function of step and rows."
    )


def summary(rows: Iterable[Row]) -> Iterable[tuple[str, float]]:
    """Per layer the worst head's numbers, by names that charts group: attention/<layer>/<measure>; and notes."""
    layers: dict[str, list[Row]] = {}
    for row in rows:
        if "layer" in row:
            layers.setdefault(row["layer"], []).append(row)
        else:
            yield from ((f"training/{name}", number) for name, number in row.items() if name != "step")
    for layer, heads in layers.items():
        yield f"attention/{layer}/max_abs_logit", max(_size(row["max_logit"]) for row in heads)
        for name in ("entropy_fraction", "softmax_slope"):
            yield f"attention/{layer}/min_{name}", min((row[name] for row in heads), key=_last_if_nan)
        for name in ("q_norm_max", "k_norm_max", "first_key", "beyond_float16"):
            yield f"attention/{layer}/{name}", max(row[name] for row in heads)


def _scalars(add: Callable[[str, float, int], None]) -> Keep:
    def keep(step: int, rows: list[Row]) -> None:
        for name, value in summary(rows):
            add(name, value, step)

    return keep


def _file_keeper(path: Path) -> tuple[Keep, Callable[[], None]]:
    if path.suffix == ".parquet":  # a Parquet file is written whole
        rows: list[Row] = []
        return lambda _, new: rows.extend(new), lambda: _write_parquet(path, rows)
    path.write_text("", encoding="utf-8")  # what cannot be written is said before the first step

    def keep(_: int, new: list[Row]) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.writelines(map(_line, new))

    return keep, lambda: None


def _write_parquet(path: Path, rows: list[Row]) -> None:
    try:
        import pyarrow as pa  # noqa: PLC0415  # watching needs torch alone
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise ImportError(
            "Parquet files need pyarrow: pip install pyarrow. A name ending in .jsonl needs nothing."
        ) from None
    names = dict.fromkeys(name for row in rows for name in row)  # rows of noted numbers have others
    parquet.write_table(pa.table({name: [row.get(name) for row in rows] for name in names}), path)


def _line(row: Mapping[str, Any]) -> str:
    words = {name: str(x) if isinstance(x, float) and not math.isfinite(x) else x for name, x in row.items()}
    return json.dumps(words) + "\n"  # JSON knows no ∞ and no NaN


def _in_words(row: Row) -> str:
    return (
        f"  {row['layer']} head {row['head']}: max logit {row['max_logit']:.4g} "
        f"(longest q {row['q_norm_max']:.3g}, longest k {row['k_norm_max']:.3g}, cosine {row['cosine']:.2f}), "
        f"entropy {100 * row['entropy_fraction']:.1f} % of the most, first key {100 * row['first_key']:.0f} %"
    )


def _size(logit: float) -> float:
    return math.inf if math.isnan(logit) else abs(logit)


def _least(one: float, other: float) -> float:
    return one if math.isnan(other) else min(one, other)


def _last_if_nan(x: float) -> float:
    return math.inf if math.isnan(x) else x
