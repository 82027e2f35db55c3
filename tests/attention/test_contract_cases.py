"""Cases that people met in public code, each a contract read wrongly: what our pipelines make of the same numbers."""

import math

import pytest
import torch
from torch import Tensor
from transformers.models.olmo2 import modeling_olmo2 as olmo2
from transformers.models.qwen3 import modeling_qwen3 as qwen3

from qkdemo.attention.blocks import Block, BlockRecipe, draw_block
from qkdemo.attention.pipeline import CAPS, Pipeline, trace
from qkdemo.attention.variants import VARIANTS, Parameters, scores
from qkdemo.dials import SettingsError
from qkdemo.facts.models import MODELS, Model
from qkdemo.labs import mla, placement
from qkdemo.labs.placement.diagnosis import diagnose
from qkdemo.training.network.parameters import Shape
from qkdemo.training.remedies import clip_heads

EXACT = Pipeline(epsilon=0.0, order="none", gain="none")


def block_of(q: Tensor, k: Tensor, **more: object) -> Block:
    """One head per query head of q and k, [heads, tokens, width]: an input that holds both, and projections to them."""
    (heads, tokens, d), kv_heads = q.shape, len(k)
    merged = [x.double().movedim(0, 1).reshape(tokens, -1) for x in (q, k)]
    eye = torch.eye(heads * d + kv_heads * d, dtype=torch.float64)
    given = {
        "gain_q": torch.ones(heads, d, dtype=torch.float64),
        "gain_k": torch.ones(kv_heads, d, dtype=torch.float64),
        "positions": torch.zeros(tokens, dtype=torch.float64),
    }
    keys = eye[heads * d :]
    return Block(x=torch.cat(merged, 1), w_q=eye[: heads * d], w_k=keys, w_v=keys, **given | more)  # type: ignore[arg-type]


def test_with_a_head_width_of_one_only_the_sign_is_left_and_the_axis_was_right() -> None:
    q, k = torch.tensor([[[3.0], [-2.0]]]), torch.tensor([[[1.0], [5.0]]])
    cosine = EXACT.but(norm="l2", scale="one", rule="absent")
    assert trace(cosine, block_of(q, k)).logits[0].tolist() == [[1, 1], [-1, -1]]
    over_tokens = [x / x.norm(dim=1, keepdim=True) for x in (q.double(), k.double())]  # what was proposed
    expected = [0.1631785, 0.8158924, -0.1087857, -0.5439283]
    assert (over_tokens[0] @ over_tokens[1].mT)[0].flatten().tolist() == pytest.approx(expected, rel=1e-6)
    assert trace(EXACT.but(norm="layernorm", rule="floor", epsilon=1e-12), block_of(q, k)).q.abs().max() == 0


def test_a_kernel_that_applies_its_own_scale_needs_the_learned_one_times_the_root() -> None:
    """cos 0.9, g = 10, d = 64: the logit is 9. Divided by g, and 1/√d applied twice: 0.0014, 6400 times less."""
    q = torch.zeros(1, 1, 64, dtype=torch.float64)
    q[..., 0] = 1
    k = torch.zeros(1, 2, 64, dtype=torch.float64)
    k[0, 0, :2], k[0, 1, 2] = torch.tensor([0.9, math.sqrt(0.19)], dtype=q.dtype), 1.0
    values = torch.tensor([[[1.0], [0.0]]], dtype=torch.float64)

    def kernel(prefactor: float) -> float:
        return torch.nn.functional.scaled_dot_product_attention(prefactor * q, k, values).item()

    learned = EXACT.but(norm="l2", scale="learned")
    logits = trace(learned, block_of(q.expand(1, 2, 64), k, learned_scale=10.0)).logits[0, 0]
    assert logits.tolist() == pytest.approx([9.0, 0.0], abs=1e-12)
    right = torch.softmax(logits, 0)[0].item()
    assert kernel(10 * math.sqrt(64)) == pytest.approx(right, rel=1e-12)
    wrong = 0.9 / 10 / math.sqrt(64) / math.sqrt(64)
    assert wrong == pytest.approx(0.00140625)
    assert kernel(1 / (10 * math.sqrt(64))) == pytest.approx(1 / (1 + math.exp(-wrong)), rel=1e-12)
    assert 9.0 / wrong == pytest.approx(6400)
    block = draw_block(BlockRecipe(d_model=32, n_heads=2, n_kv_heads=2, d_head=8, n_keys=8))
    reference = Pipeline(norm="l2", scale="learned")
    verdict = diagnose(reference, block, trace(reference, block).logits / 6400)
    assert (verdict.cause, verdict.ratio) == ("constant", pytest.approx(1 / 6400))


def test_a_scale_of_one_saturates_an_rms_norm_unless_the_gains_hold_the_missing_root() -> None:
    """Standard normal rows, d = 256, 128 keys, means of eight draws. A gain product of 1/16 is 1/√256."""
    bare = Pipeline(order="none", scale="one")
    for gain, spread, entropy, most in ((1.0, 16.05, 0.3066, 0.880), (0.25, 1.003, 4.366, 0.0675)):
        gains = torch.full((1, 256), gain, dtype=torch.float64)
        found = []
        for seed in range(8):
            generator = torch.Generator().manual_seed(seed)
            q, k = (torch.randn(1, 128, 256, generator=generator) for _ in range(2))
            made = trace(bare, block_of(q, k, gain_q=gains, gain_k=gains))
            each = made.logits.std(), torch.special.entr(made.weights).sum(-1).mean(), made.weights.amax(-1).mean()
            found.append([number.item() for number in each])
        means = torch.tensor(found, dtype=torch.float64).mean(0).tolist()
        assert means == pytest.approx([spread, entropy, most], rel=0.1)


def test_the_stored_temperature_is_a_logarithm_and_is_clamped_at_a_hundred() -> None:
    """ln(1/0.07) is stored, 14.29 is meant; 4.605 is ln 100; in float16 exp overflows from 11.09 on."""
    unit = torch.tensor([[[1.0, 0.0]] * 2], dtype=torch.float64)
    keys = torch.tensor([[[c, math.sqrt(1 - c * c)] for c in (0.3, 0.2)]], dtype=torch.float64)

    def weights(scale: float) -> list[float]:
        logits = scores(unit, keys, VARIANTS["cosine"], Parameters(temperature=1 / scale)).logits
        found: list[float] = torch.softmax(logits[0, 0], 0).tolist()
        return found

    assert math.exp(2.659260036932778) == pytest.approx(1 / 0.07)
    assert weights(math.exp(2.659260036932778)) == pytest.approx([0.8066786, 0.1933214], rel=1e-6)
    assert weights(2.659260036932778) == pytest.approx([0.5660925, 0.4339075], rel=1e-6)  # exp forgotten
    for stored in (4.605170185988092, 5.0, 11.1):  # past the clamp all are one function
        assert weights(math.exp(stored)) == pytest.approx([0.9999546, 4.539787e-05], rel=1e-6)
    assert torch.tensor(11.1, dtype=torch.float16).exp().isinf()
    assert math.log(65504) == pytest.approx(11.08987, rel=1e-6)
    for stored, slope in ((5.0, 0.0), (4.0, 54.59815)):
        parameter = torch.tensor(stored, dtype=torch.float64, requires_grad=True)
        parameter.clamp_max(math.log(100)).exp().backward()
        assert parameter.grad is not None
        assert parameter.grad.item() == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("cap", [0.0, -50.0, math.inf, math.nan])
def test_a_cap_that_is_no_positive_number_is_refused_with_a_sentence_and_never_computed_with(cap: float) -> None:
    """The formula would wipe every logit out, take the cap's absolute value, or return NaN."""
    with pytest.raises(SettingsError, match="softcap must be"):
        placement.Settings(softcap=cap)
    _, notes = placement.Settings.from_texts({"softcap": str(cap)})
    assert notes
    logits = torch.tensor([7.0, 0.0, 100.0], dtype=torch.float64)
    by_formula = CAPS["softcap"](logits, cap).tolist()
    if cap == -50:
        assert by_formula == CAPS["softcap"](logits, 50.0).tolist()
    elif cap == 0:
        assert by_formula[0] == by_formula[2] == 0
        assert math.isnan(by_formula[1])
    else:
        assert all(map(math.isnan, by_formula))


def test_a_softcap_is_odd_and_bounded_which_the_logit_times_the_tanh_is_not() -> None:
    x = torch.tensor([5.0, -5.0, 30.0, 124.0], dtype=torch.float64)
    right, wrong = CAPS["softcap"](x, 30.0), x * torch.tanh(x / 30)
    assert right.tolist() == pytest.approx([4.954212, -4.954212, 22.84782, 29.98459], rel=1e-6)
    assert wrong.tolist() == pytest.approx([0.8257021, 0.8257021, 22.84782, 123.9363], rel=1e-6)
    assert right[2] == wrong[2]  # a test at the cap alone decides nothing


def test_qk_clip_on_a_shared_key_head_puts_the_whole_factor_on_the_query() -> None:
    """q of 20 and of 4 on one key of 20, τ = 100: 400 and 80 become 100 and 80, not 100 and 40."""
    shape = Shape(n_symbols=2, n_keys=2, n_layers=1, n_heads=2, n_kv_heads=1, d_head=1)
    keys = torch.tensor([[[20.0]]])

    def logits(q: list[float], k: float = 20.0) -> list[float]:
        made = trace(
            EXACT.but(norm="none", scale="one"), block_of(torch.tensor(q)[:, None, None], torch.full_like(keys, k))
        )
        found: list[float] = made.logits.flatten().tolist()
        return found

    assert logits([20.0, 4.0]) == [400, 80]
    weights = torch.zeros(1, 2, 4)  # columns: q of either head, k, v
    weights[0, 0] = torch.tensor([20.0, 4.0, 20.0, 1.0])
    clip_heads(weights, torch.tensor([[400.0, 80.0]]), torch.tensor([[100.0]]), shape)
    of_a, of_b, key, _ = weights[0, 0].tolist()
    assert logits([of_a, of_b], key) == pytest.approx([100, 80])
    assert logits([20 * 0.5, 4.0], 20 * 0.5) == pytest.approx([100, 40])  # √ on either side, the shared key too
    normed = [
        trace(EXACT, block_of(torch.tensor(q)[:, None, None], keys)).logits.flatten().tolist()
        for q in ([20.0, 4.0], [of_a, of_b])
    ]
    assert normed[0] == pytest.approx(normed[1])  # with QK norm the size of the weights is nothing to clip


def test_qk_clip_under_latent_attention_leaves_the_shared_rotary_key_alone() -> None:
    settings = mla.Settings(n_heads=4, latent=16, d_content=8, d_rotary=4, n_keys=8, head_spread=16, projections=5)
    found = mla.run(settings).alternatives
    at = found.scales.tolist().index(5.0)
    assert 0 < (found.factors[at] < 1).sum() < 4
    assert found.shared_key[at] > 0.01
    sentences = " ".join(mla.explain_other_ways(mla.run(settings)))
    assert "the rotary key, common to all heads, is left alone" in sentences


def test_the_scale_is_the_models_own_and_a_wrong_width_is_seen() -> None:
    ones = torch.ones(1, 1, 64, dtype=torch.float64)
    bare = EXACT.but(norm="none")
    block = block_of(ones, ones, learned_scale=0.12)
    assert trace(bare, block).logits.item() == 8
    assert trace(bare.but(scale="learned"), block).logits.item() == pytest.approx(7.68)
    full = trace(bare.but(scale="one"), block).logits.item() / math.sqrt(512)
    assert full == pytest.approx(2.828427, rel=1e-6)
    assert 1 / (1 + math.exp(-full)) == pytest.approx(0.9441928, rel=1e-6)
    assert math.sqrt(168 / 128) == pytest.approx(1.145644, rel=1e-6)
    drawn = draw_block(BlockRecipe(d_model=32, n_heads=2, n_kv_heads=2, d_head=8, n_keys=8))
    verdict = diagnose(Pipeline(), drawn, trace(Pipeline(), drawn).logits * math.sqrt(128 / 168))
    assert (verdict.cause, verdict.ratio) == ("constant", pytest.approx(math.sqrt(128 / 168)))


@pytest.mark.parametrize(
    ("id", "made"),
    [
        ("qwen3-dense-transformers", lambda **sizes: qwen3.Qwen3Attention(qwen3.Qwen3Config(**sizes), 0)),
        ("olmo-2-transformers", lambda **sizes: olmo2.Olmo2Attention(olmo2.Olmo2Config(**sizes), 0)),
    ],
)
def test_the_length_of_the_gain_tells_the_place_of_the_norm(id: str, made) -> None:  # type: ignore[no-untyped-def]
    """Head width: after the projection, per head. Heads times that: full width. The hidden size: before it."""
    row: Model = next(model for model in MODELS if model.id == id)
    module = made(hidden_size=48, num_attention_heads=4, num_key_value_heads=2, head_dim=8, vocab_size=8)
    width = module.q_proj.out_features // 4
    length = {"per_head": width, "full_width": 4 * width, "input": 48}[row.place]
    assert module.q_norm.weight.shape == (length,)
    assert len({width, 4 * width, 48}) == 3 or row.place != "input"
