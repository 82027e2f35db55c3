"""What the loss of a log did, in words.

* `what(result, event)`: the sentences; `kind(result, event)`: the word of a table;
* `rows_of(result, event)`: how many losses it has; `earlier(result, event)`: the lasting rise before it;
* `whole(step)`: a step in a sentence.
"""

import numpy as np

from qkdemo.diagnose.curves import causes
from qkdemo.diagnose.curves.loss import Event, Numbers, lost_for_good, worst
from qkdemo.diagnose.readers.columns import Log
from qkdemo.messages import say
from qkdemo.notation import counted, written


def what(result: causes.Result, event: Event) -> str:
    """What the loss did, and how many rises it has beside the one that is spoken of."""
    word = f"{'slow_' if event.slow else ''}{'part_' if event.part else ''}{kind(result, event)}"
    word = "long_spike" if word == "spike" and rows_of(result, event) > 1 else word
    step, back = (whole(result.log.step[row]) for row in (event.start, event.stop))
    said = say(f"finding.event.{word}", step=step, back=back)
    if word == "non_finite":
        said = f"{said}{_after(result.log, result.log.columns[result.roles['loss']], event.start)}"
    if (first := earlier(result, event)) is not None:
        said = f"{say('finding.event.earlier', step=whole(result.log.step[first.start]))} {said}"
    more = len(result.events) - 1
    return f"{said} {say('finding.event.more', count=more)}" if more and event.kind == "spike" else said


def rows_of(result: causes.Result, event: Event) -> int:
    """How many losses an event has."""
    stop = event.stop + (event.kind != "spike")  # others last to the end
    return int((~np.isnan(result.log.columns[result.roles["loss"]][event.start : stop])).sum())


def _after(log: Log, loss: Numbers, row: int) -> str:
    """Whether a loss that is not finite in a row is so later, and from when on it is not; empty if it is not."""
    if not np.isfinite(loss[row:]).any():
        return ""
    lost = lost_for_good(loss)
    lasts = say("finding.event.lost", step=whole(log.step[lost])) if lost < len(loss) else ""
    return " ".join(["", say("finding.event.finite_again"), *filter(None, [lasts])])


def earlier(result: causes.Result, event: Event) -> Event | None:
    """The lasting rise before the one that is spoken of."""
    first = worst(result.events)
    return first if first is not None and first.start < event.start and event.kind != "spike" else None


def kind(result: causes.Result, event: Event) -> str:
    """The kind of an event; one of its own where a log has 0 in place of a loss that is not finite."""
    logged = result.log.columns[result.roles["loss"]][event.start]
    return "zeros" if event.kind == "non_finite" and logged == 0 else event.kind


def whole(step: float) -> str:
    """A step as it stands in the log: with every digit, where it is a whole number."""
    return counted(int(step)) if step == int(step) else written(step, 12)
