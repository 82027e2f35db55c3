"""What training takes of a machine, in bytes and in seconds, known before it begins.

* `state_bytes(run)`: weights and moments; `step_bytes(run)`: what one step needs besides, at most about;
* `at_once(run)`: how many such runs take a step together here; more need more memory, and train no faster;
* `plan_bytes(plan)`: the most that a worker holds for a plan; `by_seeds(plan)`: a plan in parts that hold less each;
  `joined_curves(...)`: what they made, as that of the plan;
* `seconds_of(plan)`: how long it takes on the machine on which this was measured, on one core;
* `UNASKED_S`: what takes longer is not begun by opening a link; `price(...)`: what it takes, in words;
* `free_memory()`: bytes that a new process may still take here; `beyond_memory(plan)`: why a plan has no room in them.

The numbers are fits to measurements: memory rather too much than too little, seconds within a factor of two from the
smallest models to the largest. What is said before a run begins is no more than that.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from qkdemo.messages import say
from qkdemo.notation import written
from qkdemo.runs.durations import duration
from qkdemo.runs.plan import Plan
from qkdemo.training.network.parameters import n_parameters, shape_of
from qkdemo.training.settings import Settings

GROUP_BYTES: Final = 256 << 20  # for one step of all runs that take it together
PLAN_BYTES: Final = 512 << 20  # for a plan, where its seeds can be trained apart
UNASKED_S: Final = 120.0
_SHARE: Final = 8  # of the free memory one part, for a group of runs
_UNKNOWN: Final = 2 << 30  # where nothing says how much is free
_NUMBER: Final = 4  # bytes
_MB: Final = 1e6
_COPIES: Final = 8  # of the weights: gradients, what joins them, and what the optimiser forms on its way
_OF_HIDDEN, _OF_LOGITS, _OF_OUTPUTS = 16, 5, 8  # tensors that one layer keeps for the way back
_NS_PER_ENTRY: Final = 21.0  # of hidden states and logits
_FLOPS_PER_NS: Final = 150.0  # of matrix products
_NS_PER_STEP: Final = 2e6  # however little there is to do


def state_bytes(run: Settings) -> int:
    """Weights and two moments of one run."""
    return 3 * _NUMBER * n_parameters(shape_of(run))


def step_bytes(run: Settings) -> int:
    """What a step of one run takes besides, at most about: gradients, activations, and what they are formed from."""
    shape = shape_of(run)
    tokens, pairs = run.batch * run.n_keys, run.batch * run.n_heads * run.n_keys**2
    per_layer = _OF_HIDDEN * tokens * shape.d_model + _OF_LOGITS * pairs
    entries = (shape.n_layers + 1) * per_layer + _OF_OUTPUTS * tokens * shape.n_symbols
    return _NUMBER * (_COPIES * n_parameters(shape) + entries)


def at_once(run: Settings, most_bytes: int | None = None) -> int:
    """How many runs like this one take a step together: one at least; by default what this machine has room for."""
    room = min(GROUP_BYTES, free_memory() // _SHARE) if most_bytes is None else most_bytes
    return max(1, room // step_bytes(run))


def plan_bytes(plan: Plan) -> int:
    """The most that a worker holds for `plan`: the state of all its runs, and a step of those that take it together."""
    run = plan.legs[0].runs[0]
    return plan.width * state_bytes(run) + min(plan.width, at_once(run, GROUP_BYTES)) * step_bytes(run)


def beyond_memory(plan: Plan) -> str:
    """Why this machine has no room for `plan` now, in a sentence; nothing if it has."""
    need, free = plan_bytes(plan), free_memory()
    return say("live.too_large", need=round(need / _MB), free=round(free / _MB)) if need > free else ""


@dataclass(frozen=True)
class Part:
    """Some runs of a plan, by their numbers in it, and the plan that trains them alone: the numbers are the same."""

    columns: tuple[int, ...]
    plan: Plan


def by_seeds(plan: Plan) -> tuple[Part, ...]:
    """`plan` in groups of its seeds, each with all its remedies, so that none holds more than `PLAN_BYTES`.

    One part, the plan itself, where that is small enough or its runs fork. Which parts there are does not depend on
    the machine, so that a part has the same record everywhere.
    """
    runs = plan.legs[0].runs
    columns: dict[int, list[int]] = {}
    for column, run in enumerate(runs):
        columns.setdefault(run.seed, []).append(column)
    straight = all(leg.rows == tuple(range(len(runs))) for leg in plan.legs)
    count = 1
    while straight and count < len(columns):
        groups = _split(list(columns.values()), count)
        if max(plan_bytes(_only(plan, group)) for group in groups) <= PLAN_BYTES:
            break
        count += 1
    if not straight or count == 1:
        return (Part(tuple(range(len(runs))), plan),)
    return tuple(Part(tuple(group), _only(plan, group)) for group in _split(list(columns.values()), count))


def joined_curves(parts: Sequence[Part], curves: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """The telemetry of a plan, [steps, runs, curves], from that of its parts."""
    if len(parts) == 1:
        return curves[0]
    order = np.argsort(np.concatenate([part.columns for part in parts]))
    return np.concatenate(curves, axis=1)[:, order]


def _split(of_seeds: Sequence[Sequence[int]], count: int) -> list[list[int]]:
    """The columns of all seeds in `count` groups as even as can be, each in order."""
    cuts = [len(of_seeds) * at // count for at in range(count + 1)]
    return [sorted(column for some in of_seeds[a:b] for column in some) for a, b in pairwise(cuts)]


def _only(plan: Plan, columns: Sequence[int]) -> Plan:
    rows = tuple(range(len(columns)))
    legs = tuple(replace(leg, rows=rows, runs=tuple(leg.runs[at] for at in columns)) for leg in plan.legs)
    return replace(plan, legs=legs)


def seconds_of(plan: Plan) -> float:
    """How long all steps of `plan` take on one core of the machine on which this was measured."""
    ends = [*(leg.after for leg in plan.legs[1:]), plan.steps]
    return sum((end - leg.after) * step_seconds(leg.runs) for leg, end in zip(plan.legs, ends, strict=True))


def step_seconds(runs: Sequence[Settings]) -> float:
    """One step of `runs`, which share a shape."""
    groups = -(-len(runs) // at_once(runs[0], GROUP_BYTES))
    return 1e-9 * (len(runs) * _run_ns(runs[0]) + groups * _NS_PER_STEP)


def _run_ns(run: Settings) -> float:
    shape = shape_of(run)
    tokens, pairs = run.batch * run.n_keys, run.batch * run.n_heads * run.n_keys**2
    entries = shape.n_layers * (tokens * shape.d_model + pairs)
    products = 6 * tokens * n_parameters(shape) + 12 * shape.n_layers * pairs * shape.d_head
    return _NS_PER_ENTRY * entries + products / _FLOPS_PER_NS


def is_dear(plans: Sequence[Plan]) -> bool:
    """Whether all of these take so long, or so much memory, that somebody has to ask for them."""
    return sum(map(seconds_of, plans)) > UNASKED_S or max(map(plan_bytes, plans), default=0) > free_memory() // 2


def price(seconds: float, most_bytes: int) -> str:
    """`about 4.4 days of computing and 0.5 GB of memory`."""
    gigabytes = most_bytes / 1e9
    word, number = ("gb", written(gigabytes, 2)) if gigabytes >= 1 else ("mb", str(max(1, round(1000 * gigabytes))))
    return say("size.price", time=duration(seconds), size=say(f"size.{word}", number=number))


def free_memory() -> int:
    """Bytes that are free on this machine, or in the container in which this process runs."""
    found = [_meminfo(), _container()]
    known = [size for size in found if size is not None]
    if known:
        return max(0, min(known))
    with suppress(AttributeError, ValueError, OSError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return _UNKNOWN


def _meminfo() -> int | None:
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)
    return None


def _container() -> int | None:
    """What a control group leaves, if it has a limit."""
    for names in (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")):
        with suppress(OSError, ValueError):  # "max": no limit
            limit, taken = (int((Path("/sys/fs/cgroup") / name).read_text(encoding="ascii")) for name in names)
            return limit - taken
    return None
