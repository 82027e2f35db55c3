"""The epsilon lab: small vectors, zero vectors, and what number formats leave of epsilon."""

import json
import math

import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkdemo.attention.norms import NORMS, RULES, normalise
from qkdemo.labs.epsilon import PRESETS, RULE_WORDS, Settings, explain, run, snippet
from qkdemo.labs.epsilon import lab as epsilon
from qkdemo.labs.epsilon.words import findings
from qkdemo.notation import written

NAN = math.nan


@pytest.mark.parametrize(
    ("norm", "rule", "value", "output", "slope"),
    [
        ("l2", "floor", 1e-12, 0.0, 1e12),
        ("l2", "absent", 0.0, NAN, NAN),
        ("l2", "outside", 1e-6, 0.0, 1e6),
        ("rms", "inside", 1e-6, 0.0, 1e3),
        ("l2", "floored_root", 1e-12, 0.0, NAN),
    ],
)
def test_the_zero_vector_gives_zero_or_nan_forward_and_backward(
    norm: str, rule: str, value: float, output: float, slope: float
) -> None:
    """The gradient of the sum of outputs at [0, 0, 0, 0], in float32."""
    x = torch.zeros(4, requires_grad=True)
    y = normalise(x, NORMS[norm], rule, value)  # type: ignore[index, arg-type]
    (gradient,) = torch.autograd.grad(y.sum(), x)
    assert y[0].item() == pytest.approx(output, nan_ok=True)
    assert gradient[0].item() == pytest.approx(slope, rel=1e-4, nan_ok=True)


@pytest.mark.parametrize("norm", ["rms", "l2", "layernorm"])
@pytest.mark.parametrize("rule", ["inside", "outside", "floor"])
def test_the_slope_at_the_zero_vector_is_the_norm_of_the_jacobian(norm: str, rule: str) -> None:
    """1000 at ε = 1e-6 inside the root, also for LayerNorm, where the gradient of the sum of outputs is 0."""
    d, epsilon_used = 8, 1e-6
    result = run(Settings(norm=norm, rule=rule, format="float64", d_head=d, epsilon=epsilon_used))  # type: ignore[arg-type]
    jacobian = torch.autograd.functional.jacobian(
        lambda x: normalise(x, NORMS[norm], rule, epsilon_used),  # type: ignore[index, arg-type]
        torch.zeros(d, dtype=torch.float64),
    )
    expected = torch.linalg.matrix_norm(jacobian, 2).item()
    assert result.zero_slope[result.rule] == pytest.approx(expected, rel=1e-9)
    assert expected == pytest.approx(1000 if rule == "inside" else 1e6)
    assert result.zero_slope[result.rule] == pytest.approx(result.steepest)
    if norm == "layernorm":
        assert jacobian.sum(0).abs().max() < 1e-6 * expected
        assert f"slope there is {written(expected)}" in explain(result)[3]


def test_a_vector_below_the_root_of_epsilon_is_not_normalised() -> None:
    """1e-4 / √(1e-8 + 1e-6) = 0.0995."""
    result = run(Settings(size=1e-4, epsilon=1e-6, rule="inside"))
    assert result.share[result.rule, result.at] == pytest.approx(0.0995, abs=5e-5)


@hypothesis.settings(max_examples=30)
@given(st.sampled_from(epsilon._EPSILONS), st.sampled_from(["rms", "l2", "layernorm"]), st.floats(1e-9, 10))
def test_shares_and_slopes_follow_their_formulas(value: float, norm: str, size: float) -> None:
    """In float64; across the vector the slope is 1 over the divisor."""
    d = 16
    result = run(Settings(size=size, epsilon=value, norm=norm, format="float64", d_head=d))  # type: ignore[arg-type]
    length, whole = size * (math.sqrt(d) if norm == "l2" else 1), 1 if norm == "l2" else math.sqrt(d)
    divisors = {
        "inside": math.hypot(length, math.sqrt(value)),
        "outside": length + value,
        "floor": max(length, value),
        "floored_root": max(length, value),
        "absent": length,
    }
    for at, word in enumerate(RULE_WORDS):
        assert result.share[at, result.at] == pytest.approx(size * math.sqrt(d) / divisors[word] / whole, rel=1e-9)
        assert result.slope[at, result.at] == pytest.approx(1 / divisors[word], rel=1e-9)


def test_float16_has_no_place_for_the_smallest_epsilons() -> None:
    assert run(Settings(epsilon=1e-8)).epsilon_stored["float16"] == 0
    assert run(Settings(epsilon=1e-12)).epsilon_stored["float16"] == 0
    assert run(Settings(epsilon=1e-6)).epsilon_stored["float16"] > 0
    assert run(Settings(epsilon=1e-12)).epsilon_stored["bfloat16"] > 0


def test_a_norm_in_float16_without_a_living_epsilon_turns_small_vectors_into_nan() -> None:
    """Squares of 1e-5 underflow, epsilon is 0, and 1e-5 / 0 is infinite."""
    result = run(PRESETS["lost_in_float16"].but(size=1e-5))
    assert not math.isfinite(result.share[result.rule, result.at])
    assert math.isfinite(run(PRESETS["lost_in_float16"].but(size=1e-5, norm_in_format=False)).share[0, 0])


def test_every_rule_agrees_on_vectors_of_ordinary_size() -> None:
    result = run(Settings(size=1.0))
    assert result.share[:, result.at] == pytest.approx([1] * len(RULES), rel=1e-5)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("rule", RULE_WORDS)
def test_every_state_is_described(name: str, rule: str) -> None:
    assert all(sentence and "{" not in sentence for sentence in explain(run(PRESETS[name].but(rule=rule))))


@pytest.mark.parametrize("rule", RULE_WORDS)
@pytest.mark.parametrize("name", ["not_normalised", "lost_in_float16", "unit_vectors"])
def test_the_snippet_is_a_second_opinion(name: str, rule: str, capsys: pytest.CaptureFixture[str]) -> None:
    settings = PRESETS[name].but(rule=rule)
    exec(snippet(settings), {})
    printed, row = json.loads(capsys.readouterr().out), epsilon.rows(run(settings))[RULE_WORDS.index(rule)]
    for column, value in printed.items():
        assert value == pytest.approx(row[column], rel=1e-3, nan_ok=True)


@pytest.mark.parametrize("norm", ["rms", "l2", "layernorm"])
@pytest.mark.parametrize("rule", ["inside", "outside", "floor", "floored_root"])
def test_at_the_threshold_epsilon_and_the_vector_weigh_the_same_and_the_slope_is_near_its_end(
    norm: str, rule: str
) -> None:
    """Inside, √(s² + ε) is √2 s; outside, s + ε is 2 s; the floor is s itself."""
    state = Settings(norm=norm, rule=rule, epsilon=1e-8, format="float64")  # type: ignore[arg-type]
    result = run(state.but(size=run(state).threshold))
    expected = {"inside": 1 / math.sqrt(2), "outside": 0.5}.get(rule, 1.0)
    assert result.share[result.rule, result.at] == pytest.approx(expected, rel=1e-6)
    assert result.slope[result.rule, 0] == pytest.approx(result.steepest, rel=1e-3)


def test_without_a_living_epsilon_nothing_stops_the_slope() -> None:
    for state in (Settings(rule="absent"), PRESETS["lost_in_float16"]):
        assert run(state).threshold == 0
        assert math.isinf(run(state).steepest)


def test_tables_count_what_is_no_number() -> None:
    lost = {row["rule"]: row["numbers_lost"] for row in epsilon.rows(run(Settings()))}
    assert lost == {"inside": 0, "outside": 0, "floor": 0, "floored_root": 1, "absent": 2}
    stored = {row["format"]: row["epsilon_stored"] for row in epsilon.format_rows(Settings(epsilon=1e-8))}
    assert stored["float16"] == 0 < stored["bfloat16"]


@pytest.mark.parametrize("rule", RULE_WORDS)
@pytest.mark.parametrize("value", [1e-12, 1e-7, 1e-6])
def test_what_is_said_of_a_vector_holds_in_a_narrow_format(rule: str, value: float) -> None:
    """In float16, squares and entries round to zero: a vector may come out short, right, too long, ∞ or NaN."""
    result = run(Settings(rule=rule, epsilon=value, format="float16", norm_in_format=True, norm="l2"))  # type: ignore[arg-type]
    for size, share, said in zip(result.sizes, result.share[result.rule], findings(result), strict=True):
        x = (torch.tensor(size) * epsilon._directions(result.settings)[0]).half()
        assert ("too long" in said) == (1.02 < share < math.inf), (size, said)
        assert ("is normalised" in said) == (0.99 < share <= 1.02), (size, said)
        assert ("entries of it" in said) == math.isnan(share)
        assert not math.isnan(share) or bool((x == 0).any())
    if f"holds this at about {written(result.steepest, 3)}" in explain(result)[2]:
        slopes = result.slope[result.rule]
        assert (slopes[~np.isnan(slopes)] if rule == "floored_root" else slopes).max() <= 1.01 * result.steepest


@pytest.mark.parametrize(("format", "size"), [("float16", 1e-5), ("float32", 1e-30), ("bfloat16", 1e-30)])
def test_under_a_root_epsilon_stops_no_slope_of_a_vector_whose_squares_are_0(format: str, size: float) -> None:
    """Its entries are not 0 in the format, and the gradient is not a number: no sentence says that ε stops it."""
    settings = Settings(rule="floored_root", epsilon=1e-5, format=format, norm_in_format=True, size=1)  # type: ignore[arg-type]
    x = torch.full((4,), size, dtype=getattr(torch, format), requires_grad=True)
    (gradient,) = torch.autograd.grad(normalise(x, NORMS["rms"], "floored_root", 1e-5).sum(), x)
    assert x.ne(0).all()
    assert gradient.isnan().all()
    told = explain(run(settings))[2]
    whole = f"As long as what stands under the root is above 0 in {format}" in told
    assert whole or f"Then the squares are 0 in {format} and the slope is undefined" in told
    assert "As far as was tried, epsilon holds" not in told
    assert "As far as was tried, epsilon holds" in explain(run(settings.but(rule="inside")))[2]
