"""Attention logits: every variant against its paper and a reference library, every bound against hostile vectors."""

import math
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from qkdemo.attention.inputs import causal_mask
from qkdemo.attention.norms import (
    L2_FLOOR,
    RMS_EPSILON,
    dynamic_tanh,
    full_width_rms_norm,
    l2_normalise,
    layer_norm,
    rms_norm,
)
from qkdemo.attention.variants import LARGEST_LOGIT_SCALE, VARIANTS, Parameters, VariantWord, scores
from qkdemo.floats.formats import FORMATS, rounded

Array = NDArray[np.float64]
WORDS = list(VARIANTS)
BOUNDED: list[VariantWord] = ["l2", "rms", "layernorm", "dyt", "cosine", "softcap", "rms_softcap", "full_width"]
ROUNDING = 1e-12  # of sums of at most a few hundred float64 products


def pair(seed: int = 0, shape: tuple[int, ...] = (3, 5, 8)) -> tuple[Array, Array]:
    generator = np.random.default_rng(seed)
    return generator.normal(0.3, 2, shape), generator.normal(-0.2, 3, shape)


def logits_of(word: VariantWord, q: Any, k: Any, **parameters: Any) -> Tensor:
    q, k = (torch.as_tensor(x, dtype=torch.float64) for x in (q, k))
    return scores(q, k, VARIANTS[word], Parameters(**parameters)).logits


# --- the papers, in NumPy, one vector at a time -------------------------------------------------------------------


def paper_rms(x: Array, gain: Array | float = 1.0) -> Array:
    """Zhang & Sennrich 2019, eq. 4; epsilon under the root as in the released models."""
    return x / np.sqrt(np.mean(x**2) + 1e-6) * gain


def paper_layer_norm(x: Array, gain: Array | float = 1.0) -> Array:
    """Ba et al. 2016: mean and biased variance of one vector."""
    return (x - np.mean(x)) / np.sqrt(np.var(x) + 1e-6) * gain


def paper_none(q: Array, k: Array, p: Any) -> Array:
    """Vaswani et al. 2017, eq. 1."""
    return np.einsum("hid,hjd->hij", q, k) / np.sqrt(q.shape[-1])


def paper_cosines(q: Array, k: Array) -> Array:
    lengths = np.sqrt(np.einsum("hid,hid->hi", q, q)), np.sqrt(np.einsum("hjd,hjd->hj", k, k))
    return np.einsum("hid,hjd->hij", q, k) / (lengths[0][:, :, None] * lengths[1][:, None, :])


def paper_l2(q: Array, k: Array, p: Any) -> Array:
    """Henry et al. 2020, eq. 3: g times the cosine, no 1/√d."""
    return p.g * paper_cosines(q, k)


def paper_swin(q: Array, k: Array, p: Any) -> Array:
    """Liu et al. 2022, eq. 2: cosine over τ; the released code keeps 1/τ ≤ 100."""
    return paper_cosines(q, k) / max(p.temperature, 0.01)


def paper_rms_per_head(q: Array, k: Array, p: Any) -> Array:
    normed = [np.apply_along_axis(paper_rms, -1, x, gain) for x, gain in ((q, p.gamma_q), (k, p.gamma_k))]
    return paper_none(*normed, p)


def flax_layer_norm(q: Array, k: Array, p: Any) -> Array:
    """Ba et al. 2016 on q and on k: LN(XW_Q) (LN(XW_K))ᵀ / √d, as flax has it. (ViT-22B leaves the centering out.)"""
    normed = [np.apply_along_axis(paper_layer_norm, -1, x, gain) for x, gain in ((q, p.gamma_q), (k, p.gamma_k))]
    return paper_none(*normed, p)


def paper_dyt(q: Array, k: Array, p: Any) -> Array:
    """Zhu et al. 2025, section 4, of q and of k: γ tanh(α x), tanh written with exponentials."""
    tanhs = (
        (1 - np.exp(-2 * alpha * x)) / (1 + np.exp(-2 * alpha * x)) for x, alpha in ((q, p.alpha_q), (k, p.alpha_k))
    )
    normed = [x * gain for x, gain in zip(tanhs, (p.gamma_q, p.gamma_k), strict=True)]
    return paper_none(*normed, p)


def paper_softcap(q: Array, k: Array, p: Any) -> Array:
    """Gemma 2, section 2: soft_cap · tanh(logits / soft_cap)."""
    return p.softcap * np.tanh(paper_none(q, k, p) / p.softcap)


def paper_rms_softcap(q: Array, k: Array, p: Any) -> Array:
    return p.softcap * np.tanh(paper_rms_per_head(q, k, p) / p.softcap)


def paper_olmo2(q: Array, k: Array, p: Any) -> Array:
    """OLMo 2: a token's whole projection, all heads side by side, is one vector of RMSNorm."""

    def normed(x: Array, gain: Array | float) -> Array:
        heads, positions, width = x.shape
        flat = x.transpose(1, 0, 2).reshape(positions, heads * width)
        flat = np.apply_along_axis(paper_rms, -1, flat)
        return flat.reshape(positions, heads, width).transpose(1, 0, 2) * gain

    return paper_none(normed(q, p.gamma_q), normed(k, p.gamma_k), p)


PAPERS: dict[VariantWord, Callable[[Array, Array, Any], Array]] = {
    "none": paper_none,
    "l2": paper_l2,
    "rms": paper_rms_per_head,
    "layernorm": flax_layer_norm,
    "dyt": paper_dyt,
    "cosine": paper_swin,
    "softcap": paper_softcap,
    "rms_softcap": paper_rms_softcap,
    "full_width": paper_olmo2,
}


def test_every_variant_has_its_paper_here() -> None:
    assert list(PAPERS) == WORDS == [variant.word for variant in VARIANTS.values()]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("word", WORDS)
def test_logits_are_those_of_the_paper(word: VariantWord, seed: int) -> None:
    q, k = pair(seed)
    parameters = Parameters(g=7.0, gamma_q=1.5, gamma_k=-0.7, alpha_q=0.3, alpha_k=0.8, temperature=0.07, softcap=5.0)
    expected = PAPERS[word](q, k, parameters)
    made = scores(torch.from_numpy(q), torch.from_numpy(k), VARIANTS[word], parameters)
    np.testing.assert_allclose(made.logits.numpy(), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(made.raw.numpy(), np.einsum("hid,hjd->hij", made.q.numpy(), made.k.numpy()), rtol=1e-12)


@pytest.mark.parametrize("word", ["rms", "layernorm", "dyt", "rms_softcap", "full_width"])
def test_gains_act_per_channel_each_on_its_own_side(word: VariantWord) -> None:
    q, k = pair()
    gains = np.random.default_rng(9).normal(size=(2, 8))
    expected = PAPERS[word](
        q, k, SimpleNamespace(gamma_q=gains[0], gamma_k=gains[1], alpha_q=0.5, alpha_k=0.5, softcap=50.0)
    )
    parameters = Parameters(gamma_q=torch.from_numpy(gains[0]), gamma_k=torch.from_numpy(gains[1]))
    made = scores(torch.from_numpy(q), torch.from_numpy(k), VARIANTS[word], parameters).logits
    np.testing.assert_allclose(made.numpy(), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("word", WORDS)
def test_a_batch_of_scales_gives_what_each_scale_gives_alone(word: VariantWord) -> None:
    q, k = (torch.from_numpy(x) for x in pair())
    scales = torch.tensor([0.01, 1.0, 30.0], dtype=torch.float64)
    batch = logits_of(word, scales[:, None, None, None] * q, scales[:, None, None, None] * k)
    for at, scale in enumerate(scales):
        torch.testing.assert_close(batch[at], logits_of(word, scale * q, scale * k), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("word", "name"),
    [("l2", "g"), ("rms", "gamma_q"), ("dyt", "alpha_k"), ("cosine", "temperature"), ("softcap", "softcap")],
)
def test_a_tensor_of_parameters_sweeps_them(word: VariantWord, name: str) -> None:
    q, k = pair()
    values = torch.tensor([0.005, 0.5, 4.0, 40.0], dtype=torch.float64)  # τ = 0.005 is clamped
    swept = scores(
        torch.from_numpy(q)[None],
        torch.from_numpy(k)[None],
        VARIANTS[word],
        Parameters(**{name: values[:, None, None, None]}),
    ).logits
    for at, value in enumerate(values.tolist()):
        torch.testing.assert_close(swept[at], logits_of(word, q, k, **{name: value}), rtol=1e-12, atol=1e-13)


# --- the reference library ----------------------------------------------------------------------------------------


@given(st.integers(0, 99), st.sampled_from([1e-5, 1e-2, 1.0, 1e4]))
def test_norms_are_those_of_torch(seed: int, scale: float) -> None:
    x = torch.from_numpy(pair(seed)[0]) * scale
    gain = torch.from_numpy(pair(seed)[1][0, 0])
    close = {"rtol": 1e-12, "atol": 1e-14}
    torch.testing.assert_close(l2_normalise(x), functional.normalize(x, dim=-1), **close)
    torch.testing.assert_close(rms_norm(x, gain), functional.rms_norm(x, (8,), gain, eps=1e-6), **close)
    torch.testing.assert_close(
        layer_norm(x, gain), functional.layer_norm(x, (8,), gain, eps=1e-6), rtol=1e-9, atol=1e-12
    )
    flat = functional.rms_norm(x.transpose(0, 1).reshape(5, 24), (24,), eps=1e-6)
    torch.testing.assert_close(full_width_rms_norm(x), flat.reshape(5, 3, 8).transpose(0, 1), **close)


def test_constants_are_those_of_their_sources() -> None:
    assert L2_FLOOR == 1e-12
    assert RMS_EPSILON == 1e-6
    assert math.log(LARGEST_LOGIT_SCALE) == pytest.approx(4.605170185988092)  # Swin v2 clamps the stored logarithm


def test_a_full_width_norm_of_one_head_is_the_norm_per_head() -> None:
    x = torch.from_numpy(pair(shape=(1, 5, 8))[0])
    torch.testing.assert_close(full_width_rms_norm(x, 1.7), rms_norm(x, 1.7))


def test_a_layer_norm_of_vectors_without_mean_is_the_rms_norm() -> None:
    x = torch.from_numpy(pair()[0])
    x = x - x.mean(-1, keepdim=True)
    torch.testing.assert_close(layer_norm(x, 0.3), rms_norm(x, 0.3), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("word", WORDS)
def test_zero_vectors_give_zero_logits_and_no_nan(word: VariantWord) -> None:
    zero = torch.zeros(2, 3, 8, dtype=torch.float64)
    assert torch.equal(logits_of(word, zero, zero), torch.zeros(2, 3, 3, dtype=torch.float64))


@pytest.mark.parametrize("word", WORDS)
def test_zero_vectors_have_a_derivative_that_is_finite(word: VariantWord) -> None:
    zero = torch.zeros(2, 3, 8, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(logits_of(word, zero, zero).sum(), zero)
    assert slope.isfinite().all()


def test_a_constant_vector_has_no_layer_norm_but_a_length() -> None:
    constant = torch.full((1, 1, 8), 3.0, dtype=torch.float64)
    assert torch.equal(layer_norm(constant), torch.zeros(1, 1, 8, dtype=torch.float64))
    torch.testing.assert_close(rms_norm(constant), torch.ones(1, 1, 8, dtype=torch.float64), rtol=1e-6, atol=0)


@pytest.mark.parametrize("bad", [math.inf, math.nan])
@pytest.mark.parametrize("word", WORDS)
def test_a_vector_that_is_not_finite_spoils_its_own_row_alone(word: VariantWord, bad: float) -> None:
    q, k = (torch.from_numpy(x) for x in pair(shape=(1, 4, 8)))
    clean = logits_of(word, q, k)
    q[0, 2, 0] = bad
    spoilt = logits_of(word, q, k)
    if not (word in ("softcap", "dyt") and bad == math.inf):  # tanh(∞) is 1: it hides the overflow
        assert not spoilt[0, 2].isfinite().any()
    assert torch.equal(spoilt[0, [0, 1, 3]], clean[0, [0, 1, 3]])


@pytest.mark.parametrize("n", [1, 2, 7])
def test_a_causal_query_sees_itself_and_what_came_before(n: int) -> None:
    assert causal_mask(n).tolist() == [[key <= query for key in range(n)] for query in range(n)]


# --- bounds -------------------------------------------------------------------------------------------------------


@st.composite
def hostile_vectors(draw: st.DrawFn, n_heads: int, n: int, d_head: int) -> Array:
    """Random, parallel, one-hot, or with one head or channel far above the rest; from tiny to huge."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = generator.standard_normal((n_heads, n, d_head))
    match draw(st.sampled_from(["random", "parallel", "one-hot", "one head", "one channel", "zeros between"])):
        case "parallel":
            x = x[:1, :1] * generator.choice([-1.0, 1.0], (n_heads, n, 1))
        case "one-hot":
            x = np.eye(d_head)[generator.integers(0, d_head, (n_heads, n))]
        case "one head":
            x[1:] *= draw(st.sampled_from([0.0, 1e-9]))
        case "one channel":
            x[..., 0] *= 1e6
        case "zeros between":
            x[:, ::2] = 0
    return x * 10.0 ** draw(st.integers(-8, 8))


@st.composite
def hostile_states(draw: st.DrawFn) -> tuple[Array, Array, Parameters]:
    n_heads, n, d_head = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.sampled_from([1, 2, 3, 8]))
    q = draw(hostile_vectors(n_heads, n, d_head))
    k = q * draw(st.sampled_from([-1.0, 1.0])) if draw(st.booleans()) else draw(hostile_vectors(n_heads, n, d_head))
    gains: list[Any] = []
    for _ in range(2):
        gain = draw(st.lists(st.floats(-20, 20), min_size=d_head, max_size=d_head))
        if draw(st.booleans()):  # all of the gain in one channel
            gain = [gain[0], *[0.0] * (d_head - 1)]
        gains.append(draw(st.sampled_from([torch.tensor(gain, dtype=torch.float64), gain[0]])))
    parameters = Parameters(
        g=draw(st.floats(-100, 100)),
        gamma_q=gains[0],
        gamma_k=gains[1],
        alpha_q=draw(st.floats(0.01, 10)),
        alpha_k=draw(st.floats(0.01, 10)),
        temperature=draw(st.floats(1e-3, 10)),
        softcap=draw(st.floats(1, 1000)),
    )
    return q, k, parameters


@given(hostile_states(), st.sampled_from(BOUNDED))
def test_no_vectors_and_no_gains_exceed_the_bound(state: tuple[Array, Array, Parameters], word: VariantWord) -> None:
    q, k, parameters = state
    logits = scores(torch.from_numpy(q), torch.from_numpy(k), VARIANTS[word], parameters).logits
    bound = VARIANTS[word].bound(parameters, q.shape[-1], q.shape[0])
    assert logits.isfinite().all()
    assert logits.abs().max() <= bound * (1 + ROUNDING)


@given(hostile_states(), st.integers(0, 20))
def test_plain_attention_has_no_bound(state: tuple[Array, Array, Parameters], power: int) -> None:
    q, k, parameters = state
    assume(np.abs(paper_none(q, k, parameters)).max() > 1e-20)
    assert VARIANTS["none"].bound(parameters, q.shape[-1], q.shape[0]) == math.inf
    grown = logits_of("none", q * 2.0**power, k * 2.0**power).abs().max()
    assert grown == logits_of("none", q, k).abs().max() * 4.0**power  # powers of two are exact


def test_parallel_unit_vectors_reach_g() -> None:
    q = torch.from_numpy(pair(shape=(1, 4, 64))[0])
    logits = logits_of("l2", q, 5 * q, g=10.0)
    assert logits.diagonal(dim1=-2, dim2=-1).tolist() == [pytest.approx([10.0] * 4, rel=1e-12)]
    assert VARIANTS["l2"].bound(Parameters(g=10.0), 64, 1) == 10.0


@pytest.mark.parametrize("d_head", [8, 64, 128])
def test_one_channel_with_all_energy_reaches_the_rms_bound(d_head: int) -> None:
    gamma_q, gamma_k = (torch.from_numpy(np.random.default_rng(at).uniform(0.1, 3, d_head)) for at in (1, 2))
    parameters = Parameters(gamma_q=gamma_q, gamma_k=gamma_k)
    loudest = int((gamma_q * gamma_k).argmax())
    x = torch.zeros(1, 1, d_head, dtype=torch.float64)
    x[..., loudest] = 1e6  # epsilon is nothing beside it
    logits = scores(x, x, VARIANTS["rms"], parameters).logits
    bound = VARIANTS["rms"].bound(parameters, d_head, 1)
    assert bound == pytest.approx(math.sqrt(d_head) * float((gamma_q * gamma_k).max()), rel=1e-15)
    assert logits.item() == pytest.approx(bound, rel=1e-12)


def test_opposite_vectors_reach_the_layer_norm_bound_from_below() -> None:
    x = torch.tensor([[[1e5, -1e5] * 4]], dtype=torch.float64)
    logits = logits_of("layernorm", x, -x, gamma_q=2.0, gamma_k=3.0)
    assert logits.item() == pytest.approx(-6 * math.sqrt(8), rel=1e-12)
    assert VARIANTS["layernorm"].bound(Parameters(gamma_q=2.0, gamma_k=3.0), 8, 5) == pytest.approx(6 * math.sqrt(8))


def test_one_head_that_holds_the_whole_norm_reaches_heads_times_root_width() -> None:
    x = torch.zeros(4, 1, 16, dtype=torch.float64)
    x[2] = 1e6 * torch.from_numpy(pair(shape=(1, 1, 16))[0])
    logits = logits_of("full_width", x, x)
    assert logits[2].item() == pytest.approx(4 * 4, rel=1e-12)
    assert logits[[0, 1, 3]].abs().max() == 0
    assert VARIANTS["full_width"].bound(Parameters(), 16, 4) == 16


def test_the_cosine_bound_is_one_over_temperature_until_swins_clamp() -> None:
    q = torch.from_numpy(pair(shape=(1, 1, 8))[0])
    for temperature, bound in ((1.0, 1.0), (0.07, 1 / 0.07), (0.01, 100.0), (0.001, 100.0)):
        assert VARIANTS["cosine"].bound(Parameters(temperature=temperature), 8, 1) == pytest.approx(bound, rel=1e-15)
        assert logits_of("cosine", q, q, temperature=temperature).item() == pytest.approx(bound, rel=1e-12)


@given(st.floats(1, 1000), st.floats(-1e9, 1e9))
def test_a_capped_logit_stays_below_c_while_tanh_can_tell_and_never_passes_it(cap: float, raw: float) -> None:
    logit = logits_of("softcap", [[[raw]]], [[[1.0]]], softcap=cap).item()
    assert abs(logit) <= cap
    if abs(raw) / cap < 18:  # tanh(18) is the last whole number below 1 in float64
        assert abs(logit) < cap
    assert math.copysign(1, logit) == math.copysign(1, raw) or raw == 0


def test_far_above_the_cap_float64_reaches_it() -> None:
    assert logits_of("softcap", [[[1e4]]], [[[1.0]]], softcap=50.0).item() == 50.0


def test_a_cap_far_above_the_logits_changes_almost_nothing() -> None:
    q, k = pair()
    plain = logits_of("none", q, k)
    torch.testing.assert_close(logits_of("softcap", q, k, softcap=1e8), plain, rtol=1e-12, atol=1e-12)


# --- what normalising forgets -------------------------------------------------------------------------------------


@given(st.integers(0, 99), st.integers(-3, 8), st.integers(0, 4), st.sampled_from(["l2", "cosine"]))
def test_the_length_of_a_query_no_longer_enters_a_cosine(seed: int, power: int, row: int, word: VariantWord) -> None:
    q, k = (torch.from_numpy(x) for x in pair(seed))
    longer = q.clone()
    longer[:, row] *= 7.3 * 10.0**power
    torch.testing.assert_close(logits_of(word, longer, k), logits_of(word, q, k), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(logits_of(word, k, longer), logits_of(word, k, q), rtol=1e-12, atol=1e-12)


@given(st.integers(0, 99), st.floats(1e-2, 1e6), st.sampled_from(["rms", "layernorm", "rms_softcap"]))
def test_the_length_of_a_query_enters_an_rms_norm_through_epsilon_alone(
    seed: int, factor: float, word: VariantWord
) -> None:
    q, k = (torch.from_numpy(x) for x in pair(seed))
    centred = q - q.mean(-1, keepdim=True) if word == "layernorm" else q
    smallest = (centred * min(factor, 1)).square().mean(-1).min().item()
    kept = logits_of(word, q * factor, k, gamma_q=2.0) - logits_of(word, q, k, gamma_q=2.0)
    assert kept.abs().max() <= 2 * math.sqrt(8) * (RMS_EPSILON / smallest / 2 + ROUNDING)


def test_vectors_around_a_ten_thousandth_are_not_fully_normalised() -> None:
    """Entries of 1e-4 have a mean square of 1e-8: a hundredth of epsilon, so the norm keeps a tenth of the length."""
    x = torch.full((1, 1, 8), 1.0, dtype=torch.float64)
    sizes = {scale: rms_norm(scale * x)[0, 0, 0].item() for scale in (1.0, 1e-2, 1e-3, 1e-4)}
    assert sizes == {scale: pytest.approx(scale / math.sqrt(scale**2 + 1e-6), rel=1e-12) for scale in sizes}
    assert sizes[1e-2] > 0.99
    assert sizes[1e-3] == pytest.approx(math.sqrt(0.5), rel=1e-9)
    assert sizes[1e-4] < 0.1


def test_a_layer_norm_forgets_the_mean_and_an_rms_norm_does_not() -> None:
    q, k = (torch.from_numpy(x) for x in pair())
    torch.testing.assert_close(
        logits_of("layernorm", q + 3, k - 2), logits_of("layernorm", q, k), rtol=1e-10, atol=1e-12
    )
    assert (logits_of("rms", q + 3, k - 2) - logits_of("rms", q, k)).abs().max() > 0.5


@pytest.mark.parametrize("word", WORDS)
def test_flipping_a_query_flips_its_logits(word: VariantWord) -> None:
    q, k = pair()
    assert torch.equal(logits_of(word, -q, k), -logits_of(word, q, k))


@pytest.mark.parametrize("word", WORDS)
def test_keys_keep_their_order_under_every_variant_but_the_mean_sensitive_ones(word: VariantWord) -> None:
    """One query, keys of equal length and no mean: every variant ranks them by angle."""
    generator = np.random.default_rng(4)
    x = generator.standard_normal((1, 6, 8))
    x -= x.mean(-1, keepdims=True)
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    ranks = logits_of(word, x, x)[0, 0].argsort().tolist()
    assert ranks == np.argsort(x[0] @ x[0, 0]).tolist()


# --- known cases --------------------------------------------------------------------------------------------------


def test_a_head_of_width_one_keeps_the_sign_alone() -> None:
    cosines = logits_of("cosine", [[[3.0], [-2.0]]], [[[1.0], [5.0]]], temperature=1.0)
    assert cosines.tolist() == [[[1.0, 1.0], [-1.0, -1.0]]]


def test_a_layer_norm_of_one_entry_is_zero_and_of_two_is_plus_and_minus_one() -> None:
    assert layer_norm(torch.tensor([[[3.0]]], dtype=torch.float64)).item() == 0
    two = layer_norm(torch.tensor([[[3.0, 7.0]]], dtype=torch.float64))
    assert two.flatten().tolist() == pytest.approx([-1, 1], rel=1e-6)


def test_unit_vectors_times_the_root_of_the_width_are_an_rms_norm() -> None:
    """L2 with g = 8 is RMSNorm with 1/√64: one of them needs the scale that the other carries."""
    q, k = pair(shape=(1, 6, 64))
    torch.testing.assert_close(logits_of("l2", q, k, g=8.0), logits_of("rms", q, k), rtol=1e-5, atol=0)
    assert VARIANTS["l2"].bound(Parameters(g=8.0), 64, 1) == VARIANTS["rms"].bound(Parameters(), 64, 1) == 8
    assert VARIANTS["l2"].bound(Parameters(g=64**-0.5), 64, 1) == 0.125  # what is left with 1/√d left in


def test_heads_of_unequal_size_keep_their_ratio_under_a_full_width_norm() -> None:
    x = torch.tensor([[[1.0, 1.0]], [[10.0, 10.0]]], dtype=torch.float64)
    assert full_width_rms_norm(x).flatten().tolist() == pytest.approx(
        [0.1407195, 0.1407195, 1.407195, 1.407195], rel=1e-6
    )
    assert rms_norm(x).flatten().tolist() == pytest.approx([1.0] * 4, rel=1e-6)
    full, each = logits_of("full_width", x, x).flatten(), logits_of("rms", x, x).flatten()
    assert full.tolist() == pytest.approx([0.02800423, 2.800423], rel=1e-6)
    assert each.tolist() == pytest.approx([1.414214, 1.414214], rel=2e-6)
    assert VARIANTS["rms"].bound(Parameters(), 128, 32) == pytest.approx(11.31371, rel=1e-6)
    assert VARIANTS["full_width"].bound(Parameters(), 128, 32) == pytest.approx(362.0387, rel=1e-6)


def test_a_gain_of_one_is_still_a_norm() -> None:
    x = [[[3.0, 4.0]]]
    assert logits_of("none", x, x).item() == pytest.approx(17.67767, rel=1e-6)
    assert logits_of("rms", x, x).item() == pytest.approx(1.414214, rel=1e-6)
    assert rms_norm(torch.tensor(x, dtype=torch.float64)).flatten().tolist() == pytest.approx(
        [0.8485281, 1.131371], rel=1e-6
    )


def test_a_stored_log_scale_means_its_exponential_up_to_a_hundred() -> None:
    """What Swin and CLIP store is ln(1/τ); a logit scale of 14.29 is τ = 0.07, and past 100 nothing moves."""
    q = torch.tensor([[[1.0, 0.0]]], dtype=torch.float64)
    keys = torch.tensor([[[c, math.sqrt(1 - c * c)] for c in (0.3, 0.2)]], dtype=torch.float64)
    for stored, expected in ((2.659260036932778, 0.8066786), (4.605170185988092, 0.9999546), (5.0, 0.9999546)):
        made = scores(q.expand(1, 2, 2), keys, VARIANTS["cosine"], Parameters(temperature=math.exp(-stored)))
        assert torch.softmax(made.logits, -1)[0, 0, 0].item() == pytest.approx(expected, rel=1e-6)


def test_a_learned_temperature_beyond_the_clamp_gets_no_gradient() -> None:
    q, k = (torch.from_numpy(x) for x in pair())
    for stored, moves in ((4.0, True), (5.0, False)):
        log_scale = torch.tensor(stored, dtype=torch.float64, requires_grad=True)
        scores(q, k, VARIANTS["cosine"], Parameters(temperature=torch.exp(-log_scale))).logits.square().sum().backward()
        assert log_scale.grad is not None
        assert bool(log_scale.grad.abs() > 0) == moves


def test_softcap_gives_the_known_values_and_slopes() -> None:
    raw = torch.tensor([7.0, 0.0, 100.0, 50.0], dtype=torch.float64, requires_grad=True)
    capped = scores(
        torch.ones(1, 4, 1, dtype=torch.float64), raw[None, :, None], VARIANTS["softcap"], Parameters(softcap=50.0)
    ).logits[0, 0]
    assert capped.tolist() == pytest.approx([6.954622, 0.0, 48.20138, 50 * math.tanh(1)], rel=1e-6)
    (slope,) = torch.autograd.grad(capped.sum(), raw)
    assert slope.tolist() == pytest.approx([0.9806533, 1.0, 0.07065082, 0.4199743], rel=1e-6)


def test_a_cap_of_fifty_on_an_rms_norm_is_nearly_idle_and_not_quite() -> None:
    parameters = Parameters(softcap=50.0)
    assert VARIANTS["rms"].bound(parameters, 128, 1) == pytest.approx(11.31371, rel=1e-6)
    assert VARIANTS["rms_softcap"].bound(parameters, 128, 1) == pytest.approx(11.1245, rel=1e-5)
    loud = Parameters(softcap=50.0, gamma_q=10.0, gamma_k=10.0)
    assert VARIANTS["rms_softcap"].bound(loud, 128, 1) == pytest.approx(50.0, rel=1e-12)  # gains wake the cap


def test_the_scale_belongs_to_the_head_width() -> None:
    ones = torch.ones(1, 1, 64, dtype=torch.float64)
    assert logits_of("none", ones, ones).item() == 8.0
    heads = torch.ones(8, 1, 64, dtype=torch.float64)  # 512 wide in all: still 1/√64
    assert logits_of("none", heads, heads).flatten().tolist() == [8.0] * 8


def test_an_rms_norm_with_a_scale_of_one_is_saturated_and_its_gains_can_undo_that() -> None:
    """γ = 4 on both sides is no 1/√256. Means of eight draws; 10 %: entropy near zero hangs on few rows."""
    q, k = np.random.default_rng(0).standard_normal((2, 8, 128, 256))
    for gain, spread, entropy in ((4.0, 16.05, 0.3066), (1.0, 1.003, 4.366)):
        logits = logits_of("rms", q, k, gamma_q=gain, gamma_k=gain)
        assert logits.std().item() == pytest.approx(spread, rel=0.01)
        found = torch.special.entr(torch.softmax(logits, -1)).sum(-1).mean().item()
        assert found == pytest.approx(entropy, rel=0.1)
    assert VARIANTS["rms"].bound(Parameters(gamma_q=4.0, gamma_k=4.0), 256, 1) == 256


# --- number formats -----------------------------------------------------------------------------------------------


def in_float16(x: Tensor) -> Tensor:
    return rounded(x, FORMATS["float16"])


def test_what_is_stored_is_q_k_their_product_and_the_logits_in_that_order() -> None:
    for word, expected in (("none", 4), ("l2", 4), ("rms", 4), ("softcap", 5), ("rms_softcap", 5)):
        stored: list[Tensor] = []
        q, k = (torch.from_numpy(x) for x in pair())

        def store(x: Tensor, stored: list[Tensor] = stored) -> Tensor:
            stored.append(x)
            return x

        made = scores(q, k, VARIANTS[word], Parameters(), store=store)
        assert len(stored) == expected
        assert all(a is b for a, b in zip((made.q, made.k, made.raw), stored, strict=False))
        assert made.logits is stored[-1]


def test_an_overflow_happens_in_the_raw_product_and_is_not_scaled_away() -> None:
    q, k = torch.full((1, 2, 128), 24.0), torch.stack([torch.full((128,), 24.0), torch.full((128,), 23.0)])[None]
    made = scores(q, k, VARIANTS["none"], Parameters(), store=in_float16)
    assert made.raw.isinf().all()
    assert made.logits.isinf().all()
    assert scores(q, k, VARIANTS["none"], Parameters()).logits[0, 0].tolist() == pytest.approx([6516.696, 6245.167])


@pytest.mark.parametrize(
    ("norm", "entry", "expected"),
    [
        (rms_norm, 300.0, 0.0),
        (rms_norm, 256.0, 0.0),
        (rms_norm, 255.0, 0.0),  # 255² fits, but the sum of squares is stored too: a fused kernel would keep it
        (rms_norm, 31.0, 1.0),  # 64 · 31² = 61 504 fits
        (rms_norm, 32.0, 0.0),  # 64 · 32² = 65 536 does not
        (full_width_rms_norm, 32.0, 0.0),
        (l2_normalise, 32.0, 0.0),
        (l2_normalise, 31.0, 0.125),
    ],
)
def test_inside_a_float16_norm_large_vectors_silently_become_zeros(
    norm: Callable[..., Tensor], entry: float, expected: float
) -> None:
    x = torch.full((1, 1, 64), entry)
    assert torch.equal(norm(x, r=in_float16), torch.full_like(x, expected))
    assert norm(x)[0, 0, 0].item() == pytest.approx(0.125 if norm is l2_normalise else 1.0, rel=1e-6)


def test_one_large_entry_zeroes_a_whole_float16_vector() -> None:
    spike = torch.zeros(1, 1, 64)
    spike[..., 0] = 300
    assert rms_norm(spike, r=in_float16).abs().max() == 0
    assert rms_norm(spike)[0, 0, :2].tolist() == pytest.approx([8.0, 0.0], rel=1e-6)


@pytest.mark.parametrize("gain", [1.0, 0.75])
@pytest.mark.parametrize("scale", [0.01, 1.0, 5.0])
def test_every_step_of_a_float16_norm_is_rounded_as_numpys_float16_rounds(scale: float, gain: float) -> None:
    x = (pair(shape=(1, 4, 8))[0] * scale).astype(np.float16)
    half = np.float16
    squares = (x * x).astype(np.float32).sum(-1, keepdims=True).astype(half)  # sums are kept wider
    mean = (squares / half(8)).astype(half)
    steadied = (mean.astype(np.float32) + np.float32(1e-6)).astype(half)
    inverse = (1 / np.sqrt(steadied.astype(np.float32))).astype(half)
    expected = (x * inverse).astype(half) * half(gain)
    got = rms_norm(torch.from_numpy(x.astype(np.float32)), gain, in_float16)
    np.testing.assert_array_equal(got.numpy(), expected.astype(np.float32))
    norm = np.sqrt(squares.astype(np.float32)).astype(half)
    unit = l2_normalise(torch.from_numpy(x.astype(np.float32)), in_float16)
    np.testing.assert_array_equal(unit.numpy(), (x / norm).astype(half).astype(np.float32))


@pytest.mark.parametrize("norm", [l2_normalise, rms_norm, layer_norm, full_width_rms_norm, dynamic_tanh])
def test_what_comes_out_of_a_rounded_norm_is_a_number_of_the_format(norm: Callable[..., Tensor]) -> None:
    x = torch.from_numpy(pair()[0]).float()
    for narrow in (FORMATS["float16"], FORMATS["bfloat16"]):
        out = norm(x, r=partial(rounded, format=narrow))
        assert torch.equal(out, rounded(out, narrow))
