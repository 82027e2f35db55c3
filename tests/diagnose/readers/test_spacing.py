"""Logs whose values come every so many rows, or change how far apart they are, and cells of the rows between."""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from qkdemo.diagnose.curves import causes
from qkdemo.diagnose.findings.finding import Report
from qkdemo.diagnose.findings.of_logs import of_logs
from qkdemo.diagnose.readers.logs import read_logs
from qkdemo.notation import counted

RNG = np.random.default_rng(1)
ROWS = 2000
STEPS = np.arange(ROWS)
LOSS = 2 + 8 * np.exp(-STEPS / 200) + 0.03 * RNG.standard_normal(ROWS)

DENSER: dict[str, Callable[[int], bool]] = {
    "every row, then each 10th": lambda at: at < 200 or at % 10 == 0,
    "for long every row, then each 10th": lambda at: at < 1500 or at % 10 == 0,
    "each 10th, then each 50th": lambda at: at % 50 == 0 or (at < 500 and at % 10 == 0),
    "each 50th, then each 10th": lambda at: at % 50 == 0 or (at > 500 and at % 10 == 0),
    "each 5th, and the last of 30": lambda at: at % 5 == 0 or at % 30 == 29,
}


def examined(data: bytes) -> Report:
    return of_logs([causes.run(log) for log in read_logs(data, "x")], "x")


def table(made: pd.DataFrame, nan: str) -> bytes:
    return made.to_csv(index=False, na_rep=nan).encode()


def run_of(when: Callable[[int], bool], column: str, lost: slice | list[int] = slice(0, 0)) -> pd.DataFrame:
    """A run in which one column has values in some rows alone, of which some were NaN."""
    made = pd.DataFrame({"step": STEPS, "loss": LOSS, "grad_norm": 1.0, "lr": 1e-3})
    named = np.array([when(at) for at in STEPS])
    named[lost] = False
    made[column] = np.where(named, made[column], np.nan)
    return made


@pytest.mark.parametrize("nan", ["", "nan"])
@pytest.mark.parametrize("column", ["loss", "grad_norm"])
@pytest.mark.parametrize("when", DENSER)
def test_a_run_that_changes_how_often_it_logs_is_healthy(when: str, column: str, nan: str) -> None:
    report = examined(table(run_of(DENSER[when], column), nan))
    assert {each.key for each in report.findings} <= {"healthy", "between_nan"}
    assert "bad" not in {each.level for each in report.findings}


@pytest.mark.parametrize("column", ["loss", "grad_norm"])
@pytest.mark.parametrize("when", DENSER)
def test_a_value_that_is_lost_to_the_end_is_so_from_where_the_next_one_was_due(when: str, column: str) -> None:
    (log,) = read_logs(table(run_of(DENSER[when], column, slice(1700, ROWS)), "nan"), "x")
    lost = np.flatnonzero(np.isinf(log.columns[column]))
    assert 1700 <= lost[0] <= 1700 + 50
    assert lost[-1] >= ROWS - 50
    assert lost.size >= sum(map(DENSER[when], range(1750, ROWS)))
    assert np.isfinite(log.columns[column]).sum() == sum(map(DENSER[when], range(1700)))


@pytest.mark.parametrize("nan", ["", "nan"])
@pytest.mark.parametrize("when", ["each 10th, then each 50th", "each 50th, then each 10th"])
def test_a_value_that_is_missing_is_told_however_far_apart_the_others_are(when: str, nan: str) -> None:
    found = {x.key: x for x in examined(table(run_of(DENSER[when], "loss", [300, 1500]), nan)).findings}
    assert "By that one is missing in 2 rows, first at step 300." in found["cells_empty"].sentence


@pytest.mark.parametrize("ends", [1, 8])
def test_epochs_count_on_where_the_loss_is_lost_and_its_evaluation_is_not(ends: int) -> None:
    """As pandas writes a history of Keras, or timm its summary: no column of steps, evaluations in every row."""
    rows, lost = 60, 40
    made = pd.DataFrame({"loss": LOSS[:rows], "val_loss": LOSS[:rows], "val_accuracy": 0.5})
    made.loc[lost:, ["loss", "val_loss"][: 1 + (ends > 1)]] = np.nan
    for written in (made.to_csv(), made.to_csv(index=False), made.to_json(orient="records", lines=True)):
        found = {each.key: each for each in examined(written.encode()).findings}
        assert "healthy" not in found
        assert "replaced" not in found
        assert (found["loss_ends"].values["step"], found["loss_ends"].values["until"]) == ("39", "59")


def of_trainer(lost: int) -> list[dict[str, Any]]:
    """A history of Hugging Face's Trainer, which logs 0 for a loss that is lost, with a logit of a callback."""
    rows = [
        {"step": at, "loss": round(LOSS[at], 4), "grad_norm": 0.5, "learning_rate": 1e-4, "epoch": at / 1000}
        for at in range(10, ROWS, 10)
    ]
    rows = [row | {"attn/max_logit": 8 * math.exp(row["step"] / 500)} for row in rows]
    gone = {"loss": 0.0, "grad_norm": math.nan, "attn/max_logit": math.nan}
    return [row | (gone if row["step"] >= lost else {}) for row in rows]


def test_a_loss_of_0_to_the_end_is_a_lost_one_also_beside_lost_gradients_and_logits() -> None:
    found = {x.key: x for x in examined(json.dumps({"log_history": of_trainer(1510)}).encode()).findings}
    assert found["loss_zeros"].values["step"] == found["logits_lost"].values["step"] == counted(1510)
    assert float(found["attention_max_logit"].values["logit"]) == pytest.approx(8 * math.exp(3), rel=1e-3)
    assert "between_nan" not in found


@pytest.mark.parametrize("row", [402, 1999])
def test_a_gradient_that_is_lost_between_two_logged_losses_is_told(row: int) -> None:
    made = pd.DataFrame({"step": STEPS, "loss": np.where(STEPS % 5 == 0, LOSS, np.nan), "grad_norm": 1.0})
    made.loc[row, "grad_norm"] = np.inf
    lines = "\n".join(json.dumps({k: v for k, v in x.items() if not math.isnan(v)}) for x in made.to_dict("records"))
    found = {each.key: each.sentence for each in examined(lines.encode()).findings}
    if row < ROWS - 100:
        assert "Every later one is finite" in found["gradient_passed"]
    else:
        assert "no loss is logged in that row. If the loss is finite there," in found["gradient_overflow"]


def test_of_columns_for_each_layer_the_one_with_the_most_nan_is_named() -> None:
    made = pd.DataFrame({"step": STEPS, "loss": LOSS})
    for layer, rows in enumerate((10, 300, 50)):
        made[f"attn/layer{layer}/max_logit"] = np.where(rows > STEPS, np.nan, 8.0)
    (found,) = (each for each in examined(table(made, "nan")).findings if each.key == "between_nan")
    assert (found.values["column"], found.values["count"]) == ("attn/layer1/max_logit", "300")


@pytest.mark.parametrize("beside", [{}, {"grad_norm": math.nan}, {"lr": 1e-3, "grad_norm": math.nan}])
@pytest.mark.parametrize("is_table", [False, True])
def test_a_last_row_that_was_logged_because_its_loss_is_lost_tells_so(is_table: bool, beside: dict[str, float]) -> None:
    rows = [{"step": 10 * at, "loss": LOSS[at], **dict.fromkeys(beside, 0.001)} for at in range(200)]
    rows.append({"step": 1993, "loss": math.nan, **beside})
    text = "\n".join(map(json.dumps, rows)).encode()
    found = examined(table(pd.DataFrame(rows), "NaN") if is_table else text).findings
    assert "healthy" not in {x.key for x in found}
    assert any(x.values.get("step") == counted(1993) for x in found)


@pytest.mark.parametrize("often", [1, 5])
def test_a_last_row_of_an_evaluation_loses_no_loss(often: int) -> None:
    rows = [
        {"step": 10 * at, "loss": LOSS[at], "val_loss": LOSS[at] if at % often == 0 else math.nan} for at in range(200)
    ]
    rows.append({"step": 1993, "loss": math.nan, "val_loss": LOSS[199]})
    assert {x.key for x in examined(table(pd.DataFrame(rows), "NaN")).findings} == {"healthy"}
