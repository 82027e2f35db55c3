"""The most memory that states of a lab take: `peaks(lab, small, states)`, each in a page of its own.

They come after a small one, which loads what is loaded once. No test has used the process before: what it had freed
would be taken again, and not be seen.
"""

import json
import subprocess
import sys
from collections.abc import Sequence

from qkdemo.dials import Dials

_PROGRAM = """
import json, sys
from functools import partial
import torch
from qkdemo.labs.registry import LABS
from qkdemo.runs.batches import keep_freed_memory
from tests.benchmarks.bench_states import apart, paged

torch.set_num_threads(1)
keep_freed_memory()  # as the server does
lab, texts = LABS[sys.argv[1]], json.loads(sys.argv[2])
small, *states = (lab.settings.from_texts(each)[0] for each in texts)
print(json.dumps([apart(partial(paged, lab, state), partial(paged, lab, small)).peak_mb for state in states]))
"""


def peaks(lab: str, small: Dials, states: Sequence[Dials]) -> list[float]:
    """Megabytes at the peak of each of `states`, beside what the app holds anyway. Linux only."""
    texts = json.dumps([state.to_texts() for state in (small, *states)])
    told = subprocess.run([sys.executable, "-c", _PROGRAM, lab, texts], capture_output=True, text=True, check=True)
    found: list[float] = json.loads(told.stdout)
    return found
