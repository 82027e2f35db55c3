"""The contract of a checkpoint as data: which choice it makes at each stage from q and k to attention.

* `Pipeline`: one word per choice; `CHOICES` lists the words that each field knows;
* `trace(pipeline, block)`: every stage of the block as that pipeline computes it; `PipelineScores`: from raw scores on.

Each choice is one function in a table from word to function: PLACES, GAINS, READINGS, CASTS, ORDERS, …
Two pipelines over one block differ in nothing but their words.
"""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, Final, Literal, TypeAlias, get_args, get_type_hints

import torch
from jaxtyping import Float
from torch import Tensor

from qkdemo.attention.blocks import Block
from qkdemo.attention.norms import ALPHA, NORMS, NormWord, RuleWord, divisor, normalise, numerator
from qkdemo.attention.places import PLACES, Norm, PlaceWord, heads_of, merged
from qkdemo.attention.rotary import LayoutWord, RotatedWord, reordering, rotate
from qkdemo.floats.formats import Rounding, exact

OnWord: TypeAlias = Literal["qk", "q", "k", "qkv"]
GainWord: TypeAlias = Literal["none", "scalar", "head", "channel", "head_channel"]
StoredWord: TypeAlias = Literal["gamma", "one_plus"]
KeyGainWord: TypeAlias = Literal["own", "of_q", "q_alone", "k_alone"]
CastWord: TypeAlias = Literal["gain_first", "cast_first"]
BiasWord: TypeAlias = Literal["none", "channel"]
OrderWord: TypeAlias = Literal["none", "norm_rotary", "rotary_norm"]
ConversionWord: TypeAlias = Literal["none", "weights", "weights_and_gain"]
ScaleWord: TypeAlias = Literal["inverse_root", "one", "root", "inverse", "learned"]
CapWord: TypeAlias = Literal["none", "softcap"]
GroupingWord: TypeAlias = Literal["repeat", "tile"]


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """One word per choice; by default what Qwen 3 does."""

    place: PlaceWord = "per_head"
    norm: NormWord = "rms"
    on: OnWord = "qk"
    gain: GainWord = "channel"
    stored: StoredWord = "gamma"
    key_gain: KeyGainWord = "own"
    cast: CastWord = "cast_first"
    bias: BiasWord = "none"
    order: OrderWord = "norm_rotary"
    layout: LayoutWord = "half_split"
    rotated: RotatedWord = "all"
    conversion: ConversionWord = "none"
    scale: ScaleWord = "inverse_root"
    cap: CapWord = "none"
    grouping: GroupingWord = "repeat"
    rule: RuleWord | None = None  # where epsilon stands; None: where the norm usually has it
    epsilon: float | None = None
    alpha: float = ALPHA  # of dynamic tanh

    def but(self, **changes: Any) -> "Pipeline":
        """The same pipeline with some words changed."""
        return dataclasses.replace(self, **changes)

    @property
    def multiplied(self) -> tuple[str, ...]:
        """The sides, of q and k, that a gain multiplies: it may be that of one side alone.

        >>> Pipeline().multiplied, Pipeline(on="k", key_gain="q_alone").multiplied
        (('q', 'k'), ())
        """
        of_sides = KEY_GAINS[self.key_gain]
        return tuple(side for side in "qk" if self.gain != "none" and side in self.on and of_sides[side])

    @property
    def normaliser(self) -> Norm:
        """The norm alone, on the last axis."""
        return partial(normalise, norm=NORMS[self.norm], rule=self.rule, epsilon=self.epsilon, alpha=self.alpha)


CHOICES: Final[dict[str, tuple[str, ...]]] = {
    name: get_args(hint) for name, hint in get_type_hints(Pipeline).items() if name not in ("rule", "epsilon", "alpha")
}


@dataclass(frozen=True, eq=False)
class PipelineScores:
    """Raw scores, and what becomes of them; each stage is computed when it is first asked for."""

    pipeline: Pipeline
    block: Block
    store: Rounding
    raw: Float[Tensor, "*states n_heads positions positions"]  # q·k

    @cached_property
    def logits(self) -> Float[Tensor, "*states n_heads positions positions"]:
        """Scaled and, if the pipeline does, capped."""
        logits = self.store(self.raw * SCALES[self.pipeline.scale](self.block))
        return self.store(CAPS[self.pipeline.cap](logits, self.block.softcap))

    @cached_property
    def weights(self) -> Float[Tensor, "*states n_heads positions positions"]:
        """Attention weights."""
        masked = self.logits if self.block.added is None else self.logits + self.block.added
        if self.block.visible is not None:
            masked = masked.masked_fill(~self.block.visible, -torch.inf)
        return PLACES[self.pipeline.place].on_weights(torch.softmax(masked, -1), self.pipeline.normaliser)

    def seen(self, scores: Float[Tensor, "*states n_heads positions positions"]) -> Tensor:
        """`scores`, and 0 for pairs that no query sees."""
        return scores if self.block.visible is None else scores.masked_fill(~self.block.visible, 0)

    @cached_property
    def output(self) -> Float[Tensor, "*states positions d_model"]:
        """Through w_o if the block has one."""
        v = _values(self.pipeline, self.block, self.store)
        v = GROUPINGS[self.pipeline.grouping](v, self.block.n_heads // self.block.n_kv_heads)
        output = merged(self.weights @ v)
        return output if self.block.w_o is None else output.to(self.block.w_o) @ self.block.w_o.mT


@dataclass(frozen=True, eq=False)
class Trace(PipelineScores):
    """One pass through a block; states in front, if the block has several."""

    q_projected: Float[Tensor, "n_heads positions d_head"]  # as the projection leaves them
    k_projected: Float[Tensor, "n_kv_heads positions d_head"]
    q: Float[Tensor, "... n_heads positions d_head"]  # as they enter the product; of every state, if states differ
    k: Float[Tensor, "... n_heads positions d_head"]  # one for every query head


def trace(pipeline: Pipeline, block: Block, *, store: Rounding = exact) -> Trace:
    """The block as `pipeline` computes it; `store` rounds what is written to memory, in a dtype wide enough."""
    q0, k0 = _projected(pipeline, block, store)
    q, q_size = _side("q", q0, pipeline, block, store)
    k, k_size = _side("k", k0, pipeline, block, store)
    k, k_size = (GROUPINGS[pipeline.grouping](x, block.n_heads // block.n_kv_heads) for x in (k, k_size))
    raw = store(q @ k.mT)
    if PLACES[pipeline.place].in_product:
        raw = store(raw / (q_size * k_size.mT))
    return Trace(pipeline=pipeline, block=block, store=store, raw=raw, q_projected=q0, k_projected=k0, q=q, k=k)


def _values(pipeline: Pipeline, block: Block, store: Rounding) -> Tensor:
    """v, normalised where and if the pipeline does; a norm on v has no gain."""
    normed = pipeline.on == "qkv"
    before = pipeline if normed and pipeline.place == "input" else None
    v = _projection(block.x, block.w_v, block.b_v, block.d_head, before, store)
    if not normed or before is not None:
        return v
    if pipeline.place == "full_width":
        return store(PLACES[pipeline.place].on_heads(v, pipeline.normaliser))
    return store(pipeline.normaliser(v))


def _projected(pipeline: Pipeline, block: Block, store: Rounding) -> tuple[Tensor, Tensor]:
    """q and k as the projections leave them."""
    q, k = (pipeline if pipeline.place == "input" and side in pipeline.on else None for side in ("q", "k"))
    return (
        _projection(block.x, block.w_q, block.b_q, block.d_head, q, store),
        _projection(block.x, block.w_k, block.b_k, block.d_head, k, store),
    )


@lru_cache(maxsize=12)  # by the tensors themselves, which blocks of one draw share
def _projection(
    x: Tensor, weight: Tensor, bias: Tensor | float, d_head: int, before: Pipeline | None, store: Rounding
) -> Tensor:
    """One projection of `x`, in heads; `before`: the pipeline, if its norm acts before it."""
    given = x if before is None else PLACES[before.place].on_input(x, before.normaliser)
    return heads_of(store(given @ weight.mT + bias), d_head)


def _side(
    side: Literal["q", "k"], x: Tensor, pipeline: Pipeline, block: Block, store: Rounding
) -> tuple[Tensor, Tensor]:
    """q or k from projection to product, and what the product must still be divided by for it."""
    before, after = ORDERS[pipeline.order]
    if CONVERSIONS[pipeline.conversion][0]:
        x = x[..., reordering(block.d_head, pipeline.layout, pipeline.rotated)]
    if side not in pipeline.on:
        return (_turned(x, pipeline, block, store) if before or after else x), torch.ones_like(x[..., :1])
    x, size = _normed(side, _turned(x, pipeline, block, store) if before else x, pipeline, block, store)
    return (_turned(x, pipeline, block, store) if after else x), size


def _turned(x: Tensor, pipeline: Pipeline, block: Block, store: Rounding) -> Tensor:
    return store(rotate(x, block.positions, pipeline.layout, block.theta, pipeline.rotated))


def _normed(
    side: Literal["q", "k"], x: Tensor, pipeline: Pipeline, block: Block, store: Rounding
) -> tuple[Tensor, Tensor]:
    """One side with its norm and gain, and what the norm leaves to the product to divide by."""
    gain, bias = _affine(side, pipeline, block)
    if CONVERSIONS[pipeline.conversion][1]:
        order = reordering(block.d_head, pipeline.layout, pipeline.rotated)
        gain, bias = gain[..., order] if gain.shape[-1] > 1 else gain, bias[..., order]
    if PLACES[pipeline.place].in_product:
        size = divisor(x, NORMS[pipeline.norm], pipeline.rule, pipeline.epsilon)
        return store(numerator(x, NORMS[pipeline.norm], pipeline.alpha) * gain + bias * size), size
    normed = PLACES[pipeline.place].on_heads(x, pipeline.normaliser)
    return CASTS[pipeline.cast](normed, gain, bias, store), torch.ones_like(x[..., :1])


def _affine(side: Literal["q", "k"], pipeline: Pipeline, block: Block) -> tuple[Tensor, Tensor]:
    """Gain and bias of one side, [states, heads, 1, d_head] or what broadcasts to it."""
    n_heads = block.n_heads if side == "q" else block.n_kv_heads
    stored = block.gain_q[..., :n_heads, :] if KEY_GAINS[pipeline.key_gain][side] == "q" else block.gain_k
    word = pipeline.gain if KEY_GAINS[pipeline.key_gain][side] else "none"
    gain = GAINS[word](READINGS[pipeline.stored](stored))[..., None, :]
    bias = block.bias_q if side == "q" else block.bias_k
    if pipeline.bias == "none" or bias is None:
        return gain, torch.zeros_like(stored[..., :1, None, :])
    return gain, (bias if pipeline.gain == "head_channel" else bias[..., :1, :])[..., None, :]


# What a gain does not tell apart, it reads from the first entry.
GAINS: Final[dict[GainWord, Callable[[Tensor], Tensor]]] = {
    "none": lambda gain: torch.ones_like(gain[..., :1, :1]),
    "scalar": lambda gain: gain[..., :1, :1],
    "head": lambda gain: gain[..., :1],
    "channel": lambda gain: gain[..., :1, :],
    "head_channel": lambda gain: gain,
}
# Whose gain multiplies q and k; an empty word: none does.
KEY_GAINS: Final[dict[KeyGainWord, dict[str, str]]] = {
    "own": {"q": "q", "k": "k"},
    "of_q": {"q": "q", "k": "q"},
    "q_alone": {"q": "q", "k": ""},
    "k_alone": {"q": "", "k": "k"},
}
READINGS: Final[dict[StoredWord, Callable[[Tensor], Tensor]]] = {
    "gamma": lambda stored: stored,
    "one_plus": lambda stored: 1 + stored,
}
CASTS: Final[dict[CastWord, Callable[[Tensor, Tensor, Tensor, Rounding], Tensor]]] = {
    "gain_first": lambda x, gain, bias, store: store(x * gain + bias),
    "cast_first": lambda x, gain, bias, store: store(store(store(x) * store(gain)) + bias),
}
# Whether q and k are turned before their norm, and whether after it.
ORDERS: Final[dict[OrderWord, tuple[bool, bool]]] = {
    "none": (False, False),
    "norm_rotary": (False, True),
    "rotary_norm": (True, False),
}
# Whether the rows of W_q and W_k, and whether the gain, were carried over from the other rotary layout.
CONVERSIONS: Final[dict[ConversionWord, tuple[bool, bool]]] = {
    "none": (False, False),
    "weights": (True, False),
    "weights_and_gain": (True, True),
}
SCALES: Final[dict[ScaleWord, Callable[[Block], Tensor | float]]] = {
    "inverse_root": lambda block: 1 / math.sqrt(block.d_head),
    "one": lambda block: 1.0,
    "root": lambda block: math.sqrt(block.d_head),
    "inverse": lambda block: 1 / block.d_head,
    "learned": lambda block: _per_head(block.learned_scale),
}
CAPS: Final[dict[CapWord, Callable[[Tensor, float], Tensor]]] = {
    "none": lambda logits, cap: logits,
    "softcap": lambda logits, cap: cap * torch.tanh(logits / cap),
}
# Query head h reads key head h // times, or (wrongly) h mod n_kv_heads.
GROUPINGS: Final[dict[GroupingWord, Callable[[Tensor, int], Tensor]]] = {
    "repeat": lambda x, times: x.repeat_interleave(times, -3) if times > 1 else x,
    "tile": lambda x, times: torch.cat([x] * times, -3) if times > 1 else x,
}


def _per_head(scale: Tensor | float) -> Tensor | float:
    return scale[:, None, None] if isinstance(scale, Tensor) else scale
