"""Classes that are not called as a decoder layer is: convolutions, cross-attention, images, no attention function.

Each function runs its class and returns a `Case`; `cases` lists them by the id of their row.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from qkdemo.attention.blocks import Block
from qkdemo.attention.rotary import THETA
from tests.conformance.real import (
    D_MODEL,
    HEADS,
    KV_HEADS,
    PLAIN,
    SIZES,
    TOKENS,
    WIDTH,
    Case,
    Seen,
    case_of,
    causal_mask,
    filled,
    found,
    inputs,
    norm_of,
    row,
    seen,
)

AT_ZERO = torch.arange(TOKENS).double()  # positions of classes that rotate nothing


def zaya() -> Case:
    """q and k are mixed by convolutions first; the block starts at what reaches the norm."""
    model = row("zaya-transformers")
    config = found(model, "ZayaConfig")(**SIZES)
    module = filled(found(model)(config, 0))
    temperature = torch.tensor([0.5, 1.5])  # one for every key head
    module.qk_norm.temp.data = temperature
    x, positions, _ = inputs()
    angles = found(model, "ZayaRotaryEmbedding")(config)(x[None], positions[None], "hybrid")
    call = {"position_embeddings": angles, "attention_mask": {"causal": causal_mask()}}
    at, made = _after_convolutions(module, x, {"qkv": module.qkv_proj}, **call)
    block = made | {
        "positions": positions.double(),
        "theta": float(config.rope_parameters["hybrid"]["rope_theta"]),
        "gain_q": torch.ones(HEADS, WIDTH),
        "gain_k": temperature[:, None].expand(KV_HEADS, WIDTH),
    }
    return case_of(module, at, torch.finfo(torch.float32).eps, **block)


def inkling() -> Case:
    """k and v pass a short convolution first; a learned position term is added to the logits; no rotary."""
    model = row("inkling-transformers")
    sizes = {f"swa_{name}": SIZES[name] for name in ("num_attention_heads", "num_key_value_heads", "head_dim")}
    module = filled(found(model)(found(model, "InklingTextConfig")(**SIZES | sizes), 0))
    sources = {"q": module.q_proj, "k": module.k_sconv, "v": module.v_sconv}
    at, block = _after_convolutions(module, inputs()[0], sources, attention_mask=causal_mask())
    return case_of(module, at, **block | {"positions": AT_ZERO, "added": at.position_bias})


def _after_convolutions(module: Any, x: Tensor, sources: dict[str, Any], **call: Any) -> tuple[Seen, dict[str, Tensor]]:
    """What was seen, and a block whose projections are what leaves `sources`: each token is its own input."""
    kept: dict[str, Tensor] = {}
    for sides, layer in sources.items():
        layer.register_forward_hook(_keeping(kept, sides))
    at = seen(module, x, **call)
    return at, {"x": torch.eye(len(x))} | {f"w_{side}": kept[side].reshape(len(x), -1).mT for side in "qkv"}


def _keeping(kept: dict[str, Tensor], sides: str) -> Callable[..., None]:
    """A hook that keeps what a layer makes, for one side or for several at once."""

    def hook(layer: Any, given: Any, made: Any) -> None:
        kept.update({side: one[0] for side, one in zip(sides, made if len(sides) > 1 else (made,), strict=True)})

    return hook


def mllama() -> Case:
    """Cross-attention, over the hidden states themselves."""
    model = row("llama-3-2-vision-cross-attention-mllama-transformers")
    sizes = SIZES | PLAIN | {"cross_attention_layers": [0], "pad_token_id": 0}
    module = filled(found(model)(found(model, "MllamaTextConfig")(**sizes), 0))
    x = inputs()[0]
    at = seen(module, x, cross_attention_states=x[None], attention_mask=causal_mask())
    return case_of(module, at, x=x, positions=AT_ZERO)


def blt() -> Case:
    """The norms stand before the projections: their gains are columns of W, and v reads what k reads."""
    model = row("blt-cross-attention-transformers")
    module = filled(found(model)(found(model, "BltLocalEncoderConfig")(**SIZES), 0))
    x = inputs()[0]
    at = seen(module, x, cross_attention_states=x[None], attention_mask=causal_mask())
    gains = {side: getattr(module, f"{'q' if side == 'q' else 'k'}_norm").weight.detach() for side in "qkv"}
    folded = {f"w_{side}": getattr(module, f"{side}_proj").weight.detach() * gains[side] for side in "qkv"}
    ones = {"gain_q": torch.ones(HEADS, WIDTH), "gain_k": torch.ones(module.num_key_value_heads, WIDTH)}
    return case_of(module, at, x=x, positions=AT_ZERO, **folded, **ones)


def idefics_decoder() -> Case:
    """The decoder normalises in its cross-attention alone, which turns nothing; it knows no grouped heads."""
    model = row("idefics-1-decoder-transformers")
    config = found(model, "IdeficsConfig")(
        **SIZES | PLAIN | {"vision_config": {"embed_dim": D_MODEL}, "qk_layer_norms": True}
    )
    assert not found(model, "IdeficsDecoderLayer")(config, 0).self_attn.qk_layer_norms
    module = filled(found(model, "IdeficsGatedCrossAttentionLayer")(config, 0).cross_attn)
    x = inputs()[0]
    at = seen(module, x, key_value_states=x[None], attention_mask=causal_mask())
    return case_of(module, at, x=x, positions=AT_ZERO)


def idefics_perceiver() -> Case:
    """Latents attend to a context and to themselves; here to themselves alone. It calls no attention function."""
    model = row("idefics-1-perceiver-transformers")
    module = filled(found(model)(D_MODEL, HEADS, WIDTH, True))
    module.output_proj.weight.data = torch.eye(D_MODEL)
    normed: dict[str, Tensor] = {}
    for side in "qk":
        norm_of(module, side).register_forward_hook(_keeping(normed, side))
    given = inputs()[0]
    with torch.inference_mode():
        output = module(given[None, :0], given[None])[0]
        x = module.latents_layer_norm(given)
    logits = normed["q"] @ normed["k"].mT * module.qk_scale
    at = Seen(normed["q"], normed["k"], x, logits, torch.softmax(logits, -1), output)
    return case_of(module, at, x=x, positions=AT_ZERO, visible=None)


def picture(id: str, config: str, *, heads: int = HEADS, spread: float = 1.0, **more: Any) -> Case:
    """Attention of an image encoder: no cache, no causal mask, no rotary."""
    model = row(id)
    sizes = {name: SIZES[name] for name in ("hidden_size", "intermediate_size", "num_hidden_layers")}
    module = filled(found(model)(found(model, config)(**sizes | {"num_attention_heads": heads} | more)), spread=spread)
    x = inputs()[0]
    return case_of(module, seen(module, x), x=x, positions=AT_ZERO, visible=None)


def videoprism() -> Case:
    """A softcap, and projections so large that it is felt."""
    case = picture("videoprism-transformers", "VideoPrismVisionConfig", spread=4)
    return dataclasses.replace(case, block=dataclasses.replace(case.block, softcap=50.0))


def sapiens_2() -> Case:
    """The class turns by angles that it is given; the model gives those of rows and columns, here it is one row."""
    model = row("sapiens-2-transformers")
    config = found(model, "Sapiens2Config")(**SIZES, num_key_value_heads_per_layer=[KV_HEADS] * 6)
    module = filled(found(model)(config, 0))
    x, positions, _ = inputs()
    angles = positions.double()[:, None] * THETA ** (-torch.arange(0, WIDTH, 2) / WIDTH)
    turns = tuple(table(torch.cat([angles, angles], -1)).float() for table in (torch.cos, torch.sin))
    at = seen(module, x, position_embeddings=turns)
    return case_of(module, at, x=x, positions=positions.double(), visible=None)


def swin_v2() -> Case:
    """No output projection, a learned scale per head, one beyond its clamp, and a bias of the position after it."""
    side = int(TOKENS**0.5)
    model = row("swin-v2-transformers")
    module = filled(found(model)(found(model, "Swinv2Config")(), D_MODEL, HEADS, side))
    module.logit_scale.data = torch.log(torch.tensor([3.0, 10, 30, 200]))[:, None, None]
    x = inputs()[0]
    with torch.inference_mode():
        output, weights = (made[0] for made in module(x[None], output_attentions=True))
        table = module.continuous_position_bias_mlp(module.relative_coords_table).reshape(-1, HEADS)
        pairs = table[module.relative_position_index.flatten()].reshape(TOKENS, TOKENS, HEADS)
    added = 16 * torch.sigmoid(pairs.movedim(-1, 0))
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
        positions=AT_ZERO,
        learned_scale=torch.tensor([3.0, 10, 30, 100]),
        added=added,
    )
    return Case(None, weights, output, block, 1e-12)
