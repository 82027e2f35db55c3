"""A checkpoint's attention: spectral norms per head, gains in both readings, the bound, what is missing.

* `run(checkpoint, config)`: a `Layer` for every layer that has W_q and W_k, and what the config says of them;
* `spectral_norms(q, k)`: per head.

The logit of a head is xᵀ W_qᵀ W_k x' · scale. The largest it can be for |x| = |x'| = 1 is the spectral norm of
W_qᵀ W_k, found from a matrix of d_head × d_head: nothing of the model's width squared is formed. With an RMSNorm of q
and k the weights' size does not matter; then the gains bound the logit.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from qkdemo.diagnose.checkpoint import Checkpoint
from qkdemo.diagnose.readers.inputs import InputError
from qkdemo.diagnose.readers.safetensors import DTYPES
from qkdemo.diagnose.scaled import NARROW, scale_name, scaled

_SPLIT: Final = {
    "q": re.compile(r"(?P<layer>.*)\.(q_proj|wq|query|q_lin|to_q|Wq)\.weight"),
    "k": re.compile(r"(?P<layer>.*)\.(k_proj|wk|key|k_lin|to_k|Wk)\.weight"),
}
_FUSED: Final = re.compile(
    r"(?P<layer>.*)\.(qkv_proj|qkv|Wqkv|query_key_value|c_attn|W_pack|in_proj|wqkv)\.weight|(?P<mha>.*)\.in_proj_weight"
)
_LATENT: Final = re.compile(r"(?P<layer>.*)\.(kv_b_proj|kv_a_proj_with_mqa)\.weight")
_GAIN: Final = re.compile(
    r"(?P<layer>.*)\.(?P<side>q|k|query|key)_?(norm|layernorm|layer_norm|ln)\.(weight|gamma)|"
    r"(?P<other>.*)\.(norm|ln)_?(?P<second>q|k)\.(weight|gamma)"
)
_FLAG: Final = re.compile(r"(use_|with_)?(qk|query_key)_?(norm|layer_?norm|rms_?norm)$")
_NEAR: Final = 0.5  # of 1 or of 0: where the mean of stored gains tells γ from 1 + γ


@dataclass(frozen=True, eq=False)
class Layer:
    """One attention layer. `spectral` is [heads], in units of the logit before the scale, for inputs of length 1."""

    name: str
    heads: int
    kv_heads: int
    d_head: int
    spectral: Tensor
    gain_q: Tensor | None  # as stored
    gain_k: Tensor | None
    reading: str  # of the gains: gamma, one_plus_gamma, unclear; empty without gains
    dtype: str  # of W_q
    guessed: bool = False  # nothing names its heads: their number is a guess from shapes
    unscaled: bool = False  # W_q or W_k has 8 bits, and no scale beside it: `spectral` is in units that nobody knows

    @property
    def finite(self) -> bool:
        """Whether its weights and its gains are, and what is formed of them."""
        gains = [gain for gain in (self.gain_q, self.gain_k) if gain is not None]
        bounds = [self.bound(reading) or 0.0 for reading in ("gamma", "one_plus_gamma")]
        return all(bool(x.isfinite().all()) for x in (self.spectral, *gains)) and all(map(math.isfinite, bounds))

    @property
    def place(self) -> str:
        """Where the norm acts, by the number of its gains: per_head, full_width, or empty if they tell neither."""
        if self.gain_q is None or self.gain_k is None:
            return ""
        counts = self.gain_q.numel(), self.gain_k.numel()
        if counts == (self.d_head, self.d_head):
            return "per_head"
        return "full_width" if counts == (self.heads * self.d_head, self.kv_heads * self.d_head) else ""

    def bound(self, reading: str) -> float | None:
        """The largest |logit| that the gains leave in one reading of them; None if their number tells no place.

        Per head √d · max|γ_q γ_k|. Over the full width one head can take the whole norm: √(n_heads n_kv_heads d) ·
        max|γ_q| · max|γ_k|. Without rotary positions, with the scale 1/√d.
        """
        if self.gain_q is None or self.gain_k is None or not self.place:
            return None
        q, k = ((1 + x if reading == "one_plus_gamma" else x).abs() for x in (self.gain_q, self.gain_k))
        if self.place == "per_head":
            return math.sqrt(self.d_head) * float((q * k).max())
        return math.sqrt(self.heads * self.kv_heads * self.d_head) * float(q.max() * k.max())


@dataclass(frozen=True, eq=False)
class Result:
    """Every layer, and what the config and the tensors say against each other: keys of sentences."""

    layers: tuple[Layer, ...]
    packed: tuple[str, ...]  # layers whose W_q or W_k holds codes of a quantiser, or complex numbers
    unshared: tuple[str, ...]  # layers whose W_q and W_k make heads that cannot share keys evenly
    latent: tuple[str, ...]  # layers with latent attention, whose keys are never formed whole
    flags: tuple[str, ...]  # of the config, that ask for QK norm
    unnormed: tuple[str, ...]  # layers without gains
    missing: tuple[str, ...]  # shards that are not there
    gains: bool = False  # whether any tensor is named as a gain of q or k

    @property
    def promised(self) -> bool:
        """Whether the config asks for QK norm and no gain was found."""
        return bool(self.flags) and not self.gains


def run(checkpoint: Checkpoint, config: Mapping[str, Any] | None = None) -> Result:
    """What the weights say. `config`: the model's config.json, for heads and widths that shapes alone do not tell."""
    config = _text_config(config or {})
    gains = _gains(checkpoint)
    packed: list[str] = []
    made = tuple(_layers(checkpoint, config, gains, packed))
    layers = tuple(layer for layer in made if layer.heads % layer.kv_heads == 0)
    latent = {match["layer"] for name in checkpoint.names if (match := _LATENT.fullmatch(name))}
    if not made and not latent and not packed:
        key = "no_attention_here" if checkpoint.missing else "no_attention"
        raise InputError(key, count=len(checkpoint.names), names=", ".join(checkpoint.missing))
    return Result(
        layers=layers,
        packed=tuple(packed),
        unshared=tuple(layer.name for layer in made if layer.heads % layer.kv_heads),
        latent=tuple(sorted(latent, key=_natural)),
        flags=tuple(name for name, value in config.items() if _FLAG.fullmatch(name) and value is True),
        unnormed=tuple(layer.name for layer in layers if layer.gain_q is None or layer.gain_k is None),
        missing=checkpoint.missing,
        gains=bool(gains),
    )


def _layers(
    checkpoint: Checkpoint, config: Mapping[str, Any], gains: Mapping[str, dict[str, Tensor]], packed: list[str]
) -> Iterator[Layer]:
    """Every layer that can be measured; the names of those that are packed go to `packed`."""
    found: dict[str, dict[str, str]] = {}
    for name in checkpoint.names:
        for side, pattern in _SPLIT.items():
            if match := pattern.fullmatch(name):
                found.setdefault(match["layer"], {})[side] = name
        if match := _FUSED.fullmatch(name):
            found.setdefault(match["layer"] or match["mha"], {})["fused"] = name
    for layer in sorted(found, key=_natural):
        tensors = found[layer]
        if not ({"q", "k"} <= tensors.keys() or "fused" in tensors):
            continue
        dtypes = {
            checkpoint.entry(name).dtype for side, name in tensors.items() if side != "fused" or "q" not in tensors
        }
        if not all(
            dtype in DTYPES and (DTYPES[dtype].is_floating_point or DTYPES[dtype] in NARROW) for dtype in dtypes
        ):
            packed.append(layer)
            continue
        weights = _weights(checkpoint, tensors, config)
        if weights is not None and all(weight.numel() for weight in weights[:2]):
            yield _layer(layer, weights, config, gains.get(layer, {}), _dtype(checkpoint, tensors))


def _dtype(checkpoint: Checkpoint, tensors: Mapping[str, str]) -> str:
    return checkpoint.entry(tensors.get("q") or tensors["fused"]).dtype


def _read(checkpoint: Checkpoint, name: str) -> tuple[Tensor, bool]:
    """A weight in float64, times the scale beside it; and whether it needs one that is not there, or does not fit."""
    weight = checkpoint.read(name)
    if DTYPES[checkpoint.entry(name).dtype] not in NARROW:
        return weight, False
    beside = scale_name(name, checkpoint.names)
    readable = beside is not None and checkpoint.entry(beside).dtype in DTYPES
    made = scaled(weight, checkpoint.read(beside)) if beside and readable else None
    return (weight, True) if made is None else (made, False)


def _weights(
    checkpoint: Checkpoint, tensors: Mapping[str, str], config: Mapping[str, Any]
) -> tuple[Tensor, Tensor, bool] | None:
    """W_q and W_k, [heads · d_head, width] each, and whether one lacks its scale; None where one has another form."""
    if "q" in tensors:
        (q, q_lacks), (k, k_lacks) = (_read(checkpoint, tensors[side]) for side in "qk")
        return (q, k, q_lacks or k_lacks) if q.dim() == k.dim() == 2 else None
    name = tensors["fused"]
    shape = checkpoint.entry(name).shape
    if len(shape) != 2:
        return None
    weight, lacks = _read(checkpoint, name)
    if name.endswith("c_attn.weight"):  # GPT-2's Conv1D stores its transpose
        weight = weight.T
    heads, kv_heads = _heads_of(config)
    if heads and kv_heads and weight.shape[0] % (heads + 2 * kv_heads) == 0:
        d_head = weight.shape[0] // (heads + 2 * kv_heads)
    elif weight.shape[0] % 3 == 0 and kv_heads == heads:
        third = weight.shape[0] // 3
        return weight[:third], weight[third : 2 * third], lacks
    else:
        return None
    if name.endswith("query_key_value.weight") and heads == kv_heads:  # GPT-NeoX: q, k and v of a head lie together
        by_head = weight.reshape(heads, 3, d_head, -1)
        return by_head[:, 0].flatten(0, 1), by_head[:, 1].flatten(0, 1), lacks
    return weight[: heads * d_head], weight[heads * d_head : (heads + kv_heads) * d_head], lacks


def _layer(
    name: str, weights: tuple[Tensor, Tensor, bool], config: Mapping[str, Any], gains: Mapping[str, Tensor], dtype: str
) -> Layer:
    q, k, lacks = weights
    heads, _ = _heads_of(config)
    count = gains["q"].numel() if "q" in gains else 0
    tells = 1 < count < q.shape[0] and q.shape[0] % count == 0  # one for all is a scalar, one for each over all heads
    d_head = config.get("head_dim") or (count if tells else None)
    guessed = False
    if type(d_head) is not int or d_head < 1 or q.shape[0] % d_head or k.shape[0] % d_head:
        guessed = not heads or q.shape[0] % heads != 0
        d_head = q.shape[0] if guessed else q.shape[0] // heads
    if d_head == q.shape[0] and not heads and k.shape[0] != q.shape[0]:
        d_head = math.gcd(q.shape[0], k.shape[0])
    n_heads, n_kv = q.shape[0] // d_head, max(1, k.shape[0] // d_head)
    if n_heads % n_kv:
        spectral = torch.full((n_heads,), torch.nan)
    else:
        spectral = spectral_norms(q.reshape(n_heads, d_head, -1), k.reshape(n_kv, d_head, -1))
    both = [gains[side] for side in ("q", "k") if side in gains]
    found = gains.get("q"), gains.get("k")
    return Layer(name, n_heads, n_kv, d_head, spectral, *found, _reading(both), dtype, guessed, lacks)


def spectral_norms(q: Tensor, k: Tensor) -> Tensor:
    """[heads] largest singular value of W_qᵀ W_k per head; ∞ where an entry is not finite, or its product is not.

    q: [heads, d_head, width], k: [kv_heads, d_head, width].

    With Wᵀ = Q R, Q's columns orthonormal, W_qᵀ W_k = Q_q (R_q R_kᵀ) Q_kᵀ, and the middle has all singular values.
    """
    middle_q, middle_k = (torch.linalg.qr(x.mT).R for x in (q, k))
    middle_k = middle_k.repeat_interleave(q.shape[0] // k.shape[0], 0)
    middle = middle_q @ middle_k.mT
    lost = ~middle.isfinite().flatten(1).all(1)
    norms: Tensor = torch.linalg.matrix_norm(middle.masked_fill(lost[:, None, None], 0), 2)
    return norms.masked_fill(lost, torch.inf)


def _gains(checkpoint: Checkpoint) -> dict[str, dict[str, Tensor]]:
    found: dict[str, dict[str, Tensor]] = {}
    for name in checkpoint.names:
        if match := _GAIN.fullmatch(name):
            layer, side = match["layer"] or match["other"], (match["side"] or match["second"])[0]
            found.setdefault(layer, {})[side] = checkpoint.read(name).reshape(-1)
    return found


def _reading(gains: Sequence[Tensor]) -> str:
    """Whether gains are stored as γ or as γ − 1: a trained γ stays on the side of 1 from which it started."""
    if not gains:
        return ""
    mean = float(torch.cat(list(gains)).mean())
    if abs(mean) < _NEAR * abs(mean - 1):
        return "one_plus_gamma"
    return "gamma" if abs(mean - 1) < _NEAR * max(1.0, abs(mean)) or mean > 1 else "unclear"


def _heads_of(config: Mapping[str, Any]) -> tuple[int, int]:
    heads = next(
        (config[name] for name in ("num_attention_heads", "n_head", "num_heads", "n_heads") if name in config), 0
    )
    kv_heads = next(
        (config[name] for name in ("num_key_value_heads", "n_kv_heads", "num_kv_heads") if name in config), heads
    )
    whole = all(isinstance(x, int) and not isinstance(x, bool) and x > 0 for x in (heads, kv_heads))
    return (heads, kv_heads) if whole else (0, 0)


def _text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = config.get("text_config")
    return inner if isinstance(inner, Mapping) else config


def _natural(name: str) -> list[tuple[int, str]]:
    """Layer 10 after layer 9."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
