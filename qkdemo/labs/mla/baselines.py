"""What is done under latent attention instead of QK norm on keys: what each way bounds, and what it costs.

* `METHODS`: nothing, norms on the latents, QK-clip, learning rates that depend on the weights, and QK norm;
* `compare(recipe)`: the largest logit, and how far one step moves a logit, while every projection grows;

QK-clip and the rates stand on norms on the latents, as in the models that use them; QK norm stands alone. Nothing
is trained: a step adds ±`STEP` to every entry of W_q and of the content part of W_k, as a first step of Adam does.
Hidden states have unit size, and one projection down from them gives the latents of q, of k, and the rotary key.

Sources: DeepSeek-AI 2024, "DeepSeek-V2", section 2.1 (norms on the latents); Kimi Team 2025, "Kimi K2", section 2.1,
algorithm 1 (QK-clip); Anson & Aitchison 2025, "Controlling changes to attention logits" (rates).
"""

import dataclasses
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from qkdemo.attention.blocks import steps
from qkdemo.attention.norms import NORMS, divisor, normalise
from qkdemo.attention.rotary import partners, rotate

MethodWord: TypeAlias = Literal["nothing", "latent_norm", "qk_clip", "rates", "qk_norm"]
METHODS: Final[tuple[MethodWord, ...]] = ("nothing", "latent_norm", "qk_clip", "rates", "qk_norm")
STEP: Final = 1e-3  # a usual learning rate of Adam
_PLAIN: Final = ("nothing", "latent_norm", "qk_norm")  # methods whose logits a step alone changes
_RMS: Final = NORMS["rms"]


@dataclass(frozen=True, kw_only=True)
class LatentRecipe:
    """What a drawn block of latent attention depends on. Queries have a latent as wide as that of keys."""

    n_heads: int
    n_keys: int
    latent: int
    d_content: int
    d_rotary: int
    joint: bool  # QK norm: one size for both parts
    gain_spread: float
    head_spread: float  # largest head's W_q and W_k over the smallest's
    threshold: float  # τ of QK-clip
    scales: tuple[float, ...]  # what every projection is multiplied by
    seed: int


@dataclass(frozen=True, eq=False)
class Alternatives:
    """Every method at every scale of the projections; pairs that the causal mask hides are left out."""

    scales: NDArray[np.float64]
    largest: dict[MethodWord, NDArray[np.float64]]  # largest |logit|
    unseen: dict[MethodWord, NDArray[np.float64]]  # the same on other tokens, which no clip has seen
    moved: dict[MethodWord, NDArray[np.float64]]  # the most that one step moves a logit
    factors: NDArray[np.float64]  # [scales, heads]: γ of QK-clip
    shared_key: NDArray[np.float64]  # how far heads under τ would move, relative, were √γ put on the rotary key too
    bound: float  # of QK norm


@dataclass(frozen=True, eq=False)
class _Vectors:
    """Contents and rotary parts at scale 1: of q [heads, tokens, width], of k; the rotary key [tokens, width]."""

    latent_q: Tensor
    latent_k: Tensor
    q: tuple[Tensor, Tensor]
    k: Tensor
    rotary_key: Tensor


@dataclass(frozen=True, eq=False)
class _Draw:
    seen: _Vectors
    unseen: _Vectors
    step: _Vectors  # what U c is, U of entries ±1, on the tokens seen
    deviations: tuple[Tensor, Tensor, Tensor, Tensor]  # of the gains: q content, q rotary, k content, k rotary
    lengths: tuple[Tensor, Tensor]  # Frobenius norm of each head's W_q, W_k: [heads, 1, 1]
    recipe: LatentRecipe
    s: Tensor  # the scales: [scales, 1, 1, 1]

    @property
    def gains(self) -> list[Tensor]:
        """In the order of `deviations`."""
        return [1 + self.recipe.gain_spread * deviation for deviation in self.deviations]


@lru_cache(maxsize=16)
def compare(recipe: LatentRecipe) -> Alternatives:
    """Every method on one draw, float64."""
    found = {word: _measured(word, _read_by(word, recipe)) for word in METHODS}
    drawn, gamma = _drawn(recipe), _factors(_read_by("qk_clip", recipe))
    return Alternatives(
        scales=np.array(recipe.scales),
        largest={word: row[0] for word, row in found.items()},
        unseen={word: row[1] for word, row in found.items()},
        moved={word: row[2] for word, row in found.items()},
        factors=gamma[..., 0, 0].numpy(),
        shared_key=_shared_key(drawn, gamma, _plain("latent_norm", _read_by("latent_norm", recipe))).numpy(),
        bound=_bound(drawn),
    )


def _read_by(word: MethodWord, recipe: LatentRecipe) -> LatentRecipe:
    """The recipe with what `word` does not read set aside, so that what was computed is found again."""
    if word != "qk_clip":
        recipe = dataclasses.replace(recipe, threshold=math.inf)
    return recipe if word == "qk_norm" else dataclasses.replace(recipe, gain_spread=0.0, joint=True)


@lru_cache(maxsize=64)
def _measured(word: MethodWord, recipe: LatentRecipe) -> tuple[NDArray[np.float64], ...]:
    """Largest |logit|, the same on other tokens, and the most that a step moves a logit."""
    drawn, clip = _drawn(recipe), _factors(recipe)
    before = _plain(word, recipe) if word in _PLAIN else clip * _plain("latent_norm", _read_by("latent_norm", recipe))
    after, elsewhere = _logits(word, drawn, clip, stepped=True), _logits(word, drawn, clip, unseen=True)
    return tuple(_largest(logits).numpy() for logits in (before, elsewhere, after - before))


@lru_cache(maxsize=16)
def _plain(word: MethodWord, recipe: LatentRecipe) -> Tensor:
    return _logits(word, _drawn(recipe))


def _factors(recipe: LatentRecipe) -> Tensor:
    """γ of every head at every scale, [scales, heads, 1, 1]; from the signed largest logit, as the source takes it."""
    highest = _visible(_plain("latent_norm", _read_by("latent_norm", recipe))).flatten(-2).max(-1).values
    return torch.where(highest > recipe.threshold, recipe.threshold / highest, 1.0)[..., None, None]


def _drawn(recipe: LatentRecipe) -> _Draw:
    return dataclasses.replace(_draw(_read_by("nothing", recipe)), recipe=recipe)


@lru_cache(maxsize=8)
def _draw(recipe: LatentRecipe) -> _Draw:
    generator = np.random.default_rng((recipe.seed, 1))  # the draw of the readings is another one
    heads, keys, latent = recipe.n_heads, recipe.n_keys, recipe.latent
    widths = (recipe.d_content + recipe.d_rotary, recipe.d_content)
    size = torch.from_numpy(steps(recipe.head_spread, heads))[:, None, None]
    w_q, w_k = (
        size * torch.from_numpy(generator.standard_normal((heads, width, latent))) / math.sqrt(latent)
        for width in widths
    )
    u_q, u_k = (torch.from_numpy(generator.integers(0, 2, (heads, width, latent)) * 2.0 - 1.0) for width in widths)
    gains = [torch.from_numpy(generator.uniform(-1, 1, width)) for width in (recipe.d_content, recipe.d_rotary) * 2]
    batches = []
    for _ in range(2):
        c_q, c_k = (torch.from_numpy(generator.standard_normal((keys, latent))) for _ in range(2))
        batches.append((c_q, c_k, torch.from_numpy(generator.standard_normal((keys, recipe.d_rotary)))))

    def vectors(w_q: Tensor, w_k: Tensor, batch: tuple[Tensor, Tensor, Tensor]) -> _Vectors:
        c_q, c_k, rotary_key = batch
        q, content = c_q @ w_q.mT, recipe.d_content
        return _Vectors(c_q, c_k, (q[..., :content], q[..., content:]), c_k @ w_k.mT, rotary_key)

    return _Draw(
        seen=vectors(w_q, w_k, batches[0]),
        unseen=vectors(w_q, w_k, batches[1]),
        step=vectors(u_q, u_k, batches[0]),
        deviations=(gains[0], gains[1], gains[2], gains[3]),
        lengths=(w_q.norm(dim=(1, 2), keepdim=True), w_k.norm(dim=(1, 2), keepdim=True)),
        recipe=recipe,
        s=torch.tensor(recipe.scales, dtype=torch.float64)[:, None, None, None],
    )


def _logits(
    word: MethodWord, drawn: _Draw, clip: Tensor | float = 1.0, *, stepped: bool = False, unseen: bool = False
) -> Float[Tensor, "scales heads tokens tokens"]:
    """The logits while every projection grows by s; `clip`: γ, of which q and k take √γ each and the rotary q all."""
    tokens, s = drawn.unseen if unseen else drawn.seen, drawn.s
    root = torch.as_tensor(clip).sqrt()
    of_q, of_k = _rates(word, drawn) if stepped else (0.0, 0.0)
    grown_q, grown_k = (_latents(word, latent, s) for latent in (tokens.latent_q, tokens.latent_k))
    q_content = (root * s * tokens.q[0] + of_q * drawn.step.q[0]) * grown_q
    q_rotary = (root * root * s * tokens.q[1] + of_q * drawn.step.q[1]) * grown_q
    k_content = (root * s * tokens.k + of_k * drawn.step.k) * grown_k
    k_rotary = (s * tokens.rotary_key).expand(-1, drawn.recipe.n_heads, -1, -1)
    if word == "qk_norm":
        gain = drawn.gains
        q_content, q_rotary = _normed(q_content, q_rotary, gain[0], gain[1], joint=drawn.recipe.joint)
        k_content, k_rotary = _normed(k_content, k_rotary, gain[2], gain[3], joint=drawn.recipe.joint)
    return _product(q_content, q_rotary, k_content, k_rotary)


def _product(q_content: Tensor, q_rotary: Tensor, k_content: Tensor, k_rotary: Tensor) -> Tensor:
    at = torch.arange(q_content.shape[-2], dtype=torch.float64)
    logits = q_content @ k_content.mT + rotate(q_rotary, at) @ rotate(k_rotary, at).mT
    return logits / math.sqrt(q_content.shape[-1] + q_rotary.shape[-1])


def _latents(word: MethodWord, latent: Tensor, s: Tensor) -> Tensor:
    """What the latent at scale 1 is multiplied by: a norm divides the grown one by its size."""
    if word in ("nothing", "qk_norm"):
        return s
    return s / divisor(s * latent, _RMS)


def _rates(word: MethodWord, drawn: _Draw) -> tuple[Tensor | float, Tensor | float]:
    """Of W_q and W_k. ∝ 1/‖W_k‖ and 1/‖W_q‖, equal to `STEP` where a head is as long as a fresh one."""
    if word != "rates":
        return STEP, STEP
    fresh_q, fresh_k = math.sqrt(drawn.recipe.d_content + drawn.recipe.d_rotary), math.sqrt(drawn.recipe.d_content)
    return STEP * fresh_k / (drawn.s * drawn.lengths[1]), STEP * fresh_q / (drawn.s * drawn.lengths[0])


def _normed(
    content: Tensor, rotary: Tensor, of_content: Tensor, of_rotary: Tensor, *, joint: bool
) -> tuple[Tensor, Tensor]:
    if not joint:
        return normalise(content, _RMS) * of_content, normalise(rotary, _RMS) * of_rotary
    size = divisor(torch.cat([content, rotary], -1), _RMS)
    return content / size * of_content, rotary / size * of_rotary


def _visible(logits: Tensor) -> Tensor:
    """−∞ where a query stands before its key."""
    hidden = torch.ones(logits.shape[-2:], dtype=torch.bool).triu(1)
    return logits.masked_fill(hidden, -torch.inf)


def _largest(logits: Tensor) -> Tensor:
    """Largest absolute value of the visible pairs of all heads, per scale."""
    seen = torch.ones(logits.shape[-2:], dtype=torch.bool).tril()
    return (logits.abs() * seen).amax((1, 2, 3))


def _shared_key(drawn: _Draw, gamma: Tensor, right: Tensor) -> Tensor:
    """How far the logits of the heads under τ move, relative, if the shared rotary key takes every head's √γ."""
    tokens, recipe, s = drawn.seen, drawn.recipe, drawn.s
    at = torch.arange(recipe.n_keys, dtype=torch.float64)
    q = rotate(s * tokens.q[1] * _latents("latent_norm", tokens.latent_q, s), at)
    rotary = q @ rotate(s * tokens.rotary_key, at).mT / math.sqrt(recipe.d_content + recipe.d_rotary)
    off = (gamma.prod(1, keepdim=True).sqrt() - 1) * rotary
    moved, size = (torch.where(gamma == 1, x, 0.0).tril().square().sum((1, 2, 3)).sqrt() for x in (off, right))
    return torch.where(size > 0, moved / size.clamp_min(1e-300), 0.0)


def _bound(drawn: _Draw) -> float:
    """What QK norm proves: √d times the largest product of gains, over rotary pairs the largest of each side.

    With each part normalised by itself: d_content and d_rotary times theirs, over √d.
    """
    gains, recipe = drawn.gains, drawn.recipe
    content = (gains[0] * gains[2]).abs().max().item()
    of_pairs = []
    for gain in (gains[1], gains[3]):
        pairs = torch.stack([gain[side] for side in partners(len(gain), "half_split")])
        of_pairs.append(pairs.abs().amax(0))
    rotary = (of_pairs[0] * of_pairs[1]).max().item()
    d = recipe.d_content + recipe.d_rotary
    if recipe.joint:
        return math.sqrt(d) * max(content, rotary)
    return (recipe.d_content * content + recipe.d_rotary * rotary) / math.sqrt(d)
