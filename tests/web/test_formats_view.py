"""The formats exhibit: the figures of scale 400 stand where they should, and a click means what it hit."""

import pytest

from qkdemo.labs.formats import PRESETS, Settings, run
from qkdemo.stages import IN_NORM, STAGES, STORED
from qkdemo.web.formats_view import formats_exhibit, picked


def cell(state: Settings, format: str, role: str, stage: str) -> tuple[str, str]:
    table, view = formats_exhibit(run(state))
    at = table["scale"].to_pylist().index(view["dial"]["at"])
    place = [str(each) for each in STAGES].index(stage)
    text = table[f"grid.{format}.{role}"][at].as_py().split("\t")[place]
    return text, table[f"tone.{format}.{role}"][at].as_py()[place]


@pytest.mark.parametrize(
    ("choices", "stage", "text"),
    [
        ({}, "raw_product", "242 ∞"),
        ({}, "scaled", "242 ∞"),
        ({"placement": "on_q"}, "scaled", "169 ∞"),
        ({"placement": "split"}, "scaled", "170 ∞"),
        ({"placement": "in_accumulator", "product_format": "stored"}, "scaled", "169 ∞"),
        ({}, "weight", "NaN"),
    ],
)
def test_the_grid_says_how_many_entries_float16_loses_at_400(choices: dict[str, str], stage: str, text: str) -> None:
    assert cell(Settings(**choices), "float16", "plain", stage) == (text, "3")  # type: ignore[arg-type]


def test_float32_is_one_hot_at_400_and_a_normalised_float16_loses_nothing() -> None:
    assert cell(Settings(), "float32", "plain", "weight") == ("240→0", "2")
    assert "3" not in "".join(cell(Settings(), "float16", "norm", stage)[1] for stage in STAGES)


def test_the_headline_names_stage_count_and_first_failure_and_follows_the_scale() -> None:
    table, _ = formats_exhibit(run(Settings()))
    findings = dict(zip(table["scale"].to_pylist(), table["finding"].to_pylist(), strict=True))
    assert findings[400].startswith("At weight scale ×400, float16 first fails at the raw product")
    assert "242 of 256" in findings[400]
    assert "×55.65" in findings[400]
    assert (
        findings[1] == "At weight scale ×1, float16 carries plain attention whole. Its twin with L2 · g loses nothing."
    )


def test_first_failures_are_marked_where_they_are_and_not_at_a_stop() -> None:
    _, view = formats_exhibit(run(Settings()))
    marked = {p["title"]: [round(m["x"], 2) for m in p["marks"]] for p in view["panels"] if p["kind"] == "curves"}
    assert marked["float16 loses entries from ×55.65 on"] == [55.65]


@pytest.mark.parametrize("name", PRESETS)
def test_a_scale_between_two_stops_gets_a_row_of_its_own(name: str) -> None:
    state = PRESETS[name].but(scale=123.4, n_keys=4, d_head=8)
    table, view = formats_exhibit(run(state))
    assert view["dial"]["at"] == 123.4
    assert table["scale"].to_pylist() == sorted(table["scale"].to_pylist())
    assert 123.4 in table["scale"].to_pylist()


@pytest.mark.parametrize("row", range(2 * len(STORED)))
@pytest.mark.parametrize("column", range(len(STAGES)))
def test_the_cell_that_was_picked_is_the_one_that_is_selected(row: int, column: int) -> None:
    state = Settings(n_keys=2, d_head=4)
    state = state.but(**picked(state, {"row": row, "column": column}))
    selected = formats_exhibit(run(state))[1]["panels"][0]["selected"]
    own = row | 1 if STAGES[column] in IN_NORM else row  # plain attention has no norm: its twin's is shown
    assert selected == [own, column]


def test_a_cell_that_is_none_sets_nothing() -> None:
    assert picked(Settings(), {"row": 2 * len(STORED), "column": 0}) == {}
    assert picked(Settings(), {"row": 0, "column": len(STAGES)}) == {}
