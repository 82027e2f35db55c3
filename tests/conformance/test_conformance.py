"""Rows of the table against the classes they describe: transformers' own attention, and our pipeline of that row.

The real class gets random weights, gains of its own for every channel, grouped heads and positions far from 0.
Read as the row says, our pipeline must give the same logits and output to float32's rounding; read in any other
way, not.
"""

import copy
from functools import cache, partial
from typing import Any

import pytest
import torch

from qkdemo.attention.blocks import Block
from qkdemo.attention.norms import NORMS, normalise
from qkdemo.attention.pipeline import CASTS, READINGS, Pipeline
from qkdemo.facts.models import MODELS, differing
from qkdemo.floats.formats import FORMATS, rounded
from tests.conformance import unusual
from tests.conformance.cases import CASES
from tests.conformance.real import HEADS, SIZES, TOKENS, WIDTH, Case, causal_mask, filled, found, inputs, row, seen

DORY = "dory-ngpt-style-transformers"  # its gain stands outside its norm
TOLERANCE = 2e-5  # relative; float32 angles at position 1000 leave about 5e-6
MISREAD = 0.02  # what any other reading must at least be off
# What is read otherwise, one choice at a time; where it is no other function, it is left out below.
MISREADINGS: list[dict[str, Any]] = [
    *({"norm": word} for word in ("none", "l2", "rms", "layernorm")),
    *({"place": word} for word in ("per_head", "full_width", "input")),
    *({"gain": word} for word in ("none", "scalar", "head", "channel")),
    *({"stored": word} for word in ("gamma", "one_plus")),
    *({"key_gain": word} for word in ("own", "of_q", "q_alone", "k_alone")),
    *({"order": word} for word in ("none", "norm_rotary", "rotary_norm")),
    *({"layout": word} for word in ("half_split", "interleaved", "half_split_swapped")),
    *({"rotated": word} for word in ("all", "half", "quarter")),
    *({"scale": word} for word in ("inverse_root", "one", "root", "inverse")),
    *({"on": word} for word in ("qk", "qkv", "q", "k")),
    {"cap": "none"},
    {"bias": "none"},
    {"grouping": "tile"},
]


@cache
def worked(id: str) -> Case:
    return CASES[id]()


@pytest.mark.parametrize("id", CASES)
def test_the_row_is_what_the_class_computes(id: str) -> None:
    model, real = row(id), worked(id)
    assert model.verified == "conformance"
    assert model.pipeline is not None
    assert not model.unread
    assert model.epsilon in (real.epsilon, None)
    assert model.softcap in (real.block.softcap, None)
    if real.cached is not None:  # keys go into the cache as they enter the product
        assert real.k is not None
        assert torch.equal(real.cached, real.k)
        assert model.cache == ("rotated" if model.norm == "none" else "finished")
    assert real.error(model.pipeline) < TOLERANCE


@pytest.mark.parametrize("id", CASES)
def test_no_other_reading_of_the_row_is(id: str) -> None:
    real, right = worked(id), row(id).pipeline
    assert right is not None
    others = [right.but(**changes) for changes in MISREADINGS]
    others = [other for other in others if not _same(right, other, real.block)]
    assert len(others) >= 9
    assert [other for other in others if real.error(other) <= MISREAD] == []


def _same(one: Pipeline, other: Pipeline, block: Block) -> bool:
    """Whether two readings are one function on this block, in exact arithmetic."""
    if not differing(one, other):
        return True
    name = next(name for name in vars(one) if getattr(one, name) != getattr(other, name))
    ones = {side: bool((getattr(block, f"gain_{side}") == 1).all()) for side in "qk"}
    alone = block.n_heads == 1
    whole = {one.place, other.place} == {"per_head", "full_width"}
    of_heads = {one.gain, other.gain} == {"channel", "head_channel"}
    of_side: dict[str, set[str]] = {"own": set(), "k_alone": {"q"}, "q_alone": {"k"}, "of_q": {"q", "k"}}
    same = {
        "grouping": block.n_heads == block.n_kv_heads,
        "place": alone and whole,
        "gain": all(ones.values()) or (alone and of_heads),
        "key_gain": all(ones[side] for side in of_side[one.key_gain] | of_side[other.key_gain]),
    }
    return same.get(name, False)


def test_every_row_with_a_class_in_transformers_and_a_pipeline_is_held_against_it() -> None:
    shipped = [model for model in MODELS if model.repo == "huggingface/transformers"]
    assert set(CASES) == {model.id for model in shipped if model.pipeline is not None}
    assert len(shipped) == 52
    assert len(CASES) == 48


@pytest.mark.parametrize("id", CASES)
def test_the_row_says_on_which_side_of_the_gain_its_class_rounds(id: str) -> None:
    """In bfloat16 the class's norm gives bit by bit what the row says, and the other order does not."""
    model, norm = row(id), worked(id).norm
    norm = (getattr(norm, "norms", None) or [norm])[0]
    if getattr(norm, "weight", None) is None:
        assert model.cast not in CASTS or id == DORY
        return
    norm, shape = copy.deepcopy(norm).to(torch.bfloat16), norm.weight.shape
    x = torch.randn(64, *shape, generator=torch.Generator().manual_seed(0)).bfloat16()
    bias = 0.0 if getattr(norm, "bias", None) is None else norm.bias.detach().float()
    gain = READINGS[model.stored](norm.weight.detach().float())  # type: ignore[index]
    normed = normalise(x.float(), NORMS[model.norm], epsilon=model.epsilon)  # type: ignore[index]
    with torch.inference_mode():
        real = norm(x).float()
    store = partial(rounded, format=FORMATS["bfloat16"])
    equal = {word: (cast(normed, gain, bias, store) == real).float().mean().item() for word, cast in CASTS.items()}
    assert equal.pop(model.cast) > 0.99  # type: ignore[call-overload]
    assert max(equal.values()) < 0.9


def test_dory_rounds_before_its_gain() -> None:
    """In bfloat16 its norm casts back; then q turns, here by nothing, and is multiplied by the square of a gain."""
    model = row(DORY)
    module = filled(found(model)(found(model, "DoryConfig")(**SIZES), 0)).to(torch.bfloat16)
    given: list[torch.Tensor] = []
    module.q_norm.register_forward_hook(lambda layer, before, after: given.append(before[0][0]))
    turn = (torch.ones(1, TOKENS, WIDTH).bfloat16(), torch.zeros(1, TOKENS, WIDTH).bfloat16())
    real = seen(module, inputs()[0].bfloat16(), position_embeddings=turn, attention_mask=causal_mask().bfloat16()).q
    gain = (module.sqk * module.sqk_scale).square().detach().float().view(HEADS, 1, WIDTH)
    normed = normalise(given[0].float().transpose(0, 1), NORMS[model.norm], epsilon=model.epsilon)  # type: ignore[index]
    store = partial(rounded, format=FORMATS["bfloat16"])
    equal = {
        word: (cast(normed, gain, 0.0, store) == real.float()).float().mean().item() for word, cast in CASTS.items()
    }
    assert equal.pop(model.cast) > 0.99  # type: ignore[call-overload]
    assert max(equal.values()) < 0.9


def test_rotary_before_a_gain_loses_relative_positions_in_the_real_class_too() -> None:
    """Hunyuan V1 and Qwen 3 themselves, all positions moved: one changes its attention, the other does not."""

    def moved(id: str) -> float:
        return (CASES[id](first=0).weights - CASES[id]().weights).abs().max().item()

    assert moved("hunyuan-v1-dense-transformers") > 0.05
    assert moved("qwen3-dense-transformers") < TOLERANCE


def test_janus_cannot_run_with_more_than_one_head() -> None:
    with pytest.raises(RuntimeError, match="normalized_shape"):
        unusual.picture("janus-vision-transformers", "JanusVisionConfig", use_qk_norm=True)


def test_the_factor_by_which_gpt_oss_stretches_q_and_k_is_the_one_its_row_names() -> None:
    rotary = found(row("gpt-oss-transformers"), "GptOssRotaryEmbedding")(
        found(row("gpt-oss-transformers"), "GptOssConfig")()
    )
    assert f"multiplies q and k by {rotary.attention_scaling:.2f}" in row("gpt-oss-transformers").note


def test_deepseek_v4_makes_what_its_row_says_of_q_and_of_the_one_vector_that_is_key_and_value() -> None:
    """Every query has the length √d, the key its gain; the last eighth of the channels turns, as neighbouring pairs."""
    model, width = row("deepseek-v4-transformers"), 64
    sizes = SIZES | {"num_key_value_heads": 1, "head_dim": width, "q_lora_rank": 24, "o_groups": 2, "o_lora_rank": 8}
    config = found(model, "DeepseekV4Config")(**sizes, layer_types=["sliding_attention"] * 6)
    module = filled(found(model)(config, 0))
    x, positions, _ = inputs()
    turns = found(model, "DeepseekV4RotaryEmbedding")(config)(x[None], position_ids=positions[None], layer_type="main")
    call = {"position_ids": positions[None], "attention_mask": causal_mask()}
    at, still = (
        seen(module, x, position_embeddings={"main": pair}, **call)
        for pair in (turns, (torch.ones_like(turns[0]), torch.zeros_like(turns[1])))
    )
    assert torch.equal(at.k, at.v)
    assert at.k.shape[0] == 1
    torch.testing.assert_close(at.q.norm(dim=-1), torch.full(at.q.shape[:2], width**0.5), rtol=1e-4, atol=0)
    gain = module.kv_norm.weight.detach()
    assert gain.shape == (width,)
    torch.testing.assert_close((still.k / gain).norm(dim=-1), torch.full((1, len(x)), width**0.5), rtol=1e-4, atol=0)
    moved = (at.k != still.k).any(1)[0]
    assert moved.nonzero()[:, 0].tolist() == list(range(width - width // 8, width))
    pairs = [x[0, :, -width // 8 :].unflatten(-1, (-1, 2)).norm(dim=-1) for x in (at.k, still.k)]
    torch.testing.assert_close(*pairs)
