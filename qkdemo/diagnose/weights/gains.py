"""Gains of a norm of q and k in a checkpoint: where they lie, where the norm stands, and what they bound.

* `gains_of(checkpoint)`: layer → side → gain, [channels], or [heads, d_head] where each head has its own;
* `biased(checkpoint)`: layers whose norm adds a bias, with which its gains alone bound nothing;
* `place_of(…)`: per_head, full_width, or empty if sizes tell neither; `bound(…)`: the largest |q · k| that they leave;
* `reading_of(gains)`: whether they are stored as γ or as γ − 1, by their sizes; `stored_by(kind)`: by the architecture;
  `read(gains, kind, writer)`: by both, as far as they are to be believed; `writer_of(checkpoint)`: what wrote a file;
* `normed_by_rope(config, layer)`: whether Llama 4 normalises q and k of a layer, with no gain;
* `cosine(checkpoint, layer)`: a layer's heads, and the largest scale that it learned for q and k of length 1;
* `BEFORE`, `WITHOUT_GAIN`, `NORMED`: architectures whose norm stands before the projection, can be asked for and has
  no gain, or is always there and has none that is read here.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch import Tensor

from qkdemo.diagnose.weights.checkpoint import Checkpoint
from qkdemo.diagnose.weights.rotation import rotates
from qkdemo.facts.models import MODELS

_NORM: Final = (
    r"(?:(?P<layer>.*?)\.)??(?:norm\.)?(?:(?P<side>q|k|query|key)_?(?:(?:layer|rms)?_?norm|ln)|(?:(?:rms_?)?norm|ln)_?(?P<second>q|k))"
    r"(?:\.norms\.(?P<head>\d+))?"  # StableLM has a norm of its own for each head
)
_GAIN: Final = re.compile(rf"{_NORM}\.(?:weight|gamma|scale)")
_BIAS: Final = re.compile(rf"{_NORM}\.(?:bias|beta)")
_MOST_SCALE: Final = 100.0  # Swin V2, section 3.2, and all that have a logit_scale for each head clamp it there
_NEAR: Final = 0.5  # of 1 or of 0: where the mean of stored gains tells γ from 1 + γ
BEFORE: Final = frozenset({"blt"})  # q_norm acts on what enters W_q: BltCrossAttention of transformers 5.24
WITHOUT_GAIN: Final = frozenset({"llama4", "llama4_text"})  # that a config can ask for: Llama4TextL2Norm
NORMED: Final = frozenset(  # of transformers 5.24, in every layer
    {"nanochat", "muse_spark_text", "muse_glimmer_text", "neomme", "dory", "swinv2", "swin2sr"}
)
_ONE_PLUS: Final = frozenset(  # of transformers 5.24: those of the table of models, and their kin
    {"gemma3", "t5gemma2", "t5gemma2_encoder", "t5gemma2_decoder", "qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen4_exp"}
    | {"step3p5", "step3p7", "minimax_m3_vl"}
)
_SO_IN_MLX: Final = frozenset({"gemma3"})  # whose norm adds 1 in MLX, too; of others mlx_lm stores γ, or may
_GAMMA: Final = frozenset(
    row.path.split("/")[-2]
    for row in MODELS
    if row.repo == "huggingface/transformers" and (row.qk_norm, row.stored) == ("yes", "gamma")
)


def gains_of(checkpoint: Checkpoint) -> dict[str, dict[str, Tensor]]:
    """Every gain of a norm of q or k, as stored, by layer and side."""
    found: dict[str, dict[str, Tensor]] = {}
    by_head: dict[tuple[str, str], dict[int, Tensor]] = {}
    for name in checkpoint.names:
        if match := _GAIN.fullmatch(name):
            layer, side, gain = match["layer"] or "", (match["side"] or match["second"])[0], checkpoint.read(name)
            if match["head"] is not None:
                by_head.setdefault((layer, side), {})[int(match["head"])] = gain.reshape(-1)
            else:
                found.setdefault(layer, {})[side] = gain if gain.dim() == 2 and len(gain) > 1 else gain.reshape(-1)
    for (layer, side), parts in by_head.items():
        whole = sorted(parts) == list(range(len(parts))) and len({len(part) for part in parts.values()}) == 1
        stacked = torch.stack([parts[head] for head in sorted(parts)]) if whole else torch.empty(0)
        found.setdefault(layer, {})[side] = stacked if len(stacked) > 1 else stacked.reshape(-1)
    return found


def biased(checkpoint: Checkpoint) -> frozenset[str]:
    """Layers whose norm of q or k adds a bias other than 0."""
    matches = [(name, match) for name in checkpoint.names if (match := _BIAS.fullmatch(name))]
    return frozenset(match["layer"] or "" for name, match in matches if bool(checkpoint.read(name).any()))


def cosine(checkpoint: Checkpoint, layer: str) -> tuple[int, float] | None:
    """Heads, and the largest scale of q and k of length 1, of which Swin V2 stores the logarithm; None without one."""
    name = f"{layer}.logit_scale".lstrip(".")
    shape = checkpoint.entry(name).shape if name in checkpoint.names else ()
    by_head = len(shape) == 3 and shape[0] and tuple(shape[1:]) == (1, 1)
    if not by_head and not (len(shape) == 1 and shape[0] > 1):  # timm's Swin V2-CR has no axes of 1
        return None
    largest = float(checkpoint.read(name).max())
    return None if math.isnan(largest) else (shape[0], math.exp(min(largest, math.log(_MOST_SCALE))))


def normed_by_rope(config: Mapping[str, Any], layer: str) -> bool:
    """Whether a layer's q and k have a norm without gain: Llama 4's, if asked for, in layers with rotary positions."""
    if config.get("model_type") not in WITHOUT_GAIN or config.get("use_qk_norm") is not True:
        return False
    at = re.search(r"layers\.(\d+)\.", layer)
    return rotates(config, int(at[1]) if at else 0)


def place_of(q: Tensor | None, k: Tensor | None, heads: int, kv_heads: int, d_head: int) -> str:
    """Where the norm acts, by the sizes of its gains."""
    if q is None or k is None:
        return ""
    if all(x.shape == (d_head,) or (x.dim() == 2 and x.shape == (n, d_head)) for x, n in ((q, heads), (k, kv_heads))):
        return "per_head"
    return "full_width" if (q.shape, k.shape) == ((heads * d_head,), (kv_heads * d_head,)) else ""


def bound(q: Tensor, k: Tensor, heads: int, kv_heads: int, d_head: int, place: str) -> float:
    """The largest |q · k|, before the scale, that gains leave as they multiply, without rotary positions.

    Per head d · max|γ_q γ_k|, over the query heads and the key head of each. Over the full width one head can take the
    whole norm: √(n_heads n_kv_heads) · d · max|γ_q| · max|γ_k|.
    """
    q, k = q.abs(), k.abs()
    if place == "per_head":
        of_keys = k.expand(kv_heads, d_head).repeat_interleave(heads // kv_heads, 0) if heads % kv_heads == 0 else k
        return d_head * float((q * of_keys).max())
    return math.sqrt(heads * kv_heads) * d_head * float(q.max() * k.max())


def reading_of(gains: Sequence[Tensor]) -> str:
    """Whether gains are stored as γ or as γ − 1: a trained γ stays on the side of 1 from which it started."""
    if not gains:
        return ""
    mean = float(torch.cat([gain.reshape(-1) for gain in gains]).mean())
    if abs(mean) < _NEAR * abs(mean - 1):
        return "one_plus_gamma"
    return "gamma" if abs(mean - 1) < _NEAR * max(1.0, abs(mean)) or mean > 1 else "unclear"


def stored_by(kind: str) -> str:
    """How an architecture's class is known to store the gains of q and k; empty where that is not known.

    >>> stored_by("gemma3_text"), stored_by("qwen3"), stored_by("unheard_of")
    ('one_plus_gamma', 'gamma', '')
    """
    kind = kind.removesuffix("_text")
    return "one_plus_gamma" if kind in _ONE_PLUS else "gamma" if kind in _GAMMA else ""


def writer_of(checkpoint: Checkpoint) -> str:
    """mlx, also by a convolution with MLX's order of axes; pt for transformers; empty where it is not known."""
    shapes = [checkpoint.entry(name).shape for name in checkpoint.names if name.endswith("conv1d.weight")]
    if "mlx" in checkpoint.formats or any(len(x) == 3 and x[2] == 1 < x[1] for x in shapes):
        return "mlx"
    return "pt" if checkpoint.formats == {"pt"} else ""


def read(gains: Sequence[Tensor], kind: str, writer: str) -> tuple[str, bool]:
    """How gains are read, and whether that is by their class: of a model_type, in a file that `writer` wrote.

    Where a class stores γ − 1 mlx_lm adds 1 as it converts, and of other files that are not of transformers it is not
    known whether they were converted: sizes that speak for the other reading leave it open.

    >>> read([torch.tensor([1.25])], "qwen3_next", "mlx"), read([torch.tensor([1.25])], "qwen3_next", "pt")
    (('gamma', False), ('one_plus_gamma', True))
    """
    by_class, by_size = stored_by(kind) if gains else "", reading_of(gains)
    if not by_class or by_class == "gamma" or kind.removesuffix("_text") in _SO_IN_MLX:
        return by_class or by_size, bool(by_class)
    if writer == "mlx":
        return "gamma" if by_size == "gamma" else "unclear", False
    return ("unclear", False) if by_size == "gamma" and writer != "pt" else (by_class, True)


def head_width(gains: Mapping[str, Tensor], rows: int) -> int | None:
    """The head width that the gains of q tell: one for all is a scalar, one for each row is over all heads."""
    if "q" not in gains or gains["q"].numel() == 0:
        return None
    d_head = gains["q"].shape[-1]
    return d_head if d_head > 1 and rows % d_head == 0 and (d_head < rows or gains["q"].dim() == 2) else None
