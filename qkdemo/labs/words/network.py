"""The two trained models: their weights, and what a sentence makes of them at every weight scale.

* `RUNS`: the settings of both runs, plain and normalised, as the training lab knows them;
* `weights(side)`: the recorded weights, by the names that the training engine gives them;
* `read(sentence, format, scales)`: attention of every layer and head, and the shares of the next word, on both sides;
  `read_once(side, …)`: on one, without keeping it;
* `accuracy()`: how often each is right, where only one word is.

The formulas are those of `training.network.model`: pre-norm blocks, LayerNorm with a gain, ReLU, learned positions.
Sums are formed in float64; q, k, q·k and the logits are stored in the number format.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from qkdemo.attention.inputs import causal_mask
from qkdemo.attention.measures import attend
from qkdemo.attention.norms import BLOCK_EPSILON
from qkdemo.attention.variants import VARIANTS, Parameters, scores
from qkdemo.floats.formats import FORMATS, Format, FormatWord, rounded
from qkdemo.training import settings as training
from qkdemo.training.network.parameters import shape_of
from qkdemo.training.sentences import WORDS, drawn

SideWord: TypeAlias = Literal["plain", "norm"]
PlaceWord: TypeAlias = Literal["owner", "pronoun", "verb"]

FILE: Final = Path(__file__).with_name("weights.npz")
_BOTH: Final = training.Settings(
    task="words", schedule="cosine", learning_rate=0.004, warmup=200, steps=3000, batch=32, n_keys=32, seed=1
)
RUNS: Final[Mapping[SideWord, training.Settings]] = {
    "plain": _BOTH.but(variant="none"),
    "norm": _BOTH.but(variant="rms"),
}
SHAPE: Final = shape_of(_BOTH)
_HELD_OUT: Final = (0, 2)  # a stream of random numbers that no training draws from
_N_TEXTS: Final = 256


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
    return {side: read_once(side, sentence, format, scales) for side in RUNS}


def read_once(side: SideWord, sentence: str, format: FormatWord, scales: Sequence[float]) -> Reading:
    """One side, and nothing is kept."""
    tokens = torch.tensor([WORDS.index(word) for word in sentence.split()]).expand(len(scales), -1)
    grown = torch.tensor(scales, dtype=torch.float64)[:, None, None, None]
    logits, attention, outputs = _forward(side, tokens, grown, FORMATS[format])
    return Reading(logits, attention, outputs[:, -1].softmax(-1))


@cache
def accuracy() -> Mapping[SideWord, Mapping[PlaceWord, float]]:
    """How often the word with the largest share is right in texts that are new to both: at scale 1, in float64."""
    texts = torch.from_numpy(drawn(np.random.default_rng(_HELD_OUT), _N_TEXTS, SHAPE.n_keys + 1))
    one = torch.ones((1, 1, 1, 1), dtype=torch.float64)
    guesses = {side: _forward(side, texts[:, :-1], one, FORMATS["float64"])[2].argmax(-1) for side in RUNS}
    right = {side: (found == texts[:, 1:])[:, 2:] for side, found in guesses.items()}
    return {
        side: {place: right[side][at].double().mean().item() for place, at in _places(texts).items()} for side in RUNS
    }


def _places(texts: Int[Tensor, "texts words"]) -> dict[PlaceWord, Bool[Tensor, "texts places"]]:
    """Where the word after the third one or a later one is an answer, or a verb."""
    third_last, second_last, last = texts[:, :-3], texts[:, 1:-2], texts[:, 2:-1]
    asked = last == WORDS.index("?")
    pronouns = torch.tensor([WORDS.index("she"), WORDS.index("he")])
    return {
        "owner": asked & ~torch.isin(second_last, pronouns),
        "pronoun": asked & torch.isin(second_last, pronouns),
        "verb": third_last == WORDS.index("near"),
    }


def _forward(
    side: SideWord, tokens: Int[Tensor, "states words"], grown: Float[Tensor, "#states 1 1 1"], format: Format
) -> tuple[Tensor, Tensor, Tensor]:
    """Logits and weights, [states, layers, heads, words, words]; what follows each word, [states, words, symbols]."""

    def store(x: Tensor) -> Tensor:
        return rounded(x, format).double()

    leaves, variant = weights(side), VARIANTS["rms" if side == "norm" else "none"]
    n_words = tokens.shape[-1]
    visible = causal_mask(n_words)
    x = leaves["embedding"][tokens] + leaves["position"][:n_words]
    logits, attention = [], []
    for layer in range(SHAPE.n_layers):
        own = {name.removeprefix(f"{layer}."): leaf for name, leaf in leaves.items() if name.startswith(f"{layer}.")}
        made = _entering(x, own["attention_gain"]) @ own["qkv"]
        q, k, v = made.view(*made.shape[:2], 3, SHAPE.n_heads, SHAPE.d_head).permute(2, 0, 3, 1, 4)
        gains = Parameters(gamma_q=own["gamma_q"], gamma_k=own["gamma_k"])
        formed = scores(store(grown * q), store(grown * k), variant, gains, store=store).logits
        looked, _ = attend(formed, visible)
        x = x + (looked @ v).transpose(1, 2).flatten(2) @ own["out"]
        x = x + torch.relu(_entering(x, own["mlp_gain"]) @ own["up"]) @ own["down"]
        logits.append(formed.masked_fill(~visible, -torch.inf))
        attention.append(looked)
    return torch.stack(logits, 1), torch.stack(attention, 1), _entering(x, leaves["gain"]) @ leaves["head"]


def _entering(x: Tensor, gain: Tensor) -> Tensor:
    """LayerNorm with a gain."""
    return functional.layer_norm(x, x.shape[-1:], gain, eps=BLOCK_EPSILON)
