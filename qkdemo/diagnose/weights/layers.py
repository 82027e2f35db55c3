"""A checkpoint's attention: spectral norms per head, gains in both readings, the bound, what is missing.

* `run(checkpoint, config)`: a `Layer` for every layer that has W_q and W_k, and what the config says of them.
"""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor

from qkdemo.diagnose.readers.inputs import InputError, some
from qkdemo.diagnose.readers.safetensors import DTYPES
from qkdemo.diagnose.scaled import NARROW, scale_name, scaled
from qkdemo.diagnose.weights import beside, gains
from qkdemo.diagnose.weights.checkpoint import Checkpoint
from qkdemo.diagnose.weights.codes import as_weight
from qkdemo.diagnose.weights.layer import Layer, spectral_norms
from qkdemo.diagnose.weights.projections import found_in, heads_of, keyless, parts, plainly, scope
from qkdemo.diagnose.weights.scale import scale_of

_LATENT: Final = re.compile(r"(?:(?P<layer>.*)\.)?(kv_b_proj|kv_a_proj_with_mqa)\.weight")
_FLAG: Final = re.compile(r"(use_|with_)?(qk|query_key)_?(norm|layer_?norm|rms_?norm)$")


@dataclass(frozen=True, eq=False)
class Result:
    """Every layer, and what the config and the tensors say against each other: keys of sentences."""

    layers: tuple[Layer, ...]
    packed: tuple[str, ...]  # layers whose W_q or W_k holds codes of a quantiser, or complex numbers
    unread: tuple[str, ...]  # layers whose W_q and W_k cannot be told in the matrix that holds them
    convolved: tuple[str, ...]  # layers with a convolution, which may act on q and k
    unlike: tuple[str, ...]  # layers whose q·k of one head may be no logit between two positions
    unshared: tuple[str, ...]  # layers whose W_q and W_k make heads that cannot share keys evenly
    latent: tuple[str, ...]  # layers with latent attention, whose keys are never formed whole
    flags: tuple[str, ...]  # of the config, that ask for QK norm
    unnormed: tuple[str, ...]  # layers without gains
    missing: tuple[str, ...]  # shards that were not read
    gains: bool = False  # whether any tensor is named as a gain of q or k
    biased: frozenset[str] = frozenset()  # layers whose norm of q or k adds a bias
    before: tuple[str, ...] = ()  # layers whose norms of q and k stand before the projection
    normed: tuple[str, ...] = ()  # layers that have a norm of q and k by their architecture, and no gain that is read
    cosine: Mapping[str, float] = field(default_factory=dict)  # layers with a logit_scale, and its largest number
    without_gain: tuple[str, ...] = ()  # layers whose norm of q and k is known to have no gain
    second: Mapping[str, Sequence[str]] = field(default_factory=dict)  # layers with more projections of q or k: which
    joined: tuple[str, ...] = ()  # layers that attend together with another one
    keyless: tuple[str, ...] = ()  # layers with a W_q, and no W_k or latent keys
    placed: bool = False  # whether an index says what the missing shards hold

    @property
    def promised(self) -> bool:
        """Whether the config asks for QK norm and no gain was found, in no shard."""
        return bool(self.flags) and not self.gains and not self.missing


def run(checkpoint: Checkpoint, config: Mapping[str, Any] | None = None) -> Result:
    """What the weights say. `config`: the model's config.json, for heads and widths that shapes alone do not tell."""
    config = config or {}
    kinds = {str(part.get("model_type", "")) for part in (config, scope(config))}
    found = gains.gains_of(checkpoint)
    before = bool(kinds & gains.BEFORE)
    skipped = _Skipped([], [], [], [])
    made = tuple(_layers(checkpoint, config, {} if before else found, skipped))
    layers = tuple(layer for layer in made if layer.heads % layer.kv_heads == 0)
    latent = {match["layer"] for name in map(as_weight, checkpoint.names) if (match := _LATENT.fullmatch(name))}
    if not made and not latent and not any(skipped):
        key = "no_attention_here" if checkpoint.missing else "no_attention"
        raise InputError(key, count=len(checkpoint.names), names=some(checkpoint.missing))
    scales = {layer.name: gains.cosine(checkpoint, layer.name) for layer in layers}
    cosine = {name: scale[1] for name, scale in scales.items() if scale}
    names = (*checkpoint.names, *checkpoint.elsewhere)
    every, whole = found_in(names), not checkpoint.missing or bool(checkpoint.elsewhere)  # all names are known
    second = {layer.name: beside.second(_inner(checkpoint, layer.name)) for layer in layers}
    normed = [layer.name for layer in layers if scope(config, layer.name).get("model_type") in gains.NORMED]
    return Result(
        layers=layers,
        cosine=cosine,
        packed=tuple(skipped.packed),
        unread=tuple(skipped.unread),
        convolved=tuple(skipped.convolved),
        unlike=tuple(skipped.unlike),
        unshared=tuple(layer.name for layer in made if layer.heads % layer.kv_heads),
        latent=tuple(sorted(latent, key=_natural)),
        flags=tuple(name for name, value in scope(config).items() if _FLAG.fullmatch(name) and value is True),
        unnormed=tuple(layer.name for layer in layers if layer.gain_q is None or layer.gain_k is None),
        missing=checkpoint.missing,
        placed=bool(checkpoint.elsewhere),
        gains=bool(found),
        biased=gains.biased(checkpoint),
        before=tuple(sorted(found, key=_natural)) if before else (),
        without_gain=tuple(
            layer.name for layer in layers if gains.normed_by_rope(scope(config, layer.name), layer.name)
        ),
        normed=tuple(name for name in normed if name not in cosine),
        second={name: words for name, words in second.items() if words},
        keyless=tuple(sorted({*keyless([*map(as_weight, names)])} - latent, key=_natural)) if whole else (),
        joined=tuple(layer.name for layer in layers if beside.joined(layer.name, every)),
    )


class _Skipped(NamedTuple):
    """Names of layers that cannot be measured."""

    packed: list[str]
    unread: list[str]
    convolved: list[str]
    unlike: list[str]


def _layers(
    checkpoint: Checkpoint, config: Mapping[str, Any], gains_: Mapping[str, dict[str, Tensor]], skipped: _Skipped
) -> Iterator[Layer]:
    """Every layer that is here whole and can be measured; the names of others go to `skipped`."""
    found = found_in(map(as_weight, checkpoint.names), str(config.get("model_type", "")))
    writer = gains.writer_of(checkpoint)
    names = {*checkpoint.names, *checkpoint.elsewhere}
    for layer in sorted(found, key=_natural):
        tensors, own, prefix = found[layer], scope(config, layer), layer and f"{layer}."
        if any(name.startswith(prefix) for name in checkpoint.elsewhere):  # a gain, as likely as not
            continue
        if scale := gains.cosine(checkpoint, layer):  # as Swin V2 has it, whose config has a number for each stage
            own = {**own, "num_attention_heads": scale[0]}
        inner = _inner(checkpoint, layer)
        if beside.unlike(layer, inner, names, fused="q" not in tensors, kind=own.get("model_type")) or (
            beside.shares_keys(layer, own)
        ):
            skipped.unlike.append(layer)
            continue
        if beside.convolved(inner):
            skipped.convolved.append(layer)
            continue
        needed = [name for side, name in tensors.items() if side != "fused" or "q" not in tensors]
        if _are_codes(checkpoint, needed, names):
            skipped.packed.append(layer)
            continue
        of_layer = gains_.get(layer, {})
        weights = _weights(checkpoint, layer, inner, tensors, own, of_layer)
        if weights is None:
            if all(len(checkpoint.entry(name).shape) == 2 for name in tensors.values()):
                skipped.unread.append(layer)
        elif all(weight.numel() for weight in weights[:2]):
            made = _layer(layer, weights, own, of_layer, (_dtype(checkpoint, tensors), writer))
            yield replace(made, scaling=scale_of(layer, names, own, made.d_head))


def _are_codes(checkpoint: Checkpoint, weights: Sequence[str], names: Collection[str]) -> bool:
    """Whether one of these holds no numbers that are read here, or more than a scale times them: of a quantiser."""
    if any(name not in names for name in weights):  # it has another name
        return True
    dtypes = [DTYPES.get(checkpoint.entry(name).dtype) for name in weights]
    if not all(dtype and (dtype.is_floating_point or dtype in NARROW) for dtype in dtypes):
        return True
    return any(dtype in NARROW for dtype in dtypes) and beside.shifted(weights, names)


def _inner(checkpoint: Checkpoint, layer: str) -> dict[str, tuple[int, ...]]:
    """Tensors in a layer, without its name, and their shapes."""
    prefix = layer and f"{layer}."
    return {plainly(name): checkpoint.entry(prefix + name).shape for name in beside.inside(checkpoint.names, layer)}


def _columns(checkpoint: Checkpoint, layer: str, word: str | None) -> int | None:
    """Columns of a weight in a layer, as it is before a quantiser packs it; None without one, or if not known.

    NVFP4 has two numbers in a byte and a scale in float8 for 16 of them; the MX formats have one in E8M0 for 32.
    """
    plain = f"{layer}.{word}" if layer else word or ""
    both = plain, plain.removesuffix("weight") + "base_layer.weight"  # as PEFT calls it
    name = next((name for name in both if name in checkpoint.names), None)
    if name is None:
        return None
    entry, scale = checkpoint.entry(name), scale_name(name, checkpoint.names)
    dtype, last = DTYPES.get(entry.dtype), entry.shape[-1]
    scales = checkpoint.entry(scale) if scale else None
    of_bytes = scales is not None and DTYPES.get(scales.dtype) is torch.uint8
    if dtype and (dtype.is_floating_point or (dtype is torch.int8 and not of_bytes)):
        return last
    packed = dtype is torch.uint8 and scales is not None and len(entry.shape) == len(scales.shape) == 2
    return 2 * last if packed and scales and 2 * last == (32 if of_bytes else 16) * scales.shape[-1] else None


def _dtype(checkpoint: Checkpoint, tensors: Mapping[str, str]) -> str:
    return checkpoint.entry(tensors.get("q") or tensors["fused"]).dtype


def _read(checkpoint: Checkpoint, name: str) -> tuple[Tensor, bool]:
    """A weight in float64, times the scale beside it; and whether it needs one that is not there, or does not fit."""
    weight = checkpoint.stored(name)
    if weight.dtype not in NARROW:
        return weight.double(), False
    scale = scale_name(name, checkpoint.names)
    readable = scale is not None and checkpoint.entry(scale).dtype in DTYPES
    made = scaled(weight, checkpoint.stored(scale)) if scale and readable else None
    return (weight.double(), True) if made is None else (made, False)


def _weights(
    checkpoint: Checkpoint,
    layer: str,
    inner: Collection[str],
    tensors: Mapping[str, str],
    config: Mapping[str, Any],
    of_layer: Mapping[str, Tensor],
) -> tuple[Tensor, Tensor, bool] | None:
    """W_q and W_k, [heads · d_head, width] each, and whether one lacks its scale; None where they cannot be told."""
    if "q" not in tensors:
        if "attention_biases" in inner:  # LeViT's kin: TinyViT, EfficientFormer; rows lie by head
            return None
        weight, lacks = _read(checkpoint, tensors["fused"])
        both = parts(tensors["fused"], weight, config, _columns(checkpoint, layer, beside.output(inner)))
        return None if both is None else (*both, lacks)
    (q, q_lacks), (k, k_lacks) = (_read(checkpoint, tensors[side]) for side in "qk")
    if q.dim() != 2 or k.dim() != 2:
        return None
    rows_of_v = _columns(checkpoint, layer, "o_proj.weight")
    bare = beside.ungated(q, rows_of_v, _width(config, of_layer, len(q), len(k)), config)
    return None if bare is None else (bare, k, q_lacks or k_lacks)


def _width(config: Mapping[str, Any], of_layer: Mapping[str, Tensor], *rows: int) -> int | None:
    """The head width that the layer's own gains tell; else that of the config, which Gemma 4 has for some layers."""
    told, named = gains.head_width(of_layer, rows[0]), config.get("head_dim")
    if told and all(n % told == 0 for n in rows):
        return told
    return named if type(named) is int and named > 0 else told


def _layer(
    name: str,
    weights: tuple[Tensor, Tensor, bool],
    config: Mapping[str, Any],
    of_layer: Mapping[str, Tensor],
    file: tuple[str, str],
) -> Layer:
    """`file`: the dtype of W_q, and what wrote it."""
    q, k, lacks = weights
    heads, _ = heads_of(config)
    d_head = _width(config, of_layer, len(q), len(k))
    guessed = False
    if d_head is None or q.shape[0] % d_head or k.shape[0] % d_head:
        guessed = not heads or q.shape[0] % heads != 0 or k.shape[0] % (q.shape[0] // heads) != 0
        d_head = math.gcd(q.shape[0], k.shape[0]) if guessed else q.shape[0] // heads
    n_heads, n_kv = q.shape[0] // d_head, max(1, k.shape[0] // d_head)
    if n_heads % n_kv:
        spectral = torch.full((n_heads,), torch.nan)
    else:
        spectral = spectral_norms(q.reshape(n_heads, d_head, -1), k.reshape(n_kv, d_head, -1))
    found = of_layer.get("q"), of_layer.get("k")
    stored = [gain for gain in found if gain is not None]
    dtype, writer = file
    reading, known = gains.read(stored, str(config.get("model_type", "")), writer)
    new = bool(k.any()) and not q.any()
    return Layer(
        name, n_heads, n_kv, d_head, spectral, *found, reading, dtype, guessed, lacks, by_class=known, at_start=new
    )


def _natural(name: str) -> list[tuple[int, str]]:
    """Layer 10 after layer 9."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
