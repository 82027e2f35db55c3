"""Every sentence about losses over learning rates is true of them: curves drawn from a seed, never trained."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from qkdemo.labs.learning_rates import lab
from qkdemo.labs.learning_rates.lab import Settings, plans_of, rates_of, words_of
from qkdemo.labs.learning_rates.max_stable_lr import how_far
from qkdemo.labs.learning_rates.words import explain
from qkdemo.messages import ENGLISH, LANGUAGES, say
from qkdemo.notation import written
from qkdemo.training.tasks import TASKS
from qkdemo.training.telemetry import CURVES
from tests.oracles import NOTHING, Oracle, Said, heard, hold, keys, near

DRAWN: Final = 250
LOSS: Final = CURVES.index("loss")


Ends = tuple[float, float]


class Told:
    """Raw losses: [rates, variants, seeds, steps]; None where a rate is not trained."""

    def __init__(self, rng: np.random.Generator) -> None:
        task = str(rng.choice(["copy", "copy", "copy", "noisy_copy", "text"]))
        self.settings = Settings(
            task=task,  # type: ignore[arg-type]
            variant=str(rng.choice(["rms", "rms", "none"])),  # type: ignore[arg-type]
            second=str(rng.choice(["nothing", "nothing", "softcap"])),  # type: ignore[arg-type]
            n_rates=int(rng.choice([3, 4, 9])),
            n_seeds=int(rng.choice([1, 1, 2, 3])),
            steps=40,
        )
        self.rates, self.words = rates_of(self.settings), words_of(self.settings)
        self.task, seeds = TASKS[self.settings.task], self.settings.n_seeds
        floor, chance = self.task.floor or 0.0, self.task.chance()
        self.solved, self.failed = floor + 0.1, chance if self.task.floor is None else (floor + chance) / 2
        shape = len(self.rates), len(self.words), seeds
        self.loss = np.full((*shape, 40), chance)
        good = rng.random(len(self.words)) * (len(self.rates) + 2) - 1  # up to which place each curve is good
        for at in np.ndindex(shape):
            well = at[0] < good[at[1]] + rng.choice([0, 0, 0, 1, -1])
            end = rng.choice(
                [floor + 0.02, floor + 0.09] if well else [chance, 0.8 * chance, 0.4 * chance, 40.0, floor + 0.12]
            )
            self.loss[at][10:] = end
            if rng.random() < 0.1:  # learnt first, and then as it ends
                self.loss[at][2:17] = floor + 0.01
            if rng.random() < 0.2:
                self.loss[at][12:17] = rng.choice([floor + 0.01, 30.0])
            if rng.random() < 0.06:
                self.loss[at][int(rng.choice([0, 39, 15])) :] = rng.choice([np.nan, np.inf])
        self.loss = self.loss.astype(np.float32).astype(float)
        self.trained = [bool(rng.random() < 0.97) for _ in self.rates]
        self.finals = self.loss[..., -20:].mean(-1)

    def result(self) -> lab.Result:
        arrays: list[Any] = []
        for at, (plan, trained) in enumerate(zip(plans_of(self.settings), self.trained, strict=True)):
            curves = np.zeros((40, plan.width, len(CURVES)), np.float32)
            curves[:, :, LOSS] = self.loss[at].reshape(-1, 40).T
            arrays.append(curves if trained else None)
        return lab.result_of(self.settings, arrays)

    def capped(self, word: int) -> np.ndarray[Any, Any]:
        """[rates, seeds] final losses, at most the mean of the first ones."""
        first = self.loss[:, word, :, 0].mean(-1, keepdims=True)
        first = np.where(np.isfinite(first), first, np.inf)
        finals = self.finals[:, word]
        return np.where(np.isfinite(finals), np.minimum(finals, first), first)

    def wall(self, losses: np.ndarray[Any, Any], start: int) -> Ends:
        """The last rate, from a place on, with losses below the limit, and the next; 0 and ∞ if there is none."""
        if losses[start] >= self.solved:
            return 0.0, self.rates[start]
        beyond = [at for at in range(start, len(losses)) if losses[at] >= self.solved]
        return (self.rates[beyond[0] - 1], self.rates[beyond[0]]) if beyond else (self.rates[-1], math.inf)

    def walls(self, word: int) -> tuple[Ends, list[Ends]]:
        """That of the mean, and those of the seeds."""
        losses = self.capped(word)
        best = int(losses.mean(-1).argmin())
        return self.wall(losses.mean(-1), best), [self.wall(column, best) for column in losses.T]

    def word(self, name: object) -> int:
        return [say(f"variant.{word}.name") for word in self.words].index(str(name))

    def lowest(self, word: int) -> float:
        return float(self.capped(word).mean(-1).min())


def walls(*right: Any) -> Oracle:
    """Whether the walls of plain attention and of the first remedy are so, and between the rates that are said."""

    def holds(said: Said, told: Told) -> bool:
        found = [told.walls(word)[0] for word in range(len(right))]
        if [_kind(ends) for ends in found] != list(right):
            return False
        for name, ends in zip(("plain", "twin"), found, strict=False):
            rates = [said.number(key) for key in (name, f"{name}_not") if f"{{{key}}}" in LANGUAGES[ENGLISH][said.key]]
            if _kind(ends) == "wall" and not all(map(near, rates, ends)):
                return False
        return "highest" not in said.values or near(said.number("highest"), told.rates[-1])

    return holds


def _kind(ends: Ends) -> str:
    return "never" if ends[0] == 0 else "open" if ends[1] == math.inf else "wall"


def farther(sign: int) -> Oracle:
    """Whether the remedy's wall stands farther right (1), in the same gap (0), or farther left (−1)."""

    def holds(said: Said, told: Told) -> bool:
        plain, twin = told.walls(0)[0], told.walls(1)[0]
        return walls("wall", "wall")(said, told) and np.sign(twin[0] - plain[0]) == sign == np.sign(twin[1] - plain[1])

    return holds


def between(said: Said, told: Told) -> bool:
    ends = (said.number("rate"), said.number("beyond"))
    return any(all(map(near, ends, told.walls(word)[0])) for word in range(len(told.words)))


def by_seed(said: Said, told: Told) -> bool:
    """The least and the most that a seed alone gets, of some curve."""
    texts = [said.values["low"], said.values.get("high", said.values["low"])]
    for word in range(len(told.words)):
        alone = told.walls(word)[1]
        kinds = [(_kind(ends), written(ends[0])) for ends in (min(alone), max(alone))]
        words = {"never": "none", "open": "{} or more", "wall": "{}"}
        if texts == [words[kind].format(rate) for kind, rate in kinds]:
            return True
    return False


def losses(said: Said, told: Told) -> bool:
    return all(near(said.number(name), told.lowest(at), 6e-3) for at, name in enumerate(("plain_loss", "twin_loss")))


def never(said: Said, told: Told) -> bool:
    return walls("never", "never")(said, told) and losses(said, told)


def fails(said: Said, told: Told) -> bool:
    word = told.word(said.values["variant"])
    (at,) = [at for at, rate in enumerate(told.rates) if near(rate, said.number("rate"))]
    failed = [int((~(told.finals[place, word] < told.failed)).sum()) for place in range(len(told.rates))]
    n = told.settings.n_seeds
    return failed[at] == said.number("failed") > n / 2 and said.number("n") == n


def again(said: Said, told: Told) -> bool:
    """Those rates, and no others beyond the wall, are below the limit."""
    means = told.capped(told.word(said.values["variant"])).mean(-1)
    for best in np.flatnonzero(means <= means.min() + 1e-6):  # rounding decides between equal lowest losses
        wall = told.wall(means, int(best))[0] or math.inf
        beyond = [rate for rate, mean in zip(told.rates, means, strict=True) if rate > wall and mean < told.solved]
        if said.values["rates"] == ", ".join(map(written, beyond)) != "":
            return True
    return False


def number(said: Said, told: Told) -> bool:
    """The mean over ln(rate) of what a curve is above its best, by trapezoids, and its two sides."""
    means = told.capped(told.word(said.values["variant"])).mean(-1)
    above, x = means - means.min(), np.log(told.rates)
    best, width = int(means.argmin()), x[-1] - x[0]
    parts = [np.trapezoid(above[: best + 1], x[: best + 1]) / width, np.trapezoid(above[best:], x[best:]) / width]
    wanted = {"number": sum(parts), "low": parts[0], "high": parts[1]}
    return all(near(said.number(name), float(value), 0.06, 1e-6) for name, value in wanted.items())


def limit(said: Said, told: Told) -> bool:
    """Its number; and that some curve ends at a rate that “up to” is said of."""
    kinds = [_kind(told.walls(word)[0]) for word in range(len(told.words))]
    return near(said.number("limit"), told.solved, 6e-3) and all(told.trained) and "wall" in kinds


def _end(told: Told, loss: np.ndarray[Any, Any]) -> str:
    """How a run that failed did so, from its curve: the first that is true."""
    if not np.isfinite(loss).all():
        return "non_finite"
    means = [loss[max(0, step - 19) : step + 1].mean() for step in range(len(loss))]
    learnt = np.flatnonzero(loss < told.solved) if told.task.floor is not None else []
    if len(learnt):
        low = [step for step in range(learnt[0], len(loss)) if means[step] < told.failed]
        if low and any(means[step] >= told.failed for step in range(low[0], len(loss))):
            return "lost"
    best = np.minimum.accumulate(loss)
    high = loss > np.append(np.inf, best[:-1] + np.maximum(0.25, 0.15 * best[:-1]))
    if high[-3:].all():
        return "diverged"
    return "chance" if loss[-20:].mean() >= 0.9 * told.task.chance() else "slow"


def befell(said: Said, told: Told) -> bool:
    word = told.word(said.values["variant"])
    runs = [run for at in range(len(told.rates)) if told.trained[at] for run in told.loss[at, word]]
    finals = [run[-20:].mean() for run in runs]
    failed = sum(not final < told.failed for final in finals)
    solved = 0 if told.task.floor is None else sum(final < told.solved for final in finals)
    right = [said.number(name) for name in ("n", "failed", "partly")] == [
        len(runs),
        failed,
        len(runs) - failed - solved,
    ]
    return right and ("solved" not in said.sentence or said.number("solved") == solved)


def ended(said: Said, told: Told) -> bool:
    """Of some curve as many ended so."""
    kind = said.key.rpartition(".")[2]
    found = []
    for word in range(len(told.words)):
        runs = [run for at in range(len(told.rates)) if told.trained[at] for run in told.loss[at, word]]
        found.append(Counter(_end(told, run) for run in runs if not run[-20:].mean() < told.failed)[kind])
    return said.number("count") in found


ORACLES: Final[Mapping[str, Oracle]] = {
    "rates.partial": lambda said, told: (
        said.number("done") == sum(told.trained) < said.number("count") == len(told.rates)
    ),
    "rates.one": walls("wall"),
    "rates.one_open": walls("open"),
    "rates.one_never": lambda said, told: (
        walls("never")(said, told) and near(said.number("plain"), told.lowest(0), 6e-3)
    ),
    "rates.one_unknown": lambda said, told: (
        near(said.number("plain"), told.lowest(0), 6e-3) and told.task.floor is None
    ),
    "rates.finding.wider": farther(1),
    "rates.finding.alike": farther(0),
    "rates.finding.narrower": farther(-1),
    "rates.finding.unknown": losses,
    "rates.finding.never_never": never,
    **{
        f"rates.finding.{a}_{b}": walls(a, b)
        for a in ("never", "wall", "open")
        for b in ("never", "wall", "open")
        if (a, b) not in (("never", "never"), ("wall", "wall"))
    },
    "rates.between": between,
    "rates.by_seed": by_seed,
    "rates.by_seed_alike": by_seed,
    "rates.no_rate": NOTHING,
    "rates.at_least": lambda said, told: near(said.number("rate"), told.rates[-1]),
    "rates.again": again,
    "rates.fails": fails,
    "rates.limit": limit,
    "rates.limit_one": lambda said, told: limit(said, told) and told.settings.n_seeds == 1,
    "rates.number": number,
    "rates.sensitivity": NOTHING,
    "rates.befell": befell,
    "rates.befell_unknown": befell,
    "rates.failed_how": NOTHING,
    **dict.fromkeys(keys("rates.end."), ended),
    **dict.fromkeys(keys("variant."), NOTHING),
}


def search(seeds: range) -> set[str]:
    """Which keys were said of the curves of these seeds."""
    asked: set[str] = set()
    for seed in seeds:
        with np.errstate(all="ignore"):
            told = Told(np.random.default_rng(seed))
            with heard() as said:
                result = told.result()
                explain(result)
                for curve in result.curves if result.whole else ():
                    how_far(curve, told.settings)
            asked |= hold(said, ORACLES, told, f"seed {seed}")
    return asked


def test_every_sentence_about_losses_over_rates_is_true_of_them() -> None:
    asked = search(range(DRAWN))
    assert {key for key in ORACLES if key.startswith("rates.")} - asked == set()
