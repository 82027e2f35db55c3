"""Two passes through one block as plain numbers, and how far they are apart: what the truths are told from."""

import dataclasses
import math
import re
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from qkdemo.attention.blocks import Block, spread_to
from qkdemo.attention.pipeline import Pipeline, trace
from qkdemo.attention.rotary import partners, turned
from qkdemo.floats.formats import FORMATS, exact, rounded
from qkdemo.labs.placement import Result, Settings, pipeline_of
from qkdemo.labs.placement.lab import recipe_of
from qkdemo.notation import read
from tests.labs.told import reads

ROUNDING = 1e-12


class Pass:
    """One side on a block, in a number format: scores, weights and output as numbers."""

    def __init__(self, pipeline: Pipeline, block: Block, word: str) -> None:
        store = exact if word == "float64" else partial(rounded, format=FORMATS[word])
        made = trace(pipeline, block, store=store)
        n = len(block.x)
        self.visible = np.ones((n, n), bool) if block.visible is None else block.visible.numpy()
        self.raw, self.logits, self.weights, self.output = (
            x.double().numpy() for x in (made.raw, made.logits, made.weights, made.output)
        )

    def seen(self, name: str) -> NDArray[np.float64]:
        return np.asarray(getattr(self, name)[:, self.visible])


class About:
    """Two pipelines on one block whose gains are spread by `spread`."""

    def __init__(self, settings: Settings, spread: float, result: Result | None = None, pair: Any = None) -> None:
        self.settings, self.spread, self.result = settings, spread, result
        self.left, self.right = pair or (pipeline_of(settings, "left"), pipeline_of(settings, "right"))
        self.block = spread_to(recipe_of(settings), spread)

    @cached_property
    def exactly(self) -> tuple[Pass, Pass]:
        return Pass(self.left, self.block, "float64"), Pass(self.right, self.block, "float64")

    @cached_property
    def held(self) -> tuple[Pass, Pass]:
        word = self.settings.format
        return Pass(self.left, self.block, word), Pass(self.right, self.block, word)

    def off(self, name: str, sides: tuple[Pass, Pass] | None = None) -> float:
        """The relative error of the right side."""
        left, right = (side.output if name == "output" else side.seen(name) for side in sides or self.held)
        if np.array_equal(left, right):
            return 0.0
        with np.errstate(all="ignore"):
            return float(np.sqrt(((right - left) ** 2).sum()) / np.sqrt((left**2).sum()))

    @property
    def moved(self) -> float:
        return float(np.abs(self.held[1].weights - self.held[0].weights).max())

    def at(self, query: int) -> float:
        left, right = (side.logits[:, query][:, side.visible[query]] for side in self.held)
        return float(np.sqrt(((right - left) ** 2).sum()) / np.sqrt((left**2).sum()))

    def agree(self, name: str) -> bool:
        """To rounding: large logits carry more of it into weights and output."""
        size = max(1.0, float(np.abs(self.exactly[0].seen("logits")).max()))
        return self.off(name, self.exactly) < 10 * ROUNDING * (size if name == "output" else 1)

    @property
    def finite(self) -> bool:
        return all(
            np.isfinite(x).all() for side in self.held for x in (side.seen("raw"), side.seen("logits"), side.weights)
        )

    def gains(self, text: str) -> bool:
        if self.settings.gains == "unit" or self.spread == 0:
            return text == "of 1"
        low, high = text.removeprefix("from ").removesuffix(" (equal in pairs)").split(" to ")
        if ("in pairs" in text) != (self.settings.gains == "tied") or ("in pairs" in text and not self.tied):
            return False
        return reads(low, 1 - self.spread, 3) and reads(high, 1 + self.spread, 3)

    @property
    def tied(self) -> bool:
        """Whether channels that the left side turns together, or the right one if it alone turns, have one gain."""
        side = self.left if self.left.order != "none" else self.right
        ones = dataclasses.replace(self.block, **{f"b_{of}": 1.0 for of in "qk"}, x=0 * self.block.x)
        plain = side.but(
            norm="none", bias="none", order="none", gain="head_channel", on="qk", key_gain="own", place="per_head"
        )
        made = trace(plain, ones)  # entries of 1 times the gains, in the order of that side's channels
        first, second = partners(turned(self.block.d_head, side.rotated), side.layout)
        return all(torch.equal(x[..., first], x[..., second]) for x in (made.q, made.k))

    def moves(self, name: str) -> bool:
        """Whether a score of either side changes with the gains, or with the biases, of the checkpoint."""
        drawn = {f"{name}_{side}": getattr(self.block, f"{name}_{side}") for side in "qk"}
        other = dataclasses.replace(self.block, **{key: 3 * x + 1 for key, x in drawn.items()})
        return any(not torch.equal(*(trace(side, block).raw for block in (self.block, other))) for side in self.pair)

    def where(self, text: str) -> bool:
        """Gains and biases are told where there are some, and as they are."""
        told = re.fullmatch(
            r"On this block|With (gains (?P<gains>of 1|from \S+ to [\d.]+(?: \(equal in pairs\))?))?( and )?"
            r"(biases (of 0|from (\S+) to (?P<bias>\S+)))?",
            text,
        )
        if (
            told is None
            or (told["gains"] is not None) != self.moves("gain")
            or ("biases" in text) != self.moves("bias")
        ):
            return False
        bias = told["bias"] is None or (bool(self.spread) and reads(told["bias"], self.spread, 3))
        return (told["gains"] is None or self.gains(told["gains"])) and bias

    @property
    def pair(self) -> tuple[Pipeline, Pipeline]:
        return self.left, self.right

    @cached_property
    def ratio(self) -> NDArray[np.float64]:
        """Observed over expected for every pair, in float64, before a softcap."""
        sides = [side.seen("logits") for side in self.exactly]
        if self.left.cap == "softcap":
            c = self.settings.softcap
            with np.errstate(all="ignore"):
                sides = [c * np.arctanh(x / c) for x in sides]
        with np.errstate(all="ignore"):
            return np.asarray(sides[1] / sides[0])

    def constant(self, factor: NDArray[np.float64] | float, value: float | None = None) -> bool:
        """The ratio is that factor everywhere, up to one constant; where the logit is not next to nothing or capped."""
        left = np.abs(self.exactly[0].seen("logits"))
        told = left > 1e-3 * left.max()
        if self.left.cap == "softcap":  # its ends tell nothing
            told &= np.maximum(left, np.abs(self.exactly[1].seen("logits"))) < 0.9 * self.settings.softcap
        found = (self.ratio / factor)[told & np.isfinite(self.ratio)]
        if not found.size:
            return True
        middle = float(np.median(found)) if value is None else value
        return bool((np.abs(found - middle) <= 1e-2 * abs(middle)).all())


def percent(text: str, x: float) -> bool:
    """An error of so many per cent; in a narrow format another order of sums moves it."""
    return reads(text, 100 * x, 3, 5e-3) or abs(read(text) / 100 - x) < 1e-9


def error(text: str, x: float) -> bool:
    """A relative error, or that it is less than rounding."""
    if text in ("undefined", "∞"):
        return not math.isfinite(x)
    return x < 1e-11 if text.startswith(("less", "<")) else reads(text, x, 3, 5e-3) or abs(read(text) - x) < 1e-9
