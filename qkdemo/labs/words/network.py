"""The two trained models: their weights, and what a sentence makes of them at every weight scale.

* `RUNS`: the settings of both runs, plain and normalised, as the training lab knows them;
* `weights(side)`: the recorded weights, by the names that the training engine gives them;
* `read(sentence, format, scales)`: attention of every layer and head, and the shares of the next word, on both sides.

The formulas are those of `qkdemo.training.model`: pre-norm blocks, LayerNorm with a gain, ReLU, learned positions.
Sums are formed in float64; q, k, q·k and the logits are stored in the number format.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from qkdemo.attention.inputs import causal_mask
from qkdemo.attention.measures import attend
from qkdemo.attention.norms import BLOCK_EPSILON
from qkdemo.attention.variants import VARIANTS, Parameters, scores
from qkdemo.floats.formats import FORMATS, FormatWord, rounded
from qkdemo.training import settings as training
from qkdemo.training.parameters import shape_of
from qkdemo.training.sentences import WORDS

SideWord: TypeAlias = Literal["plain", "norm"]

FILE: Final = Path(__file__).with_name("weights.npz")
_BOTH: Final = training.Settings(
    task="words", schedule="cosine", learning_rate=0.004, warmup=100, steps=3000, batch=16, n_keys=32
)
RUNS: Final[Mapping[SideWord, training.Settings]] = {"plain": _BOTH.but(variant="none"), "norm": _BOTH.but(variant="rms")}
SHAPE: Final = shape_of(_BOTH)


@dataclass(frozen=True, eq=False)
class Reading:
    """What one side makes of a sentence at every scale. NaN where a softmax has no value, and after it."""

    logits: Float[Tensor, "scales layers heads words words"]
    weights: Float[Tensor, "scales layers heads words words"]
    shares: Float[Tensor, "scales symbols"]  # of the word that comes next


@cache
def weights(side: SideWord) -> Mapping[str, Tensor]:
    """The recorded weights in float64, by leaf: matrices map rows to columns."""
    with np.load(FILE, allow_pickle=False) as kept:
        own = [name for name in kept.files if name.startswith(f"{side}.")]
        return {name.removeprefix(f"{side}."): torch.from_numpy(kept[name]).double() for name in own}


@lru_cache(maxsize=64)
def read(sentence: str, format: FormatWord, scales: tuple[float, ...]) -> Mapping[SideWord, Reading]:
    """Both sides, with W_q and W_k multiplied by each of `scales`."""
    tokens = torch.tensor([WORDS.index(word) for word in sentence.split()])
    return {side: _read(weights(side), tokens, format, scales, side) for side in RUNS}


def _read(
    leaves: Mapping[str, Tensor], tokens: Tensor, format: FormatWord, scales: Sequence[float], side: SideWord
) -> Reading:
    def store(x: Tensor) -> Tensor:
        return rounded(x, FORMATS[format]).double()

    grown = torch.tensor(scales, dtype=torch.float64)[:, None, None, None]
    variant, visible = VARIANTS[RUNS[side].variant], causal_mask(len(tokens))  # type: ignore[index]
    x = (leaves["embedding"][tokens] + leaves["position"][: len(tokens)]).expand(len(scales), -1, -1)
    logits, attention = [], []
    for layer in range(SHAPE.n_layers):
        own = {name.removeprefix(f"{layer}."): leaf for name, leaf in leaves.items() if name.startswith(f"{layer}.")}
        made = _entering(x, own["attention_gain"]) @ own["qkv"]
        q, k, v = made.unflatten(-1, (3, SHAPE.n_heads, SHAPE.d_head)).permute(2, 0, 3, 1, 4)
        gains = Parameters(gamma_q=own["gamma_q"], gamma_k=own["gamma_k"])
        formed = scores(store(grown * q), store(grown * k), variant, gains, store=store).logits
        weights, _ = attend(formed, visible)
        x = x + (weights @ v).transpose(1, 2).flatten(2) @ own["out"]
        x = x + torch.relu(_entering(x, own["mlp_gain"]) @ own["up"]) @ own["down"]
        logits.append(formed.masked_fill(~visible, -torch.inf))
        attention.append(weights)
    outputs = _entering(x[:, -1], leaves["gain"]) @ leaves["head"]
    return Reading(torch.stack(logits, 1), torch.stack(attention, 1), outputs.softmax(-1))


def _entering(x: Tensor, gain: Tensor) -> Tensor:
    """LayerNorm with a gain."""
    return functional.layer_norm(x, x.shape[-1:], gain, eps=BLOCK_EPSILON)
