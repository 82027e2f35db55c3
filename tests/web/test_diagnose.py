"""The page for one's own files: every example has its finding, every wrong file its sentence."""

import json
import math
import re

import numpy as np
import pytest

from qkdemo.charts.theme import DARK, LIGHT, Theme, mixed
from qkdemo.diagnose.findings.examine import examine
from qkdemo.diagnose.paper import html
from qkdemo.diagnose.samples import SAMPLES, log
from qkdemo.messages import ENGLISH, LANGUAGES
from qkdemo.notation import written
from qkdemo.runs.batches import train_all
from qkdemo.training.settings import Settings
from qkdemo.web.address.given import as_text
from qkdemo.web.diagnosis.charts import curves, growth, heat_map
from qkdemo.web.pages import PAGES
from tests.web.test_theme import contrast, srgb
from tests.web.visit import link_of, visit

FOUND = {
    "log": "Large logits came before that: the largest was 100 or more at step 98",
    "tensors": "In head 2 the largest |logit| is",
    "checkpoint": "there are gains for q and k; they are read as γ",
    "port": "with rotary before the norm some gains fit the logits",
}


@pytest.mark.parametrize("example", SAMPLES)
def test_every_example_is_examined_by_its_link(example: str) -> None:
    app = visit("diagnose", {"example": example})
    assert not app.exception
    told = [element.value for kind in (app.error, app.warning, app.success) for element in kind]
    assert any(FOUND[example].replace("_", r"\_") in text.replace("\\", "") for text in told), told


def test_every_chart_says_what_it_shows() -> None:
    report = examine(log(), "collapse.jsonl")
    said = [words for _, words in curves(report.curves["collapse.jsonl"], report.roles("collapse.jsonl"))]
    assert len(said) == 4
    assert all(
        re.search(
            r"First, at step 1: .* Last, at step \d+: .* Lowest: .* Highest: .*, at step",
            one,
        )
        for one in said
    )
    name, make = SAMPLES["tensors"]
    tables = examine(make(), name).tables
    heads = heat_map(tables["heads"], LIGHT)[1]
    assert all(
        f"head {row['head']}: " in heads and written(row["max_logit"], 3) in heads for row in tables["heads"][:3]
    )
    for _, words in growth(tables["growth"]):
        assert re.search(r"First, at weight scale [\d.]+: plain: .*, RMSNorm: .* Last, at weight scale", words)


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_a_heads_number_is_read_on_its_colour_light_and_dark(theme: Theme) -> None:
    name, make = SAMPLES["tensors"]
    drawn = heat_map(examine(make(), name).tables["heads"], theme)[0].to_dict()
    fill, number = drawn["layer"]
    for share in fill["encoding"]["opacity"]["scale"]["range"]:
        cell = mixed(theme.paper, fill["mark"]["color"], share)
        assert contrast(srgb(number["mark"]["color"]), srgb(cell)) >= 4.5


def test_a_head_without_a_value_has_no_colour_and_heads_that_are_not_drawn_are_told() -> None:
    rows = [dict.fromkeys(("max_logit", "softmax_slope", "first_key"), 1.0) | {"head": at} for at in range(50)]
    chart, _ = heat_map([row | {"entropy_fraction": math.nan} for row in rows], LIGHT)
    assert chart.to_dict()["layer"][0]["transform"] == [{"filter": "datum.bad >= 0"}]
    assert [x < 0 for x in chart.data["bad"].to_pylist()] == [at // 48 == 1 for at in range(4 * 48)]  # the entropy
    app = visit("diagnose")
    q, k = np.random.default_rng(0).standard_normal((2, 50, 3, 4)).tolist()
    app.text_area(key="diagnose:lines").set_value(json.dumps({"q": q, "k": k})).run()
    assert any("The first 48 of 50 heads are drawn." in each.value for each in app.caption)


@pytest.mark.parametrize("given", [{}, {"loss": "aux_loss"}])
def test_a_loss_below_0_is_drawn_as_it_is_and_the_column_that_was_named_is(given: dict[str, str]) -> None:
    """As a logarithm of a density: 2 at first, then −3; beside it a column that only its reader knows for the loss."""
    losses = {"loss": np.linspace(2, -3, 30), "aux_loss": np.linspace(4, 0, 30)}
    rows = [{"step": at} | {name: float(x[at]) for name, x in losses.items()} for at in range(30)]
    report = examine("\n".join(map(json.dumps, rows)).encode(), "x", columns=given)
    (drawn, words), *_ = curves(report.curves["x"], report.roles("x"))
    (y,) = (each["encoding"]["y"] for each in [drawn.to_dict()])
    assert y["scale"].get("type") != "log"
    column = given.get("loss", "loss")
    assert drawn.data["value"].to_pylist() == losses[column].tolist()
    assert f"Lowest: {written(losses[column].min(), 3)}, at step 29." in words
    page = html(report)
    assert f">{column}</text>" in page
    assert f">{written(float(losses[column].min()), 3)}</text>" in page


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
    assert any("no numbers over steps" in error.value for error in app.error)


def test_pasted_arrays_are_asked_how_their_axes_lie() -> None:
    """They have no name that ends as a file of arrays: what a report advises must be on the page."""
    rows = np.random.default_rng(0).standard_normal((2, 1, 4, 3, 8)).tolist()
    app = visit("diagnose")
    app.text_area(key="diagnose:lines").set_value(json.dumps(dict(zip("qk", rows, strict=True)))).run()
    assert any("swap the axes" in told.value for told in app.warning)
    assert any("For a checkpoint, or the logits of a port, they change nothing." in each.value for each in app.caption)
    app.toggle(key="diagnose:swap").set_value(True).run()
    assert not app.exception
    assert not any("swap the axes" in told.value for told in app.warning)


def test_the_bundled_log_is_what_the_engine_gives() -> None:
    """Up to where training makes much of rounding. The logits pass 100 near the hundredth step, however it rounds."""
    rows = [json.loads(line) for line in log().splitlines()]
    (telemetry,) = train_all([Settings(variant="none")])
    assert len(rows) == len(telemetry)
    early = slice(0, 30)
    for name, column in (("loss", telemetry.loss), ("max_logit", telemetry.max_abs_logit)):
        assert [row[name] for row in rows[early]] == pytest.approx(column[early, 0].tolist(), rel=0.05)
    assert np.argmax([row["max_logit"] >= 100 for row in rows]) + 1 == pytest.approx(98, abs=5)


def test_the_drift_lab_opens_on_ones_own_tensors_and_its_link_never_holds_them() -> None:
    app = visit("diagnose", {"example": "tensors"})
    own = app.session_state["own.held"]
    query = {"own": "1", "scale": "1", "n_heads": "4", "n_keys": "32", "d_head": "64"}
    app.switch_page(str(PAGES["drift"].script))
    for name in list(app.query_params):
        del app.query_params[name]
    for name, value in query.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    assert not app.warning
    told = " ".join(element.value for element in app.markdown).replace("\\", "")
    assert "q and k here are from long-query.npz" in told
    assert "The link holds the dials, but not the tensors" in told
    assert "408.9" in told  # the largest logit of the file, at weight scale 1
    assert not {"d_head", "n_keys", "seed"} & {slider.key.partition(".")[2] for slider in app.select_slider}
    link = link_of(app)
    assert link["own"] == "1"
    assert sum(map(len, link.values())) < 100
    app.button(key="own:forget").click().run()
    assert "own" not in link_of(app)
    assert "own.held" not in app.session_state
    assert own.inputs.q.shape == (4, 32, 64)


def test_a_link_made_on_somebodys_tensors_says_that_it_has_none() -> None:
    app = visit("drift", {"own": "1", "scale": "2", "n_keys": "8"})
    assert not app.exception
    assert any("No link holds them: here they are drawn" in warning.value for warning in app.warning)
    app.button(key="own:draw").click().run()
    assert not app.warning
    assert link_of(app) == {"scale": "2", "n_keys": "8"}


def test_python_in_an_advice_can_be_copied_from_the_page() -> None:
    advices = {key: text for key, text in LANGUAGES[ENGLISH].items() if key.startswith("advice.") and "watch(" in text}
    assert advices
    for key, text in advices.items():
        assert re.sub(r"\\(.)", r"\1", as_text(text)).replace("`", "") == text, key
