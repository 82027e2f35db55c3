"""The formats lab: which stage loses what, in the numbers that are claimed of it, and by an independent program."""

import contextlib
import io
import json
from dataclasses import fields, replace
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings

from qkdemo.attention.inputs import Recipe
from qkdemo.attention.norms import NormaliserWord, NormWord
from qkdemo.attention.variants import Parameters
from qkdemo.floats.formats import FormatWord
from qkdemo.labs.drift.scale_sweep import sweep
from qkdemo.labs.drift.state import State
from qkdemo.labs.formats import (
    PRESETS,
    Settings,
    choices_of,
    explain,
    first_failures,
    ladder,
    native_rows,
    report,
    rows,
    run,
    snippet,
)
from qkdemo.labs.formats import sweep as over_scales
from qkdemo.labs.formats.stages.error_counts import Tally, tally
from qkdemo.labs.formats.stages.exact import exactly
from qkdemo.labs.formats.stages.kinds import (
    IN_NORM,
    OVER_KEYS,
    STAGES,
    STORED,
    Choices,
    PlacementWord,
    StageWord,
    StoredWord,
    drawn,
)
from qkdemo.labs.formats.stages.overflow_thresholds import first_losses
from qkdemo.labs.formats.stages.rounded import follow
from qkdemo.labs.formats.words import fate, onset
from tests.following import NORMALISERS, SMALL, at, row
from tests.strategies import settings_of

FLOATS: list[Literal["float32", "bfloat16", "float16"]] = ["float32", "bfloat16", "float16"]


def beginning(state: Settings, format: StoredWord, variant: NormWord, stage: StageWord) -> dict[str, Any]:
    (found,) = [
        each
        for each in first_failures(run(state))
        if (each["format"], each["variant"], each["stage"]) == (format, variant, stage)
    ]
    return found


# --- weight scale 400, the default draw ---------------------------------------------------------------------------


def test_the_largest_raw_product_at_scale_400_is_3_385_million() -> None:
    stages = exactly(drawn(Recipe()), torch.tensor([400.0], dtype=torch.float64), Choices())
    assert f"{stages['raw_product'].abs().max():.4g}" == "3.385e+06"
    assert f"{stages['scaled'].abs().max():.0f}" == "423078"


def test_float16_loses_242_of_256_raw_products_and_scaling_brings_none_back() -> None:
    raw, scaled = (row(Settings(), "float16", "none", stage) for stage in ("raw_product", "scaled"))
    assert (raw["n"], raw["n_inf"], raw["n_overflow"], raw["n_exceeding"]) == (256, 242, 242, 242)
    assert (scaled["n_inf"], scaled["n_exceeding"]) == (242, 169)  # 169 of the exact ones would be lost anyway


@pytest.mark.parametrize(
    ("placement", "lost"), [("after", 242), ("in_accumulator", 169), ("on_q", 169), ("split", 170)]
)
def test_how_many_scaled_logits_float16_loses_depends_on_where_the_scale_stands(
    placement: PlacementWord, lost: int
) -> None:
    assert row(Settings(placement=placement), "float16", "none", "scaled")["n_inf"] == lost


def test_the_stored_q_and_k_themselves_are_finite_in_float16() -> None:
    for stage in ("q_stored", "k_stored"):
        found = row(Settings(), "float16", "none", stage)
        assert (found["n_inf"], found["n_nan"], found["n_overflow"]) == (0, 0, 0)


def test_after_the_row_maximum_is_subtracted_all_16_float16_rows_are_undefined() -> None:
    assert row(Settings(), "float16", "none", "sum")["n_nan"] == 16
    assert row(Settings(), "float16", "none", "weight")["n_nan"] == 256
    below = row(Settings(), "float16", "none", "max_subtracted")
    assert below["n_nan"] + below["n_inf"] == 256  # ∞ − ∞, and all others −∞ below it


@pytest.mark.parametrize("format", ["float32", "bfloat16"])
def test_float32_and_bfloat16_lose_nothing_at_400(format: StoredWord) -> None:
    for found in rows(run(Settings())):
        if found["format"] == format:
            assert (found["n_inf"], found["n_nan"], found["n_overflow"]) == (0, 0, 0), found["stage"]


def test_in_float32_every_row_is_exactly_one_hot_at_400_so_the_format_does_not_save_the_attention() -> None:
    found = row(Settings(), "float32", "none", "weight")
    assert (found["n_zero"], found["n"], found["max_rel_error"]) == (240, 256, 0)
    weights = follow(drawn(Recipe()), at(400), Choices())["weight"].values[STORED.index("float32"), 0]
    assert (weights.sort(-1).values[:, -2:] == torch.tensor([0.0, 1.0])).all()


@pytest.mark.parametrize("variant", ["l2", "rms"])
def test_normalised_in_float32_nothing_is_lost_up_to_16802_where_q_itself_leaves_float16(
    variant: NormaliserWord,
) -> None:
    state = Settings(variant=variant)
    for stage in STAGES:
        if not stage.startswith("k_") and not stage.endswith("root"):
            assert f"{beginning(state, 'float16', variant, stage)['scale']:.0f}" == "16802", stage
    inputs, choices = drawn(Recipe()), choices_of(state, variant)
    assert not any(held.lost[STORED.index("float16")].any() for held in follow(inputs, at(16802), choices).values())


# --- from which weight scale on -----------------------------------------------------------------------------------


def test_the_first_failures_of_float16() -> None:
    plain = {stage: beginning(Settings(), "float16", "none", stage) for stage in ("q_stored", "raw_product", "scaled")}
    assert f"{plain['raw_product']['scale']:.2f} {plain['raw_product']['exact_scale']:.2f}" == "55.65 55.65"
    assert f"{plain['scaled']['scale']:.2f} {plain['scaled']['exact_scale']:.2f}" == "55.65 157.41"
    assert f"{plain['q_stored']['scale']:.0f} {plain['q_stored']['exact_scale']:.0f}" == "16802 16802"
    inside = Settings(norm_in_format=True)
    assert f"{beginning(inside, 'float16', 'l2', 'q_sum_of_squares')['scale']:.2f}" == "27.96"


def test_a_kernel_that_scales_before_it_stores_loses_its_first_logit_at_157() -> None:
    """157.41 with q and k in float32; rounding them to float16 first moves it in the fifth digit."""
    fused = Settings(placement="in_accumulator", product_format="float16")
    assert f"{beginning(fused, 'float32', 'none', 'scaled')['scale']:.2f}" == "157.41"
    assert beginning(fused, "float16", "none", "scaled")["scale"] == pytest.approx(157.41, rel=1e-4)
    assert beginning(fused, "float16", "none", "raw_product")["scale"] > 16000


@pytest.mark.parametrize("format", ["float32", "bfloat16", "float16"])
def test_the_drift_lab_counts_the_same_losses_with_torchs_own_casts(format: FormatWord) -> None:
    scales = (1.0, 50.0, 60.0, 120.0, 400.0)
    state = State(
        variant="none",
        parameters=Parameters(),
        recipe=Recipe(),
        format=format,
        norm_in_format=False,
        causal=False,
        shown=(0, 0, 0),
        device="cpu",
    )
    side = sweep(state, scales)
    counted = tally(drawn(Recipe()), torch.tensor(scales, dtype=torch.float64), Choices())
    f = STORED.index(format)  # type: ignore[arg-type]
    for stage, lost in (("raw_product", side.raw_lost), ("scaled", side.logit_lost)):
        np.testing.assert_array_equal(counted.n_inf[f, STAGES.index(stage)] / 256, lost)  # type: ignore[arg-type]
    if format == "float16":
        first = first_losses(drawn(Recipe()), Choices())[f, STAGES.index("raw_product")]
        assert side.first_raw_loss == pytest.approx(first, rel=1e-5)


# --- healthy looks, hidden losses -------------------------------------------------------------------------------------


def test_leaks_are_counted_where_a_weak_mask_meets_large_logits() -> None:
    state = Settings(scale=400, causal=True, mask="-1e4")
    assert row(state, "float32", "none", "weight")["n_leaked"] > 0
    assert row(state.but(mask="-inf"), "float32", "none", "weight")["n_leaked"] == 0
    assert row(state, "float32", "l2", "weight")["n_leaked"] == 0  # |logit| ≤ g = 10: −1e4 is enough


def test_a_mask_that_saturates_leaks_and_is_called_minus_infinity() -> None:
    state = Settings(scale=400, storage="float8_e4m3fn", causal=True, fp8_cast="saturate")
    state = state.but(product_format="float32", softmax_format="stored")
    text = " ".join(explain(run(state)))
    assert "the mask constant −∞ does not hide them" in text
    assert "inf " not in text


def test_saturation_hides_a_loss_that_is_counted_before_the_cast() -> None:
    state = PRESETS["fp8_keys"]
    found = row(state, "float8_e4m3fn", "none", "k_entering")
    assert (found["n_inf"], found["n_nan"]) == (0, 0)
    assert found["n_overflow"] > 0
    assert row(state, "float8_e4m3fn", "rms", "k_entering")["n_overflow"] == 0
    other = row(state.but(fp8_cast="overflow"), "float8_e4m3fn", "none", "k_entering")
    assert other["n_nan"] == other["n_overflow"] == found["n_overflow"]


def test_zeros_from_a_norm_make_attention_uniform_which_looks_healthy_and_is_not() -> None:
    state = Settings(variant="rms", norm_in_format=True)
    stages = follow(drawn(Recipe()), at(400), choices_of(state, "rms"))
    assert (stages["weight"].values[STORED.index("float16")] == 1 / 16).all()
    assert row(state, "float16", "rms", "q_entering")["n_zero"] == 1024
    assert row(state, "float16", "rms", "q_sum_of_squares")["n_inf"] == 16


# --- the program, the page's needs --------------------------------------------------------------------------------


def printed(program: str) -> dict[str, dict[str, int]]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(program, "snippet", "exec"), {"__name__": "__main__"})
    read: dict[str, dict[str, int]] = json.loads(out.getvalue())
    return read


@pytest.mark.parametrize("name", PRESETS)
def test_the_program_counts_what_the_preset_shows(name: str) -> None:
    assert_program_agrees(PRESETS[name])


@settings(max_examples=12)
@example(Settings(variant="dyt", gamma=0.2, d_head=4))
@example(Settings(storage="float8_e5m2", fp8_scale="amax", d_head=8, seed=37))  # what is read back is float32
@example(Settings(storage="float8_e5m2", fp8_scale="amax", d_head=4, variant="rms", seed=22))  # what arrives, too
@example(
    Settings(storage="float8_e4m3fn", fp8_scale="amax", fp8_cache=True, d_head=4, variant="rms", seed=9)
)  # rounded once, not by float32
@given(settings_of(Settings, at_most=SMALL))
def test_the_program_counts_what_any_state_shows(state: Settings) -> None:
    assert_program_agrees(state)


def assert_program_agrees(state: Settings) -> None:
    """With torch's own casts; two roundings of one exponential may differ, and so one merging.

    Saturated entries of dynamic tanh cancel: which sums are exactly 0 is their order's to say.
    """
    for variant in ("none", state.variant):
        counts = printed(snippet(state, variant))
        for stage, of_stage in counts.items():
            if variant == "dyt" and stage in OVER_KEYS:
                del of_stage["n_zero"]
            found = row(state, state.storage, variant, stage)  # type: ignore[arg-type]
            assert {name: found[name] for name in of_stage} == of_stage, (stage, variant, state.to_texts())


@pytest.mark.parametrize("variant", ["none", *NORMALISERS])
def test_what_is_shown_is_what_is_counted(variant: NormWord) -> None:
    for stage in STAGES:
        state = Settings(
            stage=stage,
            side="plain" if variant == "none" else "normalised",
            variant="l2" if variant == "none" else variant,
        )
        shown = run(state).shown
        assert max(shown.values.shape) <= 32
        assert shown.variant == ("l2" if variant == "none" and stage in IN_NORM else variant)
        if stage in OVER_KEYS:
            assert np.isinf(shown.values).sum() == row(state, "float16", shown.variant, stage)["n_inf"]
        places = ladder(shown.value, "overflow")
        assert [place.format for place in places] == list(STORED)
        held_in = "float32" if stage in IN_NORM else "float16"
        np.testing.assert_equal(places[STORED.index(held_in)].stored, shown.value)


def test_hidden_keys_are_marked_in_what_is_shown() -> None:
    shown = run(Settings(causal=True, n_keys=4, stage="weight")).shown
    np.testing.assert_array_equal(shown.hidden, ~np.tri(4, dtype=bool))
    assert not run(Settings(causal=True, n_keys=4, stage="weighted_values")).shown.hidden.any()


@pytest.mark.parametrize("scale", [400.0, 412.5])
def test_a_sweep_counts_at_each_scale_what_a_run_counts_there(scale: float) -> None:
    state = Settings(n_keys=4, d_head=8, scale=scale)
    swept, counted = over_scales(state), run(state)
    assert list(swept.scales) == sorted(swept.scales)
    assert (swept.scales[0], swept.scales[-1], len(swept.scales)) == (0.01, 1000, 51 if scale == 400 else 52)
    place = swept.scales.index(scale)
    for of_side, side in ((swept.plain, counted.plain), (swept.twin, counted.twin)):
        for field in fields(Tally):
            at_place = getattr(of_side, field.name)[..., place]
            np.testing.assert_array_equal(at_place, getattr(side.tally, field.name)[..., 0])
    np.testing.assert_array_equal(swept.values[place], counted.shown.values)
    np.testing.assert_array_equal(swept.exact[place], counted.shown.exact)


def test_lost_is_infinite_undefined_or_too_large_before_a_saturating_cast() -> None:
    for cast in ("overflow", "saturate"):
        of = run(Settings(fp8_cast=cast)).plain.tally
        assert (of.n_lost >= np.maximum(of.n_overflow, of.n_inf + of.n_nan)).all()
        assert (of.n_lost <= of.n_overflow + of.n_inf + of.n_nan).all()


def test_a_dial_that_a_side_does_not_read_leaves_no_trace_in_what_it_depends_on() -> None:
    moved = Settings(gain=3, gamma=2, norm_in_format=True, mask="-1e4")
    assert choices_of(moved, "none") == choices_of(Settings(), "none")
    assert choices_of(moved, "rms").gain == Choices().gain


def test_the_command_line_has_every_column_that_is_asked_for() -> None:
    printed_report = report(Settings(n_keys=4, d_head=8))
    asked = ["format", "variant", "stage", "n", "n_inf", "n_nan", "n_zero", "n_merged", "max_rel_error"]
    assert set(asked) <= set(printed_report["rows"][0])
    assert list(printed_report["first_failure"][0]) == ["format", "variant", "stage", "scale", "exact_scale"]


def test_sentences_say_range_trouble_step_trouble_and_when_it_begins() -> None:
    said = explain(run(Settings()))
    assert said[0].startswith("In float16, plain attention at weight scale 400: 242 of 256 entries are lost")
    assert "16 of 16 rows undefined" in said[0]
    assert any("score at 55.65" in sentence for sentence in said)
    assert any("240 of 256 attention weights are flushed to zero" in sentence for sentence in said)


def test_no_sentence_says_safe_while_entries_are_flushed_merged_or_far_off() -> None:
    for state in (Settings(scale=0.01, storage="float8_e4m3fn"), PRESETS["fp8_keys"].but(scale=3)):
        for side, said in zip(run(state).sides, explain(run(state)), strict=False):
            assert said.startswith("In float8_e4m3fn")
            assert "no logits merge" not in said
            assert "flushed to zero" in said, side.variant
    assert "256 of 256 entries of the scaled logit" in explain(run(Settings(scale=0.01, storage="float8_e4m3fn")))[0]


@pytest.mark.parametrize(("error", "key"), [(0.09, "safe"), (0.11, "off")])
def test_weights_that_are_more_than_a_tenth_off_are_not_called_safe(error: float, key: str) -> None:
    counted = run(Settings(storage="float32", scale=1)).plain.tally
    moved = counted.max_rel_error.copy()
    moved[STORED.index("float32"), STAGES.index("weight")] = error
    assert fate(replace(counted, max_rel_error=moved), STORED.index("float32"), 0)[0] == key


def test_sentences_say_that_a_weak_mask_leaks() -> None:
    leaking = Settings(storage="float32", causal=True, mask="-1e4")
    leaks = [
        said for said in explain(run(leaking)) if "9 pairs of a query and a hidden key get attention weight" in said
    ]
    assert leaks[0].startswith("In float32, plain attention at weight scale 400:")
    assert "the mask constant −1e4 does not hide them" in leaks[0]
    assert not any("hidden key" in said for said in explain(run(leaking.but(mask="-inf"))))


def test_losses_at_small_scales_are_told_beside_those_at_every_larger_one() -> None:
    state = Settings(scale=0.01, storage="float8_e4m3fn", norm_in_format=True, d_head=8)
    (twin,) = [said for said in explain(run(state)) if "sum of squares of q at 6.243" in said]
    assert (
        "At some scales a stage loses entries, though not at every larger one; "
        "the first such stage is the reciprocal root of q." in twin
    )
    assert not any("at every larger one" in said for said in explain(run(Settings())))


def test_first_failures_beyond_ten_thousand_are_told_to_five_digits() -> None:
    assert [onset(x) for x in (55.6512, 16802.3, 3.5462e18)] == ["55.65", "16\u202f802", "3.546·10¹⁸"]
    assert any("stored q at 16\u202f802" in said for said in explain(run(Settings())))


# --- the device's own matmul --------------------------------------------------------------------------------------


def test_without_a_gpu_there_is_no_row_of_one_and_with_one_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    state = Settings(n_keys=4, d_head=8)
    for module in ("tables", "words"):
        monkeypatch.setattr(f"qkdemo.labs.formats.{module}.available_devices", lambda: ("cpu",))
    without = rows(run(state))
    assert {each["format"] for each in without} == set(STORED)
    assert not any("this GPU" in said for said in explain(run(state)))
    on_cpu = native_rows(state, "cpu")
    for module in ("tables", "words"):
        monkeypatch.setattr(f"qkdemo.labs.formats.{module}.available_devices", lambda: ("cpu", "cuda"))
        monkeypatch.setattr(f"qkdemo.labs.formats.{module}.native_rows", lambda settings, device: on_cpu)
    assert rows(run(state)) == without + on_cpu
    assert any("The device’s own matmul loses" in said for said in explain(run(state)))
