"""The states of every lab that cost most: `python -m tests.benchmarks.bench_states [states] [lab ...]`.

A page's arithmetic is done for extreme states, then for random ones, and again around the worst ones found: a dial of
theirs at a time is turned to another place. Each state is computed in a process of its own that knows nothing of the
others, and costs processor seconds, not those of a clock, and the memory that it takes at its peak beside what the app
holds anyway. The ratio is to a bare product of two 512 × 512 matrices in float64, measured in the same minute.
"""

import os
import random
import resource
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import torch

from qkdemo.dials import Choice, Declaration, Dial, Dials, SettingsError, Switch, Value, declarations
from qkdemo.labs.lab import Lab
from qkdemo.runs.batches import keep_freed_memory
from qkdemo.web.lab.parcel import Known, parcel
from tests.strategies import COMPUTED, ends

WORST_SHOWN: Final = 2
PRODUCTS: Final = 20
CLIMBS: Final = 3  # of the worst states so far, each dial is turned


class Cost(NamedTuple):
    """What one state takes that nobody asked for before."""

    cpu_s: float
    peak_mb: float


def main() -> None:
    """The worst states of each lab, each lab in a process of its own: what one has freed, the next would take again."""
    torch.set_num_threads(1)
    keep_freed_memory()  # as the server does
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    bare = bare_s()
    print(f"A bare product: {1e3 * bare:.1f} ms of CPU, {PRODUCTS} of them in a row", flush=True)
    for name, lab in COMPUTED.items():
        if len(sys.argv) > 2 and name not in sys.argv[2:]:
            continue
        child = os.fork()
        if child == 0:
            dearest(name, lab, count, bare)
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(child, 0)


def dearest(name: str, lab: Lab, count: int, bare: float) -> None:
    """Searches the states of one lab, and prints those that cost most."""
    other = drawn(lab, {"seed": 1} if "seed" in lab.settings().as_dict() else {})
    paged(lab, lab.settings())  # what is loaded once
    costs: dict[Dials, Cost] = {}
    for state in searched(lab, random.Random(0), count, costs):
        if state not in costs:
            costs[state] = apart(partial(paged, lab, state), partial(paged, lab, other))
    print(f"\n{name}: {len(costs)} states, median {1e3 * sorted(costs.values())[len(costs) // 2].cpu_s:.0f} ms")
    for unit, by in (("by CPU", lambda cost: cost.cpu_s), ("by memory", lambda cost: cost.peak_mb)):
        for state in sorted(costs, key=lambda state: -by(costs[state]))[:WORST_SHOWN]:
            cost, query = costs[state], "&".join(f"{dial}={text}" for dial, text in state.to_texts().items())
            numbers = f"{cost.cpu_s:5.2f} s  {cost.cpu_s / bare:6.0f} products  {cost.peak_mb:4.0f} MB"
            print(f"  {unit:<9} {numbers}  {query}")


def paged(lab: Lab, state: Dials) -> None:
    """All that a page computes of a state before anything on it is opened."""
    result = lab.run(state)
    sections = list(lab.beneath(result))
    drawn = ([lab.exhibit(result)] if lab.exhibit else []) + [each.exhibit for each in sections if each.exhibit]
    for table, view in drawn:
        parcel("", table, str(view["dial"]["column"]), Known())


def searched(lab: Lab, dice: random.Random, count: int, costs: dict[Dials, Cost]) -> Iterator[Dials]:
    """Extreme states, random ones, then neighbours of the worst ones."""
    dials = declarations(lab.settings)
    yield from (state for _, state in ends(lab.settings))
    for at in range(count):
        yield drawn(lab, {dial.name: anywhere(dial, dice, extreme=at % 2 == 0) for dial in dials})
    for _ in range(CLIMBS):
        worst = [max(costs, key=lambda state: costs[state].cpu_s), max(costs, key=lambda state: costs[state].peak_mb)]
        for state in worst:
            for dial in dials:
                for _ in range(2):
                    yield drawn(lab, state.as_dict() | {dial.name: anywhere(dial, dice, extreme=True)})


def drawn(lab: Lab, values: dict[str, Value]) -> Dials:
    """The state of those values, as far as they go together."""
    state = lab.settings()
    for name, value in values.items():
        try:
            state = state.but(**{name: value})
        except SettingsError:
            continue
    return state


def anywhere(dial: Declaration, dice: random.Random, *, extreme: bool) -> Value:
    """A value of the dial; the ends of a number come up often in an extreme state."""
    match dial.kind:
        case Switch():
            return dice.random() < 0.5
        case Choice():
            return dice.choice(dial.allowed_words())
        case Dial(low=low, high=high, step=step) as kind:
            stops = list(kind.grid()) or [low + step * at for at in range(round((high - low) / step) + 1)]
            return dial.check(dial.nearest(str(dice.choice([low, high] if extreme else stops))))


def apart(work: Callable[[], None], before: Callable[[], None]) -> Cost:
    """What `work` costs in a copy of this process after `before`, which brings the program's own pages into memory.

    Linux only. Raises RuntimeError if it fails.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            before()
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak so far is forgotten
            held = resident_mb("VmRSS")
            begun = resource.getrusage(resource.RUSAGE_SELF)
            work()
            over = resource.getrusage(resource.RUSAGE_SELF)
            spent = over.ru_utime + over.ru_stime - begun.ru_utime - begun.ru_stime
            os.write(write, struct.pack("dd", spent, resident_mb("VmHWM") - held))
        except Exception:  # noqa: BLE001  whatever it is, it is shown
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(write)
    told = os.read(read, 16)
    os.close(read)
    os.waitpid(child, 0)
    if not told:
        raise RuntimeError("A state could not be computed; what it said stands above.")
    return Cost(*struct.unpack("dd", told))


def resident_mb(field: str) -> float:
    """Memory of this process that is in use, or was at most."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def bare_s() -> float:
    """Processor seconds of one product."""
    a = torch.randn(512, 512, dtype=torch.float64)
    begun = time.process_time()
    for _ in range(PRODUCTS):
        a @ a
    return (time.process_time() - begun) / PRODUCTS


if __name__ == "__main__":
    main()
