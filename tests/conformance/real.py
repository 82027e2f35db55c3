"""transformers' own attention classes at work, small: what they compute, and the same numbers as a block of ours.

* `attention(id, …)`: the class of a row, with random projections and gains, on positions far from 0, as a `Case`;
* `Case.error(pipeline)`: how far our reading of the same numbers is off;
* `seen(module, …)`: what reaches a class's attention function, and what its own eager function makes of it.
"""

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from qkdemo.attention.blocks import Block
from qkdemo.attention.pipeline import Pipeline, trace
from qkdemo.facts.models import MODELS, Model

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
}
PLAIN: dict[str, Any] = {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}
POSITIVE, LESS_ONE = (0.5, 1.5), (-0.5, 0.5)  # gains that are stored as γ, or as γ − 1


@dataclass
class Case:
    """A real class at work, and the same numbers as a block."""

    logits: Tensor | None  # [heads, queries, keys], before mask and position terms; None: the class keeps them
    weights: Tensor
    output: Tensor  # [positions, heads · width], before gates and the output projection
    block: Block
    epsilon: float | None  # of its norm; None if it has none
    norm: Any = None  # of q
    cached: Tensor | None = None  # k as its cache receives it
    k: Tensor | None = None  # k as it enters the product

    def error(self, pipeline: Pipeline) -> float:
        """The larger of the relative errors of logits and output."""
        ours = trace(pipeline.but(epsilon=self.epsilon), self.block)
        pairs = ((ours.logits, self.logits), (ours.output, self.output))
        return max(((one - real).norm() / real.norm()).item() for one, real in pairs if real is not None)


@dataclass
class Seen:
    """What an attention function received, and what it returned."""

    q: Tensor
    k: Tensor
    v: Tensor
    logits: Tensor
    weights: Tensor
    output: Tensor
    position_bias: Tensor | None = None
    cached: Tensor | None = None


class Cache:
    """Keeps the keys that a class hands to its cache, and gives them back."""

    k: Tensor | None = None

    def update(self, k: Tensor, v: Tensor, *ignored: Any, **more: Any) -> tuple[Tensor, Tensor]:
        self.k = k[0].detach()
        return k, v

    def get_seq_length(self, *ignored: Any) -> int:
        return 0


def row(id: str) -> Model:
    """The row of the table."""
    return next(model for model in MODELS if model.id == id)


def found(model: Model, name: str = "") -> Any:
    """The class that the row names, or another name of its file."""
    path = model.path.removeprefix("src/").removesuffix(".py").replace("/", ".")
    return getattr(importlib.import_module(path), name or model.symbol)


def filled(module: nn.Module, gain: tuple[float, float] = POSITIVE, spread: float = 1.0) -> Any:
    """`module` with random projections and, where it has norms, random gains; heads of unequal size."""
    generator = torch.Generator().manual_seed(7)
    for name, parameter in module.named_parameters():
        if "norm" in name and not name.endswith("bias"):
            parameter.data = gain[0] + (gain[1] - gain[0]) * torch.rand(parameter.shape, generator=generator)
        elif parameter.dim() == 1 or "norm" in name:
            parameter.data = torch.rand(parameter.shape, generator=generator) - 0.5
        else:
            parameter.data = torch.randn(parameter.shape, generator=generator) / parameter[0].numel() ** 0.5
            if name in ("q_proj.weight", "k_proj.weight"):
                parameter.data *= spread * torch.linspace(0.5, 2, len(parameter))[:, None]
    return module.eval()


def inputs(first: int = FIRST) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden states with a mean, positions far from 0, and what a query may see."""
    x = 0.3 + torch.randn(TOKENS, D_MODEL, generator=torch.Generator().manual_seed(1))
    return x, torch.arange(first, first + TOKENS), torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()


def causal_mask() -> Tensor:
    """What a decoder adds to its logits."""
    return torch.zeros(TOKENS, TOKENS).masked_fill(~inputs()[2], torch.finfo(torch.float32).min)[None, None]


def seen(module: Any, x: Tensor, **call: Any) -> Seen:
    """Run `module` on `x` and look at its attention function, which stays the class's own eager one."""
    kept: list[Seen] = []
    eager: Any = sys.modules[type(module).__module__].eager_attention_forward

    def spy(owner: Any, q: Tensor, k: Tensor, v: Tensor, attention_mask: Any, scaling: float = 1.0, **more: Any) -> Any:
        output, weights = eager(owner, q, k, v, attention_mask, scaling=scaling, **more)
        logits = q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).mT * scaling
        cap = more.get("softcap")
        logits = logits if cap is None else cap * torch.tanh(logits / cap)
        bias = more.get("position_bias")
        merged = output[0].reshape(len(x), -1)
        kept.append(Seen(q[0], k[0], v[0], logits[0], weights[0], merged, None if bias is None else bias[0]))
        return output, weights

    ALL_ATTENTION_FUNCTIONS.register("spy", spy)
    module.config._attn_implementation = "spy"
    with torch.inference_mode():
        module(x[None], **call)
    return kept[0]


NORMS = ("{}_norm", "{}_layernorm", "{}_layer_norm", "{long}_layernorm")


def norm_of(module: Any, side: str) -> Any:
    """The norm of q or of k, by whichever name; None if there is none."""
    names = (name.format(side, long={"q": "query", "k": "key"}[side]) for name in NORMS)
    return next((getattr(module, name) for name in (*names, "qk_norm") if hasattr(module, name)), None)


def affine(module: Any, side: str, heads: int, width: int) -> tuple[Tensor, Tensor | None]:
    """Gain and bias of q's or k's norm, for every head and channel; 1 where there is none."""
    norm = norm_of(module, side)
    norms = getattr(norm, "norms", None) or [norm]  # one norm per head
    stored = [getattr(norm, "weight", None) for norm in norms]
    if stored[0] is None:
        return torch.ones(heads, width), None
    biases = [getattr(norm, "bias", None) for norm in norms]

    def spread(numbers: list[Any]) -> Tensor:
        return torch.stack(numbers).detach().reshape(-1, width).expand(heads, width)

    return spread(stored), None if biases[0] is None else spread(biases)


def epsilon_of(module: Any) -> float | None:
    """Epsilon as q's norm holds it."""
    norm = norm_of(module, "q")
    norm = (getattr(norm, "norms", None) or [norm])[0]
    held = (getattr(norm, name, None) for name in ("variance_epsilon", "eps"))
    return next((one for one in held if one is not None), None)


def projection(module: Any, side: str) -> dict[str, Tensor]:
    """Weight and bias of a projection as a block names them."""
    layer = getattr(module, f"{side}_proj")
    found: dict[str, Tensor] = {f"w_{side}": layer.weight.detach()}
    return found if layer.bias is None else found | {f"b_{side}": layer.bias.detach()}


def case_of(module: Any, at: Seen, epsilon: float | None = None, **block: Any) -> Case:
    """What was seen, beside a block of the module's own numbers; `block` says what is not found in the usual place."""
    heads, kv_heads = len(at.q), len(at.k)
    usual: dict[str, Any] = {}
    for side, count in (("q", heads), ("k", kv_heads)):
        if f"gain_{side}" in block:
            continue
        usual[f"gain_{side}"], usual[f"bias_{side}"] = affine(module, side, count, at.q.shape[-1])
    for side in ("q", "k", "v"):
        usual |= projection(module, side) if f"w_{side}" not in block else {}
    return Case(
        at.logits,
        at.weights,
        at.output,
        Block(**usual | {"visible": inputs()[2]} | block),
        epsilon_of(module) if epsilon is None else epsilon,
        norm_of(module, "q"),
        at.cached,
        at.k,
    )


def attention(
    id: str,
    *,
    config: str = "",
    rotary: str = "",
    layer: int = 0,
    layer_type: str = "",
    gain: tuple[float, float] = POSITIVE,
    spread: float = 1.0,
    first: int = FIRST,
    prepare: Callable[[Any], dict[str, Any]] = lambda module: {},
    call: dict[str, Any] | None = None,
    **more: Any,
) -> Case:
    """The class of a row, called as a decoder calls it: hidden states, cosine and sine, a causal mask.

    Args:
        config, rotary: names in the class's file; by default those of its family
        layer_type: which of several rotary settings the layer takes
        prepare: sets what is special in the module and returns what the block must know of it
        call: what else the class wants to be called with
        more: of the configuration
    """
    model = row(id)
    family = model.symbol.removesuffix("Attention")
    made = found(model, config or f"{family}Config")(**SIZES | more)
    module = filled(found(model)(made, layer), gain, spread)
    block = prepare(module)
    x, positions, _ = inputs(first)
    turn = found(model, rotary or f"{family}RotaryEmbedding")(made)
    angles = turn(x[None], positions[None], *([layer_type] if layer_type else []))
    cache = Cache()
    at = seen(
        module, x, **{"position_embeddings": angles, "attention_mask": causal_mask(), "cache": cache} | (call or {})
    )
    at.cached = cache.k
    rope = made.rope_parameters[layer_type] if layer_type else made.rope_parameters
    where = {"x": x, "positions": positions.double(), "theta": float(rope["rope_theta"])}
    return case_of(module, at, **where | block)
