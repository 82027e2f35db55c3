"""Numbers are written the same everywhere, and what a link writes reads back."""

import json
import math
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkdemo.notation import counted, plain, written
from tests.javascript import node

SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def read(text: str) -> float:
    """The number that `written` wrote."""
    mantissa, _, power = text.replace("\u202f", "").replace("−", "-").partition("·10")
    return float(f"{mantissa}e{power.translate(SUPERSCRIPTS) or 0}")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (64900.0, "64\u202f900"),
        (-64900.0, "−64\u202f900"),
        (1_000_000.0, "1\u202f000\u202f000"),
        (9_999_000.0, "9\u202f999\u202f000"),
        (10_000_000.0, "1·10⁷"),
        (9_999_999.0, "1·10⁷"),
        (999.96, "1\u202f000"),
        (0.5, "0.5"),
        (100.0, "100"),
        (0.01, "0.01"),
        (0.00999999, "0.01"),
        (0.009999, "9.999·10⁻³"),
        (-0.001, "−1·10⁻³"),
        (-0.0, "0"),
        (5e-324, "4.941·10⁻³²⁴"),
        (1.7976931348623157e308, "1.798·10³⁰⁸"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (math.nan, "NaN"),
    ],
)
def test_a_number_for_the_eye(number: float, text: str) -> None:
    assert written(number) == text


@pytest.mark.parametrize(
    ("digits", "text"), [(1, "200"), (2, "170"), (3, "169"), (4, "169.2"), (5, "169.23"), (7, "169.231")]
)
def test_digits_are_significant_digits(digits: int, text: str) -> None:
    assert written(169.231, digits) == text


@given(st.floats(1e-300, 1e300), st.sampled_from([-1, 1]), st.integers(2, 7))
def test_what_is_written_is_off_by_at_most_half_a_unit_of_its_last_digit(size: float, sign: int, digits: int) -> None:
    half_a_unit = 0.5 * 10.0 ** (1 - digits)
    assert read(written(sign * size, digits)) == pytest.approx(sign * size, rel=half_a_unit * (1 + 1e-9))


@given(st.floats(1e-300, 1e300))
def test_a_minus_sign_is_all_that_a_negative_number_adds(size: float) -> None:
    assert written(-size) == "−" + written(size)


@given(FINITE)
def test_no_number_is_written_with_a_trailing_zero_after_a_point(x: float) -> None:
    mantissa = written(x).split("·")[0]
    assert "." not in mantissa or mantissa[-1] not in "0."


@given(st.integers(-(10**18), 10**18))
def test_a_count_keeps_every_digit(n: int) -> None:
    text = counted(n)
    assert int(text.replace("\u202f", "").replace("−", "-")) == n
    assert all(len(group) == 3 for group in text.split("\u202f")[1:])


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (8, "8"),
        (True, "1"),
        (-3.0, "-3"),
        (0.1, "0.1"),
        (999_999_999_999_999.0, "999999999999999"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
    ],
)
def test_a_number_for_a_link(number: float, text: str) -> None:
    assert plain(number) == text


@given(st.floats(allow_nan=False))
def test_plain_text_reads_back_as_the_same_number(x: float) -> None:
    assert float(plain(x)) == x


@pytest.mark.parametrize("number", [1e15, -1e15, 9_007_199_254_740_992.0])
def test_a_large_whole_number_has_no_point_either(number: float) -> None:
    assert "." not in plain(number)


@given(FINITE)
def test_plain_text_is_never_longer_than_what_python_writes(x: float) -> None:
    assert len(plain(x)) <= len(repr(x))


def test_what_is_heard_in_the_browser_is_written_as_everywhere_else() -> None:
    numbers = [
        sign * digits * 10.0**power for sign in (1, -1) for digits in (1, 1.23456, 9.9996) for power in range(-9, 10)
    ]
    module = (Path(__file__).parents[1] / "qkdemo" / "web" / "exhibit" / "heard" / "numbers.js").as_uri()
    program = (
        f"import {{ written }} from {module!r}; const more = [NaN, Infinity, -Infinity, 0, -0];"
        f"console.log(JSON.stringify([...{json.dumps(numbers)}, ...more].map((x) => [written(x), written(x, 3)])));"
    )
    told = subprocess.run(
        [node(), "--input-type=module", "--eval", program], capture_output=True, encoding="utf-8", check=True
    ).stdout
    every = [*numbers, math.nan, math.inf, -math.inf, 0.0, -0.0]
    assert json.loads(told) == [[written(x), written(x, 3)] for x in every]
