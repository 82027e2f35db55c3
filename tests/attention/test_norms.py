"""The table of norms: dynamic tanh against its paper, its bound, and every norm through everything that reads it."""

import json
import math
import subprocess
import sys
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from qkdemo.attention.bounds import largest_weight
from qkdemo.attention.norms import (
    ALPHA,
    NORMS,
    RULES,
    SIZED,
    NormaliserWord,
    NormWord,
    divisor,
    dynamic_tanh,
    normalise,
    norms_with,
    numerator,
    program_lines,
)
from qkdemo.attention.rotary import rotate
from qkdemo.attention.variants import VARIANTS, Parameters, scores
from qkdemo.floats.formats import FORMATS, rounded
from qkdemo.labs import cache, drift, epsilon, formats, placement
from qkdemo.labs.formats.stages.kinds import IN_NORM, STAGES, drawn
from qkdemo.messages import has
from qkdemo.training.remedies import REMEDIES
from qkdemo.training.settings import Settings

WORDS: list[NormaliserWord] = list(get_args(NormaliserWord))


class DynamicTanh(nn.Module):
    """The paper's own listing (Zhu et al. 2025, algorithm 1), in float64 and without its bias."""

    def __init__(self, channels: int, alpha: float) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, dtype=torch.float64) * alpha)
        self.gamma = nn.Parameter(torch.ones(channels, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return self.gamma * torch.tanh(self.alpha * x)


def vectors(seed: int = 0, shape: tuple[int, ...] = (2, 5, 8), size: float = 1.0) -> Tensor:
    return size * torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


# --- one table ----------------------------------------------------------------------------------------------------


def test_every_norm_is_in_the_table_and_reaches_every_lab_and_the_trainer() -> None:
    assert list(NORMS) == list(get_args(NormWord)), "NORMS and NormWord name other norms, or another order"
    assert set(WORDS) <= set(VARIANTS)
    assert set(WORDS) <= set(REMEDIES)
    for lab, name in ((drift, "variant"), (formats, "variant"), (placement, "right_norm"), (cache, "norm")):
        for word in WORDS:
            assert lab.run(lab.Settings(**{name: word}, n_keys=4, d_head=8))
    assert [Settings(variant=word).variant for word in WORDS] == WORDS


def test_the_norms_that_need_an_epsilon_are_those_of_the_epsilon_lab() -> None:
    with_epsilon = [word for word, norm in NORMS.items() if norm.epsilon]
    assert with_epsilon == list(SIZED), "a norm with an epsilon has its word in SizedWord, any other in NormaliserWord"
    assert [epsilon.Settings(norm=word).norm for word in SIZED] == list(SIZED)


@pytest.mark.parametrize("word", WORDS)
def test_every_norm_has_its_sentences(word: NormaliserWord) -> None:
    sentences = {
        "drift.toml": [f"variant.{word}.name", f"variant.{word}.short", f"bound.{word}"],
        "training.toml": [f"variant.{word}.acts"],
        "placement.toml": [f"choice.norm.{word}"],
    }
    missing = [f"{file}: {key}" for file, keys in sentences.items() for key in keys if not has(key)]
    assert not missing, f"qkdemo/locale/en lacks {', '.join(missing)}"


@pytest.mark.parametrize("word", WORDS)
def test_the_exact_norm_is_the_kernel_without_rounding(word: NormaliserWord) -> None:
    x, norm = vectors(), NORMS[word]
    kernel = norm.apply(x, 1.0, 0.7, lambda y: y)
    torch.testing.assert_close(normalise(x, norm, alpha=0.7), kernel, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(numerator(x, norm, 0.7) / divisor(x, norm), kernel, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("size", [1e-4, 1.0, 1e6])
def test_no_result_is_longer_than_the_table_says(word: NormaliserWord, size: float) -> None:
    made = normalise(vectors(size=size, shape=(50, 8)), NORMS[word], alpha=3.0)
    assert made.square().sum(-1).max() <= NORMS[word].most(8) * (1 + 1e-12)


@pytest.mark.parametrize("word", WORDS)
def test_only_a_norm_that_says_so_turns_a_vector_as_it_grows(word: NormaliserWord) -> None:
    x = vectors(shape=(8,))
    one, other = (normalise(size * x, NORMS[word]) for size in (1e3, 1e4))
    turned = normalise(x, NORMS[word]) @ one / (normalise(x, NORMS[word]).norm() * one.norm()) < 1 - 1e-6
    assert bool(turned) == NORMS[word].turns
    assert one @ other == pytest.approx(float(one.norm() * other.norm()), rel=1e-9)


@pytest.mark.parametrize("rounded_", [False, True])
@pytest.mark.parametrize("word", WORDS)
def test_the_lines_for_programs_compute_the_norm(word: NormaliserWord, rounded_: bool) -> None:
    x = vectors()
    found = {"x": x, "torch": torch, "r": lambda y: y}
    exec(program_lines(NORMS[word], "0.7", rounded=rounded_), found)
    torch.testing.assert_close(found["x"], normalise(x, NORMS[word], alpha=0.7), rtol=1e-12, atol=1e-14)


# --- dynamic tanh -------------------------------------------------------------------------------------------------


@given(st.integers(0, 99), st.floats(0.01, 10), st.sampled_from([1e-6, 1.0, 1e6]))
def test_dynamic_tanh_is_that_of_the_paper_with_its_gradients(seed: int, alpha: float, size: float) -> None:
    paper, x = DynamicTanh(8, alpha), vectors(seed, size=size).requires_grad_()
    expected = paper(x)
    of_x, of_alpha = torch.autograd.grad(expected.square().sum(), (x, paper.alpha))
    mine = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    made = dynamic_tanh(x, 1.0, mine)
    torch.testing.assert_close(made, expected, rtol=1e-13, atol=0)
    got_x, got_alpha = torch.autograd.grad(made.square().sum(), (x, mine))
    torch.testing.assert_close(got_x, of_x, rtol=1e-10, atol=1e-14)
    torch.testing.assert_close(got_alpha, of_alpha[0], rtol=1e-10, atol=1e-12)


def test_dynamic_tanh_in_numpy_one_entry_at_a_time() -> None:
    x = vectors().numpy()
    expected = [2.5 * (np.exp(1.4 * v) - 1) / (np.exp(1.4 * v) + 1) for v in x.ravel()]  # tanh(0.7 v)
    made = dynamic_tanh(torch.from_numpy(x), 2.5, 0.7)
    np.testing.assert_allclose(made.numpy().ravel(), expected, rtol=1e-12, atol=1e-14)


def test_alpha_starts_at_one_half() -> None:
    assert ALPHA == 0.5


@given(st.floats(0.01, 10), st.floats(0.1, 10))
def test_small_vectors_pass_as_they_are_times_gain_and_alpha(alpha: float, gain: float) -> None:
    x = vectors(size=1e-5)
    torch.testing.assert_close(dynamic_tanh(x, gain, alpha), gain * alpha * x, rtol=1e-6, atol=0)


def test_so_small_logits_are_plain_ones_times_the_square_of_alpha_and_gain() -> None:
    q, k = vectors(0, size=1e-4), vectors(1, size=1e-4)
    plain = scores(q, k, VARIANTS["none"], Parameters()).logits
    parameters = Parameters(alpha_q=0.3, alpha_k=0.3, gamma_q=2.0, gamma_k=2.0)
    made = scores(q, k, VARIANTS["dyt"], parameters).logits
    torch.testing.assert_close(made, 0.6**2 * plain, rtol=1e-6, atol=0)


def test_alpha_and_gain_belong_to_their_own_side() -> None:
    q, k = vectors(0), vectors(1)
    parameters = Parameters(alpha_q=0.3, alpha_k=2.0, gamma_q=1.5, gamma_k=0.5)
    expected = (1.5 * torch.tanh(0.3 * q)) @ (0.5 * torch.tanh(2.0 * k)).mT / math.sqrt(8)
    torch.testing.assert_close(scores(q, k, VARIANTS["dyt"], parameters).logits, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("d_head", [8, 64, 128])
def test_long_vectors_of_equal_signs_reach_the_bound(d_head: int) -> None:
    signs = torch.where(vectors(shape=(1, 1, d_head)) > 0, 1.0, -1.0).double()
    parameters = Parameters(gamma_q=1.5, gamma_k=-0.4)
    bound = VARIANTS["dyt"].bound(parameters, d_head, 1)
    assert bound == pytest.approx(math.sqrt(d_head) * 0.6, rel=1e-12)
    made = scores(1e4 * signs, 1e4 * signs, VARIANTS["dyt"], parameters)
    assert made.logits.item() == pytest.approx(-bound, rel=1e-12)
    weight = torch.softmax(torch.tensor([bound, -bound], dtype=torch.float64), -1)[0]
    assert largest_weight(bound, 2) == pytest.approx(float(weight), rel=1e-12)


def test_with_rotary_positions_after_it_unequal_gains_in_a_pair_exceed_the_simple_bound() -> None:
    """Gains (4, 1) and (1, 4) in every rotary pair: 68 where √64 · max|γq γk| says 32."""
    d, half = 64, 32
    gamma_q = torch.tensor([4.0] * half + [1.0] * half, dtype=torch.float64)
    gamma_k = torch.tensor([1.0] * half + [4.0] * half, dtype=torch.float64)
    q, k = (dynamic_tanh(torch.full((1, d), 1e4, dtype=torch.float64), gain) for gain in (gamma_q, gamma_k))
    angle = math.atan2(4, 1) - math.atan2(1, 4)  # turns q's pairs onto k's
    first, second = q[..., :half], q[..., half:]
    turned = torch.cat(
        [first * math.cos(angle) - second * math.sin(angle), first * math.sin(angle) + second * math.cos(angle)], -1
    )
    simple = VARIANTS["dyt"].bound(Parameters(gamma_q=gamma_q, gamma_k=gamma_k), d, 1)
    assert simple == pytest.approx(32)
    assert (turned @ k.mT / math.sqrt(d)).item() == pytest.approx(68, rel=1e-12)
    alike = gamma_q.abs().amax().expand(d)  # equal within each pair: it holds again
    bound = VARIANTS["dyt"].bound(Parameters(gamma_q=alike, gamma_k=alike), d, 1)
    x = dynamic_tanh(vectors(shape=(1, 40, d), size=1e3), alike)
    logits = rotate(x, torch.arange(40).double()) @ rotate(x, 3 * torch.arange(40).double()).mT / math.sqrt(d)
    assert logits.abs().max() <= bound * (1 + 1e-12)


def test_dynamic_tanh_in_float16_loses_nothing_where_a_size_overflows() -> None:
    """64 squares of 300 overflow float16, and RMSNorm returns zeros; tanh saturates instead."""
    x = torch.full((1, 1, 64), 300.0)
    half = lambda y: rounded(y, FORMATS["float16"])  # noqa: E731
    assert NORMS["rms"].apply(x, 1.0, ALPHA, half).abs().max() == 0
    assert torch.equal(NORMS["dyt"].apply(x, 1.0, ALPHA, half), torch.ones_like(x))


def test_dynamic_tanh_has_no_stage_that_measures_a_size() -> None:
    state = formats.Settings(variant="dyt", stage="q_sum_of_squares", n_keys=4, d_head=8)
    result = formats.run(state)
    assert result.shown.stage == "q_entering"  # the vectors that the norm hands on
    inside = [STAGES.index(stage) for stage in IN_NORM]
    assert (result.twin.tally.n[:, inside] == 0).all()
    assert np.isnan(result.twin.first_loss[:, inside]).all()
    expected = torch.tanh(torch.tensor(400.0 * ALPHA) * drawn(formats.recipe_of(state)).q.float())
    torch.testing.assert_close(torch.from_numpy(result.shown.exact), expected.double(), rtol=1e-5, atol=1e-7)


def test_applied_twice_dynamic_tanh_is_another_function_even_with_unit_gains() -> None:
    """RMSNorm applied again at every read is itself, epsilon aside; tanh of tanh is not."""
    again = cache.Settings(way="normed_again", gains="unit", format="float64", epsilon=1e-12)
    assert cache.run(again).weight_error.max() < 1e-9
    assert cache.run(again.but(norm="dyt")).label == "wrong"
    assert not any("Unit gains hide" in sentence for sentence in cache.explain(cache.run(again.but(norm="dyt"))))


def test_inside_the_product_or_before_it_dynamic_tanh_is_one_function() -> None:
    state = placement.Settings(left_norm="dyt", right_norm="dyt", right_order="norm_rotary", alpha=2.0, d_head=8)
    assert placement.run(state.but(right_place="in_product")).relative_score_error < 1e-12
    assert placement.run(state.but(right_order="rotary_norm", gains="unit")).relative_score_error > 0.01


def test_a_dial_that_a_norm_does_not_read_leaves_no_trace() -> None:
    assert norms_with("alpha") == ("dyt",)
    assert placement.pipeline_of(placement.Settings(alpha=3.0), "left") == placement.pipeline_of(
        placement.Settings(), "left"
    )
    assert drift.state_of(drift.Settings(alpha=3.0)) == drift.state_of(drift.Settings())
    assert drift.state_of(drift.Settings(alpha=3.0, variant="dyt")) != drift.state_of(drift.Settings(variant="dyt"))


@pytest.mark.parametrize(("lab", "name"), [(placement, "right_norm"), (cache, "norm")])
@pytest.mark.parametrize("word", WORDS)
def test_the_programs_of_placement_and_cache_agree_with_the_lab(lab: object, name: str, word: NormaliserWord) -> None:
    state = lab.Settings(**{name: word, "alpha": 1.3}, n_keys=5, d_head=8, n_heads=2, format="float64")  # type: ignore[attr-defined]
    program = lab.snippet(state)  # type: ignore[attr-defined]
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    result = lab.run(state)  # type: ignore[attr-defined]
    if lab is cache:
        assert json.loads(told)["weight_error"] == pytest.approx(result.weight_error.tolist(), rel=1e-9, abs=1e-13)
    else:
        assert json.loads(told)["relative_score_error"] == pytest.approx(result.relative_score_error, rel=1e-9)


def test_the_table_of_rules_is_complete() -> None:
    assert {norm.rule for norm in NORMS.values()} <= set(RULES)
