"""What the largest states of the formats lab take: no more than a server can give to each visitor."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from qkdemo.labs.formats import Settings

MOST_MB = 100
LARGEST = Settings(d_head=128, n_keys=32, fp8_scale="amax", placement="split", causal=True, norm_in_format=True)
STATES = [
    LARGEST.but(variant="layernorm", accumulator="stored", fp8_cache=True),
    LARGEST.but(variant="dyt", softmax_format="float32", max_subtraction=False, mask="finfo.min"),
    LARGEST.but(variant="rms", fp8_cast="saturate", accumulator="float16", side="normalised", stage="weight"),
]
# A page of its own each, after a small one, which loads what is loaded once. No test has used the process before:
# what it had freed would be taken again, and not be seen.
PEAKS = """
import json, sys
from functools import partial
import torch
from qkdemo.labs.formats import LAB
from qkdemo.runs.batches import keep_freed_memory
from tests.benchmarks.bench_states import apart, paged

torch.set_num_threads(1)
keep_freed_memory()  # as the server does
states = [LAB.settings.from_texts(texts)[0] for texts in json.loads(sys.argv[1])]
small = partial(paged, LAB, LAB.settings(n_keys=4, d_head=4))
print(json.dumps([apart(partial(paged, LAB, state), small).peak_mb for state in states]))
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux tells a peak that can be forgotten")
def test_the_largest_states_take_no_more_than_a_hundred_megabytes() -> None:
    told = subprocess.run(
        [sys.executable, "-c", PEAKS, json.dumps([state.to_texts() for state in STATES])],
        capture_output=True,
        text=True,
        check=True,
    )
    peaks = json.loads(told.stdout)
    assert max(peaks) < MOST_MB, peaks
    assert min(peaks) > 20, peaks  # what every one of them keeps: less would not be their own
