"""What a quiz question is made of, and how wrong answers are kept apart from the right one.

* `Asked`: choices as words, the right one, and the numbers of its sentences;
* `Maker`: a function that draws parameters, runs a lab and returns one;
* `numeric(dice, right, others, ...)`: choices that are numbers: the right one, and those that mistakes lead to;
* `printed(x, digits)`: the number that a sentence shows; `digits_for(derive, least)`: how many digits it must show, so
  that who computes with what is shown finds the answer that stands there.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from qkdemo.notation import written

RIGHT: Final = "right"
MOST: Final = 4  # numbers to choose from
_ALL_DIGITS: Final = 17  # they read back as the same number
_APART: Final = 1.25  # numbers whose ratio is smaller are no two choices


@dataclass(frozen=True)
class Asked:
    """A question before its choices are put in order."""

    choices: tuple[str, ...]
    answer: str
    numbers: Mapping[str, str]
    form: str = ""  # which of several wordings asks it: `ask.<form>`, `explain.<form>`


Maker: TypeAlias = Callable[[random.Random], Asked]


def printed(x: float, digits: int) -> float:
    """`x` as `written(x, digits)` shows it.

    >>> printed(17.1384, 3)
    17.1
    """
    return float(f"{x:.{digits}g}")


def digits_for(derive: Callable[[Callable[[float], float]], Sequence[str]], least: int) -> int:
    """The fewest digits, from `least` on, with which `derive` says the same as with all of them.

    `derive` gets what rounds a number to what is shown of it, and returns the answers as they are written.

    >>> digits_for(lambda shown: [written((65504 / shown(17.1384)) ** 0.5, 3)], least=3)
    4
    """
    exact = derive(lambda x: x)
    return next(n for n in range(least, _ALL_DIGITS + 1) if derive(partial(printed, digits=n)) == exact)


def numeric(
    dice: random.Random,
    right: float,
    others: Mapping[str, float],
    numbers: Mapping[str, str],
    write: Callable[[float], str] = written,
) -> Asked:
    """A question whose choices are numbers: `right`, and three of `others` that are apart from it and from each other.

    `others` maps the word of a mistake to the number that it leads to, the common ones first. How many of the wrong
    choices lie below the right one is left to the dice, so that no rule such as "the smallest" finds it. Raises
    ValueError if fewer than three choices are left, or if the right one is NaN.
    """
    if math.isnan(right):
        raise ValueError("the right answer is undefined")
    apart = {RIGHT: right}
    for word, value in others.items():
        if all(_differ(value, other, write) for other in apart.values()):
            apart[word] = value
    lower = [word for word, value in apart.items() if value < right]
    higher = [word for word, value in apart.items() if value > right]
    wrong = min(MOST - 1, len(lower) + len(higher))
    if wrong < 2:
        raise ValueError(f"only {1 + wrong} choices are apart: {apart}")
    below = dice.randint(max(0, wrong - len(higher)), min(wrong, len(lower)))
    kept = (RIGHT, *lower[:below], *higher[: wrong - below])
    return Asked(kept, RIGHT, {**numbers, **{word: write(apart[word]) for word in kept}})


def _differ(one: float, other: float, write: Callable[[float], str]) -> bool:
    """Whether two numbers are different answers, as written and to whoever rounds on the way."""
    if write(one) == write(other) or math.isnan(one) or math.isnan(other):
        return False
    small, large = sorted((abs(one), abs(other)))
    return small == 0 or math.isinf(large) or large / small >= _APART
