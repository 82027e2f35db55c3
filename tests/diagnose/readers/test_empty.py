"""Cells without a value: those of rows of another kind, and those in which NaN was, as pandas writes it."""

import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from qkdemo.diagnose.curves import causes
from qkdemo.diagnose.findings.finding import Report
from qkdemo.diagnose.findings.of_logs import of_logs
from qkdemo.diagnose.readers.logs import read_logs
from qkdemo.diagnose.readers.values import unfilled

RNG = np.random.default_rng(0)
ROWS = 400
LOSS = 2 + 8 * np.exp(-np.arange(ROWS) / 40) + 0.03 * RNG.standard_normal(ROWS)


def run_of(lost: list[int], *, every: int = 1, **columns: Any) -> pd.DataFrame:
    """A run whose loss was NaN in these steps, and is logged every so many rows."""
    made = pd.DataFrame({"step": np.arange(ROWS), "loss": LOSS, "lr": np.linspace(1e-3, 0, ROWS), **columns})
    made.loc[np.arange(ROWS) % every != 0, "loss"] = np.nan
    made.loc[lost, "loss"] = np.nan
    return made


def as_parquet(made: pd.DataFrame) -> bytes:
    file = io.BytesIO()
    made.to_parquet(file)
    return file.getvalue()


WRITTEN: dict[str, Callable[[pd.DataFrame], bytes]] = {
    "csv": lambda made: made.to_csv(index=False).encode(),
    "csv with its index": lambda made: made.to_csv().encode(),
    "json lines": lambda made: made.to_json(orient="records", lines=True).encode(),
    "parquet": as_parquet,
}


def examined(data: bytes) -> Report:
    return of_logs([causes.run(log) for log in read_logs(data, "x")], "x")


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize(
    ("lost", "every"),
    [
        ([399], 1),  # a script that stops at NaN
        ([397, 398, 399], 1),
        ([200, 201, 202], 1),
        (sorted(RNG.choice(ROWS, 40, replace=False).tolist()), 1),
        ([390], 10),
        ([200, 210], 10),
    ],
)
def test_empty_cells_among_losses_are_told(*, written: str, lost: list[int], every: int) -> None:
    report = examined(WRITTEN[written](run_of(lost, every=every)))
    (said,) = (each.sentence for each in report.findings if each.key == "cells_empty")
    rows = f"{len(lost)} rows" if len(lost) > 1 else "1 row"
    assert f": loss in {rows}, first at step {lost[0]}. Some programs, as pandas, write NaN as nothing" in said
    assert not report.healthy
    assert "healthy" not in {each.key for each in report.findings}


@pytest.mark.parametrize("written", WRITTEN)
def test_a_table_with_rows_of_other_kinds_has_no_empty_cells(written: str) -> None:
    """Evaluations, a learning rate and a last summary in rows of their own; a loss every ten rows of norms."""
    rows = [{"step": at, "loss": LOSS[at], "grad_norm": 1.0} for at in range(ROWS)]
    rows += [{"step": at, "eval_loss": LOSS[at], "eval_runtime": 2.0} for at in range(49, ROWS, 50)]
    rows += [{"step": at, "lr-AdamW": 1e-3} for at in range(0, ROWS, 7)]
    rows += [{"step": ROWS, "train_loss": 2.5, "train_runtime": 60.0}]
    kinds = pd.DataFrame(sorted(rows, key=lambda row: row["step"]))
    assert {each.key for each in examined(WRITTEN[written](kinds)).findings} == {"healthy"}
    for made in (run_of([], every=10), run_of([], val_loss=LOSS), run_of([])):
        assert examined(WRITTEN[written](made)).healthy


def test_empty_cells_of_gradients_and_logits_are_told() -> None:
    lost = np.isin(np.arange(ROWS), [250, 251])
    made = run_of([], grad_norm=np.where(lost, np.nan, 1.0), max_logit=np.where(np.arange(ROWS) > 300, np.nan, 8.0))
    made.loc[3, "grad_norm"] = np.inf
    report = examined(made.to_csv(index=False).encode())
    said = {each.key: each.sentence for each in report.findings}
    assert "grad_norm in 2 rows, first at step 250" in said["cells_empty"]
    assert "max_logit in 99 rows, first at step 301" in said["cells_empty"]
    assert "Every later one is finite" in said["gradient_passed"]  # of those that are logged


@pytest.mark.parametrize("written", WRITTEN)
def test_without_steps_rows_of_evaluations_are_not_counted_in_a_table(written: str) -> None:
    rows: list[dict[str, float]] = []
    for at in range(ROWS):
        rows.append({"epoch": at / 40, "loss": 9.0 if at == 250 else LOSS[at], "lr": 1e-3})
        rows += [{"epoch": (at + 1) / 40, "eval_loss": LOSS[at]}] * (at % 10 == 9)
    data = WRITTEN[written](pd.DataFrame(rows))
    assert "spike at step 250," in examined(data).findings[0].sentence
    alone = "\n".join(map(json.dumps, rows)).encode()
    assert "spike at step 250," in examined(alone).findings[0].sentence


def test_of_epochs_in_a_table_of_keras_the_last_one_is_told() -> None:
    """As pd.DataFrame(history.history).to_csv() has them, after TerminateOnNaN."""
    made = pd.DataFrame({"loss": [*LOSS[:40], np.nan], "val_loss": [*LOSS[:40], np.nan]})
    (said,) = (each.sentence for each in examined(made.to_csv().encode()).findings if each.key == "cells_empty")
    assert "loss in 1 row, first at step 40." in said


def test_cells_are_empty_where_others_stand_as_far_apart() -> None:
    assert unfilled([{"loss": x} for x in (1, 2, "", 3, 4, None)], "loss") == [2, 5]
    assert unfilled([{"loss": x} for x in (1, "", 2, "", "", "", 3)], "loss") == []
    assert unfilled([{"loss": x} for x in (1, "", 2, "", 3, "", 4, "", "", "", 5)], "loss") == [8]
    assert unfilled([{"loss": 1}, {"val": 2}, {"loss": 3}], "loss") == []
