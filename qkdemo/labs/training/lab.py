"""Twins: plain attention and the same model with a remedy, from the same seed, on the same batches.

Both start from the same weights and see the same data; only what is done about q and k differs. Start the default run:
a learning-rate ramp. Both learn to copy; then plain attention's logits run away, and its loss follows later. Fork the
run before that happens, or after, and see what helps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qkdemo.dials import Choice, Dial, Value, declarations
from qkdemo.runs import plan as plans
from qkdemo.runs.plan import Plan
from qkdemo.training import settings as training
from qkdemo.training.outcome import LAST_STEPS
from qkdemo.training.telemetry import CURVES

ForkWord: TypeAlias = Literal["none", "norm_on", "rate", "qk_rate"]

AS_FAST_AS_IT_GOES: Final = 200  # the last stop of the speed dial
_SPEEDS: Final = (1.0, 2.0, 5.0, 10.0, 15.0, 25.0, 50.0, 100.0, float(AS_FAST_AS_IT_GOES))
MOST_FORKS: Final = 3  # in a chain
_FORKS: Final = ("norm_on", "rate", "qk_rate")
_FORKED, _FORKED_2, _FORKED_3 = (("fork", _FORKS), ("fork_2", _FORKS), ("fork_3", _FORKS))
_QK_FACTOR: Final = 0.1
_ENOUGH: Final = 0.25  # of the run's steps: where fewer are left, a fork goes on for as many as the run has


@dataclass(frozen=True, kw_only=True)
class Settings(training.Settings):
    """A run's dials, where it is forked, and how it is watched."""

    fork: Annotated[ForkWord, Choice()] = "none"
    fork_at: Annotated[int, Dial(1, 3000, only_for=_FORKED)] = 150
    fork_rate: Annotated[float, Dial(1e-5, 3, log=True, only_for=("fork", ("rate",)))] = 0.003
    fork_steps: Annotated[int, Dial(0, 900, 20, only_for=_FORKED)] = 0
    fork_2: Annotated[ForkWord, Choice(only_for=_FORKED)] = "none"
    fork_2_at: Annotated[int, Dial(1, 4000, only_for=_FORKED_2)] = 200
    fork_2_rate: Annotated[float, Dial(1e-5, 3, log=True, only_for=("fork_2", ("rate",)))] = 0.003
    fork_2_steps: Annotated[int, Dial(0, 900, 20, only_for=_FORKED_2)] = 0
    fork_3: Annotated[ForkWord, Choice(only_for=_FORKED_2)] = "none"
    fork_3_at: Annotated[int, Dial(1, 4000, only_for=_FORKED_3)] = 250
    fork_3_rate: Annotated[float, Dial(1e-5, 3, log=True, only_for=("fork_3", ("rate",)))] = 0.003
    fork_3_steps: Annotated[int, Dial(0, 900, 20, only_for=_FORKED_3)] = 0
    speed: Annotated[float, Dial(1, AS_FAST_AS_IT_GOES, log=True, stops=_SPEEDS)] = 15.0
    layer: Annotated[int, Dial(1, 4, more=True)] = 1
    head: Annotated[int, Dial(1, 4, more=True, use="trained")] = 2


WATCHING: Final = frozenset(("speed", "layer", "head"))  # dials that make no other run
_NAMES: Final = tuple(("fork" if at == 1 else f"fork_{at}") for at in range(1, MOST_FORKS + 1))
_OF_FORK: Final = ("", "_at", "_rate", "_steps")
FORK: Final = frozenset(f"{name}{end}" for name in _NAMES for end in _OF_FORK)


@dataclass(frozen=True)
class Fork:
    """One fork of a chain, as the dials say it.

    `steps` 0: to the end of the plan that it leaves; near that end, for as many steps as the run has.
    """

    word: ForkWord
    at: int
    rate: float
    steps: int = 0


RUN_PRESETS: Final[dict[str, training.Settings]] = {
    "collapse": training.Settings(),
    "gentle": training.Settings(schedule="constant", learning_rate=0.01),
    "too_hot": training.Settings(schedule="constant", learning_rate=0.2),
    "sharp": training.Settings(schedule="constant", learning_rate=0.01, n_layers=1, n_heads=1, d_head=32),
    "heavy_start": training.Settings(schedule="constant", learning_rate=0.03, qk_start=3),
    "noisy_copy": training.Settings(task="noisy_copy", schedule="constant", learning_rate=0.05, steps=600),
    "addition": training.Settings(task="addition", schedule="constant", learning_rate=0.1, steps=600),
    "induction": training.Settings(task="induction", schedule="constant", learning_rate=0.03, steps=600, batch=16),
    "recall": training.Settings(task="recall", schedule="constant", learning_rate=0.05, steps=600),
    "text": training.Settings(task="text", schedule="constant", learning_rate=0.1, steps=600, batch=16),
    "words": training.Settings(
        task="words", schedule="cosine", learning_rate=0.004, warmup=200, steps=3000, batch=32, seed=1
    ),
}
PRESETS: Final[dict[str, Settings]] = {
    **{name: Settings(**state.as_dict()) for name, state in RUN_PRESETS.items()},  # type: ignore[arg-type]
    "way_back": Settings(fork="rate", fork_at=300, fork_steps=600),
    "norm_on": Settings(fork="norm_on", fork_at=150),
}


@lru_cache(maxsize=256)
def plan_of(settings: Settings, seeds: tuple[int, ...] | None = None) -> Plan:
    """What these dials say to train: one pair of twins, or with `seeds` a pair for each; with its chain of forks.

    A fork begins after the one before it, within the plan that it leaves, and so that those after it have a step each.
    """
    plan = plans.twins(run_of(settings), seeds)
    forks = forks_of(settings)
    for at, fork in enumerate(forks):
        last = plans.MOST_STEPS - (len(forks) - at)
        after = max(plan.legs[-1].after + 1, min(fork.at, plan.steps, last))
        left = plan.steps - after
        more = fork.steps or max(left if left >= _ENOUGH * settings.steps else settings.steps, LAST_STEPS)
        plan = plans.forked_at(plan, after, _changes(settings, fork), more=more, beside=seeds is None)
    return plan


def forks_of(settings: Settings) -> tuple[Fork, ...]:
    """The chain of forks that the dials describe: up to the first that is none."""
    forks = []
    for name in _NAMES:
        fork = Fork(*(getattr(settings, name + end) for end in _OF_FORK))
        if fork.word == "none":
            break
        forks.append(fork)
    return tuple(forks)


def with_forks(settings: Settings, forks: Sequence[Fork]) -> Settings:
    """These dials with that chain of forks; at most `MOST_FORKS` of them."""
    changes: dict[str, Value] = {name: getattr(Settings(), name) for name in FORK}
    for name, fork in zip(_NAMES, forks, strict=False):
        values = (fork.word, fork.at, fork.rate, fork.steps)
        changes |= {name + end: value for end, value in zip(_OF_FORK, values, strict=True)}
    return settings.but(**changes)


def forked_from(settings: Settings, fork: Fork) -> Settings:
    """These dials with one fork more.

    Forks that begin at its step or later give way, and so does the last one of a chain that is full.
    """
    legs = plan_of(settings).legs[1:]
    before = [other for other, leg in zip(forks_of(settings), legs, strict=True) if leg.after < fork.at]
    return with_forks(settings, [*before[: MOST_FORKS - 1], fork])


def run_of(settings: Settings) -> training.Settings:
    """The twin's dials alone."""
    return training.Settings(**{d.name: getattr(settings, d.name) for d in declarations(training.Settings)})


def _changes(settings: Settings, fork: Fork) -> tuple[Mapping[str, Value], Mapping[str, Value]]:
    """What the fork does to plain attention, and to its twin."""
    match fork.word:
        case "norm_on":
            dials = ("variant", "softcap", "clip_threshold", "qk_lr_factor")
            return {name: getattr(settings, name) for name in dials}, {}
        case "qk_rate":
            return {"variant": "qk_lr", "qk_lr_factor": _QK_FACTOR}, {}
        case _:
            slower: Mapping[str, Value] = {"schedule": "constant", "warmup": 0, "learning_rate": fork.rate}
            return slower, slower


# ---- what came out


@dataclass(frozen=True, eq=False)
class Result:
    """A run and what was read off it: `curves` is [steps, runs, curves] from step 1 on, in the order of `CURVES`."""

    settings: Settings
    plan: Plan
    curves: NDArray[np.float32]


def result_of(settings: Settings, trained: Sequence[NDArray[np.float32] | None]) -> Result:
    """The result from the telemetry of its one plan, as far as that is known."""
    (curves,) = trained
    plan = plan_of(settings)
    return Result(settings, plan, np.empty((0, plan.width, len(CURVES)), np.float32) if curves is None else curves)
