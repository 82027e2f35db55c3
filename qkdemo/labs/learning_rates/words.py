"""Losses over learning rates in words: `finding(result)`, the headline; `explain(result)`; `failures_of(outcomes)`."""

from collections.abc import Iterator, Sequence
from typing import Final

from qkdemo.labs.learning_rates.lab import Result
from qkdemo.labs.learning_rates.max_stable_lr import Curve, Wall, wall_of
from qkdemo.labs.learning_rates.sensitivity import by_side, sensitivity
from qkdemo.messages import say
from qkdemo.notation import written
from qkdemo.training.outcome import FAILURES, LAST_STEPS, Outcome, ends_of, solved_below
from qkdemo.training.settings import RemedyWord
from qkdemo.training.tasks import TASKS

_MAJORITY: Final = 0.5


def finding(result: Result) -> str:
    """The headline: how far plain attention gets, and how far the remedy."""
    if not result.whole:
        return say("rates.partial", done=result.done, count=len(result.rates))
    plain = result.curves[0]
    twin = result.curves[1] if len(result.curves) > 1 else None
    if twin is None:
        return _finding_of_one(result, plain)
    if not _can_be_solved(result):
        losses = {"plain_loss": _lowest(plain), "twin_loss": _lowest(twin)}
        return say("rates.finding.unknown", variant=_name(twin.variant), **losses)
    walls = [wall_of(curve, result.settings) for curve in (plain, twin)]
    values = {"variant": _name(twin.variant), "highest": written(result.rates[-1])}
    values |= {"plain_loss": _lowest(plain), "twin_loss": _lowest(twin)}
    return say(f"rates.finding.{_which(*walls)}", **values, **_between("plain", walls[0]), **_between("twin", walls[1]))


def _which(plain: Wall | None, twin: Wall | None) -> str:
    """The sentence for two walls: which of them there are; and if both are, which stands farther right."""
    if plain is not None and twin is not None and plain.not_solved is not None and twin.not_solved is not None:
        if plain.last_solved == twin.last_solved:
            return "alike"
        return "wider" if plain.last_solved < twin.last_solved else "narrower"
    return "_".join(
        "never" if wall is None else "open" if wall.not_solved is None else "wall" for wall in (plain, twin)
    )


def _between(name: str, wall: Wall | None) -> dict[str, str]:
    """The last rate that is solved, and the next one, under the names that sentences have for them."""
    if wall is None or wall.not_solved is None:
        return {}
    return {name: written(wall.last_solved), f"{name}_not": written(wall.not_solved)}


def _finding_of_one(result: Result, plain: Curve) -> str:
    wall = wall_of(plain, result.settings)
    if wall is None:
        return say(f"rates.one_{'never' if _can_be_solved(result) else 'unknown'}", plain=_lowest(plain))
    if wall.not_solved is None:
        return say("rates.one_open", plain=written(wall.last_solved))
    return say("rates.one", **_between("plain", wall))


def explain(result: Result) -> list[str]:
    """What the curves say, after the headline."""
    sentences = [finding(result)]
    if not result.done:
        return sentences
    for curve in result.curves if result.whole else ():
        sentences += _solved_again(curve, result)
    for curve in result.curves[1:]:
        sentences += _fails_too(curve, result)
    task = TASKS[result.settings.task]
    walls = [wall_of(curve, result.settings) for curve in result.curves] if result.whole else []
    if any(wall is not None and wall.not_solved is not None for wall in walls):  # else no curve is said to end
        seeds = result.settings.n_seeds
        values = {"limit": written(solved_below(task), 3), "steps": LAST_STEPS, "seeds": seeds}
        sentences.append(say("rates.limit" if seeds > 1 else "rates.limit_one", **values))
    if result.whole:
        numbers = [_number(curve) for curve in result.curves]
        sentences.append(say("rates.sensitivity", numbers=", ".join(numbers)))
    key = "rates.befell" if task.floor is not None else "rates.befell_unknown"
    return sentences + [_befell(curve, key) for curve in result.curves]


def _can_be_solved(result: Result) -> bool:
    """Whether it is known how small the loss of the task can be."""
    return TASKS[result.settings.task].floor is not None


def _number(curve: Curve) -> str:
    """Its LR sensitivity, and from which side that comes."""
    whole, (low, high) = sensitivity(curve.found), by_side(curve.found)
    parts = {"number": written(whole, 3), "low": written(low, 2), "high": written(high, 2)}
    return say("rates.number", variant=_name(curve.variant), **parts)


def _solved_again(curve: Curve, result: Result) -> Iterator[str]:
    """At which rates beyond its wall a curve is below the limit once more."""
    wall = wall_of(curve, result.settings)
    if wall is None:
        return
    limit = solved_below(TASKS[result.settings.task])
    again = [
        point.learning_rate for point in curve.found if point.learning_rate > wall.last_solved and point.mean < limit
    ]
    if again:
        yield say("rates.again", variant=_name(curve.variant), rates=", ".join(map(written, again)))


def _fails_too(curve: Curve, result: Result) -> Iterator[str]:
    """From which rate on most seeds fail, beyond a rate that is solved."""
    wall = wall_of(curve, result.settings)
    if wall is None:
        return
    for rate, ends in zip(result.rates, curve.outcomes, strict=True):
        failed = sum(end.outcome == "failed" for end in ends)
        if rate > wall.last_solved and ends and failed > _MAJORITY * len(ends):
            yield say("rates.fails", variant=_name(curve.variant), rate=written(rate), failed=failed, n=len(ends))
            return


def _befell(curve: Curve, key: str) -> str:
    """How every run ended, those that failed by how they failed; apart from that, in how many there were spikes."""
    runs = curve.all_outcomes
    counts = ends_of(runs)
    values = {"variant": _name(curve.variant), "n": len(runs), "solved": counts["solved"], "partly": counts["partly"]}
    failures = failures_of(runs)
    how = say("rates.failed_how", how=failures) if failures else ""
    failed, spiked = sum(counts[word] for word in FAILURES), sum(outcome.spikes > 0 for outcome in runs)
    return say(key, failed=failed, how=how, spiked=spiked, **values)


def failures_of(outcomes: Sequence[Outcome]) -> str:
    """`6 diverged, 1 ended at most half-way down`: how those that failed did; nothing if none did."""
    counts = ends_of(outcomes)
    return ", ".join(say(f"rates.end.{word}", count=counts[word]) for word in FAILURES if counts[word])


def _lowest(curve: Curve) -> str:
    return written(min(point.mean for point in curve.found), 3)


def _name(word: RemedyWord) -> str:
    return say(f"variant.{word}.name")
