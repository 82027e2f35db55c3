"""Values that come at steps of their own, in rows of their own or beside others, in healthy runs and in lost ones."""

import json
import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from qkdemo.diagnose.curves import causes
from qkdemo.diagnose.findings.finding import Finding
from qkdemo.diagnose.findings.of_logs import of_logs
from qkdemo.diagnose.readers.logs import read_logs

ROWS = 600
RNG = np.random.default_rng(6)
LOSS = 3 + 7.8 * np.exp(-np.arange(ROWS) / 100) + 0.03 * RNG.standard_normal(ROWS)
LOST = 403


def findings(data: bytes) -> dict[str, Finding]:
    return {x.key: x for x in of_logs([causes.run(log) for log in read_logs(data, "x")], "x").findings}


def written(rows: list[dict[str, Any]]) -> Iterator[bytes]:
    yield "\n".join(map(json.dumps, rows)).encode()
    for nan in ("", "nan"):
        yield pd.DataFrame(rows).to_csv(index=False, na_rep=nan).encode()


def logits_apart(losses: int, logits: int, where: str, *, rate: bool) -> list[dict[str, Any]]:
    """A healthy run whose logits stand in rows of their own: a callback's, before or behind that of the loss."""
    rows: list[dict[str, Any]] = []
    for at in range(ROWS):
        trained: dict[str, Any] = {"step": at, "loss": LOSS[at], "grad_norm": 0.5} if at % losses == 0 else {}
        trained |= {"lr": 1e-3} if trained and rate else {}
        measured = {"step": at, "attn/max_logit": 9 + RNG.random()} if at % logits == 0 else {}
        both = [trained | measured] if where == "beside" else [trained, measured][:: 1 if where == "behind" else -1]
        rows += filter(None, both)
    return rows


@pytest.mark.parametrize("where", ["beside", "before", "behind"])
def test_logits_in_rows_of_their_own_leave_a_healthy_run_healthy(where: str) -> None:
    for losses, logits, rate in product((1, 5, 20), (3, 10, 25, 100), (False, True)):
        for data in written(logits_apart(losses, logits, where, rate=rate)):
            assert findings(data).keys() <= {"healthy", "growth", "replaced"}, (losses, logits, rate, data[:60])


def lost_run(losses: int, norms: int, evaluated: str, *, gradient_alone: bool) -> list[dict[str, Any]]:
    """A run whose gradient is lost at a step that no cadence hits, and its loss with it, or not."""
    rows: list[dict[str, Any]] = []
    for at in range(ROWS):
        gone = at >= LOST and not gradient_alone
        row: dict[str, Any] = {"step": at, "lr": 1e-3}
        row |= {"loss": math.nan if gone else LOSS[at]} if at % losses == 0 else {}
        row |= {"grad_norm": math.nan if at >= LOST else 0.5} if at % norms == 0 else {}
        if evaluated and at % 50 == 49:
            seen = {"val_loss": math.nan if gone else 3.2}
            rows += [row | seen] if evaluated == "beside" else [row, {"step": at, **seen}]
        else:
            rows.append(row)
    return rows


@pytest.mark.parametrize("evaluated", ["", "beside", "apart"])
@pytest.mark.parametrize("gradient_alone", [False, True])
def test_of_a_lost_run_no_row_is_counted_in_which_nothing_was_due(*, gradient_alone: bool, evaluated: str) -> None:
    for losses, norms in product((1, 5, 10), (1, 5, 10)):
        rows = lost_run(losses, norms, evaluated, gradient_alone=gradient_alone)
        lines, empty, filled = map(findings, written(rows))
        due = [at for at in range(LOST, ROWS) if at % norms == 0]
        said = empty["cells_empty"].sentence
        assert f"{len(due)} rows" in said, (losses, norms, said)
        assert f"first at step {due[0]}." in said
        for found in (lines, filled):
            assert "cells_empty" not in found, (losses, norms, found["cells_empty"].sentence)
            first = next(at for at in range(LOST, ROWS) if at % losses == 0 and at % norms == 0)
            if gradient_alone:
                assert f"At step {first} the norm" in found["gradient_overflow"].sentence
            else:
                lost = next(at for at in range(LOST, ROWS) if at % losses == 0)
                assert f"At step {lost} the loss is not finite" in found["cannot_tell"].sentence


def test_a_last_row_of_counters_alone_is_no_lost_loss() -> None:
    """As LLaMA-Factory ends its log."""
    rows = [{"current_steps": at, "loss": LOSS[at], "lr": 1e-4, "epoch": at / 100} for at in range(0, ROWS, 5)]
    rows.append({"current_steps": ROWS, "epoch": 6.0, "percentage": 100.0})
    for data in written(rows):
        assert findings(data).keys() == {"healthy"}


def test_an_epoch_that_lacks_a_gradient_is_told_beside_its_evaluation() -> None:
    for lost in (range(40, 60), range(20, 40)):
        rows = [{"epoch": at, "loss": LOSS[at], "val_loss": LOSS[at], "grad_norm": 1.0} for at in range(60)]
        made = pd.DataFrame(rows)
        made.loc[list(lost), "grad_norm"] = np.nan
        said = findings(made.to_csv(index=False).encode())["cells_empty"].sentence
        assert f"grad_norm has no value in 20 rows of the training, first at step {lost[0]}." in said


def test_a_loss_of_0_before_a_summary_does_not_make_a_lost_logit_unmeasured() -> None:
    """As the Trainer logs its mean loss in the last row."""
    rows: list[dict[str, Any]] = []
    for at in range(10, 2001, 10):
        gone = at >= 1010
        rows.append({"step": at, "loss": 0.0 if gone else LOSS[at // 10], "grad_norm": math.nan if gone else 0.5})
        rows[-1] |= {"learning_rate": 1e-4, "epoch": at / 1000}
        rows += [{"step": at, "epoch": at / 1000, "attn/max_logit": math.nan if gone else 9.0}] * (at % 50 == 0)
    rows.append({"step": 2000, "epoch": 2.0, "train_loss": 4.2, "train_runtime": 60.0})
    found = findings(json.dumps({"log_history": rows}).encode())
    assert "between_nan" not in found
    assert found["logits_lost"].values["step"] == "1\u202f050"
