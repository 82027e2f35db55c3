"""Measures: entropy, slope and weights against exact arithmetic, torch and hostile rows."""

import math
from decimal import Decimal, localcontext

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from qkdemo.attention.inputs import causal_mask
from qkdemo.attention.measures import Measures, attend

INF, NAN = math.inf, math.nan
MEANS = ("top_weight", "entropy", "entropy_fraction", "softmax_slope")
LOGITS = st.floats(-400, 400)
ANY = st.floats(-1e300, 1e300) | st.sampled_from([INF, -INF, NAN])


def rows(*values: list[float], dtype: torch.dtype = torch.float64) -> Tensor:
    """One head with these rows of logits."""
    return torch.tensor([values], dtype=dtype)


def measured(*values: list[float], visible: list[list[bool]] | None = None) -> Measures:
    return attend(rows(*values), None if visible is None else torch.tensor(visible))[1]


def exact_row(logits: list[float]) -> tuple[list[Decimal], Decimal, Decimal]:
    """Weights, entropy and slope of one row to thirty digits; the slope is its mean p(1 − p)."""
    with localcontext() as context:
        context.prec = 40 + int(max(logits) - min(logits))  # e⁻ᵍ beside 1 needs g / ln 10 digits
        shifted = [Decimal(x) - Decimal(max(logits)) for x in logits]
        total = sum(x.exp() for x in shifted)
        weights = [x.exp() / total for x in shifted]
        # 1 − p as the sum of the others: nothing cancels
        others = [sum((w for at, w in enumerate(weights) if at != j), Decimal(0)) for j in range(len(weights))]
        entropy = sum((w * (total.ln() - x) for w, x in zip(weights, shifted, strict=True)), Decimal(0))
        slope = sum((w * o for w, o in zip(weights, others, strict=True)), Decimal(0)) / len(weights)
        return weights, entropy, slope


def masks(queries: int, keys: int) -> st.SearchStrategy[list[list[bool]]]:
    return st.lists(st.lists(st.booleans(), min_size=keys, max_size=keys), min_size=queries, max_size=queries)


# --- what is right ------------------------------------------------------------------------------------------------


@given(st.lists(LOGITS, min_size=1, max_size=6))
def test_one_row_is_right_to_twelve_digits_however_small(logits: list[float]) -> None:
    weights, entropy, slope = exact_row(logits)
    got_weights, got = attend(rows(logits))
    # 1e-12: exp of a difference of up to 800 keeps 16 − 3 digits; below 1e-290 float64 itself thins out
    close = {"rel": 1e-12, "abs": 1e-290}
    assert got_weights.flatten().tolist() == pytest.approx([float(w) for w in weights], **close)
    assert got.entropy.item() == pytest.approx(float(entropy), **close)
    assert got.softmax_slope.item() == pytest.approx(float(slope), **close)
    assert got.top_weight.item() == pytest.approx(float(max(weights)), rel=1e-15)
    assert got.max_abs_logit.item() == max(abs(x) for x in logits)


@given(st.floats(50, 700))
def test_two_keys_far_apart_keep_entropy_and_slope_in_full_precision(gap: float) -> None:
    """H = ln(1 + e⁻ᵍ) + g·e⁻ᵍ/(1 + e⁻ᵍ): from g ≈ 37 on the larger weight is 1 in float64, and H is not 0."""
    got = measured([gap, 0.0])
    small = math.exp(-gap)
    assert got.top_weight.item() == 1.0
    assert got.entropy.item() == pytest.approx(math.log1p(small) + gap * small / (1 + small), rel=1e-13)
    assert got.softmax_slope.item() == pytest.approx(small / (1 + small) ** 2, rel=1e-13)
    assert got.entropy.item() > 0


@given(st.floats(10, 80))
def test_float32_logits_keep_float32_precision_in_small_entropies(gap: float) -> None:
    gap = torch.tensor(gap, dtype=torch.float32).item()
    got = attend(rows([0.0, gap], dtype=torch.float32))[1]
    small = math.exp(-gap)
    assert got.entropy.item() == pytest.approx(math.log1p(small) + gap * small / (1 + small), rel=1e-4)


@given(st.integers(1, 40), st.floats(-1e6, 1e6))
def test_equal_logits_give_the_most_entropy_there_is(n: int, level: float) -> None:
    got = measured([level] * n)
    assert got.entropy.item() == pytest.approx(math.log(n), rel=1e-14)
    assert got.top_weight.item() == pytest.approx(1 / n, rel=1e-15)
    assert got.softmax_slope.item() == pytest.approx((n - 1) / n**2, rel=1e-14)
    if n > 1:
        assert got.entropy_fraction.item() == pytest.approx(1, rel=1e-14)


@given(st.integers(0, 99), st.booleans(), st.floats(0.01, 30))
def test_weights_are_those_of_torchs_attention(seed: int, causal: bool, size: float) -> None:
    q, k = torch.randn(2, 2, 5, 8, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * size
    seen = functional.scaled_dot_product_attention(
        q, k, torch.eye(5, dtype=torch.float64).expand(2, 5, 5), is_causal=causal
    )
    weights, _ = attend(q @ k.mT / 8**0.5, causal_mask(5) if causal else None)
    torch.testing.assert_close(weights, seen, rtol=1e-9, atol=1e-13)


@given(st.lists(st.floats(-40, 40), min_size=2, max_size=5))
def test_the_slope_is_the_mean_diagonal_of_the_softmax_jacobian(logits: list[float]) -> None:
    jacobian = torch.autograd.functional.jacobian(
        lambda x: torch.softmax(x, -1), torch.tensor(logits, dtype=torch.float64)
    )
    got = measured(logits).softmax_slope.item()
    assert got == pytest.approx(jacobian.diagonal().mean().item(), rel=1e-9, abs=1e-15)  # autograd loses 1 − p


def test_means_are_over_rows_and_heads_and_the_slope_is_over_visible_pairs() -> None:
    """By hand: a causal head of two rows, once even and once decided."""
    logits = torch.tensor([[[5.0, 9.0], [0.0, 0.0]], [[5.0, 9.0], [100.0, 0.0]]], dtype=torch.float64)
    got = attend(logits, causal_mask(2))[1]
    assert got.entropy.item() == pytest.approx(math.log(2) / 4, rel=1e-12)  # four rows, one of them ln 2
    assert got.entropy_fraction.item() == pytest.approx(0.5, rel=1e-12)  # two rows see two keys
    assert got.softmax_slope.item() == pytest.approx((0.25 + 0.25) / 6, rel=1e-12)  # six visible pairs
    assert got.top_weight.item() == 1.0
    assert got.max_abs_logit.item() == 100.0  # the hidden 9 does not count, nor would a hidden 1000


# --- what always holds --------------------------------------------------------------------------------------------


@given(st.lists(st.lists(ANY, min_size=4, max_size=4), min_size=3, max_size=3), st.none() | masks(3, 4))
def test_whatever_comes_in_what_comes_out_is_in_range(
    logits: list[list[float]], visible: list[list[bool]] | None
) -> None:
    got = measured(*logits, visible=visible)
    undefined, empty = got.undefined_rows.item(), got.empty_rows.item()
    defined = 3 - undefined - empty
    assert 0 <= defined <= 3
    assert all(getattr(got, name).isnan().item() == (defined == 0) for name in MEANS if name != "entropy_fraction")
    step = 4 * 2.0**-52
    if defined:
        assert 0 <= got.entropy <= math.log(4) + step
        assert 0.25 <= got.top_weight <= 1
        assert 0 <= got.softmax_slope <= 0.25
        assert math.copysign(1, got.entropy.item()) == 1  # never −0
    if not got.entropy_fraction.isnan():
        assert 0 <= got.entropy_fraction <= 1 + step
    assert got.max_abs_logit.isnan() or got.max_abs_logit >= 0


@given(st.lists(st.lists(ANY, min_size=4, max_size=4), min_size=3, max_size=3), st.none() | masks(3, 4))
def test_weights_of_a_row_sum_to_one_or_are_nan_or_zero(
    logits: list[list[float]], visible: list[list[bool]] | None
) -> None:
    """Which of the three is decided by what the row may see, by the plain definition."""
    mask = [[True] * 4] * 3 if visible is None else visible
    weights, got = attend(rows(*logits), None if visible is None else torch.tensor(visible))
    undefined = empty = 0
    for row, seen, out in zip(logits, mask, weights[0], strict=True):
        kept = [x for x, may in zip(row, seen, strict=True) if may]
        if not kept:
            empty += 1
            assert out.tolist() == [0] * 4
        elif any(math.isnan(x) for x in kept) or math.isinf(max(kept)):
            undefined += 1
            assert all(x.isnan() for x, may in zip(out, seen, strict=True) if may)
        else:
            assert out.sum().item() == pytest.approx(1, rel=1e-14)
            assert all(x == 0 for x, may in zip(out, seen, strict=True) if not may)
    assert (got.undefined_rows.item(), got.empty_rows.item()) == (undefined, empty)


@given(
    st.lists(st.lists(LOGITS, min_size=4, max_size=4), min_size=3, max_size=3),
    st.lists(ANY, min_size=12, max_size=12),
    masks(3, 4),
)
def test_what_a_query_may_not_see_changes_nothing(
    logits: list[list[float]], hidden: list[float], visible: list[list[bool]]
) -> None:
    mask = torch.tensor(visible)
    plain = rows(*logits)
    other = torch.where(mask, plain, torch.tensor(hidden, dtype=torch.float64).reshape(3, 4))
    (weights, before), (weights_after, after) = attend(plain, mask), attend(other, mask)
    torch.testing.assert_close(weights_after, weights, rtol=0, atol=0, equal_nan=True)
    for name in Measures.__dataclass_fields__:
        torch.testing.assert_close(getattr(after, name), getattr(before, name), rtol=0, atol=0, equal_nan=True)


@given(st.lists(LOGITS, min_size=3, max_size=3), st.integers(0, 2))
def test_a_hidden_key_might_as_well_not_be_there(logits: list[float], where: int) -> None:
    short = measured(logits)
    long_row = [*logits[:where], 123.0, *logits[where:]]
    masked = measured(long_row, visible=[[at != where for at in range(4)]])
    for name in Measures.__dataclass_fields__:
        assert getattr(masked, name).item() == pytest.approx(getattr(short, name).item(), rel=1e-14)


@given(st.lists(LOGITS, min_size=4, max_size=4), st.permutations(range(4)), st.integers(-512, 512))
def test_neither_the_order_of_keys_nor_a_common_shift_matters(
    logits: list[float], order: list[int], shift: int
) -> None:
    logits = [round(x * 64) / 64 for x in logits]  # so that shifting by a whole number is exact
    before, after = measured(logits), measured([logits[at] + shift for at in order])
    for name in MEANS:
        assert getattr(after, name).item() == pytest.approx(getattr(before, name).item(), rel=1e-12, abs=1e-300)


@given(st.lists(LOGITS, min_size=4, max_size=4), st.floats(1.1, 10))
def test_larger_logits_never_mean_more_entropy(logits: list[float], factor: float) -> None:
    small, large = measured(logits), measured([x * factor for x in logits])
    assert large.entropy <= small.entropy * (1 + 1e-12) + 1e-300
    assert large.top_weight >= small.top_weight * (1 - 1e-12)


@given(st.integers(0, 99), st.booleans())
def test_one_batch_element_knows_nothing_of_the_next(seed: int, causal: bool) -> None:
    logits = torch.randn(3, 2, 4, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 20
    logits[1, 0, 2] = INF
    visible = causal_mask(4) if causal else None
    weights, got = attend(logits, visible)
    for at in range(3):
        alone_weights, alone = attend(logits[at], visible)
        torch.testing.assert_close(weights[at], alone_weights, equal_nan=True)
        for name in Measures.__dataclass_fields__:
            torch.testing.assert_close(getattr(got, name)[at], getattr(alone, name), equal_nan=True)


@pytest.mark.parametrize("visible", [None, causal_mask(3)])
def test_measuring_leaves_the_logits_as_they_were(visible: Tensor | None) -> None:
    logits = torch.tensor([[[1.0, NAN, INF], [0.0, 2.0, -3.0], [-INF, 1.0, 0.0]]])
    kept = logits.clone()
    attend(logits, visible)
    torch.testing.assert_close(logits, kept, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_measures_keep_the_dtype_of_the_logits(dtype: torch.dtype) -> None:
    weights, got = attend(torch.zeros(1, 2, 2, dtype=dtype))
    assert weights.dtype == got.entropy.dtype == got.softmax_slope.dtype == dtype


# --- known cases --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ([INF, 0.0, 0.0], "one infinite logit: ∞ − ∞"),
        ([INF, INF, 0.0], "two of them"),
        ([-INF, -INF, -INF], "nothing above −∞"),
        ([NAN, 0.0, 0.0], "no number"),
        ([0.0, 5.0, NAN], "no number, not the first"),
        ([INF, -INF, NAN], "everything at once"),
    ],
)
def test_an_undefined_row_is_counted_and_spoils_no_mean(row: list[float], why: str) -> None:
    weights, got = attend(rows([0.0, 0.0, 0.0], row))
    assert weights[0, 1].isnan().all(), why
    assert (got.undefined_rows.item(), got.empty_rows.item()) == (1, 0)
    assert got.entropy.item() == pytest.approx(math.log(3), rel=1e-14)
    assert got.entropy_fraction.item() == pytest.approx(1, rel=1e-14)
    assert got.softmax_slope.item() == pytest.approx(2 / 9, rel=1e-14)
    assert got.top_weight.item() == pytest.approx(1 / 3, rel=1e-15)
    sizes = [abs(x) for x in (0.0, *row) if not math.isnan(x)]
    assert got.max_abs_logit.item() == max(sizes)  # an overflow is shown as ∞, a NaN hides none


@pytest.mark.parametrize("bad", [INF, -INF, NAN])
def test_a_lone_key_with_an_undefined_logit_has_no_weight_of_one(bad: float) -> None:
    weights, got = attend(rows([bad]))
    assert weights.isnan().all()
    assert got.undefined_rows.item() == 1


def test_minus_infinity_beside_a_finite_logit_is_a_weight_of_zero_and_nothing_else() -> None:
    """0 · ln 0 is 0, and an additive mask is no overflow."""
    weights, got = attend(rows([0.0, -INF], [3.0, 3.0 - 1e4]))
    assert weights.tolist() == [[[1, 0], [1, 0]]]
    assert (got.undefined_rows.item(), got.entropy.item(), got.softmax_slope.item()) == (0, 0, 0)
    half = attend(rows([0.0, 0.0, -INF]))[1]
    assert half.entropy.item() == pytest.approx(math.log(2), rel=1e-15)


def test_the_widest_gap_of_float16_has_an_entropy_of_zero_and_no_nan() -> None:
    got = attend(rows([65504.0, -65504.0], dtype=torch.float32))[1]
    assert (got.entropy.item(), got.top_weight.item(), got.softmax_slope.item()) == (0, 1, 0)


def test_nothing_is_added_to_weights_so_long_rows_are_not_biased() -> None:
    """p + 1e-8 before the logarithm would report 0.024 nats here, where the truth is 0."""
    logits = torch.full((1, 1, 131072), -1e4, dtype=torch.float64)
    logits[..., 7] = 0
    assert attend(logits)[1].entropy.item() == 0


def test_a_row_without_keys_is_counted_has_no_weights_and_stays_out_of_every_mean() -> None:
    """Neither NaN in the summary, nor ln 4 from an even row that nobody asked for."""
    got = measured([0.0] * 4, [0.0, -INF, 7.0, NAN], visible=[[True] * 4, [False] * 4])
    assert (got.empty_rows.item(), got.undefined_rows.item()) == (1, 0)
    assert got.entropy.item() == pytest.approx(math.log(4), rel=1e-15)
    assert got.max_abs_logit.item() == 0
    weights, _ = attend(rows([0.0] * 4, [0.0] * 4), torch.tensor([[True] * 4, [False] * 4]))
    assert weights[0, 1].tolist() == [0, 0, 0, 0]


def test_rows_without_keys_in_every_head_are_each_counted() -> None:
    visible = torch.tensor([[True, True], [False, False]])
    assert attend(torch.zeros(3, 2, 2), visible)[1].empty_rows.item() == 3


def test_nothing_but_rows_without_keys_measures_nothing() -> None:
    weights, got = attend(torch.zeros(1, 2, 2), torch.zeros(2, 2, dtype=torch.bool))
    assert weights.abs().max() == 0
    assert (got.empty_rows.item(), got.undefined_rows.item()) == (2, 0)
    assert all(getattr(got, name).isnan() for name in (*MEANS, "max_abs_logit"))


@pytest.mark.parametrize("logit", [0.0, -679.0, 1e300])
def test_one_key_decides_nothing(logit: float) -> None:
    """Weight 1, entropy 0, slope 0 for any logit; its fraction of ln 1 is no number, and no collapse."""
    weights, got = attend(rows([logit]))
    assert weights.item() == 1
    assert (got.entropy.item(), got.softmax_slope.item(), got.undefined_rows.item()) == (0, 0, 0)
    assert got.entropy_fraction.isnan()


def test_the_first_causal_row_counts_for_entropy_and_not_for_its_fraction() -> None:
    got = attend(torch.zeros(1, 3, 3, dtype=torch.float64), causal_mask(3))[1]
    assert got.entropy_fraction.item() == pytest.approx(1, rel=1e-14)
    assert got.entropy.item() == pytest.approx((math.log(2) + math.log(3)) / 3, rel=1e-14)


def test_the_first_causal_row_is_no_largest_weight_while_another_row_can_choose() -> None:
    even = attend(torch.zeros(1, 3, 3, dtype=torch.float64), causal_mask(3))[1]
    assert even.top_weight.item() == pytest.approx(0.5, rel=1e-15)
    undefined = torch.tensor([[[0.0, 0.0], [INF, 0.0]]], dtype=torch.float64)
    assert attend(undefined, causal_mask(2))[1].top_weight.item() == 1  # nothing else is left
    assert attend(undefined.flip(-2), causal_mask(2).flip(-2))[1].top_weight.item() == 1


def test_a_masked_key_that_overflowed_is_not_seen() -> None:
    """A cure that writes 0 for −∞ would hand it nearly all the weight."""
    weights, got = attend(rows([-40.0, -INF], [-40.0, -40.0]), torch.tensor([[True, False], [True, True]]))
    assert weights[0, 0].tolist() == [1, 0]
    assert got.max_abs_logit.item() == 40
    assert got.undefined_rows.item() == 0


def test_unit_vectors_with_the_root_of_the_width_left_in_cannot_choose() -> None:
    """One key at +1/8, 127 at −1/8: the best case of a cosine divided by √64 is 1.0 %, where even is 0.78 %."""
    got = measured([0.125] + [-0.125] * 127)
    assert got.top_weight.item() == pytest.approx(0.01000924, rel=1e-6)
    assert got.entropy.item() == pytest.approx(4.851744, rel=1e-7)


@pytest.mark.parametrize(("scale", "weight"), [(64**-0.5, 0.9996646), (512**-0.5, 0.9441928)])
def test_a_wrong_scale_shows_in_the_top_weight(scale: float, weight: float) -> None:
    assert measured([64 * scale, 0.0]).top_weight.item() == pytest.approx(weight, rel=1e-6)
