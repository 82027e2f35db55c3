"""The rotary lab: when the orders agree, which bound holds, and what becomes of relative positions."""

import json
import math
from dataclasses import replace
from typing import Any

import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkdemo.attention.rotary import rotate
from qkdemo.cli.command import main
from qkdemo.labs import rope
from qkdemo.labs.rope import PRESETS, Settings, explain, findings, pairwise_product, run
from qkdemo.labs.rope.lab import gains, vectors
from qkdemo.notation import counted

SMALL = Settings(d_head=8)


def states(**fixed: str) -> st.SearchStrategy[Settings]:
    dials: dict[str, st.SearchStrategy[Any]] = {
        "gain_kind": st.sampled_from(["none", "scalar", "tied", "untied", "crossed"]),
        "layout": st.sampled_from(["half_split", "interleaved", "half_split_swapped"]),
        "position": st.integers(0, 5000),
        "distance": st.integers(0, 64),
        "seed": st.integers(0, 99),
    }
    return st.builds(SMALL.but, **dials | {name: st.just(value) for name, value in fixed.items()})


@hypothesis.settings(max_examples=25)
@given(states(norm="rms"))
def test_the_orders_agree_exactly_for_gains_equal_within_pairs(settings: Settings) -> None:
    agreeing = settings.gain_kind in ("none", "scalar", "tied")
    assert run(settings).agree == agreeing


@hypothesis.settings(max_examples=25)
@given(states(norm="layernorm", gain_kind="none"))
def test_layernorm_never_commutes_with_rotation(settings: Settings) -> None:
    assert not run(settings).agree


@hypothesis.settings(max_examples=25)
@given(states())
def test_norm_first_depends_on_the_distance_alone(settings: Settings) -> None:
    result = run(settings)
    assert np.ptp(result.norm_rotary.logit) < 1e-9 * result.bound_simple


@hypothesis.settings(max_examples=25)
@given(states())
def test_norm_first_keeps_every_length_and_angle_wherever_the_text_stands(settings: Settings) -> None:
    first = run(settings).norm_rotary
    assert np.ptp(first.length) <= 1e-12 * first.length.max()
    assert np.ptp(first.cosine) <= 1e-9


@hypothesis.settings(max_examples=25)
@given(states())
def test_the_logit_is_the_lengths_times_the_cosine_and_the_largest_is_one_of_the_distances(settings: Settings) -> None:
    result = run(settings)
    for side in (result.norm_rotary, result.rotary_norm):
        assert side.length * side.cosine / math.sqrt(8) == pytest.approx(side.logit, abs=1e-9)
        assert side.largest[result.at] == pytest.approx(np.abs(side.by_distance).max(), rel=1e-12)
        assert side.by_distance[settings.distance] == pytest.approx(side.logit[result.at], rel=1e-12)


def test_rotary_first_with_a_gain_is_not_relative() -> None:
    result = run(PRESETS["not_relative"])
    assert np.ptp(result.rotary_norm.logit) > 0.1 * np.abs(result.rotary_norm.logit).max()


@hypothesis.settings(max_examples=25)
@given(states(norm="rms", vectors="random"))
def test_the_pairwise_bound_holds_for_norm_first_and_the_naive_one_for_rotary_first(settings: Settings) -> None:
    result = run(settings)
    assert np.abs(result.norm_rotary.by_distance).max() <= result.bound_pairwise * (1 + 1e-12)
    assert np.abs(result.rotary_norm.by_distance).max() <= result.bound_naive * (1 + 1e-12)
    assert result.bound_naive <= result.bound_pairwise * (1 + 1e-12) <= result.bound_simple * (1 + 2e-12)


@hypothesis.settings(max_examples=25)
@given(states(norm="rms", vectors="worst"))
def test_the_worst_vectors_come_near_the_pairwise_bound_where_some_distance_turns_far_enough(
    settings: Settings,
) -> None:
    """Turned by φ, the pair scores |cos φ| or |sin φ| of the bound; at distance 0 the cosine is 1."""
    result = run(settings)
    if settings.gain_kind in ("none", "scalar", "tied"):
        assert result.max_abs_logit == pytest.approx(result.bound_pairwise)
    if settings.gain_kind == "crossed":
        assert result.max_abs_logit == pytest.approx(result.bound_pairwise, rel=1e-4)


def test_the_worst_vectors_are_taken_to_where_they_reach_the_bound() -> None:
    """100 draws of the gains: 30 of them come to less than 0.999 of it within 64 positions, one to less than 1 %."""
    found = [run(Settings(vectors="worst", seed=seed)) for seed in range(100)]
    assert sum(one.max_abs_logit < 0.999 * one.bound_pairwise for one in found) == 30
    for one in found:
        assert one.reached == pytest.approx(one.bound_pairwise, rel=1e-3)
        assert one.reached <= one.bound_pairwise * (1 + 1e-12)
    slow = max(found, key=lambda one: one.reach or 0)
    assert slow.reach is not None
    gain_q, gain_k = gains(slow.settings)
    q, k = vectors(slow.settings)
    pair = int(q.argmax()) % 32  # half-split: i and i + 32
    turned = abs(math.sin(slow.reach * 10_000 ** (-pair / 32)))
    product = (gain_q[int(q.argmax())] * gain_k[int(k.argmax())]).item()
    assert slow.reached == pytest.approx(8 * product * turned, rel=1e-9)
    assert explain(slow)[-1].startswith(f"At distance {counted(slow.reach)}, where one has all but turned")
    tied = run(Settings(vectors="worst", gain_kind="tied"))
    assert tied.reach == 0
    assert "lie in one channel" in explain(tied)[-1], "nothing has turned there"
    assert run(Settings()).reach is None


def test_the_counterexample_breaks_the_naive_bound_fourfold(capsys: pytest.CaptureFixture[str]) -> None:
    """γq[0] = 4 and γk[32] = 4 turn towards each other: 8 · 16 · |sin 11| is the most in 64 positions."""
    assert main(["rope", "--preset", "bound-counterexample", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["bound_naive"] == 32
    assert printed["bound_pairwise"] == 128
    assert printed["max_abs_logit"] == pytest.approx(128 * abs(math.sin(11)), rel=1e-12)
    assert f"{printed['max_abs_logit']:.4f}" == "127.9987"


def test_a_quarter_turn_by_hand() -> None:
    """q = [3, 4] turned by 90°, gain (2, 1), k = [1, 2]: 0.506 with the norm first, −1.265 with rotary first."""
    quarter = torch.tensor([math.pi / 2], dtype=torch.float64)
    gain = torch.tensor([2.0, 1.0], dtype=torch.float64)

    def unit(x: torch.Tensor) -> torch.Tensor:
        return x / x.square().mean(-1, keepdim=True).sqrt()

    q, k = torch.tensor([[[3.0, 4.0]], [[1.0, 2.0]]], dtype=torch.float64)
    norm_first, rotary_first = rotate(unit(q) * gain, quarter), unit(rotate(q, quarter)) * gain
    assert norm_first[0].tolist() == pytest.approx([-1.131371, 1.697056], rel=1e-6)
    assert rotary_first[0].tolist() == pytest.approx([-2.262742, 0.8485281], rel=1e-6)
    key = unit(k)
    scores = [(side * key * gain).sum().item() / math.sqrt(2) for side in (norm_first, rotary_first)]
    assert scores == pytest.approx([0.5059644, -1.264911], rel=1e-6)


def test_the_pairwise_product_looks_inside_pairs_only() -> None:
    gain_q, gain_k = torch.tensor([4.0, 1, 1, 1]), torch.tensor([1.0, 1, 1, 4])
    assert pairwise_product(gain_q, gain_k, "half_split") == 4  # channels 0 and 3 are in different pairs
    assert pairwise_product(gain_q, torch.tensor([1.0, 1, 4, 1]), "half_split") == 16
    assert pairwise_product(gain_q, torch.tensor([1.0, 4, 1, 1]), "interleaved") == 16


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_described(name: str) -> None:
    result = run(PRESETS[name])
    assert all(sentence and "{" not in sentence for sentence in [*explain(result), *findings(result)])


def test_the_headline_says_what_moves_and_what_breaks() -> None:
    broken = run(PRESETS["bound_counterexample"])
    assert findings(broken)[broken.at].endswith("reaches 128, past the bound of 32.")
    assert explain(run(PRESETS["not_relative"]))[-2].endswith("With rotary first, positions are no longer relative.")
    assert len(set(findings(run(PRESETS["no_gain"])))) == 1
    assert len(set(findings(run(PRESETS["not_relative"])))) == len(run(PRESETS["not_relative"]).positions)


def test_a_logit_has_four_digits_and_more_only_to_be_told_from_the_bound_it_breaks() -> None:
    assert "up to distance 64 these vectors reach only 1.334." in explain(run(PRESETS["not_relative"]))[-1]
    barely = replace(run(PRESETS["bound_counterexample"]), bound_naive=127.998)
    assert findings(barely)[0].endswith("reaches 127.999, past the bound of 127.998.")


@pytest.mark.parametrize(
    "settings",
    [
        PRESETS["not_relative"],
        PRESETS["bound_counterexample"],
        SMALL.but(norm="layernorm", layout="interleaved"),
        SMALL.but(layout="half_split_swapped"),
    ],
)
def test_the_snippet_is_a_second_opinion(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    exec(rope.snippet(settings), {})
    printed, result = json.loads(capsys.readouterr().out), run(settings)
    for order, value in printed.items():
        assert value == pytest.approx(getattr(result, order).logit[result.at], abs=1e-9)


def test_a_bound_that_no_vectors_of_layernorm_pass_is_not_called_unsafe() -> None:
    """Their mean is 0, so none lies in one channel: the most is the norm of Γ R Γ on vectors of mean 0."""
    settings = Settings(norm="layernorm", d_head=4, gain_spread=0.05, seed=308)
    found, (gain_q, gain_k) = run(settings), gains(settings)
    assert found.bound_pairwise > found.bound_naive
    centred, turned = torch.eye(4, dtype=torch.float64) - 1 / 4, torch.eye(4, dtype=torch.float64)
    most = max(
        torch.linalg.matrix_norm(
            centred
            @ torch.diag(gain_q)
            @ rotate(turned, torch.full((4,), float(distance), dtype=torch.float64)).mT
            @ torch.diag(gain_k)
            @ centred,
            2,
        ).item()
        for distance in range(700)
    )
    assert 2 * most < found.bound_naive
    said = " ".join(explain(found))
    assert "may never pass it" in said
    assert "is not safe, though" not in said


def test_what_holds_at_one_distance_is_not_said_of_all() -> None:
    """LayerNorm of one and the same vector: at distance 0 the logit is the same everywhere, at distance 1 it is not."""
    settings = Settings(norm="layernorm", gain_kind="none", vectors="worst", d_head=4, distance=0)
    assert run(settings).relative
    assert not run(settings.but(distance=1)).relative
    assert any("the logit at this distance is the same" in sentence for sentence in explain(run(settings)))
