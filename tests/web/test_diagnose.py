"""The page for one's own files: every example has its finding, every wrong file its sentence."""

import json

import numpy as np
import pytest

from qkdemo.diagnose.samples import SAMPLES, log
from qkdemo.runs.batches import train_all
from qkdemo.training.settings import Settings
from tests.web.visit import visit

FOUND = {
    "log": "Attention came first: the largest logit passed 100 at step 98",
    "tensors": "In head 2 the largest logit is",
    "checkpoint": "q and k are normalised",
    "port": "rotary before the norm fits every logit",
}


@pytest.mark.parametrize("example", SAMPLES)
def test_every_example_is_examined_by_its_link(example: str) -> None:
    app = visit("diagnose", {"example": example})
    assert not app.exception
    told = [element.value for kind in (app.error, app.warning, app.success) for element in kind]
    assert any(FOUND[example].replace("_", r"\_") in text.replace("\\", "") for text in told), told


def test_an_example_that_there_is_not_is_none() -> None:
    app = visit("diagnose", {"example": "<script>"})
    assert not app.exception
    assert not app.error


def test_pasted_lines_are_a_log_and_a_wrong_one_gets_its_sentence() -> None:
    app = visit("diagnose")
    lines = "\n".join(f"step {at}: loss {3 - at / 20:.3f}" for at in range(30))
    app.text_area(key="diagnose:lines").set_value(lines).run()
    assert any("no spike, no divergence" in success.value for success in app.success)
    app.text_area(key="diagnose:lines").set_value("hello [x](http://evil.example)").run()
    assert not app.exception
    assert any("holds no column of numbers" in error.value for error in app.error)


def test_the_bundled_log_is_what_the_engine_gives() -> None:
    """Up to where rounding decides: the first hundred steps, in which the logits pass 100."""
    rows = [json.loads(line) for line in log().splitlines()]
    (telemetry,) = train_all([Settings(variant="none")])
    assert len(rows) == len(telemetry)
    early = slice(0, 60)
    for name, column in (("loss", telemetry.loss), ("max_logit", telemetry.max_abs_logit)):
        assert [row[name] for row in rows[early]] == pytest.approx(column[early, 0].tolist(), rel=0.02)
    assert np.argmax([row["max_logit"] >= 100 for row in rows]) + 1 == pytest.approx(98, abs=5)
