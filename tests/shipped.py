"""Makes the recorded runs that come with the app anew: `python -m tests.shipped`, after any change of what they hold.

What is in them, and in which shape:

* of the page of training: what it opens with, what the tracks' stops show, and its named states, but for two: the one
  whose task is a text of Python's own, which is another one with another Python, and one of 3000 steps, which would
  take as much as the rest of them. Curves whole; attention maps of 40 steps for what pages and stops open with, of 10
  for the others;
* of the page of learning rates: what it opens with. Loss and largest logit of every step, entropy and softmax slope of
  the last steps, which are what a curve, a count or a table there reads; no other page reads those runs.
"""

import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from qkdemo.labs.learning_rates import lab as rates
from qkdemo.labs.training import lab as training
from qkdemo.runs.kept.record import Chunk
from qkdemo.runs.kept.shipped import FILE, write
from qkdemo.runs.plan import Plan
from qkdemo.runs.train_to_end import train_whole
from qkdemo.tracks.catalogue import TRACKS, is_trained
from qkdemo.training.outcome import LAST_STEPS
from qkdemo.training.telemetry import CURVES

MAPS_OPENED: Final = 40  # attention maps of a run with which a page or a stop opens
MAPS: Final = 10  # and of a named state
LONGEST: Final = 1000  # steps of a named state
EVERY_STEP: Final = ("loss", "max_abs_logit")  # what is kept of a sweep
LAST: Final = ("entropy_fraction", "softmax_slope")


def plans() -> Mapping[Plan, int]:
    """What is shipped, and of how many steps with their attention maps."""
    opened = [training.Settings(), *(stop.state for stops in TRACKS.values() for stop in stops if is_trained(stop))]
    named = [state for state in training.PRESETS.values() if state.task != "text" and state.steps <= LONGEST]
    sweeps = [*rates.plans_of(rates.Settings())]
    return {
        **dict.fromkeys(sweeps, 0),
        **dict.fromkeys(map(training.plan_of, named), MAPS),
        **dict.fromkeys(map(training.plan_of, opened), MAPS_OPENED),
    }


def shaped(chunk: Chunk, maps: int) -> Chunk:
    """What is kept of a whole record."""
    if maps:
        last = len(chunk.mapped) - 1  # what a page opens with
        kept = sorted({*range(0, last, -(-last // (maps - 1))), last})
        return replace(chunk, maps=chunk.maps[kept], mapped=tuple(chunk.mapped[at] for at in kept))
    curves = np.full_like(chunk.curves, np.nan)
    for names, steps in ((EVERY_STEP, slice(None)), (LAST, slice(-LAST_STEPS, None))):
        for name in names:
            curves[steps, :, CURVES.index(name)] = chunk.curves[steps, :, CURVES.index(name)]
    return replace(chunk, curves=curves)


def main() -> int:
    """Trains them all and writes the file."""
    begun, every = time.monotonic(), plans()
    records: dict[Plan, Chunk] = {}
    for plan, maps in every.items():
        records[plan] = shaped(train_whole(plan), maps)
        print(f"{len(records)} of {len(every)}: {plan.width} runs of {plan.steps} steps", flush=True)
    write(FILE, records)
    print(f"{FILE.name}: {FILE.stat().st_size / 1024:.0f} KiB after {time.monotonic() - begun:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
