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
from qkdemo.labs.training import command as train_command
from qkdemo.messages import say
from qkdemo.notation import written
from qkdemo.runs import plan as plans
from qkdemo.runs.plan import Plan, outcomes
from qkdemo.training import settings as training
from qkdemo.training.outcome import LAST_STEPS, Side, course, failed_from, solved_below
from qkdemo.training.tasks import TASKS, Task
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
    head: Annotated[int, Dial(1, 4, more=True)] = 2


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


PRESETS: Final[dict[str, Settings]] = {
    **{name: Settings(**state.as_dict()) for name, state in train_command.PRESETS.items()},  # type: ignore[arg-type]
    "way_back": Settings(fork="rate", fork_at=300, fork_steps=600),
    "norm_on": Settings(fork="norm_on", fork_at=150),
}


@lru_cache(maxsize=256)
def plan_of(settings: Settings, seeds: tuple[int, ...] | None = None) -> Plan:
    """What these dials say to train: one pair of twins, or with `seeds` a pair for each; with its chain of forks.

    A fork begins after the one before it, and within the plan that it leaves.
    """
    plan = plans.twins(run_of(settings), seeds)
    for fork in forks_of(settings):
        after = max(plan.legs[-1].after + 1, min(fork.at, plan.steps, plans.MOST_STEPS - 1))
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


# ---- what the numbers say


def findings(plan: Plan, curves: NDArray[np.float32], first: int) -> list[str]:
    """What is to be said after step `first` and after each later one; `curves` as in a chunk, from step 1 on."""
    run = plan.legs[0].runs[1]
    task = TASKS[run.task]
    losses = [curves[:, row, CURVES.index("loss")] for row in (0, 1)]
    if task.floor is None:
        chance = written(task.chance(), 3)
        return [
            say("twins.losses", plain=_nats(plain), twin=_nats(twin), variant=_name(run), chance=chance)
            for plain, twin in zip(losses[0][first - 1 :].tolist(), losses[1][first - 1 :].tolist(), strict=True)
        ]
    logits = [curves[:, row, CURVES.index("max_abs_logit")] for row in (0, 1)]
    sides = [course(task, loss, largest) for loss, largest in zip(losses, logits, strict=True)]
    after = plan.legs[-1].after if len(plan.legs) > 1 else plan.steps
    if len(curves) > after:
        sides += [_unforked(plan, task, curves, row) for row in (0, 1)]
    said: dict[tuple[object, ...], str] = {}
    sentences = []
    for step in range(first, len(curves) + 1):
        now = [side[step - 1] for side in sides]
        key = (*now, step > after, step == plan.steps)
        if key not in said:
            if step > after:
                before = [side[after - 1] for side in sides[:2]]
                said[key] = _fork_words(plan) + _of_fork(plan, before, now, ended=step == plan.steps)
            else:
                said[key] = _sentence(now[0], now[1], run)
        sentences.append(said[key])
    return sentences


def _unforked(plan: Plan, task: Task, curves: NDArray[np.float32], row: int) -> list[Side]:
    """The course of a twin that the last fork left as it was: its own row up to there, then the one beside."""
    after = plan.legs[-1].after
    whole = np.concatenate([curves[:after, row], curves[after:, row + 2]])
    return course(task, whole[:, CURVES.index("loss")], whole[:, CURVES.index("max_abs_logit")])


def _of_fork(plan: Plan, before: Sequence[Side], now: Sequence[Side], *, ended: bool) -> str:
    """What became of a fork. `before`: both twins at its step; `now`: both, and then both as they were not forked."""
    leg, variant = plan.legs[-1], _name(plan.legs[0].runs[1])
    words = [_since_fork(plan, was, side, ended=ended) for was, side in zip(before, now, strict=False)]
    if leg.runs[1] == leg.runs[3] and leg.runs[0] != leg.runs[2]:  # plain attention alone goes on otherwise
        key = "twins.fork.one_alike" if now[0].word == now[2].word else "twins.fork.one"
        return say(key, plain=words[0], unforked=_unforked_words(plan, now[2]))
    if plan.legs[0].runs[1].variant == "none":
        return say("twins.fork.same", plain=words[0])
    text = say("twins.fork.both", plain=words[0], twin=words[1], variant=variant)
    names = [say("twins.plain"), say("twins.twin", variant=variant)]
    return text + "".join(
        " " + say("twins.fork.unlike", side=name, unforked=_unforked_words(plan, other))
        for name, side, other in zip(names, now[:2], now[2:], strict=True)
        if side.word != other.word
    )


def _unforked_words(plan: Plan, side: Side) -> str:
    return say(f"twins.unforked.{side.word}", since=side.since, solved=_solved(plan.legs[0].runs[1]))


def _since_fork(plan: Plan, was: Side, now: Side, *, ended: bool) -> str:
    """How a twin stands that the last fork changed; the word is final once the run has `ended`."""
    after, solved = plan.legs[-1].after, _solved(plan.legs[0].runs[1])
    held = was.word in ("learnt", "back"), now.word in ("learnt", "back")
    if now.word == was.word and now.since <= after:
        stays = "holds" if held[1] else was.word
        return say(f"twins.since.{stays}_{'ended' if ended else 'so_far'}", steps=plan.steps - after)
    kind: str = "found" if was.word == "lost" and held[1] else "lost_found" if now.word == "back" else now.word
    return say(f"twins.since.{kind}", since=now.since, steps=now.since - after, solved=solved)


def longest_finding(plan: Plan) -> str:
    """A finding as long as they come, so that a page can keep room for it."""
    run, steps = plan.legs[0].runs[1], plan.steps
    if TASKS[run.task].floor is None:
        loss = _nats(1.111)
        return say("twins.losses", plain=loss, twin=loss, variant=_name(run), chance=loss)
    if len(plan.legs) > 1:
        stays, back = Side("lost", 0, None, True), Side("back", steps, None, False)
        return _fork_words(plan) + _of_fork(plan, [stays] * 2, [stays, stays, back, stays], ended=True)
    lost = say("twins.is.lost_warned", since=steps, earlier=steps)
    return say("twins.apart", plain=lost, twin=say("twins.is.keeps"), variant=_name(run))


def _sentence(plain: Side, twin: Side, run: training.Settings) -> str:
    variant = _name(run)
    if run.variant == "none":
        return say(f"twins.same.{plain.word}", since=plain.since, solved=_solved(run))
    if plain.word == twin.word == "lost":
        text = say("twins.both.lost", plain=plain.since, twin=twin.since, variant=variant)
    elif plain.word == twin.word:
        text = say(f"twins.both.{plain.word}", variant=variant, solved=_solved(run))
    else:
        words = _words(plain, twin, _solved(run)), _words(twin, plain, _solved(run))
        text = say("twins.apart", plain=words[0], twin=words[1], variant=variant)
    if plain.large_at is not None and plain.word in ("unlearnt", "learnt"):
        text += " " + say("twins.warned", step=plain.large_at, variant=variant)
    return text


def _words(side: Side, other: Side, solved: str) -> str:
    if side.word in ("learnt", "back") and other.word == "lost":
        return say("twins.is.keeps")
    if side.word == "lost" and side.large_at is not None and side.large_at < side.since:
        return say("twins.is.lost_warned", since=side.since, earlier=side.since - side.large_at)
    return say(f"twins.is.{side.word}", since=side.since, solved=solved)


def _fork_words(plan: Plan) -> str:
    leg = plan.legs[-1]
    plain, twin = leg.runs[:2]
    if twin.learning_rate != plan.legs[-2].runs[1].learning_rate or twin.schedule != plan.legs[-2].runs[1].schedule:
        return say("twins.from.rate", after=leg.after, rate=written(twin.learning_rate)) + " "
    if plain.variant != plan.legs[-2].runs[0].variant:
        return say("twins.from.variant", after=leg.after, variant=_name(plain)) + " "
    return ""


def explain(plan: Plan, curves: NDArray[np.float32]) -> list[str]:
    """Sentences about the twins as far as they have come."""
    if not len(curves):
        return []
    found = outcomes(plan, curves)
    sides = [_first_side(plan), say("twins.twin", variant=_name(plan.legs[0].runs[1]))]
    return [
        findings(plan, curves, len(curves))[-1],
        *(
            say(
                "twins.stands",
                side=side,
                steps=len(curves),
                loss=_nats(outcome.final_loss),
                word=say(f"twins.outcome.{outcome.outcome}"),
                logit=written(outcome.max_abs_logit),
                slope=written(outcome.final_softmax_slope, 3),
                last=min(LAST_STEPS, len(curves)),
            )
            for side, outcome in zip(sides, found, strict=False)
        ),
        definitions(plan),
    ]


def _first_side(plan: Plan) -> str:
    """What the first twin is called: plain attention, as long as no fork gave it a remedy."""
    now = plan.legs[-1].runs[0]
    if now.variant == "none":
        return say("twins.plain")
    since = next(leg.after for leg in plan.legs if leg.runs[0].variant == now.variant)
    return say("twins.once_plain", variant=_name(now), since=since)


def definitions(plan: Plan) -> str:
    """What solved, partly and failed mean for this task."""
    task = TASKS[plan.legs[0].runs[0].task]
    failed = written(failed_from(task), 3)
    if task.floor is None:
        return say("twins.defined_without_floor", failed=failed)
    return say("twins.defined", solved=written(solved_below(task), 3), failed=failed)


def counted(plan: Plan, curves: NDArray[np.float32]) -> list[str]:
    """`plain collapsed in 20 of 20, …` for a plan of many seeds that is finished."""
    found = outcomes(plan, curves)
    sentences = []
    for at, key in enumerate(("plain", "twin")):
        mine = found[at::2]
        words = [outcome.outcome for outcome in mine]
        sentences.append(
            say(
                f"twins.count.{key}",
                variant=_name(plan.legs[0].runs[1]),
                n=len(mine),
                failed=words.count("failed"),
                solved=words.count("solved"),
                partly=words.count("partly"),
                learnt=sum(outcome.learnt_first for outcome in mine),
                logit=written(max(outcome.max_abs_logit for outcome in mine)),
            )
        )
    return sentences


def _solved(run: training.Settings) -> str:
    """The loss below which a step counts as learnt, of a task with a floor."""
    return written(solved_below(TASKS[run.task]), 3)


def _nats(x: float) -> str:
    return written(x, 3)


def _name(run: training.Settings) -> str:
    return say(f"variant.{run.variant}.name")
