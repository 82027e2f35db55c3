"""Number formats: rounding against NumPy, ml_dtypes and exact fractions; bisection against known thresholds."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkdemo.floats.formats import FORMATS, FormatWord, exact, first_failure, rounded

NUMPY = {"float64": np.float64, "float32": np.float32, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
DIGITS = {"float64": 53, "float32": 24, "bfloat16": 8, "float16": 11}  # of the significand, binary
LARGEST = {"float64": 1.7976931348623157e308, "float32": (2 - 2**-23) * 2.0**127, "bfloat16": (2 - 2**-7) * 2.0**127}
NARROW: list[FormatWord] = ["bfloat16", "float16"]


def stored(x: float, word: FormatWord, dtype: torch.dtype = torch.float32) -> float:
    return rounded(torch.tensor([x], dtype=dtype), FORMATS[word]).item()


def every_value(word: FormatWord) -> np.ndarray:
    """All 65 536 values of a 16-bit format, as float32."""
    with np.errstate(invalid="ignore"):
        return np.arange(2**16, dtype=np.uint16).view(NUMPY[word]).astype(np.float32)


def test_formats_are_known_by_their_own_words() -> None:
    assert list(FORMATS) == ["float64", "float32", "bfloat16", "float16"]
    assert all(FORMATS[word].word == word for word in FORMATS)


@pytest.mark.parametrize("word", list(FORMATS))
def test_the_largest_number_stays_and_the_next_step_up_is_infinite(word: FormatWord) -> None:
    kind = FORMATS[word]
    assert kind.largest == LARGEST.get(word, 65504.0)
    assert stored(kind.largest, word, kind.working_dtype) == kind.largest
    step = kind.largest * 2.0 ** (1 - DIGITS[word])
    assert stored(kind.largest + step, word, kind.working_dtype) == math.inf
    assert stored(-kind.largest - step, word, kind.working_dtype) == -math.inf


@pytest.mark.parametrize(
    ("word", "dtype"),
    [
        ("float64", torch.float64),
        ("float32", torch.float32),
        ("bfloat16", torch.float32),
        ("float16", torch.float32),
    ],
)
def test_values_come_back_in_a_dtype_wide_enough_to_compute_on(word: FormatWord, dtype: torch.dtype) -> None:
    assert FORMATS[word].working_dtype == dtype
    assert rounded(torch.zeros(3, dtype=torch.float64), FORMATS[word]).dtype == dtype


@pytest.mark.parametrize("word", NARROW)
def test_every_value_of_a_narrow_format_survives_rounding_to_it(word: FormatWord) -> None:
    values = every_value(word)
    np.testing.assert_array_equal(rounded(torch.from_numpy(values), FORMATS[word]).numpy(), values)


@pytest.mark.parametrize("word", NARROW)
def test_halfway_between_neighbours_goes_to_the_even_one_and_beside_it_to_the_nearer(word: FormatWord) -> None:
    values = every_value(word)
    values = np.unique(values[np.isfinite(values) & (values > 0)])
    low, high = values[:-1], values[1:]
    middle = (low.astype(np.float64) + high) / 2  # exact in float32 too: one digit more
    even_is_low = np.arange(1, len(values)) % 2 == 0  # positive values and their bit patterns count up together
    tie = rounded(torch.from_numpy(middle.astype(np.float32)), FORMATS[word]).numpy()
    np.testing.assert_array_equal(tie, np.where(even_is_low, low, high))
    above = np.nextafter(middle.astype(np.float32), np.float32(np.inf))
    below = np.nextafter(middle.astype(np.float32), np.float32(0))
    np.testing.assert_array_equal(rounded(torch.from_numpy(above), FORMATS[word]).numpy(), high)
    np.testing.assert_array_equal(rounded(torch.from_numpy(below), FORMATS[word]).numpy(), low)


@given(st.floats(width=32), st.sampled_from(list(FORMATS)))
def test_a_float32_number_is_rounded_as_numpy_rounds_it(x: float, word: FormatWord) -> None:
    with np.errstate(over="ignore"):
        expected = float(np.float32(x).astype(NUMPY[word]))
    np.testing.assert_equal(stored(x, word), expected)


@given(st.floats(1e-4, 60000), st.sampled_from(list(FORMATS)))
def test_a_rounded_number_lies_within_half_a_step(x: float, word: FormatWord) -> None:
    got = stored(x, word, torch.float64)
    # 2⁻²⁵: a float64 number reaches the narrow formats by way of float32
    half_step = Fraction(2) ** -DIGITS[word] + (Fraction(2) ** -25 if word in NARROW else 0)
    assert abs(Fraction(got) - Fraction(x)) <= Fraction(x) * half_step


@pytest.mark.parametrize("word", NARROW)
def test_a_float64_number_is_rounded_by_way_of_float32_as_torch_casts_it(word: FormatWord) -> None:
    """Twice rounded: just above halfway becomes halfway in float32, and then even. NumPy would go up."""
    step = 2.0 ** (1 - DIGITS[word])
    assert stored(1 + step / 2 + 2**-40, word, torch.float64) == 1.0
    assert stored(1 + step / 2 + 2**-20, word, torch.float64) == 1 + step


@given(st.floats(width=32, allow_nan=False), st.floats(width=32, allow_nan=False), st.sampled_from(list(FORMATS)))
def test_rounding_keeps_order_and_sign_and_does_nothing_twice(a: float, b: float, word: FormatWord) -> None:
    assert (a <= b) <= (stored(a, word) <= stored(b, word))
    assert stored(-a, word) == -stored(a, word)
    assert stored(stored(a, word), word) == stored(a, word)


@pytest.mark.parametrize("x", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("word", list(FORMATS))
def test_what_is_not_finite_passes_through(x: float, word: FormatWord) -> None:
    np.testing.assert_equal(stored(x, word), x)


@pytest.mark.parametrize(
    ("x", "float16", "bfloat16"),
    [
        (513.0, 513.0, 512.0),
        (2049.0, 2048.0, 2048.0),
        (65519.0, 65504.0, 65536.0),
        (65520.0, math.inf, 65536.0),
        (1e-8, 0.0, 1.0011717677116394e-08),
        (2.0**-24, 2.0**-24, 2.0**-24),
        (2.0**-25, 0.0, 2.0**-25),
    ],
)
def test_float16_ends_early_on_both_sides_where_bfloat16_only_coarsens(
    x: float, float16: float, bfloat16: float
) -> None:
    assert (stored(x, "float16"), stored(x, "bfloat16")) == (float16, bfloat16)


def test_exact_hands_back_the_very_tensor() -> None:
    x = torch.tensor([1 / 3], dtype=torch.float64)
    assert exact(x) is x


# --- the order of scaling -----------------------------------------------------------------------------------------


def test_a_product_is_lost_in_float16_although_its_scaled_logit_would_fit() -> None:
    """The same function in three orders: what overflows is the raw product, before 1/√d can help it."""
    f16 = FORMATS["float16"]
    q, k, scale = torch.full((1, 128), 24.0), torch.tensor([[24.0], [23.0]]).expand(2, 128), 128**-0.5
    exact_logits = [73728 * scale, 70656 * scale]
    assert exact_logits == pytest.approx([6516.696, 6245.167], rel=1e-6)

    product_first = rounded(rounded(q @ k.mT, f16) * scale, f16)
    assert product_first.tolist() == [[math.inf, math.inf]]
    assert torch.softmax(product_first, -1).isnan().all()

    q_first = rounded(rounded(q * scale, f16) @ k.mT, f16)
    assert q_first.tolist() == [pytest.approx(exact_logits, abs=4)]  # float16's step at 6500
    both = rounded(rounded(q * scale**0.5, f16) @ rounded(k * scale**0.5, f16).mT, f16)
    assert both.tolist() == [pytest.approx(exact_logits, abs=8)]  # two rounded factors
    assert rounded(q @ k.mT, FORMATS["bfloat16"]).tolist() == [[73728.0, 70656.0]]  # bfloat16 has the range


# --- bisection ----------------------------------------------------------------------------------------------------


@given(st.floats(1e-3, 1e3), st.floats(1.001, 1e6), st.floats(0, 1), st.sampled_from([1e-3, 1e-6, 1e-12]))
def test_the_first_failure_is_found_to_the_precision_asked_for(
    low: float, ratio: float, part: float, relative: float
) -> None:
    high = low * ratio
    threshold = min(low * ratio**part, high)
    found = first_failure(lambda scale: scale >= threshold, low, high, relative)
    assert threshold <= found <= threshold * (1 + relative) * (1 + 1e-15)


def test_what_already_fails_at_the_low_end_is_said_to_fail_there() -> None:
    assert first_failure(lambda scale: True, 0.5, 8) == 0.5


def test_what_never_fails_is_said_to_fail_at_infinity() -> None:
    assert first_failure(lambda scale: False, 0.5, 8) == math.inf
    assert first_failure(lambda scale: scale > 8, 0.5, 8) == math.inf


def test_bisection_asks_few_questions_over_many_decades() -> None:
    asked = []
    first_failure(lambda scale: asked.append(scale) or scale >= 3.14, 1e-6, 1e6)  # type: ignore[func-returns-value]
    assert len(asked) < 30  # log2(12 decades / 1e-6)


def test_the_first_square_lost_in_float16_is_that_of_just_below_256() -> None:
    found = first_failure(lambda x: stored(x * x, "float16") == math.inf, 1, 1000)
    assert found == pytest.approx(math.sqrt(65520), rel=1e-6)
