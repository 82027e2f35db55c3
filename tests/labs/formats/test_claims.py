"""Common sayings about number formats, and the numbers that decide them."""

import math

import pytest

from qkdemo.labs.formats.claims import claims


def test_sayings_are_decided_by_numbers() -> None:
    exp, max_subtraction, scaled = claims()
    assert [f"{exp.numbers[f'largest_{word}']:.2f}" for word in ("float16", "bfloat16", "float32")] == [
        "11.09",
        "88.72",
        "88.72",
    ]
    assert [exp.numbers[f"step_at_{x}"] for x in (50, 64, 127)] == [0.25, 0.5, 0.5]
    assert max_subtraction.numbers["slope_at_100"] == 0
    assert max_subtraction.numbers["slope_at_16"] == pytest.approx(2.25e-7, rel=0.1)  # 2·e⁻¹⁶, in float32 steps
    assert math.isnan(max_subtraction.numbers["of_infinity"])
    assert max_subtraction.numbers["stored_512"] == max_subtraction.numbers["stored_513"]
    expected = {"n": 256, "raw": 242, "still": 242, "exact": 169, "on_q": 169, "one_hot": 240}
    assert scaled.numbers == expected
    for claim in (exp, max_subtraction, scaled):
        assert claim.said.endswith(".")
        assert claim.answer.startswith("No: ")
        assert "{" not in claim.answer


def test_the_answers_say_these_numbers() -> None:
    exp, _, scaled = claims()
    assert all(text in exp.answer for text in ("88.72", "11.09", "0.25 at 50"))
    assert all(text in scaled.answer for text in ("242 of 256", "169"))
