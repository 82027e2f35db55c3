"""Every sentence about a log is true of it: logs drawn from a seed, each claim worked out anew from their numbers.

`python -m tests.oracles tests.diagnose.curves.test_true 600 20000` draws many more.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from qkdemo.diagnose.curves import causes
from qkdemo.diagnose.findings.of_logs import of_logs
from qkdemo.diagnose.readers.columns import ROLES
from tests.diagnose.curves.drawn import Numbers, Told, drawn, noise, rolling, there
from tests.oracles import NOTHING, Oracle, Said, heard, hold, keys, near

DRAWN: Final = 600
LARGE, GONE, ONE_HOT = 100.0, 0.05, 0.1


def stays_low(told: Told) -> bool:
    """Whether the end of a loss is near its best, by a wide measure."""
    v = told.losses
    end = max(3, len(v) // 10)
    if len(v) <= 2 * end:
        return True
    best, last = rolling(v[:-end], 5).min(), np.median(v[-end:])  # a dip of a few rows is no level
    return bool(last <= best + max(0.5 * abs(best), 0.1 * abs(v[0]), 10 * noise(v)))


def never_rises(told: Told) -> bool:
    """Whether a loss, each value taken with those around it, is never far above the lowest before."""
    v = told.losses
    course = rolling(v, 10)
    lowest = np.minimum.accumulate(course)
    return bool((course <= lowest + np.maximum(0.5 * np.abs(lowest), max(0.1 * abs(v[0]), 10 * noise(v)))).all())


def never_jumps(told: Told) -> bool:
    """Whether no value of a loss is far above all before, by a wide measure."""
    v = told.losses
    before = np.maximum.accumulate(v)[:-1]
    return bool((v[1:] <= before + np.maximum(0.5 * np.abs(before), 10 * noise(v))).all())


def stands(name: str) -> Oracle:
    """Whether a loss ended about where it was: at the start, or after a tenth."""

    def holds(told: Told) -> bool:
        v = told.losses
        tenth = len(v) // 10
        first, last = float(v[0] if name == "start" else np.median(v[tenth : 2 * tenth])), np.median(v[-tenth:])
        return bool(last >= first - 0.15 * abs(first) - 3 * noise(v)) and not np.isinf(told.loss).any()

    return lambda said, told: holds(told)


def since(name: str, *, together: bool) -> Oracle:
    """What was bad from a row on until the loss moved, or in that row, and well in the row before."""

    def holds(said: Said, told: Told) -> bool:
        moved = told.row(said)
        column, wrong = (told.logit, lambda x: x >= LARGE) if name == "logit" else (told.entropy, lambda x: x <= GONE)
        bad = spell(column[: moved + 1], wrong)
        right = bad[0] == moved if together else bad[0] == told.row(said, "since") < moved
        return right and ("logit" not in said.sentence or near(said.number("logit"), largest(told, moved, bad[0])))

    return holds


def spell(values: Numbers, wrong: Callable[[float], bool]) -> list[int]:
    """The rows of the last spell in which values are wrong, from its first on: five that are well in a row end one.

    Empty if the last five values are well.
    """
    bad: list[int] = []
    well = 0
    for row in reversed(range(len(values))):
        if math.isnan(values[row]):
            continue
        if wrong(float(values[row])):
            bad, well = [row, *bad], 0
        elif (well := well + 1) == 5:
            break
    return bad


def largest(told: Told, row: int, first: int = 0) -> float:
    return float(there(told.logit[first : row + 1]).max(initial=-1.0))


def just_before(values: Numbers, row: int) -> Numbers:
    """The last five values up to a row."""
    return there(values[: row + 1])[-5:]


def calm(said: Said, told: Told) -> bool:
    row = told.row(said)
    below = largest(told, row) < LARGE or said.key.endswith("unsettled")
    below &= bool((just_before(told.logit, row) < LARGE).all())
    known = told.entropy[max(0, row - 4) : row + 1]  # of a full column: one that ends earlier says nothing
    gone = bool((known <= GONE).any()) and not np.isnan(known).any()
    return near(said.number("logit"), largest(told, row)) and below and not gone


def passed(said: Said, told: Told) -> bool:
    """Large once, and not in any of the last values until the loss moved."""
    row, last = told.row(said), told.row(said, "last_large")
    after = there(told.logit[last + 1 : row + 1])
    held = near(said.number("logit"), float(just_before(told.logit, row).max()))
    return bool(held and told.logit[last] >= LARGE and len(after) >= 5 and (after < LARGE).all())


def rising(said: Said, told: Told) -> bool:
    """After the row that is named a loss is above its lowest before, and what was bad came after that row."""
    low, moved = told.row(said, "low"), told.row(said)
    course, row = rolling(told.losses, 5), len(there(told.loss[:moved]))
    between = there(told.loss[low + 1 : moved])
    after = low < told.row(said, "since") if "since" in said.values else True
    return bool(low < moved and after and np.median(between) >= min(course[: row + 1].min(), *told.losses[:row]))


def was_once(said: Said, told: Told) -> bool:
    """Bad in the row that is named, for the first time, and in none of five values before the later one."""
    once, at = told.row(said, "once"), told.row(said, "since")
    bad = ((told.logit, told.logit >= LARGE), (told.entropy, told.entropy <= GONE))
    return any(
        bool(ill[once] and not ill[:once].any() and ill[at] and (~ill[:at][~np.isnan(values[:at])][-5:]).all())
        for values, ill in bad
    )


def begins_bad(said: Said, told: Told) -> bool:
    """Whether a column of attention holds its first value in the row since which it is bad."""
    at = told.row(said, "since")
    bad = ((told.logit, told.logit >= LARGE), (told.entropy, told.entropy <= GONE))
    return any(bool(ill[at]) and not there(values[:at]).size for values, ill in bad)


def holds_just_before(values: Numbers, row: int) -> bool:
    """Whether a column has a value in this row."""
    return not math.isnan(values[row])


def of_last_rows(said: Said, told: Told) -> bool:
    last = told.logit[np.isfinite(told.logit) & (told.logit > 0)][-3:]
    inside = last.min() * (1 - 1e-3) <= said.number("logit") <= last.max() * (1 + 1e-3)
    return bool(inside and not told.lost_logit.any())


def pace(step: Numbers, values: Numbers) -> tuple[float, float, float]:
    """The median slope of a logarithm over the later two thirds, and the least and the largest of any two points."""
    if len(values) - len(values) // 3 >= 6:
        step, values = step[len(values) // 3 :], values[len(values) // 3 :]
    y = np.log(values)
    slopes = [(y[j] - y[i]) / (step[j] - step[i]) for i in range(len(y)) for j in range(i + 1, len(y))]
    return float(np.median(slopes)), min(slopes), max(slopes)


def logit_pace(told: Told) -> float:
    kept = np.isfinite(told.logit) & (told.logit > 0)
    return pace(told.step[kept], told.logit[kept])[0]


def growing(said: Said, told: Told) -> bool:
    kept = np.flatnonzero(np.isfinite(told.logit) & (told.logit > 0))
    at = told.step[kept[-1]] + math.log(LARGE / np.median(told.logit[kept][-3:])) / logit_pace(told)
    return of_last_rows(said, told) and near(said.number("large_at"), at, 0.01) and at > told.step[-1]


def doubled(said: Said, told: Told) -> bool:
    rate = logit_pace(told)
    low, steps, high = (said.number(name) for name in ("low", "steps", "high"))
    return rate > 0 and low <= steps <= high and near(steps, math.log(2) / rate, 0.01)


def by(low: float, high: float) -> Oracle:
    def holds(told: Told) -> bool:
        q, k = told.lengths
        kept = np.isfinite(told.logit) & (told.logit > 0) & (q > 0) & (k > 0) & np.isfinite(q) & np.isfinite(k)
        lengths = [pace(told.step[kept], side[kept])[0] for side in (q, k)]
        whole = pace(told.step[kept], told.logit[kept])[0]
        return low - 1e-6 <= sum(lengths) / whole <= high + 1e-6  # each length is one exponential

    return lambda said, told: holds(told)


def restless(said: Said, told: Told) -> bool:
    v = told.losses[len(told.losses) // 3 :]
    half = max(3, len(v) // 16)
    away = np.array([v[at] - np.median(v[at - half : at + half + 1]) for at in range(half, len(v) - half)])
    tail, away = max(3, int(0.05 * len(away))), np.sort(away)
    up, down = float(away[-tail:].mean()), -float(away[:tail].mean())
    return up > 2 * down > 0 and near(said.number("times"), up / down, 0.01)


def jumped(said: Said, told: Told, *, lost: bool = False) -> bool:
    at = told.row(said, "at")
    before = told.updates[max(0, at - 20) : at]
    usual = float(np.median(before[np.isfinite(before)]))
    right = np.isinf(told.updates[at]) if lost else near(said.number("times"), told.updates[at] / usual)
    bad = [there(x[:at]) for x in (told.logit, told.entropy)]
    earlier = bool((bad[0] >= LARGE).any() or (bad[1] <= GONE).any())
    first = (
        str(said.values["first"]).endswith("first") or earlier or "may have been rising" in str(said.values["moved"])
    )
    return bool(right and first and told.updates[at] > 3 * usual > 0 and at < told.row(said))


def spike(said: Said, told: Told) -> bool:
    v, at = told.loss, told.row(said)
    return bool(v[at] > np.nanmin(v[:at]) and (there(v[at:]) < v[at]).any() and np.isfinite(there(v)).all())


def higher(said: Said, told: Told) -> bool:
    v, at = told.loss, told.row(said)
    return bool(there(v[at:]).min() > there(v[:at])[-10:].min() and len(there(v[at:])) >= 3)


def slowly(said: Said, told: Told) -> bool:
    """Above all that was before by then, and back at the end, or not."""
    v, at = told.loss, told.row(said)
    course, row = rolling(told.losses, 5), len(there(v[:at]))
    lowest = course[: row + 1].min()
    above, end = course[row : row + 12].max() > lowest, float(np.median(told.losses[-3:]))
    back = course[row:].min() < max(end, course[row:].max())
    return bool(above and back) if said.key.endswith("spike") else bool(above and end > lowest)


def partly(said: Said, told: Told) -> bool:
    """Above its lowest, then below its highest, and above its lowest at the end."""
    at = told.row(said)
    course, row = rolling(told.losses, 5), len(there(told.loss[:at]))
    return bool(course[: row + 1].min() < course[-1] < course[row:].max())


def others(said: Said, told: Told) -> bool:
    """Beside the one that is spoken of: no more than the loss has rows that are above the one before."""
    return bool(1 <= said.number("count") < (np.diff(told.losses) > 0).sum())


def open_end(said: Said, told: Told) -> bool:
    v, at = told.loss, told.row(said)
    return bool(v[at] > there(v[:at])[-10:].min() and len(there(v[at:])) < max(3, len(there(v)) / 10 + 1))


def small(said: Said, told: Told) -> bool:
    v = told.losses
    peak = int(v.argmax())
    ends = len(v) - peak <= max(3, len(v) // 10)
    recovered = ends or peak == 0 or v[peak:].min() < (v[peak] + v[:peak].min()) / 2
    low = v.max() <= max(2 * v[0], v[0] + 10 * noise(v))
    return bool(said.number("count") >= 1 and low and recovered and np.isfinite(there(told.loss)).all())


def noisy(said: Said, told: Told) -> bool:
    """Each loss that is far up stands alone: the next is lower by much, and the log goes on."""
    v = told.losses
    far = np.flatnonzero(v > 2 * v[0])
    return bool(
        far.size and (v[np.minimum(far + 1, len(v) - 1)] < v[far]).all() and v.max() - np.median(v) < 16 * noise(v)
    )


def zeros(said: Said, told: Told) -> bool:
    """Nothing but 0 from there on, and before it no loss that rounds to 0."""
    at = told.row(said)
    before = there(told.loss[:at])[-1:]
    return bool((there(told.loss[at:]) == 0).all() and len(there(told.loss[at:])) >= 5 and (before != 0).all())


def passed_by(said: Said, told: Told) -> bool:
    """Finite after that row, to the end, or until the loss is lost to the end."""
    until = told.row(said, "until") if "until" in said.values else len(told.step)
    after = there(told.gradient[told.row(said) + 1 : until])
    return bool(
        np.isinf(told.gradient[told.row(said)])
        and np.isfinite(after).all()
        and len(after) >= 10
        and np.isfinite(there(told.loss[:until])).all()
        and np.isinf(there(told.loss[until:])).all()
    )


def lost_since(values: Numbers, row: int) -> bool:
    """Whether no value from a row on is finite, and the last one before it is, if there is one."""
    return bool(np.isinf(there(values[row:])).all() and np.isfinite(there(values[:row])[-1:]).all())


def gradient_lost(said: Said, told: Told) -> bool:
    """Lost beside a loss that is not; and, if the last one is lost, so are all from the first such row on."""
    row, both = told.row(said), np.isinf(told.gradient) & np.isfinite(told.loss)
    if not both.any():
        return bool(np.isinf(told.gradient[row]) and np.isnan(told.loss[row]))
    finite = np.flatnonzero(np.isfinite(told.gradient))
    lasting = np.flatnonzero(both)[np.flatnonzero(both) > (finite[-1] if finite.size else -1)]
    return bool(both[row] and row == (lasting[0] if lasting.size else np.flatnonzero(both)[0]))


def lost_beside(told: Told) -> bool:
    """Whether a gradient is lost in a row that holds a loss."""
    return bool((np.isinf(told.gradient) & np.isfinite(told.loss)).any())


def lost_earlier(said: Said, told: Told) -> bool:
    lost, last = np.isinf(told.gradient), np.flatnonzero(np.isfinite(told.gradient))[-1]
    return bool(np.flatnonzero(lost)[0] == told.row(said, "once") and said.number("count") == lost[:last].sum())


def lost_in_rows(said: Said, told: Told) -> bool:
    both = np.flatnonzero(np.isinf(told.gradient) & np.isfinite(told.loss))
    return told.row(said, "last") == both[-1] and said.number("count") == len(both) > 1


def gap(said: Said, told: Told) -> bool:
    """No loss between two rows, and more steps there than between most, and than before and after."""
    row, back = told.row(said), told.row(said, "back")
    at = told.step[~np.isnan(told.loss)]
    gaps, place = np.diff(at), int(np.flatnonzero(at == told.step[row])[0])
    nearer = np.delete(gaps, place)
    return bool(at[place + 1] == told.step[back] and (nearer < gaps[place] / 5).mean() > 0.8 - 2 / len(gaps))


def long_spike(said: Said, told: Told) -> bool:
    """Two losses or more that are above the lowest before, until one that is below the first of them."""
    row, back = told.row(said), told.row(said, "back")
    high = there(told.loss[row:back])
    return bool(
        spike(said, told) and len(high) > 1 and high.min() > np.nanmin(told.loss[:row]) and told.loss[back] < high[0]
    )


def one_batch(said: Said, told: Told) -> bool:
    """Of one row only where the next loss is lower."""
    after = there(told.loss[told.row(said) :])
    return calm(said, told) and ("batches" in str(said.values["batch"]) or bool(after[1] < after[0]))


def first_large(said: Said, told: Told, *, at_once: bool = False) -> bool:
    row = told.row(said, "once")
    return bool(np.flatnonzero(told.logit >= LARGE)[0] == row and (there(told.logit[:row]).size == 0) == at_once)


def stood_before(said: Said, told: Told) -> bool:
    """The loss before that row was not far above the end."""
    v, before = told.losses, told.loss[: told.row(said, "once")]
    tenth = len(v) // 10
    level, end = np.median(before[np.isfinite(before)][-tenth:]), np.median(v[-tenth:])
    return first_large(said, told) and bool(level <= end + 0.05 * abs(end) + 3 * noise(v))


def early(said: Said, told: Told) -> bool:
    at, back, first = told.row(said), told.row(said, "back"), said.number("first")
    most = float(np.nanmax(told.loss[at : back + 1]))
    right = near(first, there(told.loss[:at])[-1]) and near(said.number("most"), most)
    near_back = told.loss[back] - first <= 0.5 * (most - first)
    return bool(right and at <= len(told.step) / 20 and told.loss[at] > first and near_back)


def beyond(said: Said, told: Told) -> bool:
    first, last, before = said.number("first"), said.number("last"), told.loss[: told.row(said)]
    return bool(
        near(first, np.median(before[np.isfinite(before)][:3]))
        and 1.24 * first <= last <= there(told.loss).max() * 1.001
    )


def share(values: Numbers, bad: Callable[[Numbers], Any]) -> float:
    return float(bad(there(values)).mean()) if there(values).size else 0.0


def late(told: Told) -> bool:
    """Whether attention has a large logit, or a low entropy, in the last third of what is logged of it."""
    logits, entropy = (there(x)[2 * there(x).size // 3 :] for x in (told.logit, told.entropy))
    return bool((logits >= LARGE).any() or (entropy <= ONE_HOT).any())


def hot(said: Said, told: Told) -> float:
    """The median of an entropy, if it is what is said of it."""
    median = float(np.median(there(told.entropy)))
    assert near(said.number("entropy"), 100 * median, least=1e-9)
    return median


def lacks(said: Said, told: Told) -> bool:
    """What the reader found of a column's cells."""
    _, cells, first, every = told.log.lacking[str(said.values["column"])]
    right = (said.number("count"), said.number("step"), said.number("steps")) == (cells, first, every)
    return right and said.key.endswith("each") == (every == 0)


FINDINGS: Final[Mapping[str, Oracle]] = {
    "healthy": lambda said, told: (
        np.isfinite(there(told.loss)).all()
        and len(told.losses) >= 20
        and never_jumps(told)
        and never_rises(told)
        and stays_low(told)
    ),
    "loss_ends": lambda said, told: (
        not there(told.loss[told.row(said) + 1 :]).size
        and told.row(said, "until") - told.row(said) > 5
        and np.isfinite(told.loss[told.row(said)])
    ),
    "loss_gap": gap,
    "cells_empty": lambda said, told: bool(told.log.lacking),
    "between_nan": lambda said, told: bool(told.log.between),
    "empty_column": lambda said, told: bool(told.log.empty),
    "cells.each": lacks,
    "cells.apart": lacks,
    "few_losses": lambda said, told: said.number("count") == len(told.losses) < 20,
    "small_spikes": small,
    "noisy_spikes": noisy,
    "loss_zeros": zeros,
    "event.zeros": zeros,
    "margin_zeros": lambda said, told: zeros(said, told) and any("margin" in name for name in told.log.columns),
    "gradient_passed": passed_by,
    "passed.all": passed_by,
    "passed.until": passed_by,
    "gradient_or_loss": gradient_lost,
    "gradient.beside": lambda said, told: lost_beside(told),
    "gradient.whole": lambda said, told: lost_beside(told),
    "gradient.alone": lambda said, told: not lost_beside(told),
    "gradient.unseen": lambda said, told: not lost_beside(told),
    "gradient.lasts": lambda said, told: len(told.gradient) > 1 and np.isinf(there(told.gradient)[-2:]).all(),
    "gradient.earlier": lost_earlier,
    "gradient.rows": lost_in_rows,
    "policy_loss": lambda said, told: any("reward" in name for name in told.log.columns),
    "of_several": lambda said, told: (
        f"other/{said.values['column']}" == said.values["names"]
        and len(there(told.log.columns[str(said.values["names"])])) >= 6
    ),
    **{f"role.{role}": NOTHING for role in ROLES if role != "lr"},
    "high_start": early,
    "stuck": lambda said, told: not there(told.logit).size and not told.shares,
    "stuck_attention": lambda said, told: (
        near(said.number("share"), 100 * share(told.logit, lambda x: x >= LARGE))
        and said.number("share") > 50
        and near(said.number("logit"), float(np.median(there(told.logit))))
    ),
    "stuck_one_hot": lambda said, told: (
        near(said.number("entropy"), 100 * float(np.median(there(told.entropy))), least=1e-9)
        and said.number("entropy") <= 10
    ),
    "stuck_rate": restless,
    "stuck_at_rest": lambda said, told: (
        not any(there(x).any() for name, x in told.log.columns.items() if name.startswith("lr"))
    ),
    "stuck_late": lambda said, told: late(told),
    "large.first": lambda said, told: first_large(said, told, at_once=True),
    "large.later": first_large,
    "large.after": stood_before,
    "start.large": NOTHING,  # of an advice, as the next three
    "start.small": NOTHING,
    "batch.one": NOTHING,  # see `one_batch`
    "batch.many": NOTHING,
    "hot.unseen": lambda said, told: not told.shares,
    "hot.one_hot": lambda said, told: hot(said, told) <= ONE_HOT,
    "hot.spread": lambda said, told: hot(said, told) > ONE_HOT,
    "stuck_calm": lambda said, told: (
        share(told.logit, lambda x: x >= LARGE) <= 0.5
        and share(told.entropy, lambda x: x <= ONE_HOT) <= 0.5
        and (there(told.logit).size or told.shares)
        and not late(told)
    ),
    "no_loss": lambda said, told: not there(told.loss).size,
    "logits_alone": lambda said, told: (
        not there(told.loss).size and near(said.number("logit"), there(told.logit).max())
    ),
    "attention_max_logit": since("logit", together=False),
    "attention_entropy": since("entropy", together=False),
    "rising_max_logit": since("logit", together=False),
    "rising_entropy": since("entropy", together=False),
    "together_max_logit": since("logit", together=True),
    "together_entropy": since("entropy", together=True),
    "not_attention": calm,
    "logits_passed": passed,
    "one_batch": one_batch,
    "unsettled": calm,
    "cannot_tell": lambda said, told: not any(holds_just_before(x, told.row(said)) for x in (told.logit, told.entropy)),
    "entropy_alone": lambda said, told: (
        not holds_just_before(told.logit, told.row(said)) and (just_before(told.entropy, told.row(said)) > GONE).all()
    ),
    "updates": jumped,
    "updates_lost": lambda said, told: jumped(said, told, lost=True),
    "gradient_overflow": gradient_lost,
    "logits_lost": lambda said, told: told.lost_logit[told.row(said)],
    "logits_gone": lambda said, told: (
        told.lost_logit[: told.row(said) + 1].any() and not (just_before(told.logit, told.row(said)) >= LARGE).any()
    ),
    "growing_logits": growing,
    "large_logits": lambda said, told: (
        of_last_rows(said, told) and said.number("logit") >= LARGE and len(told.losses) >= 20 and stays_low(told)
    ),
    "large_alone": lambda said, told: of_last_rows(said, told) and len(told.losses) < 20,
    "nearly_one_hot": lambda said, told: (
        of_last_rows(said, told)
        and near(said.number("entropy"), 100 * float(np.median(there(told.entropy)[-10:])), least=1e-9)
        and said.number("entropy") <= 10
    ),
    "growth": doubled,
    **{
        f"steps_of_{word}": lambda said, told: told.log.steps == said.key.removeprefix("finding.steps_of_")
        for word in ("rows", "epochs", "passes")
    },
    "replaced": lambda said, told: said.number("kept") == told.log.kept < said.number("all") == told.log.rows,
    "cut_line": lambda said, told: told.log.cut,
    "worst_of_each": lambda said, told: told.log.kind == "watch",
    "sampled": lambda said, told: told.log.sampled,
    "entropy_share": lambda said, told: told.shares and said.values["column"] == told.entropy_name == "entropy",
    "logit_read": lambda said, told: said.values["column"] == told.logit_name == "logits/max",
    "entropy_unread": lambda said, told: not told.shares and said.values["column"] == told.entropy_name,
    "beyond_start": beyond,
    "never_below": lambda said, told: (
        near(said.number("first"), told.losses[0])
        and near(said.number("last"), np.median(told.losses[-(len(told.losses) // 10) :]))
        and 1.25 * told.losses[0] < 1.001 * np.median(told.losses[-(len(told.losses) // 10) :])
    ),
    "since.first": lambda said, told: begins_bad(said, told) and told.row(said) > told.row(said, "since"),
    "since.late": lambda said, told: not begins_bad(said, told),
    "since.again": was_once,
    "first.updates": NOTHING,  # words of the sentence that they stand in: see `jumped`
    "first.updates_later": NOTHING,
    "first.updates_rising": NOTHING,
    "first.updates_lost_rising": NOTHING,
    "moved.after": NOTHING,
    "moved.rising": rising,
    "first.updates_lost": NOTHING,
    "first.updates_lost_later": NOTHING,
    "again.stays": NOTHING,  # of an advice, as the next six
    "again.passes": NOTHING,
    "again.stays_anew": NOTHING,
    "again.passes_anew": NOTHING,
    "then.stays": NOTHING,
    "then.stays_anew": NOTHING,
    "then.passes": NOTHING,
    "of_worst": lambda said, told: told.log.kind == "watch",
    "still.start": stands("start"),
    "still.tenth": stands("tenth"),
    "by.norms": by(0.69, math.inf),
    "by.both": by(0.29, 0.71),
    "by.alignment": by(-math.inf, 0.31),
    "event.spike": spike,
    "event.long_spike": long_spike,
    "event.finite_again": lambda said, told: np.isfinite(told.loss[np.flatnonzero(np.isinf(told.loss))[0] :]).any(),
    "event.lost": lambda said, told: lost_since(told.loss, told.row(said)),
    "event.divergence": higher,
    "event.slow_divergence": slowly,
    "event.slow_spike": slowly,
    "event.part_divergence": partly,
    "event.slow_part_divergence": partly,
    "event.earlier": slowly,
    "event.slow_rise": slowly,
    "event.more": others,
    "event.rise": open_end,
    "event.non_finite": lambda said, told: np.flatnonzero(np.isinf(told.loss))[0] == told.row(said),
}
ORACLES: Final = {f"finding.{key}": oracle for key, oracle in FINDINGS.items()} | dict.fromkeys(
    keys("advice."), NOTHING
)


def search(seeds: range) -> set[str]:
    """Which keys were said of the logs of these seeds."""
    asked: set[str] = set()
    for seed in seeds:
        log = drawn(np.random.default_rng(seed))
        with heard() as said:
            report = of_logs([causes.run(log)], "x")
            for finding in report.findings:
                _ = finding.sentence, finding.advice
        asked |= hold(said, ORACLES, Told(log), f"seed {seed}")
        columns = [log.columns.get(name, np.zeros(1)) for name in ("loss", "max_logit", "logits/max")]
        assert not (report.healthy and "loss" in log.columns and np.isinf(np.concatenate(columns)).any())
    return asked


def test_every_sentence_about_a_log_is_true_of_it() -> None:
    asked = search(range(DRAWN))
    assert {f"finding.{key}" for key in FINDINGS} - asked <= RARE


RARE: Final = {
    f"finding.{key}"
    for key in (
        "high_start",
        "noisy_spikes",
        "policy_loss",
        "margin_zeros",
        *(f"role.{role}" for role in ROLES),
        "first.updates_later",
        "first.updates_lost",
        "steps_of_rows",
        "steps_of_epochs",
        "steps_of_passes",
        "replaced",
        "cut_line",
        "worst_of_each",
        "of_worst",
        "then.stays_anew",
        "rising_max_logit",
        "rising_entropy",
        "first.updates_rising",
        "first.updates_lost_rising",
        "moved.rising",
        "event.earlier",
        "event.lost",
        "gradient_or_loss",
        "gradient.alone",
        "gradient.unseen",
        "loss_gap",
        "cells_empty",
        "between_nan",
        "empty_column",
        "cells.each",
        "cells.apart",
        "event.part_divergence",
        "event.slow_part_divergence",
        "since.again",
        "event.slow_rise",
        "event.slow_spike",
    )
}  # said of few logs that are drawn at random, some of files alone: see readers/test_*.py
