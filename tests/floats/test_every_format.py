"""Number formats against torch, NumPy and ml_dtypes over every bit pattern, and against exact fractions."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from qkdemo.floats.accumulators import dot_products
from qkdemo.floats.formats import ALL_FORMATS, AnyFormatWord, rounded
from qkdemo.floats.layout import Rung, rung
from qkdemo.floats.stacks import Stack

NUMPY: dict[AnyFormatWord, Any] = {
    "float64": np.float64,
    "float32": np.float32,
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}
SMALL: list[AnyFormatWord] = ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"]
EIGHT_BITS: list[AnyFormatWord] = ["float8_e4m3fn", "float8_e5m2"]
BELOW_FLOAT64: list[AnyFormatWord] = ["float32", *SMALL]
ANY_WORD = st.sampled_from(list(ALL_FORMATS))


def patterns(word: AnyFormatWord) -> np.ndarray:
    """Every bit pattern of a small format, as a whole number."""
    return np.arange(256, dtype=np.uint8) if ALL_FORMATS[word].is_narrow else np.arange(2**16, dtype=np.uint16)


def values(word: AnyFormatWord) -> np.ndarray:
    """What those patterns mean, as ml_dtypes and NumPy read them, in float64."""
    with np.errstate(invalid="ignore"):
        return patterns(word).view(NUMPY[word]).astype(np.float64)


def with_everything_between(word: AnyFormatWord) -> np.ndarray:
    """All values, the middles between neighbours, and the float32 numbers just beside these middles."""
    known = values(word)
    ordered = np.unique(known[np.isfinite(known)])
    middles = ((ordered[:-1] + ordered[1:]) / 2).astype(np.float32)
    largest = np.float32(ordered[-1])
    with np.errstate(over="ignore"):  # bfloat16 ends where float32 does
        beyond = largest + (largest - np.float32(ordered[-2])) * np.array([0.5, 1, 2, 50], np.float32)
    edges = np.concatenate([middles, beyond, -beyond]).astype(np.float32)
    beside = [np.nextafter(edges, np.float32(np.inf)), np.nextafter(edges, np.float32(-np.inf))]
    return np.concatenate([known, edges, *beside, [np.inf, -np.inf, np.nan]]).astype(np.float64)


def by_stack(x: np.ndarray, word: AnyFormatWord, *, saturate: bool = False) -> tuple[np.ndarray, np.ndarray]:
    stored, beyond = Stack([ALL_FORMATS[word]], saturate=saturate)(torch.from_numpy(x)[None])
    return stored[0].numpy(), beyond[0].numpy()


def one(x: float, word: AnyFormatWord, *, saturate: bool = False) -> float:
    return float(by_stack(np.array([x]), word, saturate=saturate)[0][0])


def same(a: np.ndarray, b: np.ndarray) -> None:
    """Equal, NaN to NaN and −0 to −0."""
    np.testing.assert_array_equal(a, b)
    kept = ~np.isnan(a)
    np.testing.assert_array_equal(np.signbit(a[kept]), np.signbit(b[kept]))


# --- the formats themselves ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", list(ALL_FORMATS))
def test_a_format_is_described_as_ml_dtypes_and_torch_describe_it(word: AnyFormatWord) -> None:
    known, described = ALL_FORMATS[word], ml_dtypes.finfo(NUMPY[word])
    assert known.word == word
    assert known.largest == float(described.max) == torch.finfo(known.dtype).max
    assert known.mantissa_bits == described.nmant
    assert known.exponent_bits == described.nexp
    assert known.smallest_normal == float(described.smallest_normal) == torch.finfo(known.dtype).smallest_normal
    assert known.smallest == float(described.smallest_subnormal)
    assert 8 * known.dtype.itemsize == 1 + known.exponent_bits + known.mantissa_bits
    assert known.is_narrow == (word in EIGHT_BITS)


@pytest.mark.parametrize(
    ("word", "limit"),
    [("float16", 65520.0), ("float8_e5m2", 61440.0), ("bfloat16", (2 - 2**-8) * 2.0**127)],
)
def test_from_half_a_step_above_the_largest_number_on_a_value_is_too_large(word: AnyFormatWord, limit: float) -> None:
    assert ALL_FORMATS[word].limit == limit
    assert one(limit, word) == math.inf
    assert one(math.nextafter(limit, 0), word) == ALL_FORMATS[word].largest


def test_in_e4m3_the_same_tie_still_fits_because_the_number_below_it_is_even() -> None:
    assert one(464.0, "float8_e4m3fn") == 448.0
    assert math.isnan(one(math.nextafter(464.0, 500), "float8_e4m3fn"))
    assert ALL_FORMATS["float8_e4m3fn"].limit == math.nextafter(464.0, 500)


# --- rounding -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", SMALL)
def test_every_value_survives_rounding_to_its_own_format(word: AnyFormatWord) -> None:
    same(by_stack(values(word), word)[0], values(word))


@pytest.mark.parametrize("word", SMALL)
def test_emulated_rounding_is_that_of_ml_dtypes_at_every_value_and_between(word: AnyFormatWord) -> None:
    x = with_everything_between(word)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = x.astype(np.float32).astype(NUMPY[word]).astype(np.float64)
    same(by_stack(x, word)[0], expected)
    for dtype in (torch.float64, torch.float32):
        same(rounded(torch.from_numpy(x).to(dtype), ALL_FORMATS[word]).double().numpy(), expected)


@pytest.mark.parametrize("word", SMALL)
def test_emulated_rounding_is_torchs_cast_where_torch_does_not_saturate(word: AnyFormatWord) -> None:
    x = with_everything_between(word)
    cast = torch.from_numpy(x).to(ALL_FORMATS[word].dtype).double().numpy()
    same(by_stack(x, word, saturate=word == "float8_e4m3fn")[0], cast)


@pytest.mark.parametrize("word", EIGHT_BITS)
@pytest.mark.parametrize("wider", ["bfloat16", "float16"])
def test_every_16_bit_number_is_cast_to_8_bits_as_ml_dtypes_does(word: AnyFormatWord, wider: AnyFormatWord) -> None:
    x = values(wider)
    with np.errstate(invalid="ignore"):
        expected = x.astype(np.float32).astype(NUMPY[word]).astype(np.float64)
    same(by_stack(x, word)[0], expected)


@given(st.floats(), st.sampled_from(BELOW_FLOAT64))
def test_a_float64_is_rounded_once_to_the_nearest_number(x: float, word: AnyFormatWord) -> None:
    place = rung(x, ALL_FORMATS[word])
    same(np.array([one(x, word)]), np.array([place.stored]))  # by fractions
    if math.isfinite(place.stored) and math.isfinite(place.below) and math.isfinite(place.above):
        gap = abs(Fraction(x) - Fraction(place.stored))
        assert gap <= abs(Fraction(x) - Fraction(place.below))
        assert gap <= abs(Fraction(x) - Fraction(place.above))


@given(st.lists(st.floats(), min_size=1, max_size=6), st.booleans())
def test_formats_side_by_side_are_rounded_as_each_alone(x: list[float], saturate: bool) -> None:
    words = BELOW_FLOAT64
    tensor = torch.tensor([x] * len(words), dtype=torch.float64)
    stored, beyond = Stack([ALL_FORMATS[word] for word in words], saturate=saturate)(tensor)
    for at, word in enumerate(words):
        alone = by_stack(np.array(x), word, saturate=saturate)
        same(stored[at].numpy(), alone[0])
        np.testing.assert_array_equal(beyond[at].numpy(), alone[1])


def test_a_stack_computes_in_float64_and_cannot_round_to_it() -> None:
    with pytest.raises(ValueError, match=r"^A Stack computes in float64 and needs narrower formats"):
        Stack([ALL_FORMATS["float64"]])


def test_constants_are_stored_too() -> None:
    stored = Stack([ALL_FORMATS[word] for word in ("float16", "bfloat16", "float8_e4m3fn")])
    assert stored.constant(1e-8).flatten().tolist() == [0.0, 1.0011717677116394e-08, 0.0]
    assert stored.constant(-1e4, dims=2).shape == (3, 1)
    assert stored.constant(-1e9).flatten().tolist()[0] == -math.inf


# --- what is too large --------------------------------------------------------------------------------------------

TOO_LARGE = [256.0, 448.0, 464.0, 465.0, 1000.0, 61439.0, 61440.0, math.inf, -1000.0]


@pytest.mark.parametrize(
    ("word", "saturate", "expected"),
    [
        ("float8_e4m3fn", False, [256, 448, 448, *[math.nan] * 6]),
        ("float8_e4m3fn", True, [256, *[448] * 7, -448]),
        ("float8_e5m2", False, [256, 448, 448, 448, 1024, 57344, math.inf, math.inf, -1024]),
        ("float8_e5m2", True, [256, 448, 448, 448, 1024, 57344, 57344, 57344, -1024]),
    ],
)
def test_both_rules_for_values_too_large_for_8_bits(word: AnyFormatWord, saturate: bool, expected: list[float]) -> None:
    x = np.array(TOO_LARGE)
    np.testing.assert_array_equal(by_stack(x, word, saturate=saturate)[0], expected)
    cast = rounded(torch.from_numpy(x), ALL_FORMATS[word], saturate=saturate)
    np.testing.assert_array_equal(cast.numpy(), np.float32(expected))
    assert [rung(v, ALL_FORMATS[word], saturate=saturate).stored for v in TOO_LARGE] == pytest.approx(
        expected, abs=0, nan_ok=True
    )


def test_libraries_differ_and_each_follows_one_of_our_rules() -> None:
    """torch 2.13 saturates e4m3fn, ∞ included; ml_dtypes makes NaN of it. In e5m2 both have ∞."""
    x = np.array(TOO_LARGE)
    e4m3 = torch.from_numpy(x).to(torch.float8_e4m3fn).double().numpy()
    np.testing.assert_array_equal(e4m3, by_stack(x, "float8_e4m3fn", saturate=True)[0])
    with np.errstate(invalid="ignore"):
        as_ml_dtypes = x.astype(ml_dtypes.float8_e4m3fn).astype(np.float64)
    np.testing.assert_array_equal(as_ml_dtypes, by_stack(x, "float8_e4m3fn")[0])
    e5m2 = torch.from_numpy(x).to(torch.float8_e5m2).double().numpy()
    np.testing.assert_array_equal(e5m2, by_stack(x, "float8_e5m2")[0])


@pytest.mark.parametrize("word", SMALL)
def test_overflow_is_seen_before_the_cast_whatever_the_cast_does(word: AnyFormatWord) -> None:
    x = with_everything_between(word)
    beyond = [by_stack(x, word, saturate=saturate)[1] for saturate in (False, True)]
    np.testing.assert_array_equal(*beyond)
    stored = by_stack(x, word)[0]
    np.testing.assert_array_equal(beyond[0], ~np.isfinite(stored) & ~np.isnan(x))


@example(1e300, "float16")
@given(st.floats(allow_nan=False), st.sampled_from(["float32", "bfloat16", "float16"]))
def test_only_8_bits_saturate(x: float, word: AnyFormatWord) -> None:
    assert one(x, word, saturate=True) == one(x, word) == rung(x, ALL_FORMATS[word], saturate=True).stored


# --- the ladder ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", SMALL)
def test_bits_are_the_hardwares_bits_at_every_pattern(word: AnyFormatWord) -> None:
    every = list(zip(patterns(word).tolist(), values(word).tolist(), strict=True))
    half = len(every) // 2  # the second half is the first with the sign set: some of it will do
    for pattern, value in every[:half] + every[half :: max(1, half // 4096)]:
        place = rung(value, ALL_FORMATS[word])
        if math.isnan(value):
            assert place.kind == "nan"
        else:
            assert int(place.sign + place.exponent + place.mantissa, 2) == pattern
            assert place.stored == value


@pytest.mark.parametrize("word", SMALL)
def test_neighbours_are_the_next_values_of_the_format(word: AnyFormatWord) -> None:
    known = values(word)
    ordered = np.unique(known[np.isfinite(known)])
    for at in range(1, len(ordered) - 1, math.ceil(len(ordered) / 300)):
        below, value, above = ordered[at - 1 : at + 2]
        place = rung(float(value), ALL_FORMATS[word])
        assert (place.below, place.above) == (below, above)
        assert place.spacing == (above - value if value >= 0 else value - below)


@pytest.mark.parametrize(
    ("word", "above"), [("float16", math.inf), ("float8_e5m2", math.inf), ("float8_e4m3fn", math.nan)]
)
def test_above_the_largest_number_stands_infinity_if_the_format_has_it(word: AnyFormatWord, above: float) -> None:
    place = rung(ALL_FORMATS[word].largest, ALL_FORMATS[word])
    assert place.above == pytest.approx(above, nan_ok=True)
    assert rung(-ALL_FORMATS[word].largest, ALL_FORMATS[word]).below == pytest.approx(-above, nan_ok=True)


def test_infinity_stands_beside_the_largest_number() -> None:
    place = rung(70000.0, ALL_FORMATS["float16"])
    assert (place.stored, place.kind, place.below, place.overflowed) == (math.inf, "infinite", 65504.0, True)
    assert rung(-math.inf, ALL_FORMATS["float16"]).above == -65504.0


@given(st.floats(allow_nan=False, allow_infinity=False), ANY_WORD)
def test_the_written_out_number_and_the_bits_both_mean_the_stored_one(x: float, word: AnyFormatWord) -> None:
    place = rung(x, ALL_FORMATS[word])
    if math.isfinite(place.stored):
        assert Fraction(Decimal(place.decimal)) == Fraction(place.stored)
        assert meaning(place) == Fraction(place.stored)


def meaning(place: Rung) -> Fraction:
    """± (0 or 1).mantissa · 2^power, read off the bits."""
    if place.power is None:
        return Fraction(0)
    leading = 0 if place.kind == "subnormal" else 1
    size = leading + Fraction(int(place.mantissa, 2), 2 ** len(place.mantissa))
    return (-1 if place.sign == "1" else 1) * size * Fraction(2) ** place.power


@pytest.mark.parametrize(
    ("x", "word", "step"),
    [
        (50, "bfloat16", 0.25),
        (64, "bfloat16", 0.5),
        (127, "bfloat16", 0.5),
        (128, "bfloat16", 1),
        (256, "bfloat16", 2),
        (512, "bfloat16", 4),
        (1024, "bfloat16", 8),
        (1, "bfloat16", 0.0078125),
        (8, "bfloat16", 0.0625),
        (1, "float16", 0.0009765625),
        (256, "float16", 0.25),
        (512, "float16", 0.5),
        (1024, "float16", 1),
        (1, "float32", 2.0**-23),
    ],
)
def test_the_spacing_of_a_format_at_a_value(x: float, word: AnyFormatWord, step: float) -> None:
    assert rung(float(x), ALL_FORMATS[word]).spacing == step


@pytest.mark.parametrize(
    ("x", "word", "stored"),
    [
        (513.0, "bfloat16", 512.0),  # logits 512 and 513 merge
        (512.0, "bfloat16", 512.0),
        (513.0, "float16", 513.0),
        (66246.39, "float16", math.inf),
        (66246.39, "bfloat16", 66048.0),
        (277000.0, "bfloat16", 276480.0),
        (-1e4, "float16", -10000.0),
        (-1e9, "float16", -math.inf),
        (-65519.0, "float16", -65504.0),
        (-65520.0, "float16", -math.inf),
        (1e-12, "float16", 0.0),
        (1e-8, "float16", 0.0),
        (1e-7, "float16", 1.1920928955078125e-07),
        (1e-6, "float16", 1.0132789611816406e-06),
        (600.0, "float8_e4m3fn", math.nan),
        (11.31371, "float8_e4m3fn", 11.0),
        (2.0**-9, "float8_e4m3fn", 2.0**-9),
        (2.0**-10, "float8_e4m3fn", 0.0),
        (2.0**-16, "float8_e5m2", 2.0**-16),
    ],
)
def test_what_a_format_makes_of_a_value(x: float, word: AnyFormatWord, stored: float) -> None:
    assert rung(x, ALL_FORMATS[word]).stored == pytest.approx(stored, abs=0, rel=1e-15, nan_ok=True)
    assert one(x, word) == pytest.approx(stored, abs=0, rel=1e-15, nan_ok=True)


# --- sums ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"])
def test_an_accumulator_adds_one_product_at_a_time_in_order_and_rounds_each_sum(word: AnyFormatWord) -> None:
    generator = np.random.default_rng(1)
    a, b = (generator.standard_normal((2, 9)).astype(np.float16).astype(np.float64) for _ in range(2))
    got, _ = dot_products(torch.tensor(a)[None, None], torch.tensor(b)[None, None], Stack([ALL_FORMATS[word]]))
    for i, j in np.ndindex(2, 2):
        total = Fraction(0)
        for x, y in zip(a[i], b[j], strict=True):
            in_float32 = np.float32(float(total + Fraction(x) * Fraction(y)))
            total = Fraction(rung(float(in_float32), ALL_FORMATS[word]).stored)
        assert got[0, 0, i, j].item() == float(total)


def test_the_order_of_a_sum_matters_and_is_from_the_front() -> None:
    ones = torch.ones(1, 1, 1, 3, dtype=torch.float64)
    float16 = Stack([ALL_FORMATS["float16"]])
    small_last = torch.tensor([[[[2048.0, 1.0, 1.0]]]], dtype=torch.float64)
    assert dot_products(small_last, ones, float16)[0].item() == 2048.0  # 2049 is no float16
    assert dot_products(small_last.flip(-1), ones, float16)[0].item() == 2050.0


def test_an_accumulator_may_overflow_on_the_way_to_a_sum_that_would_fit() -> None:
    x = torch.tensor([[[[60000.0, 60000.0, -60000.0]]]], dtype=torch.float64)
    ones = torch.ones_like(x)
    for words, total, overflowed in (("float16", math.inf, True), ("float32", 60000.0, False)):
        sums, beyond = dot_products(x, ones, Stack([ALL_FORMATS[words]]))  # type: ignore[index]
        assert (sums.item(), beyond.item()) == (total, overflowed)
    sums, beyond = dot_products(x / 150, ones, Stack([ALL_FORMATS["float8_e4m3fn"]], saturate=True))
    assert (sums.item(), beyond.item()) == (48.0, True)  # 400 + 400 saturates at 448, then − 400
