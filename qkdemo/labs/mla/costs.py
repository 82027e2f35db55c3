"""What latent attention costs: with QK norm on its keys, in several readings, and with what is done instead of it.

* `COSTS`, `cost_of(reading, widths, context)`: one decoding step, whole;
* `burden(method, widths, context)`: what a method adds, at inference and in training.

One layer, all heads. A multiplication, an addition and a comparison count one each; cached numbers take two bytes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from qkdemo.labs.mla.baselines import MethodWord

ReadingWord: TypeAlias = Literal["without_norm", "naive", "full_keys", "absorbed"]


@dataclass(frozen=True, kw_only=True)
class Widths:
    """Of one layer. The latent of queries is taken as wide as that of keys."""

    n_heads: int
    latent: int
    d_content: int
    d_rotary: int
    joint: bool  # one size for both parts of a key


@dataclass(frozen=True)
class Cost:
    """One layer, one decoding step at one length of the context. Cached numbers take two bytes each."""

    reading: ReadingWord
    context: int
    cache_bytes: int  # of the whole context
    flops: int  # from cache and query to logits, the norm of the query included
    formed_bytes: int  # keys formed at this step and thrown away


def cost_of(reading: ReadingWord, widths: Widths, context: int) -> Cost:
    """What one decoding step of one layer costs, for all heads."""
    cached, per_token, once, formed = COSTS[reading](widths)
    return Cost(
        reading=reading,
        context=context,
        cache_bytes=2 * context * cached,
        flops=context * per_token + once,
        formed_bytes=2 * context * formed,
    )


def _without_norm(s: Widths) -> tuple[int, int, int, int]:
    """Cached numbers and operations per token of the context, operations per step, numbers formed."""
    return s.latent + s.d_rotary, 2 * s.n_heads * (s.latent + s.d_rotary), _forming(s), 0


def _naive(s: Widths) -> tuple[int, int, int, int]:
    return s.latent + s.d_rotary, _forming(s) + _norming(s) + _scoring(s), _norming_query(s), _finished(s)


def _full_keys(s: Widths) -> tuple[int, int, int, int]:
    """The finished keys of all heads are cached; a new token's are formed once."""
    return _finished(s), _scoring(s), _norming_query(s) + _forming(s) + _norming(s), 0


def _absorbed_cost(s: Widths) -> tuple[int, int, int, int]:
    """As without a norm, and 1/rms, a number per token and head; a new token's keys are formed once, for their size.

    One size multiplies the logit of a token and head once, a size of each part both parts of it.
    """
    cached, per_token, once, _ = _without_norm(s)
    scalars, products = s.n_heads + (0 if s.joint else 1), s.n_heads * (1 if s.joint else 2)
    sizes = _forming(s) + _squares(s) + s.d_rotary  # and the rotary key's gain; that of the content is in W_up
    return cached + scalars, per_token + products, once + _norming_query(s) + sizes, 0


def _forming(s: Widths) -> int:
    """The content of one token's keys from its latent; or, as many, all that is absorbed into its queries."""
    return 2 * s.n_heads * s.d_content * s.latent


def _scoring(s: Widths) -> int:
    return 2 * s.n_heads * (s.d_content + s.d_rotary)


def _squares(s: Widths) -> int:
    """Squares and their sums, of one token's keys; all heads share the rotary part."""
    return 2 * (s.n_heads * s.d_content + s.d_rotary)


def _norming(s: Widths) -> int:
    """And products with 1/rms and γ: of the rotary part for every head that has a size of its own."""
    return _squares(s) + 2 * _finished(s)


def _norming_query(s: Widths) -> int:
    return 4 * s.n_heads * (s.d_content + s.d_rotary)


def _finished(s: Widths) -> int:
    """Numbers of one token's finished keys. A rotary part that has a size of its own is one for all heads."""
    return s.n_heads * s.d_content + (s.n_heads * s.d_rotary if s.joint else s.d_rotary)


COSTS: Final[dict[ReadingWord, Callable[[Widths], tuple[int, int, int, int]]]] = {
    "without_norm": _without_norm,
    "naive": _naive,
    "full_keys": _full_keys,
    "absorbed": _absorbed_cost,
}


@dataclass(frozen=True)
class Burden:
    """What a method adds to one layer."""

    step_flops: int  # per decoding step at this context
    cached_numbers: int  # per token
    training_flops: float  # per token of a training sequence as long as this context, forward: a mean, maybe a half
    update_flops: int  # per optimiser step
    keys: Literal["never", "once"]  # how often a token's keys are formed at inference
    stays: bool  # whether something is left of it at inference


def burden(method: MethodWord, widths: Widths, context: int) -> Burden:
    """What `method` adds to a layer without any norm."""
    return _BURDENS[method](widths, context)


def _of_latent_norm(s: Widths, context: int) -> Burden:
    """Per entry of both latents: its square, a sum, times 1/rms, times γ."""
    return Burden(8 * s.latent, 0, 8 * s.latent, 0, "never", stays=True)


def _weights(s: Widths) -> int:
    """Entries of W_q and of the content part of W_k, which alone belongs to a head."""
    return s.n_heads * s.latent * (2 * s.d_content + s.d_rotary)


def _of_clip(s: Widths, context: int) -> Burden:
    """A comparison per visible logit; every weight of a clipped head is multiplied once."""
    pairs, half = divmod(s.n_heads * (context + 1), 2)
    return Burden(0, 0, pairs + 0.5 if half else pairs, _weights(s), "never", stays=False)


def _of_rates(s: Widths, context: int) -> Burden:
    """A square and a sum per weight for the norms, and a product per weight for its rate."""
    return Burden(0, 0, 0, 3 * _weights(s), "never", stays=False)


def _of_qk_norm(s: Widths, context: int) -> Burden:
    """Absorbed: at inference what the readings count; in training four operations per entry of q and k."""
    plain, absorbed = (cost_of(word, s, context) for word in ("without_norm", "absorbed"))
    numbers = (absorbed.cache_bytes - plain.cache_bytes) // (2 * context)
    return Burden(absorbed.flops - plain.flops, numbers, _norming_query(s) + _norming(s), 0, "once", stays=True)


_BURDENS: Final[dict[MethodWord, Callable[[Widths, int], Burden]]] = {
    "nothing": lambda s, context: Burden(0, 0, 0, 0, "never", stays=False),
    "latent_norm": _of_latent_norm,
    "qk_clip": _of_clip,
    "rates": _of_rates,
    "qk_norm": _of_qk_norm,
}
