"""The formats exhibit: the figures of scale 400 stand where they should, and a click means what it hit."""

import numpy as np
import pytest

from qkdemo.charts.spec import Exhibit
from qkdemo.labs.formats import PRESETS, Settings, run
from qkdemo.labs.formats.stages.kinds import IN_NORM, STAGES, STORED, StageWord, StoredWord
from qkdemo.labs.formats.view import formats_exhibit, picked


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
    assert findings[400].startswith(
        "At weight scale 400, float16 first fails at the score: "
        "plain attention loses 242 of 256 entries there (some already at about ×55.65). With L2 · g it"
    )


def finding(state: Settings) -> str:
    table, view = formats_exhibit(run(state))
    at = table["scale"].to_pylist().index(view["dial"]["at"])
    return str(table["finding"][at].as_py())


def titles(state: Settings) -> list[str]:
    return [panel["title"] for panel in formats_exhibit(run(state))[1]["panels"]]


ALL_FLUSHED = Settings(scale=0.01, storage="float8_e4m3fn")


def test_the_headline_says_what_was_flushed_although_no_weight_vanished() -> None:
    assert cell(ALL_FLUSHED, "float8_e4m3fn", "plain", "scaled") == ("256→0", "2")
    assert cell(ALL_FLUSHED, "float8_e4m3fn", "plain", "weight")[1] != "2"
    assert "flushes 256 of 256 entries of the scaled logit to zero" in finding(ALL_FLUSHED)


@pytest.mark.parametrize("role", ["plain", "norm"])
@pytest.mark.parametrize("storage", STORED)
def test_nothing_is_called_whole_that_the_grid_marks(role: str, storage: StoredWord) -> None:
    state = Settings(storage=storage, n_keys=8, d_head=16, causal=True, mask="-1e4")
    table, _ = formats_exhibit(run(state))
    entering = STAGES.index("q_entering")
    for said, tones in zip(table["finding"].to_pylist(), table[f"tone.{storage}.{role}"].to_pylist(), strict=True):
        plain, _, twin = said.partition(" With ")
        whole = "Rounding moves" in (plain if role == "plain" else twin)
        assert not (whole and set(tones[entering:]) - {"0"}), said


def test_what_nothing_happens_to_is_called_whole() -> None:
    said = finding(Settings(storage="float32", scale=1))
    plain, _, twin = said.partition(" With L2 · g ")
    assert plain.startswith("At weight scale 1, nothing overflows in float32 in plain attention, no weight vanishes")
    assert twin.startswith(
        "nothing overflows, no weight vanishes and no logits merge. Rounding moves attention weights by up to "
    )


def test_the_headline_says_that_a_weak_mask_leaks() -> None:
    leaking = Settings(storage="float32", causal=True, mask="-1e4")
    said = (
        "In plain attention 9 pairs of a query and a hidden key get weight: the mask constant −1e4 does not hide them."
    )
    assert said in finding(leaking)
    assert "hidden key" not in finding(leaking.but(mask="-inf"))


def test_a_title_tells_losses_at_small_scales_too() -> None:
    state = ALL_FLUSHED.but(norm_in_format=True, d_head=8, stage="q_reciprocal_root")
    assert not [title for title in titles(state) if title.startswith("float8_e4m3fn: this stage loses no")]
    assert "float8_e4m3fn: this stage loses entries at some smaller scales, and from about ×6.243 on" in titles(state)


@pytest.mark.parametrize("stage", ["q_stored", "q_reciprocal_root", "k_entering", "weight"])
def test_no_title_says_never_where_the_curve_rises(stage: StageWord) -> None:
    table, view = formats_exhibit(run(Settings(norm_in_format=True, n_keys=4, d_head=8, stage=stage)))
    shown = {panel["lines"][0]["column"]: panel["title"] for panel in view["panels"] if panel["kind"] == "curves"}
    scales = table["scale"].to_pylist()
    for word in STORED:
        title, firsts = shown[f"lost.{word}.plain"], [mark["x"] for mark in marks(view, word)]
        curves = [table[f"lost.{word}.{role}"].to_pylist() for role in ("plain", "norm")]
        losing = [scale for curve in curves for scale, share in zip(scales, curve, strict=True) if share > 0]
        if "small" not in title and "some" not in title:
            assert all(firsts and scale >= min(firsts) for scale in losing), title


def marks(view: Exhibit, word: str) -> list[dict[str, float]]:
    (found,) = [
        p["marks"] for p in view["panels"] if p["kind"] == "curves" and p["lines"][0]["column"] == f"lost.{word}.plain"
    ]
    return found  # type: ignore[no-any-return]


def test_a_first_failure_of_stored_q_is_told_to_five_digits() -> None:
    assert "float16: this stage loses entries only from about ×16\u202f802 on" in titles(Settings(stage="q_stored"))


def test_the_tiles_say_whose_scale_and_which_weights() -> None:
    labels = [tile["label"] for tile in formats_exhibit(run(Settings(n_keys=4, d_head=8)))[1]["tiles"]]
    assert (labels[0], labels[-1]) == ("scale of q and k", "attention weights lost")


def test_first_failures_are_marked_where_they_are_and_not_at_a_stop() -> None:
    _, view = formats_exhibit(run(Settings()))
    marked = {p["title"]: [round(m["x"], 2) for m in p["marks"]] for p in view["panels"] if p["kind"] == "curves"}
    assert marked["float16: this stage loses entries from about ×55.65 on"] == [55.65]


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
    assert selected == (own, column)


def test_a_cell_that_is_none_sets_nothing() -> None:
    assert picked(Settings(), {"row": 2 * len(STORED), "column": 0}) == {}
    assert picked(Settings(), {"row": 0, "column": len(STAGES)}) == {}


def test_the_ramp_of_the_heat_map_says_the_sizes_of_its_ends() -> None:
    table, view = formats_exhibit(run(Settings()))
    (heat,) = (panel for panel in view["panels"] if panel["kind"] == "heat")
    assert heat["ramp"][0] == (0.0, "0")
    assert heat["ramp"][-1] == (1.0, "66\u202f000")  # 65,504 is the largest number of float16
    cells = np.array(table["heat"].to_pylist())
    assert cells[cells <= 250].max() == 250
    for panel in view["panels"]:
        assert "click" not in panel.get("on_paper", panel.get("subtitle", "")).lower()


@pytest.mark.parametrize(("stage", "said"), [("k_entering", "channels 0 to 31, of 64 in all; "), ("raw_product", "")])
def test_where_some_channels_alone_are_drawn_it_is_said(stage: StageWord, said: str) -> None:
    panels = formats_exhibit(run(Settings(stage=stage)))[1]["panels"]
    (heat,) = (panel for panel in panels if panel["kind"] == "heat")
    for words in (heat["subtitle"], heat["on_paper"]):
        assert words.startswith(f"{said}the stronger the colour")
