"""Two columns of one table that come at periods of their own, and stand together in some of their rows alone."""

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from qkdemo.diagnose.curves import causes
from qkdemo.diagnose.findings.finding import Finding
from qkdemo.diagnose.findings.of_logs import of_logs
from qkdemo.diagnose.readers.cells.beats import off_beat
from qkdemo.diagnose.readers.logs import read_logs
from qkdemo.notation import counted

RNG = np.random.default_rng(9)
LAST = 4000
NOISE = RNG.standard_normal(LAST)
PERIODS = [(10, 25), (20, 50), (2, 5), (10, 15), (30, 50)]  # of the loss, of the other column


def run_of(
    periods: tuple[int, int], column: str, lost: range, loss_until: int = LAST, gone: Any = None
) -> pd.DataFrame:
    """A merge on the step; `gone`: what stands where the other column was lost."""
    losses, others = periods
    rows: list[dict[str, Any]] = []
    for step in range(LAST if losses > 2 else 1000):
        row: dict[str, Any] = {"step": step, "loss": None, column: None}
        if step % losses == 0:
            row["loss"] = 3 + 7 * math.exp(-step / 500) + 0.03 * NOISE[step] if step < loss_until else "nan"
        if step % others == 0:
            row[column] = gone if step in lost else 1.2 + 0.1 * NOISE[step]
        rows += [row] * (step % losses == 0 or step % others == 0)
    return pd.DataFrame(rows)


def findings(made: pd.DataFrame, nan: str) -> dict[str, Finding]:
    data = made.to_csv(index=False, na_rep=nan).encode()
    return {x.key: x for x in of_logs([causes.run(log) for log in read_logs(data, "x")], "x").findings}


@pytest.mark.parametrize("nan", ["", "NaN"])
@pytest.mark.parametrize("column", ["grad_norm", "attn_max_logit"])
@pytest.mark.parametrize("periods", PERIODS)
def test_periods_that_meet_in_some_rows_leave_a_healthy_run_healthy(
    periods: tuple[int, int], column: str, nan: str
) -> None:
    assert findings(run_of(periods, column, range(0)), nan).keys() == {"healthy"}


@pytest.mark.parametrize("nan", ["", "NaN"])
@pytest.mark.parametrize("column", ["grad_norm", "attn_max_logit"])
@pytest.mark.parametrize("periods", PERIODS)
def test_what_is_missing_at_steps_of_its_own_is_told_also_beside_a_loss(
    periods: tuple[int, int], column: str, nan: str
) -> None:
    both = math.lcm(*periods)
    first = both * (500 // both)  # a step of both columns
    for count in (1, 5):
        found = findings(run_of(periods, column, range(first, first + count * periods[1])), nan)
        numbers = found["cells_empty"].sentence
        said = f"{periods[1]} steps apart as a rule. By that one is missing in {'5 rows' if count > 1 else '1 row'}"
        assert f"{said}, first at step {counted(first)}." in numbers
        assert found.keys() <= {"cells_empty", "healthy"}


@pytest.mark.parametrize(("periods", "lost_loss"), [((10, 25), 2010), ((10, 25), 2080), ((20, 50), 2040)])
def test_a_gradient_that_is_lost_beside_a_loss_before_it_is_lost_is_told(
    periods: tuple[int, int], lost_loss: int
) -> None:
    found = findings(run_of(periods, "grad_norm", range(2000, LAST), lost_loss, "nan"), "")
    assert found["gradient_overflow"].values["step"] == counted(2000)
    assert found["cannot_tell"].values["step"] == counted(lost_loss)


@pytest.mark.parametrize("lost", ["nan", "inf"])
def test_a_gradient_that_is_lost_once_long_before_the_loss_is_told(lost: str) -> None:
    found = findings(run_of((10, 25), "grad_norm", range(2000, 2001), 3000, lost), "")
    assert found["gradient_passed"].sentence.find(f"step {counted(2000)} ") > 0
    assert found["cannot_tell"].values["step"] == counted(3000)


@pytest.mark.parametrize(("since", "lost_loss"), [(1950, 2050), (1950, 1960), (2000, 2040), (2000, 2100)])
def test_a_logit_is_lost_at_a_step_at_which_one_was_due_or_read_as_not_measured(since: int, lost_loss: int) -> None:
    """A loss in every row, a logit in every fifth one, and NaN elsewhere."""
    rows: list[dict[str, Any]] = []
    for step in range(0, LAST, 10):
        loss = 3 + 7 * math.exp(-step / 500) + 0.03 * NOISE[step] if step < lost_loss else None
        rows.append({"step": step, "loss": loss, "attn_max_logit": 9.0 if step % 50 == 0 and step < since else None})
    found = findings(pd.DataFrame(rows), "NaN")
    if lost_loss - since <= 50:
        assert found["logits_lost"].values["step"] == counted(since)
    else:  # it may as well be that none was measured from there on
        assert "logits_lost" not in found
        assert f"first at step {counted(since)}." in found["cells_empty"].sentence


def test_rows_of_evaluations_at_steps_of_the_training_are_of_another_kind() -> None:
    rows: list[dict[str, Any]] = []
    for step in range(10, 2001, 10):
        rows.append({"step": step, "loss": 3 + 7 * math.exp(-step / 500), "grad_norm": 1.0})
        rows += [{"step": step, "eval_loss": 3.0}] * (step % 50 == 0)
    for nan in ("", "NaN"):
        assert findings(pd.DataFrame(rows), nan).keys() <= {"healthy", "replaced"}
    lines = "\n".join(map(json.dumps, rows)).encode()
    assert [x.key for log in read_logs(lines, "x") for x in causes.run(log).causes] == ["healthy"]


@pytest.mark.parametrize("steps", [[0.1 * at for at in range(8)], [0, 1, 3, 7, 8, 13, 20, 21], [math.nan] * 8])
def test_without_a_period_a_value_may_be_due_in_every_row(steps: list[float]) -> None:
    has = np.array([True, True, False, True, True, True, True, True])
    assert not off_beat(has, np.array(steps)).any()
    assert not off_beat(np.zeros(8, bool), np.arange(8.0)).any()


@pytest.mark.parametrize("column", ["grad_norm", "attn_max_logit"])
def test_a_last_row_logged_for_a_lost_loss_loses_nothing_else(column: str) -> None:
    rows = run_of((5, 2), column, range(0), loss_until=920)
    rows = rows[rows["step"] <= 985]
    assert math.isnan(float(rows[column].iloc[-1]))
    found = findings(rows, "NaN")
    assert not {"logits_lost", "logits_gone", "gradient_overflow", "gradient_passed"} & found.keys()
    assert any(x.values.get("step") == counted(920) for x in found.values())


def test_of_nan_that_is_read_as_not_logged_every_row_is_counted() -> None:
    """Logits of 2 layers every 5 rows; one of them is NaN in every row from row 100 on."""
    rows = list[dict[str, Any]]()
    for at in range(200):
        logits = [20 + at / 5 if at % 5 == 0 else None, 15 + at / 9 if at % 5 == 0 else None]
        if at >= 100:
            logits[1] = "nan"
        rows.append(
            {"step": 10 * at, "loss": 3 + NOISE[at] / 100} | {f"l{i}/max_logit": x for i, x in enumerate(logits)}
        )
    made = pd.DataFrame(rows)
    found = findings(made, "")["between_nan"]
    count = (made[str(found.values["column"])] == "nan").sum()
    assert found.sentence.startswith(f"In {count} rows ")
    assert count >= 100
