"""What does the norm do with a vector that is nearly, or exactly, zero?

Every norm divides by a size, and something must happen when that size vanishes. Epsilon can stand inside the
root, outside it, be a floor under it, or be absent. Shrink the vector: where its size falls below √ε (inside)
or ε (outside, floor) it is no longer normalised. Then look at the slope, which grows as the vector shrinks and
ends at 1/√ε, at 1/ε, or nowhere; and at the zero vector itself, which gives 0, NaN, or 0 with a NaN gradient.

* `Settings`, `PRESETS`: the dials, and named states of them;
* `run(settings)`: every rule over vectors of every size, and on the zero vector;
* `formats(settings)`: the same in every number format;
* `findings`, `explain`, `rows`, `size_rows`, `format_rows`, `report`, `snippet`: the result in words, as tables and as
  a PyTorch program.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qkdemo.attention.norms import NORMS, RuleWord, SizedWord, divisor, normalise
from qkdemo.dials import Choice, Dial, Dials, Switch, Value, preferred_numbers
from qkdemo.floats.formats import FORMATS, FormatWord

RULE_WORDS: Final[tuple[RuleWord, ...]] = get_args(RuleWord)
_EPSILONS: Final = (1e-12, 1e-10, 1e-8, 1e-7, 1e-6, 1e-5)


@dataclass(frozen=True, kw_only=True)
class Settings(Dials):
    """The dials of the epsilon lab; by default RMSNorm with 1e-6 inside the root, on a vector of size 1e-4."""

    size: Annotated[float, Dial(1e-12, 10, log=True)] = 1e-4
    epsilon: Annotated[float, Dial(1e-12, 1e-5, log=True, stops=_EPSILONS)] = 1e-6
    rule: Annotated[RuleWord, Choice()] = "inside"
    norm: Annotated[SizedWord, Choice()] = "rms"
    format: Annotated[FormatWord, Choice(use="vector")] = "float32"
    norm_in_format: Annotated[bool, Switch()] = False
    d_head: Annotated[int, Dial(4, 256, log=True, stops=(4, 8, 16, 32, 64, 128, 256), more=True)] = 64
    seed: Annotated[int, Dial(0, 9999, more=True)] = 0


PRESETS: Final[dict[str, Settings]] = {
    "not_normalised": Settings(),
    "unit_vectors": Settings(norm="l2", rule="floor", epsilon=1e-12),
    "lost_in_float16": Settings(epsilon=1e-8, format="float16", norm_in_format=True),
    "without_epsilon": Settings(rule="absent"),
    "steepest": Settings(norm="l2", rule="floor", epsilon=1e-12, size=1e-12, format="float64"),
}


@dataclass(frozen=True, eq=False)
class Result:
    """Every rule, in the order of `RULE_WORDS`, on vectors of one direction and every size.

    The size of a vector is the root of the mean of its squares.
    """

    settings: Settings
    sizes: NDArray[np.float64]
    divisor: NDArray[np.float64]  # [rules, sizes] what the vector is divided by
    share: NDArray[np.float64]  # [rules, sizes] length of the result over the length it should have
    slope: NDArray[np.float64]  # [rules, sizes] |∂ output / ∂ input| across the vector: 1 / divisor
    zero_output: NDArray[np.float64]  # [rules] an entry of the normalised zero vector
    zero_slope: NDArray[np.float64]  # [rules] the same slope there: the norm of the Jacobian
    epsilon_stored: dict[FormatWord, float]  # what each format makes of epsilon

    @property
    def at(self) -> int:
        """The index of the current size in `sizes`."""
        return int(np.argmin(np.abs(np.log(self.sizes / self.settings.size))))

    @property
    def rule(self) -> int:
        """The index of the current rule."""
        return RULE_WORDS.index(self.settings.rule)

    @property
    def lost(self) -> bool:
        """Whether the norm is computed in a format that rounds epsilon to 0."""
        return self.settings.norm_in_format and self.epsilon_stored[self.settings.format] == 0

    @property
    def threshold(self) -> float:
        """The size of a vector that epsilon equals: below it, epsilon decides the length. 0 without epsilon."""
        settings = self.settings
        return 1 / self.steepest if NORMS[settings.norm].of_mean else 1 / (self.steepest * math.sqrt(settings.d_head))

    @property
    def steepest(self) -> float:
        """The slope at which epsilon stops: 1 over the divisor of a vanishing vector. ∞ without epsilon."""
        settings = self.settings
        if settings.rule == "absent" or self.lost:
            return math.inf
        epsilon = self.epsilon_stored[settings.format] if settings.norm_in_format else settings.epsilon
        return 1 / (math.sqrt(epsilon) if settings.rule == "inside" else epsilon)


@lru_cache(maxsize=128)
def run(settings: Settings) -> Result:
    """Every rule over the sizes, by automatic differentiation in the format in which the norm is computed."""
    sizes = sorted({*preferred_numbers(1e-12, 10, 5), settings.size})
    direction, across = _directions(settings)
    dtype = norm_dtype(settings)
    stored = FORMATS[settings.format].dtype
    x = (torch.tensor(sizes, dtype=torch.float64)[:, None] * direction).to(stored).to(dtype)
    whole = math.sqrt(settings.d_head) if NORMS[settings.norm].of_mean else 1.0
    divisors, share, slope, zero_output, zero_slope = [], [], [], [], []
    for rule in RULE_WORDS:
        divisors.append(divisor(x, NORMS[settings.norm], rule, settings.epsilon)[:, 0].double())
        output, gradient = _with_gradient(settings, rule, x, across.to(dtype))
        share.append(torch.linalg.vector_norm(output.double(), dim=-1) / whole)
        slope.append(torch.linalg.vector_norm(gradient.double(), dim=-1))
        at_zero, there = _with_gradient(settings, rule, torch.zeros_like(x[:1]), across.to(dtype))
        zero_output.append(at_zero[0, 0].item())
        zero_slope.append(torch.linalg.vector_norm(there.double()).item())
    return Result(
        settings=settings,
        sizes=np.array(sizes),
        divisor=torch.stack(divisors).numpy(),
        share=torch.stack(share).numpy(),
        slope=torch.stack(slope).numpy(),
        zero_output=np.array(zero_output),
        zero_slope=np.array(zero_slope),
        epsilon_stored={
            word: torch.tensor(settings.epsilon, dtype=torch.float64).to(kind.dtype).item()
            for word, kind in FORMATS.items()
        },
    )


def formats(settings: Settings) -> dict[FormatWord, Result]:
    """The same vectors, rules and epsilon in every number format."""
    return {word: run(settings.but(format=word)) for word in FORMATS}


def _directions(settings: Settings) -> tuple[Tensor, Tensor]:
    """A vector of size 1 and mean 0, and a unit vector across it, also of mean 0."""
    drawn = torch.from_numpy(np.random.default_rng(settings.seed).standard_normal((2, settings.d_head)))
    drawn = drawn - drawn.mean(-1, keepdim=True)
    along = drawn[0] / drawn[0].norm()
    across = drawn[1] - (drawn[1] @ along) * along
    return along * math.sqrt(settings.d_head), across / across.norm()


def norm_dtype(settings: Settings) -> torch.dtype:
    """In which the norm is computed."""
    kind = FORMATS[settings.format]
    return kind.dtype if settings.norm_in_format else kind.working_dtype


def _with_gradient(settings: Settings, rule: RuleWord, x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The normalised `x`, and the gradient of its product with `weights`."""
    x = x.clone().requires_grad_()
    output = normalise(x, NORMS[settings.norm], rule, settings.epsilon)
    (gradient,) = torch.autograd.grad((output * weights).sum(), x)
    return output.detach(), gradient


def rows(result: Result) -> list[dict[str, Value | None]]:
    """The table: one row per rule, at the current size."""
    settings = result.settings
    found: list[dict[str, Value | None]] = []
    for at, word in enumerate(RULE_WORDS):
        numbers = {
            "share": result.share[at, result.at].item(),
            "slope": result.slope[at, result.at].item(),
            "zero_output": result.zero_output[at].item(),
            "zero_slope": result.zero_slope[at].item(),
        }
        found.append({"rule": word, "epsilon": settings.epsilon, "size": settings.size, **_counted(numbers)})
    return found


def size_rows(result: Result) -> list[dict[str, Value | None]]:
    """The table over sizes: share and slope of every rule."""
    return [
        {"size": size}
        | {f"{word}_share": result.share[rule, at].item() for rule, word in enumerate(RULE_WORDS)}
        | {f"{word}_slope": result.slope[rule, at].item() for rule, word in enumerate(RULE_WORDS)}
        for at, size in enumerate(result.sizes.tolist())
    ]


def format_rows(settings: Settings) -> list[dict[str, Value | None]]:
    """The table over number formats, at the current size and for the current rule."""
    return [
        {
            "format": word,
            "epsilon_stored": result.epsilon_stored[word],
            **_counted({name: getattr(result, name)[result.rule, result.at].item() for name in ("share", "slope")}),
        }
        for word, result in formats(settings).items()
    ]


def _counted(numbers: dict[str, float]) -> dict[str, float]:
    """The numbers, and how many of them are none."""
    return numbers | {"numbers_lost": sum(not math.isfinite(x) for x in numbers.values())}


def report(settings: Settings) -> dict[str, Any]:
    """What the command line prints: a row per rule, and what each format makes of epsilon and of the vector."""
    return {"rows": rows(run(settings)), "formats": format_rows(settings)}
