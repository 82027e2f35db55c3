"""What stands beside W_q and W_k of a layer, or in its name, and makes their product more or less than its logits.

* `inside(names, layer)`: names of a layer's tensors, without its own;
* `unlike(layer, inner, names)`: whether q·k of one head may be no logit between two positions; `convolved(…)`;
* `second(inner)`: further projections, norms and scales of q or k that act in the same attention;
* `shares_keys(layer, config)`: whether its keys are those of a layer before it;
* `joined(layers)`: layers of which a second stream, by its name, is part of the same attention;
* `shifted(weights, names)`: whether codes of 8 bits are more than these times a scale;
* `output(inner)`: the projection of what the heads return; `ungated(…)`: a W_q without the gate beside each head.

Names are those of transformers 5.24, timm, and the code that the authors of diffusion transformers published.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from torch import Tensor

from qkdemo.diagnose.weights.projections import heads_of

_CONVOLUTION: Final = re.compile(r"[^.]*conv[^.]*\..*|pool_[qk]\.weight")  # MViT pools q and k with a convolution
_MIXED: Final = re.compile(r"(proj_l|proj_w|\w*talking_?heads?\w*)\.weight")  # CaiT mixes logits of all heads
_FACTORISED: Final = re.compile(r"(.*\.)?factoratt\w*")  # CoaT multiplies k by v first
_LINEAR: Final = re.compile(  # what attention without a softmax has beside q and k
    r"(.*\.)?A_log|gk_proj\..*|g_norm\w*\..*"  # DeltaNet with gates, Kimi's, GLA; RetNet, Ling's
    r"|output_gate\..*|time_(decay|maa|mix)\w*"  # lightning attention of MiniMax; RWKV made of a softmax model
    r"|(.*\.)?projection_matrix|proj_k"  # Performer; Linformer, which mixes keys of all positions
    r"|to_qkv_multiscale\..*"  # DC-AE
)
_LINEAR_NAME: Final = re.compile(r"(.*[._])?(linear_attn|lightning_attn|retention|loftr_(coarse|fine))([._].*)?")
_LINEAR_KINDS: Final = ("linear_attn", "autoformer")  # fla's, with nothing beside q and k; correlation of whole series
_OF_SANA: Final = ("ff.conv_depth", "mlp.depth_conv.conv")  # beside its linear attention, in diffusers and its own code
_SECOND: Final = re.compile(
    r"(?:[^.]+\.)?("  # at most one module further in
    r"add_[qk]_proj|norm_added_[qk]|(?:query|key)_global|w2e_query|e2w_query|e2e_query|layout_(?:query|key)"
    r"|pos_(?:(?:q|k|query|key)_)?proj|[qk]_pos_proj|relative_k_proj|linear_pos"
    r"|to_[qk]_\w+|[qk]_(?:proj|(?:rms_)?norm)_\w+|linear_[qk]_adapter_list"
    r"|multihead_attn(?=\.in_proj)"  # Aria projects q and k twice
    r")(?:\.\w+){0,2}[._]weight"
    r"|(scaling|per_dim_scale|q_scale)"  # learned for each channel: TimesFM; Gemma's encoders of sound
)
_ADAPTER: Final = re.compile(  # PEFT's beside a weight, if one for each task with its name
    r"(?:[^.]+\.)?((?:[qk]_proj|qkv_proj|query|key|[qk]_lin|to_[qk]|w[qk]|W[qk]|qkv|Wqkv|wqkv|query_key_value|c_attn|W_pack)"
    r"\.(?:lora_(?:[AB]|magnitude_vector)|ia3_l|b?oft_\w+|(?:hada|lokr|vera|randlora|fourierft|hra|bone|miss|vblora)_\w+))"
    r"(?:\.\w+){0,2}"
)
_STREAMS: Final = (("img_attn", "txt_attn"), ("x_block.attn", "context_block.attn"))  # FLUX and SD 3 of their authors
_OUTPUTS: Final = ("o_proj", "out_proj", "proj", "c_proj", "wo", "Wo", "dense", "linear_proj")


_GATED: Final = re.compile(r"(qwen3_next|qwen3_5|qwen4_exp)(_moe)?(_text)?")
_SHIFTS: Final = ("weight_zero_point", "zero_point", "pre_quant_scale")  # beside a weight


def inside(names: Iterable[str], layer: str) -> list[str]:
    """Names of a layer's tensors, without its own; of a module that was saved alone all."""
    prefix = layer and f"{layer}."
    return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]


def convolved(inner: Iterable[str]) -> bool:
    """Whether a convolution stands in a layer, which may act on q and k."""
    return any(map(_CONVOLUTION.fullmatch, inner))


def unlike(
    layer: str, inner: Mapping[str, Sequence[int]], names: Collection[str], *, fused: bool, kind: object = ""
) -> bool:
    """Whether q·k of one head may be no logit between two positions. `inner`: tensor in the layer → shape.

    XCiT has a temperature for each head beside one matrix for q, k and v; of each pair of DaViT's blocks the second
    attends between channels. Hiera takes the largest q of several positions where its width grows. DeBERTa adds
    products with embeddings of distances. Gemma 4 clamps what enters and leaves W_q of images and sound; after its norm
    the gains bound a logit all the same. `kind`: the model_type of a config.
    """
    heat = tuple(inner.get("temperature", ()))
    block, _, word = layer.rpartition(".")
    pair = f"{block[:-2]}.{{}}.cpe1."
    second = block.endswith(".1") and all(any(n.startswith(pair.format(at)) for n in names) for at in "01")
    rows, columns = tuple(inner.get("qkv.weight", ()))[:2] or (0, 0)
    return (
        kind in _LINEAR_KINDS
        or any(map(_LINEAR.fullmatch, inner))
        or _LINEAR_NAME.fullmatch(layer) is not None
        or (word in ("attn", "attn1") and any(f"{block}.{each}.weight" in names for each in _OF_SANA))
        or (rows != 3 * columns and f"{block}.proj.weight" in names)
        or f"{block.rpartition('.layer.')[0]}.rel_embeddings.weight" in names
        or (fused and len(heat) == 3 and heat[1:] == (1, 1))
        or (fused and word == "attn" and second)
        or any(map(_MIXED.fullmatch, inner))
        or _FACTORISED.fullmatch(layer) is not None
        or ("q_proj.output_max" in inner and "q_norm.weight" not in inner)
    )


def shares_keys(layer: str, config: Mapping[str, Any]) -> bool:
    """Whether a layer uses the keys of one before it, as the last ones of Gemma 3n do: W_k of its own is not used.

    >>> shares_keys("layers.20.self_attn", {"num_hidden_layers": 30, "num_kv_shared_layers": 10})
    True
    """
    at = re.search(r"layers\.(\d+)\.", layer)
    all_, shared = (config.get(f"num_{word}_layers") for word in ("hidden", "kv_shared"))
    told = at is not None and type(all_) is int and type(shared) is int
    return told and int(at[1]) >= all_ - shared  # type: ignore[index, operator]


def second(inner: Mapping[str, Sequence[int]] | Iterable[str]) -> list[str]:
    """Further projections and norms of q or k in a layer, and scales. `inner`: tensors in it, also with their shapes.

    A q_scale of one number is that of a quantiser.

    >>> second(["to_q.weight", "norm_q.weight", "add_q_proj.weight", "q_proj_weight", "k_proj_moe_gen.weight"])
    ['add_q_proj', 'k_proj_moe_gen']
    """
    shapes = inner if isinstance(inner, Mapping) else {}
    names = [name for name in inner if not (name == "q_scale" and math.prod(shapes.get(name, (2,))) == 1)]
    found = [match[1] or match[2] for name in names if (match := _SECOND.fullmatch(name))]
    return [*found, *(match[1] for name in names if (match := _ADAPTER.fullmatch(name)))]


def joined(layer: str, layers: Collection[str]) -> bool:
    """Whether the other of two streams that meet in one attention is among the layers.

    >>> joined("blocks.0.img_attn", ["blocks.0.img_attn", "blocks.0.txt_attn"]), joined("l.0.attn", ["l.0.attn"])
    (True, False)
    """
    return any(
        layer.endswith(f".{one}") and layer.removesuffix(one) + other in layers
        for pair in _STREAMS
        for one, other in (pair, pair[::-1])
    )


def output(inner: Iterable[str]) -> str | None:
    """The projection of what the heads return."""
    return next((f"{word}.weight" for word in _OUTPUTS if f"{word}.weight" in inner), None)


def ungated(q: Tensor, rows_of_v: int | None, d_head: int | None, config: Mapping[str, Any]) -> Tensor | None:
    """W_q without the gate that stands below each head's rows; q itself if it has none, None if that cannot be told.

    `rows_of_v`: columns of the output projection, as many as q has rows where it has no gate; None where that is not
    known. Then an architecture with a gate in W_q (Qwen3-Next, Qwen 3.5) has as many as its config has heads for. All
    of these have [query, gate] for each head.
    """
    kind = config.get("model_type", "")
    gated = _GATED.fullmatch(kind) is not None
    if rows_of_v is None and gated:
        rows_of_v = heads_of(config)[0] * (d_head or 0) or None
    if rows_of_v is None or len(q) != 2 * rows_of_v:
        return q
    if not d_head or rows_of_v % d_head or (kind and not gated):
        return None
    return q.reshape(-1, 2, d_head, q.shape[-1])[:, 0].flatten(0, 1)


def shifted(weights: Collection[str], names: Collection[str]) -> bool:
    """Whether codes of 8 bits are more than these times a scale: beside a zero point, or a scale of their inputs.

    As compressed-tensors has it where a scheme is not symmetric, and ModelOpt for SmoothQuant.
    """
    stems = [name.removesuffix("weight") for name in weights]
    return any(f"{stem}{word}" in names for stem in stems for word in _SHIFTS)
