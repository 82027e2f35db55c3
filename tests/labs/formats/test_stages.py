"""The stages: against the attention module, PyTorch and exact arithmetic, and in cases that people met in the field."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from qkdemo.attention.inputs import Recipe
from qkdemo.attention.norms import NormaliserWord, NormWord
from qkdemo.attention.variants import VARIANTS
from qkdemo.floats.formats import FORMATS, FormatWord, rounded
from qkdemo.labs.formats import Settings, choices_of, recipe_of
from qkdemo.labs.formats.stages.exact import exact_part, exactly
from qkdemo.labs.formats.stages.kinds import (
    PARTS,
    STORED,
    Choices,
    Inputs,
    MaskWord,
    PlacementWord,
    StageWord,
    StoredWord,
    drawn,
    read_by,
)
from qkdemo.labs.formats.stages.rounded import Held, follow, held_part
from tests.following import NORMALISERS, SMALL, at, held_by
from tests.strategies import settings_of

# --- the stages, against independent formulas ---------------------------------------------------------------------


@pytest.mark.parametrize("variant", NORMALISERS)
@pytest.mark.parametrize("format", ["float32", "bfloat16", "float16"])
def test_normalised_vectors_are_those_of_the_attention_module(variant: NormaliserWord, format: FormatWord) -> None:
    """Rounded inside by the format, gain included; a last digit may differ, since there sums are float32."""
    inputs, known = drawn(Recipe(n_keys=6, d_head=16)), FORMATS[format]

    def r(x: torch.Tensor) -> torch.Tensor:
        return rounded(x, known)

    choices = Choices(variant=variant, gamma=1.7, norm_in_format=True)
    got = follow(inputs, at(3), choices)["q_entering"].values[STORED.index(format), 0]  # type: ignore[arg-type]
    expected = VARIANTS[variant].normalise(r(inputs.q * 3), r(torch.tensor(1.7)).item(), r=r).double()
    steps = {"l2": 2, "rms": 2, "layernorm": 3}[variant]  # l2 multiplies by the reciprocal here
    tolerance = steps * 2.0**-known.mantissa_bits
    np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("variant", ["none", *NORMALISERS])
@pytest.mark.parametrize("placement", ["after", "in_accumulator", "on_q", "split"])
@pytest.mark.parametrize("causal", [False, True])
def test_exact_stages_are_scaled_dot_product_attention_in_every_placement(
    variant: NormWord, placement: PlacementWord, causal: bool
) -> None:
    inputs = drawn(Recipe(n_keys=5, d_head=8), causal=causal)
    stages = exactly(inputs, torch.tensor([2.0], dtype=torch.float64), Choices(variant=variant, placement=placement))
    q, k = (VARIANTS[variant].normalise(2 * x, 1.0) for x in (inputs.q, inputs.k))
    factor = 10.0 if variant == "l2" else 8**-0.5
    attended = torch.nn.functional.scaled_dot_product_attention(
        q[None], k[None], inputs.v[None], is_causal=causal, scale=factor
    )
    np.testing.assert_allclose(stages["weighted_values"].numpy(), attended.numpy(), rtol=1e-12, atol=1e-14)


@settings(max_examples=25)
@given(settings_of(Settings, at_most=SMALL, storage="float32"), st.floats(0.1, 10))
def test_in_float32_every_stage_is_the_exact_one_to_seven_digits(state: Settings, scale: float) -> None:
    state = state.but(softmax_format="float32", accumulator="float32", product_format="float32", max_subtraction=True)
    inputs = drawn(recipe_of(state), causal=state.causal)
    choices = choices_of(state.but(mask="-inf"), state.variant)
    held, truth = follow(inputs, at(scale), choices), exactly(inputs, at(scale)[0], choices)
    size = 1 + float(truth["raw_product"].abs().max())  # an error of a logit is one relative to the largest
    for stage, of_stage in held.items():
        expected = truth[stage].numpy()
        got = of_stage.values[0].numpy()
        known = np.isfinite(expected)
        np.testing.assert_allclose(got[known], expected[known], rtol=1e-5 * size, atol=1e-6 * size, err_msg=stage)


def test_values_are_the_third_draw_of_the_generator_and_do_not_grow() -> None:
    generator = np.random.default_rng(7)
    q, k, v = (generator.standard_normal((4, 8)) for _ in range(3))
    inputs = drawn(Recipe(n_keys=4, d_head=8, seed=7))
    for got, expected in ((inputs.q, q), (inputs.k, k), (inputs.v, v)):
        np.testing.assert_array_equal(got.numpy(), expected)


@settings(max_examples=20)
@given(settings_of(Settings, at_most=SMALL))
def test_a_part_reads_no_choice_but_those_it_is_remembered_by(state: Settings) -> None:
    inputs, choices = drawn(recipe_of(state), causal=state.causal), choices_of(state, state.variant)
    held, truth = follow(inputs, at(state.scale), choices), exactly(inputs, at(state.scale)[0], choices)
    known: dict[StageWord, Held] = {}
    exact_known: dict[StageWord, torch.Tensor] = {}
    for part in PARTS:
        read = read_by(part, choices, causal=state.causal)
        known |= held_part(part, known, inputs, at(state.scale), read)
        exact_known |= exact_part(part, exact_known, inputs, at(state.scale)[0], read)
        for stage in set(part) & set(held):
            np.testing.assert_array_equal(known[stage].values.numpy(), held[stage].values.numpy(), stage)
            np.testing.assert_array_equal(known[stage].beyond.numpy(), held[stage].beyond.numpy(), stage)
            np.testing.assert_array_equal(exact_known[stage].numpy(), truth[stage].numpy(), stage)


@settings(max_examples=20)
@given(settings_of(Settings, at_most=SMALL))
def test_formats_followed_alone_and_at_scales_of_their_own_are_those_followed_together(state: Settings) -> None:
    inputs, choices = drawn(recipe_of(state), causal=state.causal), choices_of(state, state.variant)
    words: list[StoredWord] = ["float8_e5m2", "float16", "float16", state.storage]
    scales = torch.tensor([3.0, 400.0, state.scale, state.scale], dtype=torch.float64)
    pairs = follow(inputs, scales[:, None], choices, words)
    for place, (word, scale) in enumerate(zip(words, scales.tolist(), strict=True)):
        together = follow(inputs, at(scale), choices)
        for stage, held in pairs.items():
            np.testing.assert_array_equal(held.values[place, 0].tolist(), held_by(together, stage, word), stage)


# --- cases from the field -----------------------------------------------------------------------------------------


def one_query(keys: list[float], **choices: Any) -> dict[StageWord, Held]:
    """q of 128 times 24 against keys of 128 equal entries each."""
    inputs = Inputs(
        torch.full((1, 128), 24.0, dtype=torch.float64),
        torch.tensor(keys, dtype=torch.float64)[:, None].expand(-1, 128),
        torch.zeros(len(keys), 128, dtype=torch.float64),
    )
    return follow(inputs, at(1), Choices(**choices))


def test_a_product_just_above_65504_is_lost_although_its_scaled_logit_would_fit() -> None:
    stages = one_query([24.0, 23.0])
    assert held_by(stages, "raw_product", "float16") == [[math.inf, math.inf]]
    assert held_by(stages, "scaled", "float16") == [[math.inf, math.inf]]
    assert all(math.isnan(weight) for weight in held_by(stages, "weight", "float16")[0])
    assert held_by(stages, "raw_product", "bfloat16") == [[73728.0, 70656.0]]
    assert held_by(stages, "scaled", "float32")[0] == pytest.approx([6516.696, 6245.167], rel=1e-6)
    assert held_by(stages, "weight", "float32") == [[1.0, 0.0]]


@pytest.mark.parametrize("placement", ["on_q", "split", "in_accumulator"])
def test_scaling_earlier_saves_that_product(placement: PlacementWord) -> None:
    """The same function in another order: one float16 step is 4 there."""
    stages = one_query([24.0, 23.0], placement=placement)
    assert held_by(stages, "scaled", "float16")[0] == pytest.approx([6516, 6244], abs=4)
    assert held_by(stages, "weight", "float16") == [[1.0, 0.0]]


def with_logits(logits: list[float], visible: list[bool] | None = None, **choices: Any) -> dict[StageWord, Held]:
    """One query whose raw products are `logits`; heads are one channel wide, so nothing is divided."""
    n = len(logits)
    inputs = Inputs(
        torch.ones(1, 1, dtype=torch.float64),
        torch.tensor(logits, dtype=torch.float64)[:, None],
        torch.ones(n, 1, dtype=torch.float64),
        None if visible is None else torch.tensor([visible]),
    )
    return follow(inputs, at(1), Choices(**choices))


def test_logits_512_and_513_merge_in_bfloat16_and_not_in_float16() -> None:
    stages = with_logits([513.0, 512.0])
    assert held_by(stages, "scaled", "bfloat16") == [[512.0, 512.0]]
    assert held_by(stages, "weight", "bfloat16") == [[0.5, 0.5]]
    assert held_by(stages, "weight", "float32")[0] == pytest.approx([0.7310586, 0.2689414], rel=1e-6)
    assert held_by(stages, "weight", "float16")[0] == pytest.approx([0.7310586, 0.2689414], rel=2**-10)


@pytest.mark.parametrize(
    ("format", "fits", "overflows"),
    [("float16", 11.0, 11.125), ("bfloat16", 88.5, 89.0), ("float32", 88.72, 88.73)],
)
def test_exp_overflows_at_11_in_float16_and_at_88_elsewhere_if_nobody_subtracts_the_maximum(
    format: StoredWord, fits: float, overflows: float
) -> None:
    (terms,) = held_by(with_logits([fits, overflows], max_subtraction=False), "exp", format)
    assert math.isfinite(terms[0])
    assert terms[1] == math.inf
    (terms,) = held_by(with_logits([fits, overflows]), "exp", format)
    assert max(terms) == 1  # with it, nothing exceeds 1


@pytest.mark.parametrize(
    ("mask", "float16", "float32"),
    [("-inf", -math.inf, -math.inf), ("finfo.min", -math.inf, -3.4028234663852886e38), ("-1e4", -10040, -10040)],
)
def test_a_mask_is_added_as_its_format_stores_it(mask: MaskWord, float16: float, float32: float) -> None:
    stages = with_logits([-40.0, -40.0], [True, False], mask=mask)
    assert held_by(stages, "masked", "float16") == [[-40.0, float16]]
    assert held_by(stages, "masked", "float32") == [[-40.0, float32]]
    assert held_by(stages, "weight", "float16") == [[1.0, 0.0]]  # the hidden key stays hidden


def test_a_mask_of_minus_1e9_is_minus_infinity_in_float16_only() -> None:
    stages = with_logits([1.0, 1.0], [True, False], mask="-1e9")
    assert held_by(stages, "masked", "float16") == [[1.0, -math.inf]]
    assert held_by(stages, "masked", "float32") == [[1.0, -1e9]]


def test_a_hidden_key_outweighs_a_mask_of_minus_1e4_by_a_larger_gap() -> None:
    stages = with_logits([100.0, 12000.0], [True, False], mask="-1e4")
    assert held_by(stages, "weight", "float32") == [[0.0, 1.0]]
    assert held_by(with_logits([100.0, 12000.0], [True, False]), "weight", "float32") == [[1.0, 0.0]]


def test_a_row_without_a_permitted_key_is_undefined_or_uniform_by_the_mask() -> None:
    hidden = [False] * 4
    assert all(math.isnan(w) for w in held_by(with_logits([1.0] * 4, hidden), "weight", "float32")[0])
    stages = with_logits([1.0] * 4, hidden, mask="finfo.min")
    assert held_by(stages, "weight", "float32") == [[0.25] * 4]


def test_zero_in_place_of_an_infinite_logit_lets_a_query_see_what_the_mask_hid() -> None:
    """The mask, added to a negative logit, is −∞ in float16; a repair of infinite logits then undoes it."""
    (masked,) = held_by(with_logits([-40.0, -40.0], [True, False], mask="finfo.min"), "masked", "float16")
    assert masked == [-40.0, -math.inf]
    repaired = with_logits([0.0 if math.isinf(logit) else logit for logit in masked])
    assert held_by(repaired, "weight", "float32")[0] == pytest.approx([4.248354e-18, 1.0], rel=1e-6)
    (weak,) = held_by(with_logits([-10.0, -10.0], [True, False], mask="finfo.min"), "masked", "float16")
    assert weak == [-10.0, -65504.0]  # nothing to repair


def norm_of(x: list[float], **choices: Any) -> dict[StageWord, Held]:
    inputs = Inputs(*(torch.tensor([x], dtype=torch.float64) for _ in range(3)))
    return follow(inputs, at(1), Choices(**choices))


def test_an_rms_norm_inside_float16_overflows_and_silently_returns_zeros() -> None:
    inside = norm_of([300.0] * 64, variant="rms", norm_in_format=True)
    assert held_by(inside, "q_sum_of_squares", "float16") == [[math.inf]]
    assert held_by(inside, "q_reciprocal_root", "float16") == [[0.0]]
    assert held_by(inside, "q_entering", "float16") == [[0.0] * 64]
    outside = norm_of([300.0] * 64, variant="rms")
    assert held_by(outside, "q_entering", "float16") == [[1.0] * 64]


@pytest.mark.parametrize(("entry", "kept"), [(255.0, 1.0), (256.0, 0.0)])
def test_it_does_so_from_entries_of_256_on(entry: float, kept: float) -> None:
    """256² is the first square beyond 65504; 64 of 255² would be too, were the sum itself stored before its mean."""
    inside = norm_of([entry] + [0.0] * 63, variant="rms", norm_in_format=True)
    assert (held_by(inside, "q_entering", "float16")[0][0] > 0) == bool(kept)
    outside = norm_of([300.0] + [0.0] * 63, variant="rms")
    assert held_by(outside, "q_entering", "float16")[0][:2] == [8.0, 0.0]


def test_a_norm_inside_saturating_8_bits_counts_what_its_squares_and_its_gain_lost() -> None:
    """Each square, or the last product, is cut to 448; what is formed of it fits and would look harmless."""
    e4m3 = STORED.index("float8_e4m3fn")
    inside = norm_of([30.0, 1.0], variant="rms", norm_in_format=True, fp8_cast="saturate")
    assert held_by(inside, "q_sum_of_squares", "float8_e4m3fn") == [[448.0]]
    assert inside["q_sum_of_squares"].beyond[e4m3].all()
    gained = norm_of([400.0] * 64, variant="rms", gamma=10, norm_in_format=True, fp8_cast="saturate")
    assert set(held_by(gained, "q_entering", "float8_e4m3fn")[0]) == {448.0}
    assert gained["q_entering"].beyond[e4m3].all()


def test_what_saturated_on_the_way_is_counted_though_the_last_step_fits() -> None:
    """A running sum cut to 448 takes a last 1 in without a trace; so does q that is scaled after its cast."""
    e4m3 = STORED.index("float8_e4m3fn")
    q, k = torch.ones(1, 1, dtype=torch.float64), torch.tensor([[6.0], [6.0], [0.0]], dtype=torch.float64)
    summed = follow(Inputs(q, k, k), at(1), Choices(max_subtraction=False, fp8_cast="saturate"))
    assert held_by(summed, "exp", "float8_e4m3fn") == [[416.0, 416.0, 1.0]]
    assert held_by(summed, "sum", "float8_e4m3fn") == [[448.0]]
    assert not summed["exp"].beyond[e4m3].any()
    assert summed["sum"].beyond[e4m3].all()
    scaled = norm_of([1000.0, 1.0], placement="on_q", fp8_cast="saturate")
    assert held_by(scaled, "q_entering", "float8_e4m3fn")[0][0] == 320.0
    assert scaled["q_entering"].beyond[e4m3].flatten().tolist() == [True, False]


def test_the_floor_of_an_l2_norm_is_zero_in_float16_and_guards_nothing() -> None:
    stages = norm_of([0.0] * 4, variant="l2", norm_in_format=True)
    assert all(math.isnan(x) for x in held_by(stages, "q_entering", "float16")[0])
    assert held_by(stages, "q_entering", "bfloat16") == [[0.0] * 4]
    assert held_by(norm_of([0.0] * 4, variant="l2"), "q_entering", "float16") == [[0.0] * 4]


def test_keys_above_448_in_an_8_bit_cache_saturate_or_become_nan_and_an_own_scale_saves_them() -> None:
    def key(**choices: Any) -> list[float]:
        return held_by(norm_of([600.0, 3.0], fp8_cache=True, **choices), "k_entering", "float8_e4m3fn")[0]

    assert key(fp8_cast="saturate") == [448.0, 3.0]
    assert key() == pytest.approx([math.nan, 3.0], nan_ok=True)
    assert key(fp8_scale="amax") == pytest.approx([600.0, 3.013393], rel=1e-6)
    stored = norm_of([600.0, 3.0], fp8_cache=True, fp8_cast="saturate")
    (kept,) = held_by(stored, "k_entering", "float8_e4m3fn")
    assert 1 - kept[0] / 600 == pytest.approx(0.2533333, rel=1e-6)
    spike = norm_of([600.0] + [0.0] * 127, fp8_cache=True, variant="rms")
    assert held_by(spike, "k_entering", "float8_e4m3fn")[0][0] == 11  # √128 = 11.3, the most there can be
    stages = norm_of([600.0, 3.0], fp8_cache=True, variant="rms")
    assert max(held_by(stages, "k_entering", "float8_e4m3fn")[0]) == 1.375  # √2, the nearest of 3 mantissa bits


def test_only_the_cache_is_8_bits_wide_if_so_chosen() -> None:
    choices = Choices(fp8_cache=True)
    stages = follow(drawn(Recipe(n_keys=4, d_head=8)), at(1), choices)
    e5m2, bfloat16 = (STORED.index(word) for word in ("float8_e5m2", "bfloat16"))
    for stage in ("q_stored", "k_stored", "q_entering"):
        assert torch.equal(stages[stage].values[e5m2], stages[stage].values[bfloat16])  # type: ignore[index]
    assert not torch.equal(stages["k_entering"].values[e5m2], stages["k_entering"].values[bfloat16])
    kept = stages["k_entering"].values[e5m2]
    assert torch.equal(kept, kept.to(torch.float8_e5m2).double())


def test_a_norm_sums_its_squares_wide_and_rounds_their_sum_once() -> None:
    """As torch sums narrow numbers: 27 of 32 sums of squares leave float8_e5m2; rounded at every step, 26 would."""
    inputs = drawn(Recipe(seed=475, n_keys=32, d_head=16, n_heads=1))
    held = follow(inputs, at(76.94), Choices(variant="l2", norm_in_format=True))["q_sum_of_squares"]
    kind = torch.float8_e5m2
    squares = (76.94 * inputs.q).float().to(kind).float().square().to(kind).float()
    once = squares.sum(-1).to(kind).float()
    step_by_step = torch.zeros(32)
    for channel in squares.mT:
        step_by_step = (step_by_step + channel).to(kind).float()
    assert held.values[STORED.index("float8_e5m2"), 0, :, 0].tolist() == once.tolist()
    assert (int(once.isinf().sum()), int(step_by_step.isinf().sum())) == (27, 26)
