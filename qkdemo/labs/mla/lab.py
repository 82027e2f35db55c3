"""Can keys be normalised that need not be formed?

Multi-head latent attention caches one short latent per token, and absorbs the up-projection of keys into the
query. QK norm on keys seems to forbid that: a norm needs the key. Two readings stand side by side. Naive:
form every head's key at every step. Absorbed: γ is static and goes to the query's side, and of the norm itself
only one number per token and head is left, 1/rms, which is computed once and cached. Both give the same
logits, to rounding. What it costs: as many numbers per token as there are heads.

* `Settings`, `PRESETS`: the dials, and named states of them;
* `run(settings)`: both readings live, and what each costs over the length of the context;
* `findings`, `explain`, `rows`, `context_rows`, `report`: the result in words and as tables;
* `other_ways`, `explain_other_ways`, `other_rows`, `scale_rows`: the same of what is done instead of QK norm;
* `snippet(settings)`, `alternatives_snippet(settings)`: both as standalone PyTorch programs.

Source of the attention: DeepSeek-AI 2024, "DeepSeek-V2", section 2.1; it normalises latents instead.
"""

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, Any, Final, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qkdemo.attention.norms import NORMS, divisor
from qkdemo.attention.rotary import rotate
from qkdemo.dials import Choice, Dial, Dials, Value
from qkdemo.floats.formats import FORMATS, FormatWord, Rounding, exact, rounded
from qkdemo.labs.mla.baselines import METHODS, Alternatives, LatentRecipe, compare
from qkdemo.labs.mla.costs import COSTS, Cost, ReadingWord, Widths, burden, cost_of

LIVE_HEADS: Final = 4  # heads on which the two readings are computed; the costs are for all
_CONTEXTS: Final = tuple(2**n for n in range(18))  # 1 to 131072
_POWERS: Final = tuple(float(2**n) for n in range(18))
_RMS: Final = NORMS["rms"]
_SCALES: Final = (
    *(float(f"{x}e{power}") for power in (-1, 0, 1) for x in ("1", "1.5", "2", "3", "5", "7")),
    100.0,
)
# Dials that change no number of the two readings.
_LOOK: Final = {
    "context": 1,
    "query": 0,
    "key": 0,
    "head": 0,
    "projections": 1,
    "clip_threshold": 1,
    "head_spread": 1,
}


@dataclass(frozen=True, kw_only=True)
class Settings(Dials):
    """The dials of the latent-attention lab; widths as in DeepSeek-V3, whose keys are 128 + 64 wide."""

    context: Annotated[int, Dial(1, 131072, log=True, stops=_POWERS)] = 32768
    n_heads: Annotated[int, Dial(1, 128, log=True, stops=(1, 2, 4, 8, 16, 32, 64, 128), use="latent")] = 128
    latent: Annotated[int, Dial(8, 1024, log=True, stops=(8, 16, 32, 64, 128, 256, 512, 1024))] = 512
    d_content: Annotated[int, Dial(8, 128, log=True, stops=(8, 16, 32, 64, 128))] = 128
    d_rotary: Annotated[int, Dial(2, 64, log=True, stops=(2, 4, 8, 16, 32, 64))] = 64
    statistic: Annotated[Literal["content", "joint"], Choice()] = "joint"
    gain_spread: Annotated[float, Dial(0, 0.95, 0.05)] = 0.5
    format: Annotated[FormatWord, Choice(use="latent")] = "float64"
    projections: Annotated[float, Dial(0.1, 100, log=True, stops=_SCALES, sign="×")] = 3.0
    clip_threshold: Annotated[float, Dial(1, 1000, log=True, use="latent")] = 30.0
    head_spread: Annotated[float, Dial(1, 16, 0.5, more=True, use="latent")] = 4.0
    n_keys: Annotated[int, Dial(1, 32, log=True, stops=(1, 2, 4, 8, 16, 32), more=True, use="drawn")] = 16
    query: Annotated[int, Dial(0, 31, below="n_keys", more=True)] = 15
    key: Annotated[int, Dial(0, 31, below="n_keys", more=True)] = 4
    head: Annotated[int, Dial(0, 3, below="n_heads", more=True)] = 0
    seed: Annotated[int, Dial(0, 9999, more=True)] = 0


PRESETS: Final[dict[str, Settings]] = {
    "deepseek_v3_widths": Settings(),
    "longest_context": Settings(context=131072),
    "content_only": Settings(statistic="content"),
    "few_heads": Settings(n_heads=8, latent=256),
    "in_bfloat16": Settings(format="bfloat16"),
}


@dataclass(frozen=True, eq=False)
class Logits:
    """Logits of the live heads, their two parts apart: [heads, positions, positions] each."""

    content: NDArray[np.float64]
    rotary: NDArray[np.float64]

    @property
    def all(self) -> NDArray[np.float64]:
        """The logits."""
        return self.content + self.rotary

    @property
    def weights(self) -> NDArray[np.float64]:
        """Causal softmax of them; −1 where hidden."""
        logits = torch.from_numpy(self.all)
        hidden = torch.ones(logits.shape[-2:], dtype=torch.bool).triu(1)
        found: NDArray[np.float64] = torch.softmax(logits.masked_fill(hidden, -torch.inf), -1).numpy()
        return np.where(hidden.numpy(), -1.0, found)


@dataclass(frozen=True, eq=False)
class Result:
    """Both readings on a few heads, and the costs of each way for all of them."""

    settings: Settings
    explicit: Logits  # from keys that are formed and normalised
    absorbed: Logits
    without_norm: Logits  # were 1/rms left out of the absorbed reading
    relative_difference: float
    without_norm_difference: float
    costs: tuple[Cost, ...]  # at the context chosen
    contexts: NDArray[np.int64]
    by_context: dict[ReadingWord, tuple[Cost, ...]]
    alternatives: Alternatives  # what other ways bound, while the projections grow

    @property
    def shown(self) -> tuple[int, int, int]:
        """Head, query and key that are looked at closely: the dials, within what this state has."""
        settings, last = self.settings, self.settings.n_keys - 1
        return min(settings.head, len(self.explicit.content) - 1), min(settings.query, last), min(settings.key, last)


@lru_cache(maxsize=64)
def run(settings: Settings) -> Result:
    """Both readings live on at most `LIVE_HEADS` heads, and what they cost."""
    live = _live(settings.but(**_LOOK))
    explicit, absorbed, without = (each.all for each in live)
    size = np.linalg.norm(explicit)
    contexts = sorted({*_CONTEXTS, settings.context})
    return Result(
        settings,
        *live,
        relative_difference=float(np.linalg.norm(absorbed - explicit) / size),
        without_norm_difference=float(np.linalg.norm(without - explicit) / size),
        costs=tuple(cost(settings, word, settings.context) for word in COSTS),
        contexts=np.array(contexts),
        by_context={word: tuple(cost(settings, word, context) for context in contexts) for word in COSTS},
        alternatives=compare(latent_recipe(settings)),
    )


def latent_recipe(settings: Settings) -> LatentRecipe:
    """What the other ways are compared on: the live heads."""
    return LatentRecipe(
        n_heads=min(settings.n_heads, LIVE_HEADS),
        n_keys=settings.n_keys,
        latent=settings.latent,
        d_content=settings.d_content,
        d_rotary=settings.d_rotary,
        joint=settings.statistic == "joint",
        gain_spread=settings.gain_spread,
        head_spread=settings.head_spread,
        threshold=settings.clip_threshold,
        scales=tuple(sorted({*_SCALES, settings.projections})),
        seed=settings.seed,
    )


@lru_cache(maxsize=64)
def _live(settings: Settings) -> tuple[Logits, Logits, Logits]:
    store = exact if settings.format == "float64" else partial(rounded, format=FORMATS[settings.format])
    drawn = {name: store(x) for name, x in _draw(settings).items()}
    return (
        _explicit(settings, drawn, store),
        _absorbed(settings, drawn, store),
        _absorbed(settings, drawn, store, normed=False),
    )


def _draw(settings: Settings) -> dict[str, Tensor]:
    """Latents, the shared rotary key, the up-projection, queries (normalised already, with their gain), gains."""
    generator = np.random.default_rng(settings.seed)
    heads, keys = min(settings.n_heads, LIVE_HEADS), settings.n_keys
    content, rotary = settings.d_content, settings.d_rotary

    def normal(*shape: int) -> Tensor:
        return torch.from_numpy(generator.standard_normal(shape))

    return {
        "latent": normal(keys, settings.latent),
        "rotary_key": normal(keys, rotary),
        "up": normal(heads, content, settings.latent) / math.sqrt(settings.latent),
        "q_content": normal(heads, keys, content),
        "q_rotary": normal(heads, keys, rotary),
        "gain_content": 1 + settings.gain_spread * torch.from_numpy(generator.uniform(-1, 1, content)),
        "gain_rotary": 1 + settings.gain_spread * torch.from_numpy(generator.uniform(-1, 1, rotary)),
        "positions": torch.arange(keys, dtype=torch.float64),
    }


def _inverse_sizes(settings: Settings, drawn: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """1/rms for content and rotary part: [heads, positions], and the same or [1, positions].

    In the cache these are all that is left of the norm; they are computed when a token is written.
    """
    content = drawn["latent"] @ drawn["up"].mT  # [heads, positions, d_content]
    if settings.statistic == "content":
        return 1 / divisor(content, _RMS)[..., 0], 1 / divisor(drawn["rotary_key"], _RMS)[None, :, 0]
    rotary = drawn["rotary_key"].expand(len(content), -1, -1)
    joint = 1 / divisor(torch.cat([content, rotary], -1), _RMS)[..., 0]
    return joint, joint


def _explicit(settings: Settings, drawn: dict[str, Tensor], store: Rounding) -> Logits:
    """Every head's key is formed, normalised, multiplied by its gain and, in its rotary part, rotated; then stored."""
    of_content, of_rotary = _inverse_sizes(settings, drawn)
    content = store((drawn["latent"] @ drawn["up"].mT) * of_content[..., None] * drawn["gain_content"])
    rotary = drawn["rotary_key"] * of_rotary[..., None] * drawn["gain_rotary"]
    rotary = store(rotate(rotary, drawn["positions"])).expand(len(content), -1, -1)
    q_rotary = store(rotate(drawn["q_rotary"], drawn["positions"]))
    return _logits(settings, drawn["q_content"] @ content.mT, q_rotary @ rotary.mT)


def _absorbed(settings: Settings, drawn: dict[str, Tensor], store: Rounding, *, normed: bool = True) -> Logits:
    """No key is formed: gain and up-projection go to the query, 1/rms multiplies the logit of its token."""
    of_content, of_rotary = (store(each) for each in _inverse_sizes(settings, drawn))  # cached
    if not normed:
        of_content, of_rotary = torch.ones_like(of_content), torch.ones_like(of_rotary)
    query = store((drawn["q_content"] * drawn["gain_content"]) @ drawn["up"])  # [heads, positions, latent]
    shared = store(rotate(drawn["rotary_key"] * drawn["gain_rotary"], drawn["positions"]))  # cached once for all heads
    rotary = store(rotate(drawn["q_rotary"], drawn["positions"])) @ shared.mT
    return _logits(settings, (query @ drawn["latent"].mT) * of_content[:, None], rotary * of_rotary[:, None])


def _logits(settings: Settings, content: Tensor, rotary: Tensor) -> Logits:
    scale = 1 / math.sqrt(settings.d_content + settings.d_rotary)
    heads = (len(content), -1, -1)
    return Logits((scale * content).double().numpy(), (scale * rotary).expand(heads).double().numpy())


def cost(settings: Settings, reading: ReadingWord, context: int) -> Cost:
    """What one decoding step of one layer costs, for all heads."""
    return cost_of(reading, widths_of(settings), context)


def widths_of(settings: Settings) -> Widths:
    """What the costs depend on."""
    return Widths(
        n_heads=settings.n_heads,
        latent=settings.latent,
        d_content=settings.d_content,
        d_rotary=settings.d_rotary,
        joint=settings.statistic == "joint",
    )


def rows(result: Result) -> list[dict[str, Value | None]]:
    """The table: one row per way, at the context chosen."""
    return [vars(item) for item in result.costs]


def context_rows(result: Result) -> list[dict[str, Value | None]]:
    """The table behind the curves: one row per context and way."""
    return [vars(item) for found in result.by_context.values() for item in found]


def other_rows(result: Result) -> list[dict[str, Value | None]]:
    """The table of the other ways, at the scale of the projections and the context chosen."""
    found, settings = result.alternatives, result.settings
    at, widths = found.scales.tolist().index(settings.projections), widths_of(settings)
    return [
        {
            "method": word,
            "max_abs_logit": found.largest[word][at].item(),
            "max_abs_logit_on_other_tokens": found.unseen[word][at].item(),
            "moved_by_a_step": found.moved[word][at].item(),
            **vars(burden(word, widths, settings.context)),
        }
        for word in METHODS
    ]


def scale_rows(result: Result) -> list[dict[str, Value | None]]:
    """The table over the scale of the projections: largest |logit| of every way."""
    found = result.alternatives
    return [
        {"projections": scale, **{word: column[at].item() for word, column in found.largest.items()}}
        for at, scale in enumerate(found.scales.tolist())
    ]


def report(settings: Settings) -> dict[str, Any]:
    """What the command line prints: how far the readings are apart, and the costs."""
    result = run(settings)
    numbers = ("relative_difference", "without_norm_difference")
    return {name: getattr(result, name) for name in numbers} | {"rows": rows(result), "other_ways": other_rows(result)}
