"""Twins in words.

* `findings(plan, curves, first)`: the headline after every step; `longest_finding(plan)`: one as long as they come;
* `explain(plan, curves)`: how far the twins have come; `definitions(plan)`: what its words mean;
* `counted(plan, curves)`: of many seeds, how many came to what; `short_names(legs)`: what both are called."""

from collections.abc import Sequence
from functools import cache, partial, reduce
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from qkdemo.messages import say
from qkdemo.notation import written
from qkdemo.runs.plan import Leg, Plan, outcomes
from qkdemo.training import settings as training
from qkdemo.training.outcome import LAST_STEPS, Outcome, Side, course, failed_from, solved_below
from qkdemo.training.tasks import TASKS, Task
from qkdemo.training.telemetry import CURVES


def findings(plan: Plan, curves: NDArray[np.float32], first: int) -> list[str]:
    """What is to be said after step `first` and after each later one; `curves` as in a chunk, from step 1 on."""
    run = plan.legs[0].runs[1]
    task = TASKS[run.task]
    losses = [curves[:, row, CURVES.index("loss")] for row in (0, 1)]
    if task.floor is None:
        forked = cache(partial(_fork_words, plan))
        values = {"variant": _name(run), "chance": written(task.chance(), 3)}
        new = zip(*(loss[first - 1 :].tolist() for loss in losses), strict=True)
        return [
            forked(plan.leg_of(step)) + say("twins.losses", plain=_nats(plain), twin=_nats(twin), **values)
            for step, (plain, twin) in enumerate(new, first)
        ]
    logits = [curves[:, row, CURVES.index("max_abs_logit")] for row in (0, 1)]
    sides = [course(task, loss, largest) for loss, largest in zip(losses, logits, strict=True)]
    after = plan.legs[-1].after if len(plan.legs) > 1 else plan.steps
    if len(curves) > after:
        sides += [_unforked(plan, task, curves, row) for row in (0, 1)]
    said: dict[tuple[object, ...], str] = {}
    sentences = []
    for step in range(first, len(curves) + 1):
        now, at = [side[step - 1] for side in sides], plan.leg_of(step)
        key = (*now, at, step == plan.steps)
        if key not in said:
            if step > after:
                before = [side[after - 1] for side in sides[:2]]
                said[key] = _fork_words(plan, at) + _of_fork(plan, before, now, ended=step == plan.steps)
            else:
                plain, twin = plan.legs[at].runs[:2]
                said[key] = _fork_words(plan, at) + _sentence(now[0], now[1], run, same=plain == twin)
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
        alike = _stand(now[0]) == _stand(now[2])
        key = "twins.fork.one_alike" if alike else "twins.fork.one"
        return say(key, plain=words[0], unforked=_unforked_words(plan, now[2]))
    if plan.legs[0].runs[1].variant == "none" and leg.runs[0] == leg.runs[1]:
        return say("twins.fork.same", plain=words[0])
    text = say("twins.fork.both", plain=words[0], twin=words[1], variant=variant)
    names = [say("twins.plain"), say("twins.twin", variant=variant)]
    return text + "".join(
        " " + say("twins.fork.unlike", side=name, unforked=_unforked_words(plan, other))
        for name, side, other in zip(names, now[:2], now[2:], strict=True)
        if side.word != other.word
    )


def _stand(side: Side) -> tuple[str, int]:
    """Its word and since when; of one whose mean loss is high it is not said that it has not forgotten its task."""
    return "once" if side.word == "learnt" and side.high else side.word, side.since


def _unforked_words(plan: Plan, side: Side) -> str:
    return say(f"twins.unforked.{_stand(side)[0]}", since=side.since, solved=_solved(plan.legs[0].runs[1]))


def _since_fork(plan: Plan, was: Side, now: Side, *, ended: bool) -> str:
    """How a twin stands that the last fork changed; the word is final once the run has `ended`."""
    after, solved = plan.legs[-1].after, _solved(plan.legs[0].runs[1])
    held = was.word in ("learnt", "back"), now.word in ("learnt", "back")
    if now.word == was.word and now.since <= after:
        if held[1] and (now.high or (now.word == "back" and not ended)):
            return say(f"twins.is.{now.word}", since=now.since, solved=solved)
        stays = "holds" if held[1] else was.word
        return say(f"twins.since.{stays}_{'ended' if ended else 'so_far'}", steps=plan.steps - after)
    kind: str = "found" if was.word == "lost" and held[1] else "lost_found" if now.word == "back" else now.word
    last = "_last" if plan.chained and kind != "lost_found" else ""
    return say(f"twins.since.{kind}{last}", since=now.since, steps=now.since - after, solved=solved)


def longest_finding(plan: Plan) -> str:
    """A finding as long as they come, so that a page can keep room for it."""
    run, steps = plan.legs[0].runs[1], plan.steps
    if TASKS[run.task].floor is None:
        loss = _nats(1.111)
        return _fork_words(plan, -1) + say("twins.losses", plain=loss, twin=loss, variant=_name(run), chance=loss)
    if len(plan.legs) > 1:
        stays, back = Side("lost", 0, None, True), Side("back", steps, None, False)
        return _fork_words(plan, -1) + _of_fork(plan, [stays] * 2, [stays, stays, back, stays], ended=True)
    lost = say("twins.is.lost_warned", since=steps, earlier=steps)
    return say("twins.apart", plain=lost, twin=say("twins.is.keeps"), variant=_name(run))


def _sentence(plain: Side, twin: Side, run: training.Settings, *, same: bool) -> str:
    variant = _name(run)
    if same and run.variant == "none":
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
    if side.word == "learnt" and other.word == "lost" and not side.high:
        return say("twins.is.keeps")
    if side.word == "lost" and side.large_at is not None and side.large_at < side.since:
        return say("twins.is.lost_warned", since=side.since, earlier=side.since - side.large_at)
    return say(f"twins.is.{side.word}", since=side.since, solved=solved)


def _fork_words(plan: Plan, at: int) -> str:
    """What plain attention has in that leg, also where an earlier fork gave it that, and at which rate both go on."""
    legs = plan.legs[: at % len(plan.legs) + 1]
    if len(legs) == 1:
        return ""
    leg, words = legs[-1], ""
    (plain, twin), before = leg.runs[:2], legs[-2].runs[1]
    if since := _since(legs):
        key = "variant" if plain.variant != "none" else "none"
        words = say(f"twins.from.{key}", after=since, variant=_name(plain)) + " "
    if (twin.learning_rate, twin.schedule) != (before.learning_rate, before.schedule):
        words += say("twins.from.rate", after=leg.after, rate=written(twin.learning_rate)) + " "
    return words


def explain(plan: Plan, curves: NDArray[np.float32]) -> list[str]:
    """Sentences about the twins as far as they have come."""
    if not len(curves):
        return []
    found = outcomes(plan, curves)
    sides = [_first_side(plan, len(curves)), say("twins.twin", variant=_name(plan.legs[0].runs[1]))]
    return [
        findings(plan, curves, len(curves))[-1],
        *(
            say(
                "twins.stands",
                side=side,
                steps=len(curves),
                loss=_nats(outcome.final_loss),
                word=_word_of(outcome, ended=len(curves) == plan.steps),
                logit=written(outcome.max_abs_logit),
                slope=written(outcome.final_softmax_slope, 3),
                last=min(LAST_STEPS, len(curves)),
            )
            for side, outcome in zip(sides, found, strict=False)
        ),
        definitions(plan),
    ]


def _word_of(outcome: Outcome, *, ended: bool) -> str:
    """How a run ended, or would if it ended here."""
    word = say(f"twins.outcome.{outcome.outcome}")
    return word if ended else say("twins.if_ended", word=word)


def definitions(plan: Plan) -> str:
    """What solved, partly and failed mean for this task."""
    task = TASKS[plan.legs[0].runs[0].task]
    failed = written(failed_from(task), 3)
    if task.floor is None:
        return say("twins.defined_without_floor", failed=failed)
    return say("twins.defined", solved=written(solved_below(task), 3), failed=failed)


def counted(plan: Plan, curves: NDArray[np.float32]) -> list[str]:
    """`Plain attention failed in 20 of 20, …` for a plan of many seeds that is finished."""
    found = outcomes(plan, curves)
    sentences = []
    for at, key in enumerate(("plain", "twin")):
        mine = found[at::2]
        words = [outcome.outcome for outcome in mine]
        known = TASKS[plan.legs[0].runs[0].task].floor is not None
        sentences.append(
            say(
                f"twins.count.{key}" if known else f"twins.count.{key}_unknown",
                side=_first_side(plan, plan.steps),
                variant=_name(plan.legs[0].runs[1]),
                n=len(mine),
                failed=words.count("failed"),
                solved=words.count("solved"),
                partly=words.count("partly"),
                learnt=sum(outcome.learnt_first for outcome in mine),
                logit=written(float(np.max([outcome.max_abs_logit for outcome in mine]))),
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


def _first_side(plan: Plan, step: int) -> str:
    """What the first twin is called after `step`: plain attention, as long as no fork gave it a remedy."""
    legs = plan.legs[: plan.leg_of(step) + 1]
    if legs[-1].runs[0].variant == "none":
        return say("twins.plain")
    return say("twins.once_plain", variant=_name(legs[-1].runs[0]), since=_since(legs))


def _since(legs: Sequence[Leg]) -> int:
    """After which step the first twin goes on with what it has in the last of these legs; 0: from its first step on."""
    treated = [(leg.after, leg.runs[0].variant, leg.runs[0].qk_lr_factor) for leg in legs]
    return max((now[0] for before, now in pairwise(treated) if before[1:] != now[1:]), default=0)


def short_names(legs: Sequence[Leg]) -> list[str]:
    """What both twins are called beside a line: of the first one, what it was, and then what forks made of it."""
    first = [say(f"variant.{word}.short") for word, _ in groupby(leg.runs[0].variant for leg in legs)]
    became = reduce(lambda before, now: say("training.then", before=before, now=now), first)
    return [became, say(f"variant.{legs[0].runs[1].variant}.short")]
