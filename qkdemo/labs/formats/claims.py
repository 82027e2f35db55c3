"""Common sayings about number formats that are false, and the numbers that decide them, computed now.

* `Claim`: a saying and its numbers; `said` and `answer` put it in words;
* `claims()`: that bfloat16 exponentials overflow, that the row maximum cures large logits, that scaling does.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch

from qkdemo.attention.inputs import Recipe
from qkdemo.floats.formats import ALL_FORMATS
from qkdemo.floats.layout import rung
from qkdemo.floats.stacks import Stack
from qkdemo.labs.formats.stages.error_counts import tally
from qkdemo.labs.formats.stages.kinds import STAGES, STORED, Choices, drawn
from qkdemo.messages import in_each_language, say
from qkdemo.notation import written


@dataclass(frozen=True)
class Claim:
    """A common saying that is false; `numbers` decide it."""

    word: Literal["exp", "max_subtraction", "scaled"]
    numbers: Mapping[str, float]

    @property
    def said(self) -> str:
        """The saying."""
        return say(f"claim.{self.word}.said")

    @property
    def answer(self) -> str:
        """Why it is false, with the numbers."""
        return say(f"claim.{self.word}.answer", **{name: written(x) for name, x in self.numbers.items()})


@in_each_language(None)
def claims() -> tuple[Claim, ...]:
    """Three common sayings with the numbers that decide them, computed now."""
    scale = torch.tensor([400.0], dtype=torch.float64)
    counted = {
        placement: tally(drawn(Recipe()), scale, Choices(placement=placement)) for placement in ("after", "on_q")
    }
    scaled, raw, half = STAGES.index("scaled"), STAGES.index("raw_product"), STORED.index("float16")
    limits = {word: math.log(ALL_FORMATS[word].limit) for word in ("float16", "bfloat16", "float32")}
    steps = {f"step_at_{at}": rung(float(at), ALL_FORMATS["bfloat16"]).spacing for at in (50, 64, 127, 512)}
    merged = Stack([ALL_FORMATS["bfloat16"]])(torch.tensor([[512.0, 513.0]], dtype=torch.float64))[0][0]
    return (
        Claim("exp", {f"largest_{word}": x for word, x in limits.items()} | steps | {"with_max": math.exp(0)}),
        Claim(
            "max_subtraction",
            {
                "slope_at_100": _slope(100.0),
                "slope_at_16": _slope(16.0),
                "loser_at_100": _slope(100.0, of=1),
                "of_infinity": float(torch.softmax(torch.tensor([math.inf, 0.0]), 0)[0]),
                "stored_512": merged[0].item(),
                "stored_513": merged[1].item(),
            },
        ),
        Claim(
            "scaled",
            {
                "n": int(counted["after"].n[half, scaled, 0]),
                "raw": int(counted["after"].n_inf[half, raw, 0]),
                "still": int(counted["after"].n_inf[half, scaled, 0]),
                "exact": int(counted["after"].n_exceeding[half, scaled, 0]),
                "on_q": int(counted["on_q"].n_inf[half, scaled, 0]),
                "one_hot": int(counted["after"].n_zero[STORED.index("float32"), STAGES.index("weight"), 0]),
            },
        ),
    )


def _slope(gap: float, of: int = 0) -> float:
    """∂p/∂s of one key in float32, by automatic differentiation: in a row whose first logit is `gap` above two others.

    The first key's own entry is 1 − p, which float32 rounds to 0 early; that of another key can be smaller still.
    """
    logits = torch.tensor([gap, 0.0, 0.0], requires_grad=True)
    torch.softmax(logits, 0)[of].backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    return float(logits.grad[of])
