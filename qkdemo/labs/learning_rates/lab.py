"""Final loss against learning rate: how wide is the range of rates in which a model trains?

Every curve is one way of treating q and k; every point of it is several runs that differ in their seed alone. Look at
the right wall: a remedy moves it, and there still is one. The left wall (too few steps for so small a rate) hardly
moves. Move along the curves to read a rate; the numbers appear as runs finish.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qkdemo.dials import Choice, Dial, Dials, Value, declarations
from qkdemo.labs.learning_rates.max_stable_lr import Curve
from qkdemo.labs.learning_rates.sensitivity import Point
from qkdemo.runs.budget import Part, by_seeds
from qkdemo.runs.plan import Leg, Plan, outcomes
from qkdemo.training import settings as training
from qkdemo.training.outcome import Outcome, summary
from qkdemo.training.schedule import ScheduleWord
from qkdemo.training.settings import RemedyWord, TreatmentWord, canonical
from qkdemo.training.telemetry import CURVES

OtherWord: TypeAlias = Literal["nothing", TreatmentWord]


@dataclass(frozen=True, kw_only=True)
class _Grid(Dials):
    """What is compared, and at how many rates and seeds; these dials come first on the page."""

    variant: Annotated[RemedyWord, Choice()] = "rms"
    second: Annotated[OtherWord, Choice(named="variant")] = "nothing"
    third: Annotated[OtherWord, Choice(named="variant")] = "nothing"
    n_rates: Annotated[int, Dial(3, 17)] = 9
    n_seeds: Annotated[int, Dial(1, 10)] = 3
    lowest_rate: Annotated[float, Dial(1e-5, 0.01, log=True)] = 0.001
    highest_rate: Annotated[float, Dial(0.03, 3, log=True)] = 0.3


@dataclass(frozen=True, kw_only=True)
class Settings(training.Settings, _Grid):
    """The dials of every run, and of the grid. `learning_rate` is the one that is looked at; `seed` is the first."""

    schedule: Annotated[ScheduleWord, Choice()] = "cosine"
    learning_rate: Annotated[float, Dial(1e-5, 3, log=True, use="looked_at")] = 0.072
    warmup: Annotated[int, Dial(0, 1000, only_for=("schedule", ("constant", "cosine")))] = 40
    steps: Annotated[int, Dial(20, 3000, 20)] = 400


PRESETS: Final[dict[str, Settings]] = {
    "cosine": Settings(),
    "constant": Settings(schedule="constant", warmup=20),
    "three_remedies": Settings(second="softcap", third="qk_clip"),
    "heavy_start": Settings(schedule="constant", warmup=20, qk_start=3),
    "induction": Settings(task="induction", batch=16, n_rates=5, n_seeds=2),
    "addition": Settings(task="addition", n_rates=5, n_seeds=2),
    "quick": Settings(n_rates=5, n_seeds=1, steps=300),
}


def words_of(settings: Settings) -> tuple[RemedyWord, ...]:
    """The remedies that get a curve: plain attention first, none twice."""
    others = [word for word in (settings.variant, settings.second, settings.third) if word != "nothing"]
    return tuple(dict.fromkeys(("none", *others)))


def rates_of(settings: Settings) -> tuple[float, ...]:
    """Evenly spaced on a log scale, ends included, rounded to two digits, or to three where two would be the same."""
    low, high = math.log(settings.lowest_rate), math.log(settings.highest_rate)
    between = [math.exp(low + (high - low) * at / (settings.n_rates - 1)) for at in range(1, settings.n_rates - 1)]
    for digits in (2, 3):
        rates = (settings.lowest_rate, *(float(f"{rate:.{digits}g}") for rate in between), settings.highest_rate)
        if len(set(rates)) == len(rates):
            break
    return rates


def seeds_of(settings: Settings) -> tuple[int, ...]:
    """That many, from the dial's on."""
    first = min(settings.seed, 10_000 - settings.n_seeds)
    return tuple(range(first, first + settings.n_seeds))


@lru_cache(maxsize=64)
def plans_of(settings: Settings) -> tuple[Plan, ...]:
    """One plan per rate, in order of the rates: all its remedies and seeds train together.

    A dial that the first remedy does not have is not on the page, and at its default for the others.
    """
    told = {dial.name: getattr(settings, dial.name) for dial in declarations(training.Settings)}
    own = canonical(training.Settings(**told))
    plans = []
    for rate in rates_of(settings):
        runs = tuple(
            canonical(own.but(variant=word, seed=seed, learning_rate=rate))
            for word in words_of(settings)
            for seed in seeds_of(settings)
        )
        plans.append(Plan((Leg(0, tuple(range(len(runs))), runs),), settings.steps, maps=False))
    return tuple(plans)


@lru_cache(maxsize=64)
def parts_of(settings: Settings) -> tuple[tuple[Part, ...], ...]:
    """Per rate the plans that are trained: one, or where that would be too large several, with some of the seeds."""
    return tuple(by_seeds(plan) for plan in plans_of(settings))


def around(run: training.Settings) -> Settings:
    """The curves among which `run` stands: its dials, on the default schedule if its own is a ramp.

    They reach as far as its rate.
    """
    own = {dial.name: getattr(run, dial.name) for dial in declarations(training.Settings)}
    if run.schedule == "ramp":
        own |= {name: getattr(Settings(), name) for name in ("schedule", "warmup", "steps")}
    rate, ends = run.learning_rate, Settings()
    return Settings(**own, lowest_rate=min(ends.lowest_rate, rate), highest_rate=max(ends.highest_rate, rate))


def order(n: int) -> list[int]:
    """In which order to train: both ends first, then always the middles, so that a curve soon has its shape.

    >>> order(9)
    [0, 8, 4, 2, 6, 1, 3, 5, 7]
    """
    taken = [0, n - 1]
    gaps = [(0, n - 1)]
    while gaps:
        halves = []
        for low, high in gaps:
            middle = (low + high) // 2
            if low < middle:
                taken.append(middle)
                halves += [(low, middle), (middle, high)]
        gaps = halves
    return list(dict.fromkeys(taken))


# ---- what came out


@dataclass(frozen=True, eq=False)
class Result:
    """Every curve. `rates` holds all rates, also those that are not trained yet."""

    settings: Settings
    rates: tuple[float, ...]
    curves: tuple[Curve, ...]

    @property
    def done(self) -> int:
        """How many rates are trained."""
        return len(self.curves[0].found)

    @property
    def whole(self) -> bool:
        """Whether all are."""
        return self.done == len(self.rates)


@dataclass(frozen=True)
class Ended:
    """What became of runs, in the order of their plan, and the loss with which each began."""

    outcomes: tuple[Outcome, ...]
    first_losses: tuple[float, ...]

    @classmethod
    def of(cls, plan: Plan, curves: NDArray[np.float32]) -> "Ended":
        """From the telemetry of a plan that is finished, [steps, runs, curves]."""
        return cls(tuple(outcomes(plan, curves)), tuple(curves[0, :, CURVES.index("loss")].tolist()))

    @classmethod
    def joined(cls, parts: Sequence[Part], ended: Sequence["Ended"]) -> "Ended":
        """Of a plan whose parts were trained apart."""
        found = {
            column: (outcome, loss)
            for part, each in zip(parts, ended, strict=True)
            for column, outcome, loss in zip(part.columns, each.outcomes, each.first_losses, strict=True)
        }
        ends, losses = zip(*(found[column] for column in sorted(found)), strict=True)
        return cls(ends, losses)


def result_of(settings: Settings, trained: Sequence[NDArray[np.float32] | None]) -> Result:
    """The curves from the telemetry of every plan, [steps, runs, curves]; None where it is not finished."""
    plans = zip(plans_of(settings), trained, strict=True)
    return result_from(settings, tuple(None if curves is None else Ended.of(plan, curves) for plan, curves in plans))


@lru_cache(maxsize=32)
def result_from(settings: Settings, ended: tuple[Ended | None, ...]) -> Result:
    """The curves from what became of the runs of every rate; None where they are not finished."""
    count = settings.n_seeds
    curves = []
    for at, word in enumerate(words_of(settings)):
        points: list[Point | None] = []
        mine: list[tuple[Outcome, ...]] = []
        for rate, each in zip(rates_of(settings), ended, strict=True):
            own = slice(at * count, (at + 1) * count)
            ends, firsts = (each.outcomes[own], each.first_losses[own]) if each is not None else ((), ())
            mine.append(ends)
            losses = tuple(end.final_loss for end in ends)
            points.append(Point(rate, losses, sum(firsts) / count) if ends else None)
        curves.append(Curve(word, tuple(points), tuple(mine)))
    return Result(settings, rates_of(settings), tuple(curves))


def point_rows(result: Result) -> list[dict[str, Any]]:
    """One row per curve and rate that is trained."""
    rows = []
    for curve in result.curves:
        for point, ends in zip(curve.points, curve.outcomes, strict=True):
            if point is None:
                continue
            capped = [point.capped(loss) for loss in point.final_losses]
            rows.append(
                {
                    "variant": curve.variant,
                    "learning_rate": point.learning_rate,
                    "mean_final_loss": point.mean,
                    "lowest": min(capped),
                    "highest": max(capped),
                    "first_loss": point.first_loss,
                    "median_max_abs_logit": median_logit(ends),
                    **summary(ends),
                }
            )
    return rows


def run_rows(result: Result) -> list[dict[str, Any]]:
    """One row per run that is finished."""
    return [
        {
            "variant": curve.variant,
            "learning_rate": rate,
            "seed": seed,
            **{name: getattr(end, name) for name in _OF_RUN},
        }
        for curve in result.curves
        for rate, ends in zip(result.rates, curve.outcomes, strict=True)
        for seed, end in zip(seeds_of(result.settings), ends, strict=False)
    ]


_OF_RUN: Final = (
    *("outcome", "end", "final_loss", "max_abs_logit", "final_entropy_fraction", "final_softmax_slope", "learnt_at"),
    *("first_step_logit_over_100", "spikes", "lost_at", "diverged_at", "non_finite_at"),
)


def median_logit(ends: Sequence[Outcome]) -> float:
    """The middle one of the largest logits of these runs."""
    return float(np.median([end.max_abs_logit for end in ends]))


def seen_of(settings: Settings) -> Mapping[str, Value]:
    """The dial of the rate that is looked at, at the nearest rate there is."""
    rate = min(rates_of(settings), key=lambda rate: abs(math.log(rate / settings.learning_rate)))
    return {"learning_rate": rate}
