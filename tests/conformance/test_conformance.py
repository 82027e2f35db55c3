"""Rows of the table against the classes they describe: transformers' own attention, and our pipeline of that row.

The real class gets random weights, gains of its own for every channel, grouped heads and positions far from 0.
Read as the row says, our pipeline must give the same output to float32's rounding; read in any other way, not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers.models.cohere import modeling_cohere as cohere
from transformers.models.gemma2 import modeling_gemma2 as gemma2
from transformers.models.gemma3 import modeling_gemma3 as gemma3
from transformers.models.hunyuan_v1_dense import modeling_hunyuan_v1_dense as hunyuan
from transformers.models.llama4 import modeling_llama4 as llama4
from transformers.models.olmo2 import modeling_olmo2 as olmo2
from transformers.models.qwen3 import modeling_qwen3 as qwen3
from transformers.models.swinv2 import modeling_swinv2 as swinv2

from qkdemo.attention.blocks import Block
from qkdemo.attention.pipeline import Pipeline, trace
from qkdemo.facts.models import MODELS, Model

TOLERANCE = 2e-5  # relative; float32 angles at position 1000 leave about 2e-6
MISREAD = 0.05  # what any other reading must at least be off
HEADS, KV_HEADS, WIDTH, TOKENS, FIRST = 4, 2, 16, 16, 1000
D_MODEL = HEADS * WIDTH  # as some classes demand
SIZES: dict[str, Any] = {
    "hidden_size": D_MODEL,
    "intermediate_size": 64,
    "num_hidden_layers": 6,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": WIDTH,
    "vocab_size": 32,
    "max_position_embeddings": 4096,
    "attn_implementation": "eager",
}


def of(id: str) -> Model:
    return next(model for model in MODELS if model.id == id)


Rotary = Callable[[Tensor, Tensor], Any]


@dataclass
class Case:
    """A real class at work, and the same numbers as a block."""

    output: Tensor
    weights: Tensor
    block: Block
    epsilon: float | None

    def error(self, pipeline: Pipeline) -> float:
        ours = trace(pipeline.but(epsilon=self.epsilon), self.block).output
        return ((ours - self.output).norm() / self.output.norm()).item()


def uniform(parameter: Tensor, generator: torch.Generator, low: float, high: float) -> None:
    parameter.data = low + (high - low) * torch.rand(parameter.shape, generator=generator)


def filled(module: nn.Module, gain: tuple[float, float], spread: float = 1.0) -> nn.Module:
    """`module` with random projections and, where it has norms, random gains; heads of unequal size."""
    generator = torch.Generator().manual_seed(7)
    sizes = torch.linspace(0.5, 2, HEADS * WIDTH)
    for name, parameter in module.named_parameters():
        if "norm" in name:
            uniform(parameter, generator, *gain)
        elif name.endswith("bias"):
            uniform(parameter, generator, -0.5, 0.5)
        else:
            parameter.data = torch.randn(parameter.shape, generator=generator) / parameter.shape[-1] ** 0.5
            if name.startswith(("q_proj", "k_proj")):
                parameter.data *= spread * sizes[: len(parameter), None]
    return module.eval()


def inputs(first: int = FIRST) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden states with a mean, positions far from 0, and what a query may see."""
    x = 0.3 + torch.randn(TOKENS, D_MODEL, generator=torch.Generator().manual_seed(1))
    return x, torch.arange(first, first + TOKENS), torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()


def worked(module: Any, config: Any, rotary: Rotary, theta: float, first: int = FIRST, **more: Any) -> Case:
    """The class's own output, and its numbers; `rotary` is the class's own too."""
    x, positions, visible = inputs(first)
    mask = torch.zeros(TOKENS, TOKENS).masked_fill(~visible, torch.finfo(torch.float32).min)[None, None]
    with torch.inference_mode():
        output, weights = (made[0] for made in module(x[None], rotary(x[None], positions[None]), mask))
    gains = {name: norm_weight(module, name) for name in ("q", "k")}
    block = Block(
        x=x,
        w_q=module.q_proj.weight.detach(),
        w_k=module.k_proj.weight.detach(),
        w_v=module.v_proj.weight.detach(),
        w_o=module.o_proj.weight.detach(),
        gain_q=gains["q"].expand(HEADS, WIDTH),
        gain_k=gains["k"].expand(KV_HEADS, WIDTH),
        positions=positions.double(),
        theta=theta,
        visible=visible,
        **more,
    )
    return Case(
        output, weights, block, config.layer_norm_eps if hasattr(config, "layer_norm_eps") else config.rms_norm_eps
    )


def norm_weight(module: Any, side: str) -> Tensor:
    for name in (f"{side}_norm", {"q": "query_layernorm", "k": "key_layernorm"}[side]):
        if hasattr(module, name):
            weight: Tensor = getattr(module, name).weight.detach()
            return weight.reshape(-1, WIDTH)
    return torch.ones(1, WIDTH)


def theta_of(config: Any) -> float:
    return float(config.rope_parameters["rope_theta"])


def qwen_3(first: int = FIRST) -> Case:
    config = qwen3.Qwen3Config(**SIZES)
    module = filled(qwen3.Qwen3Attention(config, 0), (0.5, 1.5))
    return worked(module, config, qwen3.Qwen3RotaryEmbedding(config), theta_of(config), first)


def olmo_2() -> Case:
    config = olmo2.Olmo2Config(**SIZES)
    module = filled(olmo2.Olmo2Attention(config, 0), (0.5, 1.5))
    return worked(module, config, olmo2.Olmo2RotaryEmbedding(config), theta_of(config))


def gemma_3() -> Case:
    config = gemma3.Gemma3TextConfig(**SIZES, query_pre_attn_scalar=40)
    layer = config.layer_types.index("full_attention")
    module = filled(gemma3.Gemma3Attention(config, layer), (-0.5, 0.5))  # it stores γ − 1
    rotary = gemma3.Gemma3RotaryEmbedding(config)
    theta = float(config.rope_parameters["full_attention"]["rope_theta"])
    return worked(module, config, lambda x, at: rotary(x, at, "full_attention"), theta, learned_scale=40**-0.5)


def command_r() -> Case:
    config = cohere.CohereConfig(**SIZES, use_qk_norm=True)
    module = filled(cohere.CohereAttention(config, 0), (0.5, 1.5))
    return worked(module, config, cohere.CohereRotaryEmbedding(config), theta_of(config))


def llama_4() -> Case:
    config = llama4.Llama4TextConfig(**SIZES)
    module = filled(llama4.Llama4TextAttention(config, 0), (1, 1))
    assert module.use_rope
    return worked(module, config, llama4.Llama4TextRotaryEmbedding(config), theta_of(config))


def hunyuan_v1(first: int = FIRST) -> Case:
    config = hunyuan.HunYuanDenseV1Config(**SIZES)
    module = filled(hunyuan.HunYuanDenseV1Attention(config, 0), (0.5, 1.5))
    return worked(module, config, hunyuan.HunYuanDenseV1RotaryEmbedding(config), theta_of(config), first)


def gemma_2() -> Case:
    config = gemma2.Gemma2Config(**SIZES, query_pre_attn_scalar=40)
    layer = config.layer_types.index("full_attention")
    module = filled(gemma2.Gemma2Attention(config, layer), (1, 1), spread=4)  # so large that the cap is felt
    cap = config.attn_logit_softcapping
    rotary = gemma2.Gemma2RotaryEmbedding(config)
    return worked(module, config, rotary, theta_of(config), learned_scale=40**-0.5, softcap=cap)


def swin_v2() -> Case:
    """No rotary, no output projection, a learned scale per head, one beyond its clamp, and a bias after it."""
    side = int(TOKENS**0.5)
    module = filled(swinv2.Swinv2SelfAttention(swinv2.Swinv2Config(), D_MODEL, HEADS, side), (1, 1))
    module.logit_scale.data = torch.log(torch.tensor([3.0, 10, 30, 200]))[:, None, None]
    x = inputs()[0]
    with torch.inference_mode():
        output, weights = (made[0] for made in module(x[None], output_attentions=True))
        table = module.continuous_position_bias_mlp(module.relative_coords_table).reshape(-1, HEADS)
        pairs = table[module.relative_position_index.flatten()].reshape(TOKENS, TOKENS, HEADS)
    ones = torch.ones(HEADS, WIDTH)
    block = Block(
        x=x,
        w_q=module.query.weight.detach(),
        w_k=module.key.weight.detach(),
        w_v=module.value.weight.detach(),
        b_q=module.query.bias.detach(),
        b_v=module.value.bias.detach(),
        gain_q=ones,
        gain_k=ones,
        positions=torch.arange(TOKENS).double(),
        learned_scale=torch.tensor([3.0, 10, 30, 100]),
        added=16 * torch.sigmoid(pairs.movedim(-1, 0)),
    )
    return Case(output, weights, block, 1e-12)


ROWS = [
    (of("qwen3-dense-transformers"), qwen_3),
    (of("olmo-2-transformers"), olmo_2),
    (of("gemma-3-transformers"), gemma_3),
    (of("cohere-command-r-aya-transformers"), command_r),
    (of("llama-4-text-transformers"), llama_4),
    (of("hunyuan-v1-dense-transformers"), hunyuan_v1),
    (of("gemma-2-transformers"), gemma_2),
    (of("swin-v2-transformers"), swin_v2),
]
# What is read otherwise, one choice at a time; where it is no other function, it is left out below.
READINGS: list[dict[str, Any]] = [
    *({"norm": word} for word in ("none", "l2", "rms", "layernorm")),
    *({"place": word} for word in ("per_head", "full_width", "input")),
    *({"gain": word} for word in ("none", "scalar", "channel")),
    *({"stored": word} for word in ("gamma", "one_plus")),
    *({"order": word} for word in ("none", "norm_rotary", "rotary_norm")),
    *({"layout": word} for word in ("half_split", "interleaved")),
    *({"scale": word} for word in ("inverse_root", "one")),
    {"key_gain": "of_q"},
    {"grouping": "tile"},
    {"on": "qkv"},
    {"cap": "none"},
]


@pytest.mark.parametrize(("row", "case"), ROWS, ids=[row.model for row, _ in ROWS])
def test_the_row_is_what_the_class_computes(row: Model, case: Callable[[], Case]) -> None:
    real = case()
    assert row.verified == "conformance"
    assert row.pipeline is not None
    assert real.epsilon == row.epsilon or row.norm == "none"
    assert real.block.softcap == row.softcap or row.softcap is None
    assert real.error(row.pipeline) < TOLERANCE


@pytest.mark.parametrize(("row", "case"), ROWS, ids=[row.model for row, _ in ROWS])
def test_no_other_reading_of_the_row_is(row: Model, case: Callable[[], Case]) -> None:
    real, right = case(), row.pipeline
    assert right is not None
    tried = 0
    for changes in READINGS:
        other = right.but(**changes)
        if _same(right, other, real.block):
            continue
        tried += 1
        assert real.error(other) > MISREAD, changes
    assert tried >= 3


def _same(one: Pipeline, other: Pipeline, block: Block) -> bool:
    """Whether two readings are one function on this block, in exact arithmetic."""
    name = next((name for name in vars(one) if getattr(one, name) != getattr(other, name)), None)
    if name is None or (name == "grouping" and block.n_heads == block.n_kv_heads):
        return True
    if name == "layout":
        return one.order == "none"
    if one.norm == "none":
        return name in ("place", "stored", "on", "key_gain", "gain") or {one.order, other.order} == {
            "norm_rotary",
            "rotary_norm",
        }
    if one.gain == "none":
        return name in ("stored", "key_gain", "gain") or (name == "order" and "none" not in (one.order, other.order))
    return name == "key_gain" and one.place == "full_width"


def test_rotary_before_a_gain_loses_relative_positions_in_the_real_class_too() -> None:
    """Hunyuan V1 and Qwen 3 themselves, all positions moved: one changes its attention, the other does not."""
    assert (hunyuan_v1(0).weights - hunyuan_v1(FIRST).weights).abs().max() > 0.05
    assert (qwen_3(0).weights - qwen_3(FIRST).weights).abs().max() < TOLERANCE
