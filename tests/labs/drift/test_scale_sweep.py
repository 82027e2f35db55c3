"""One side of a comparison: the seed table to its printed digits, and what number formats lose, found in NumPy too."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from qkdemo.attention.inputs import Recipe, draw
from qkdemo.attention.variants import Parameters, VariantWord
from qkdemo.floats.formats import FormatWord, first_failure
from qkdemo.labs.drift.scale_sweep import SHOWN_ARMS, SHOWN_BARS, SHOWN_CELLS, Side, _part, sweep
from qkdemo.labs.drift.state import State, blocks, scores_at, visible_keys

DEFAULT = State(
    variant="none",
    parameters=Parameters(),
    recipe=Recipe(),
    format="float64",
    norm_in_format=False,
    causal=False,
    shown=(0, 5, 9),
    device="cpu",
)
SMALL = Recipe(n_heads=2, n_keys=4, d_head=8)


def state(**changes: object) -> State:
    return dataclasses.replace(DEFAULT, **changes)  # type: ignore[arg-type]


def per_scale(side: Side) -> list[str]:
    """The names of what a side holds for each scale."""
    held = {field.name: getattr(side, field.name) for field in dataclasses.fields(side)}
    return [name for name, value in held.items() if isinstance(value, np.ndarray)]


def base(recipe: Recipe = SMALL) -> list[np.ndarray]:
    return [x.numpy() for x in draw(recipe)]


# --- the seed table -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "logit", "top", "entropy", "slope"),
    [
        (1, "2.6", "0.4111", "2.332", "5.39e-02"),
        (2, "10.6", "0.9957", "0.676", "2.14e-02"),
        (4, "42.3", "1.0000", "0.148", "5.48e-03"),
        (8, "169.2", "1.0000", "0.037", "1.36e-03"),
        (16, "676.9", "1.0000", "0.001", "1.74e-05"),
    ],
)
def test_plain_attention_collapses_as_the_seed_table_prints(
    scale: float, logit: str, top: str, entropy: str, slope: str
) -> None:
    assert printed(sweep(DEFAULT, (scale,))) == (logit, top, entropy, slope)


@pytest.mark.parametrize("scale", [1.0, 2.0, 4.0, 8.0, 16.0])
def test_its_l2_twin_stands_still_at_every_scale_as_the_seed_table_prints(scale: float) -> None:
    side = sweep(state(variant="l2"), (scale,))
    assert printed(side) == ("3.3", "0.5237", "2.127", "5.10e-02")


@pytest.mark.parametrize(
    ("g", "top", "entropy"),
    [(1, "0.0844", "2.765"), (5, "0.2297", "2.592"), (20, "0.9252", "1.182"), (50, "0.9999", "0.469")],
)
def test_its_learned_scale_buys_sharpness_back_as_the_seed_table_prints(g: float, top: str, entropy: str) -> None:
    side = sweep(state(variant="l2", parameters=Parameters(g=float(g))), (8.0,))
    assert printed(side)[1:3] == (top, entropy)
    assert side.bound == side.factor == g


def printed(side: Side) -> tuple[str, str, str, str]:
    """Largest |logit|, top weight, entropy and slope at the first scale, to the digits of the seed table."""
    return (
        f"{side.max_abs_logit[0]:.1f}",
        f"{side.top_weight[0]:.4f}",
        f"{side.entropy[0]:.3f}",
        f"{side.softmax_slope[0]:.2e}",
    )


def test_the_seed_table_comes_out_of_plain_numpy_too() -> None:
    """Nothing of ours but the numbers: the two lines that a lecturer would write."""
    generator = np.random.default_rng(0)
    q, k = generator.standard_normal((16, 64)), generator.standard_normal((16, 64))
    for scale in (1.0, 8.0):
        logits = scale * q @ (scale * k).T / 8
        weights = np.exp(logits - logits.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        side = sweep(DEFAULT, (scale,))
        assert side.max_abs_logit[0] == pytest.approx(np.abs(logits).max(), rel=1e-13)
        assert side.top_weight[0] == pytest.approx(weights.max(), rel=1e-13)
        assert side.softmax_slope[0] == pytest.approx((weights * (1 - weights)).mean(), rel=1e-12)
        entropy = -(weights * np.log(np.maximum(weights, 1e-320))).sum(1).mean()
        assert side.entropy[0] == pytest.approx(entropy, rel=1e-12)


# --- the sweep ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["float64", "float16"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("variant", ["none", "rms", "full_width"])
def test_a_sweep_shows_at_each_scale_what_that_scale_shows_alone(
    variant: VariantWord, causal: bool, format: FormatWord
) -> None:
    swept = state(variant=variant, recipe=SMALL, causal=causal, format=format, shown=(1, 2, 3))
    scales = (0.01, 1.0, 30.0, 1000.0)
    together = sweep(swept, scales)
    for at, scale in enumerate(scales):
        alone = sweep(swept, (scale,))
        for name in per_scale(alone):
            # float16 logits may differ by a step where float32 sums were taken in another order
            close = {"rtol": 1e-12, "atol": 1e-300} if format == "float64" else {"rtol": 0.02, "atol": 1e-7}
            np.testing.assert_allclose(getattr(together, name)[at], getattr(alone, name)[0], **close, err_msg=name)


@given(st.lists(st.floats(0.01, 1000), min_size=1, max_size=70), st.integers(1, 4), st.integers(2, 256))
def test_blocks_hold_every_value_once_and_in_order(values: list[float], n_heads: int, n_keys: int) -> None:
    made = blocks(values, Recipe(n_heads=n_heads, n_keys=n_keys))
    assert torch.cat(list(made)).tolist() == values
    assert all(len(block) == 1 or len(block) * n_heads * n_keys**2 <= 2**17 for block in made)


def test_a_sweep_in_several_blocks_is_one_sweep() -> None:
    large = state(recipe=Recipe(n_keys=128, d_head=4), shown=(0, 127, 0))  # eight scales a block
    scales = tuple(float(x) for x in range(1, 20))
    assert len(blocks(scales, large.recipe)) == 3
    side = sweep(large, scales)
    assert side.max_abs_logit == pytest.approx(side.max_abs_logit[0] * np.array(scales) ** 2, rel=1e-12)


def test_equal_sides_are_computed_once() -> None:
    assert sweep(state(), (1.0, 2.0)) is sweep(state(recipe=Recipe()), (1.0, 2.0))


@given(st.integers(0, 50), st.floats(1, 1000))
@settings(max_examples=30)
def test_plain_logits_grow_with_the_square_and_lengths_with_the_scale(seed: int, scale: float) -> None:
    side = sweep(state(recipe=dataclasses.replace(SMALL, seed=seed), shown=(0, 1, 2)), (1.0, scale))
    assert side.max_abs_logit[1] == pytest.approx(side.max_abs_logit[0] * scale**2, rel=1e-12)
    assert side.logit[1] == pytest.approx(side.logit[0] * scale**2, rel=1e-12)
    assert side.q_norm[1] == pytest.approx(side.q_norm[0] * scale, rel=1e-12)
    assert side.cosine[1] == pytest.approx(side.cosine[0], rel=1e-12)
    assert side.entropy[1] <= side.entropy[0] * (1 + 1e-12)


@pytest.mark.parametrize("variant", ["none", "l2", "rms", "cosine", "full_width"])
def test_the_shown_logit_is_length_times_length_times_cosine_times_factor(variant: VariantWord) -> None:
    side = sweep(state(variant=variant, recipe=SMALL, shown=(1, 2, 3)), (0.5, 4.0))
    np.testing.assert_allclose(side.q_norm * side.k_norm * side.cosine * side.factor, side.logit, rtol=1e-12)
    if variant in ("l2", "cosine"):
        assert side.q_norm == pytest.approx([1, 1], rel=1e-12)


def test_what_is_shown_closely_is_that_head_query_and_key() -> None:
    side = sweep(state(recipe=SMALL, shown=(1, 2, 3)), (2.0,))
    q, k = (2 * x for x in base())
    assert side.q_norm[0] == pytest.approx(np.linalg.norm(q[1, 2]), rel=1e-13)
    assert side.k_norm[0] == pytest.approx(np.linalg.norm(k[1, 3]), rel=1e-13)
    assert side.logit[0] == pytest.approx(q[1, 2] @ k[1, 3] / math.sqrt(8), rel=1e-12)
    assert side.arms[0] == pytest.approx(np.linalg.norm(k[1], axis=-1), rel=1e-6)
    cosines = k[1] @ q[1, 2] / (np.linalg.norm(k[1], axis=-1) * np.linalg.norm(q[1, 2]))
    assert side.angles == pytest.approx(np.arccos(cosines)[None], rel=1e-12)
    weights = np.exp(q[1] @ k[1].T / math.sqrt(8))
    weights /= weights.sum(-1, keepdims=True)
    assert side.weights[0] == pytest.approx(weights, rel=1e-6)  # float32: it is drawn
    assert side.row[0] == pytest.approx(weights[2], rel=1e-6)


def test_a_hidden_key_is_told_apart_from_an_unattended_one() -> None:
    side = sweep(state(recipe=SMALL, causal=True, shown=(0, 1, 0)), (1000.0,))
    hidden = np.triu(np.ones((4, 4), dtype=bool), 1)
    assert (side.weights[0][hidden] == -1).all()
    assert (side.weights[0][~hidden] >= 0).all()
    assert side.row[0, 2:].tolist() == [-1, -1]


def test_large_matrices_are_pooled_so_that_no_large_weight_is_lost() -> None:
    recipe = Recipe(n_keys=200, d_head=4)
    side = sweep(state(recipe=recipe, shown=(0, 199, 0)), (3.0,))
    assert max(side.weights[0].shape) <= SHOWN_CELLS
    assert len(side.row[0]) <= SHOWN_BARS
    assert len(side.arms[0]) == len(side.angles[0]) == SHOWN_ARMS
    q, k = (3 * x[0] for x in base(recipe))
    logits = q @ k.T / 2
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    cell = math.ceil(200 / SHOWN_CELLS)
    expected = [[weights[i : i + cell, j : j + cell].max() for j in range(0, 200, cell)] for i in range(0, 200, cell)]
    assert side.weights[0] == pytest.approx(np.array(expected), rel=1e-5)
    bar = math.ceil(200 / SHOWN_BARS)
    assert side.row[0] == pytest.approx([weights[199, j : j + bar].max() for j in range(0, 200, bar)], rel=1e-5)


def test_a_pooled_cell_shows_an_undefined_row() -> None:
    side = sweep(state(recipe=Recipe(n_keys=64, d_head=64), format="float16", shown=(0, 0, 0)), (400.0,))
    assert np.isnan(side.weights[0]).all()


def test_the_mask_is_causal_or_absent() -> None:
    assert visible_keys(state()) is None
    mask = visible_keys(state(causal=True, recipe=SMALL))
    assert mask is not None
    assert mask.tolist() == np.tril(np.ones((4, 4), dtype=bool)).tolist()


def test_parameters_can_be_swept_in_place_of_the_states_own() -> None:
    made = scores_at(state(variant="rms"), torch.tensor([1.0]), Parameters(gamma_q=2.0, gamma_k=3.0))
    alone = scores_at(state(variant="rms"), torch.tensor([1.0]))
    torch.testing.assert_close(made.logits, 6 * alone.logits, rtol=1e-12, atol=0)


# --- number formats -----------------------------------------------------------------------------------------------


def lost_in_numpy(scale: float) -> int:
    """How many of the default draw's 256 raw products float16 cannot hold."""
    q, k = ((scale * x[0]).astype(np.float16).astype(np.float32) for x in base(Recipe()))
    with np.errstate(over="ignore"):
        return int(np.isinf((q @ k.T).astype(np.float16)).sum())


def test_at_scale_400_float16_loses_242_of_256_products_and_every_row() -> None:
    side = sweep(state(format="float16"), (400.0,))
    assert side.raw_lost[0] * 256 == lost_in_numpy(400.0) == 242
    assert side.undefined_rows[0] == 16
    assert side.max_abs_logit[0] == math.inf
    assert all(math.isnan(x[0]) for x in (side.entropy, side.top_weight, side.softmax_slope, side.entropy_fraction))


def test_the_first_product_leaves_float16_between_two_scales_of_the_sweep_where_it_is_bisected() -> None:
    side = sweep(state(format="float16"), (10.0, 50.0, 63.0, 400.0))
    assert side.first_raw_loss == pytest.approx(55.65, abs=0.01)
    assert side.first_raw_loss == pytest.approx(first_failure(lambda s: lost_in_numpy(s) > 0, 10, 400), rel=1e-5)
    assert side.first_logit_loss == side.first_raw_loss  # what is lost raw cannot be scaled back
    assert sweep(state(format="float16"), (400.0,)).first_raw_loss == pytest.approx(side.first_raw_loss, rel=1e-5)


@pytest.mark.parametrize("format", ["float64", "float32", "bfloat16"])
def test_the_wider_ranges_lose_nothing_within_the_dials_reach(format: FormatWord) -> None:
    side = sweep(state(format=format), (1.0, 1000.0))
    assert side.raw_lost.tolist() == side.logit_lost.tolist() == [0, 0]
    assert side.first_raw_loss == side.first_logit_loss == math.inf
    assert side.undefined_rows.tolist() == [0, 0]


def test_causal_shares_are_of_visible_products() -> None:
    side = sweep(state(format="float16", causal=True), (400.0,))
    q, k = ((400 * x[0]).astype(np.float16).astype(np.float32) for x in base(Recipe()))
    seen = np.tril(np.ones((16, 16), dtype=bool))
    with np.errstate(over="ignore"):
        lost = np.isinf((q @ k.T).astype(np.float16))[seen]
    assert side.raw_lost[0] == pytest.approx(lost.mean(), rel=1e-14)


def test_a_norm_inside_float16_zeroes_its_first_rows_near_scale_28_and_then_looks_healthy() -> None:
    inside = state(variant="rms", format="float16", norm_in_format=True)

    def zeroed(scale: float) -> list[bool]:
        made = scores_at(inside, torch.tensor([scale], dtype=torch.float64))
        return [bool((x == 0).all(-1).any()) for x in (made.q, made.k)]

    first_query = first_failure(lambda scale: zeroed(scale)[0], 20, 40, 1e-5)
    first_key = first_failure(lambda scale: zeroed(scale)[1], 20, 40, 1e-5)
    assert 27.9 < first_query < 28.0
    assert 27.7 < first_key < 27.8
    for first, x in zip((first_query, first_key), base(Recipe()), strict=True):
        # where the longest one's sum of squares leaves float16; its squares are rounded before they are summed
        assert first == pytest.approx(math.sqrt(65520 / (x**2).sum(-1).max()), rel=1e-3)
    assert [sweep(inside, (scale,)).zeroed_rows[0] for scale in (27.7, 27.8, 28.0)] == [0, 1, 2]
    side = sweep(inside, (400.0,))
    assert side.zeroed_rows[0] == 32
    assert side.entropy[0] == pytest.approx(math.log(16), rel=1e-6)
    assert (side.undefined_rows[0], side.max_abs_logit[0], side.raw_lost[0]) == (0, 0, 0)


def test_a_norm_in_float32_zeroes_nothing_whatever_the_format() -> None:
    for word in ("float16", "bfloat16", "float64"):
        side = sweep(state(variant="rms", format=word), (0.01, 400.0, 1000.0))
        assert side.zeroed_rows.tolist() == [0, 0, 0]


def test_the_norm_is_taken_of_what_was_stored_and_its_result_is_stored_again() -> None:
    made = scores_at(state(variant="l2", format="float16", recipe=SMALL), torch.tensor([3.0], dtype=torch.float64))
    for found, x in zip((made.q, made.k), base(), strict=True):
        stored = (3 * x).astype(np.float16).astype(np.float32)
        unit = stored / np.linalg.norm(stored, axis=-1, keepdims=True)
        # one float16 step, and only where float32 sums were taken in another order
        np.testing.assert_allclose(found[0].numpy(), unit.astype(np.float16).astype(np.float32), rtol=2**-10)
        assert (found[0].numpy() == unit.astype(np.float16)).mean() > 0.95


def test_a_cap_makes_lost_products_finite_again() -> None:
    side = sweep(state(variant="softcap", format="float16"), (10.0, 400.0))
    assert side.first_raw_loss == pytest.approx(55.65, abs=0.01)
    assert (side.first_logit_loss, side.logit_lost.tolist()) == (math.inf, [0, 0])


@pytest.mark.parametrize("variant", ["l2", "rms", "layernorm", "cosine", "rms_softcap", "full_width"])
def test_a_normalised_side_moves_through_a_storm_of_scales_by_rounding_alone(variant: VariantWord) -> None:
    """float16 keeps 11 bits of q and k; the norm is taken of what was stored."""
    wide, narrow = (sweep(state(variant=variant, format=word), (8.0, 1000.0)) for word in ("float64", "float16"))
    assert narrow.max_abs_logit == pytest.approx(wide.max_abs_logit, rel=4e-3)
    assert wide.entropy[0] == pytest.approx(wide.entropy[1], rel=1e-6)
    assert narrow.undefined_rows.tolist() == [0, 0]


@pytest.mark.parametrize("format", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("variant", ["l2", "rms", "cosine", "softcap", "full_width"])
def test_a_narrow_format_may_round_over_the_bound_by_a_few_steps_and_no_more(
    variant: VariantWord, format: FormatWord
) -> None:
    """The bound is proven for exact arithmetic; aligned vectors reach it, and rounding q, k and s may add to it."""
    steps = {"float32": 16 * 2.0**-23, "bfloat16": 2 * 2.0**-7, "float16": 2 * 2.0**-10}[format]  # sums are float32's
    recipe = Recipe(n_keys=32, d_head=16, alignment=1.0)
    side = sweep(state(variant=variant, recipe=recipe, format=format, shown=(0, 0, 0)), (1.0, 30.0))
    assert side.max_abs_logit.max() <= side.bound * (1 + steps)
    assert side.max_abs_logit.max() >= side.bound * (1 - steps)


def test_a_device_without_float64_leaves_that_format_to_the_processor() -> None:
    assert state(device="mps").runs_on == "cpu"
    assert state(device="mps", format="float32").runs_on == "mps"
    assert state(device="cuda").runs_on == "cuda"


def test_dynamic_tanh_turns_q_and_k_and_the_angles_are_those_of_each_scale() -> None:
    parameters = Parameters(alpha_q=0.7, alpha_k=0.7)
    side = sweep(state(variant="dyt", parameters=parameters, recipe=SMALL, shown=(0, 0, 1)), (0.01, 1.0, 100.0))
    for at, scale in enumerate((0.01, 1.0, 100.0)):
        q, k = (np.tanh(0.7 * scale * x[0]) for x in base())
        cosines = k @ q[0] / (np.linalg.norm(k, axis=-1) * np.linalg.norm(q[0]))
        assert side.angles[at] == pytest.approx(np.arccos(cosines), rel=1e-9)
    assert np.ptp(side.angles, axis=0).max() > 0.05
    assert (
        np.ptp(sweep(state(variant="rms", recipe=SMALL, shown=(0, 0, 1)), (0.01, 1.0, 100.0)).angles, axis=0).max() == 0
    )


def test_what_is_kept_of_some_scales_is_no_view_of_all_their_logits() -> None:
    of = state(causal=True)
    kept = _part(of, torch.tensor([1.0, 8.0], dtype=torch.float64), visible_keys(of))
    assert all(array.flags.owndata for array in kept.values())
