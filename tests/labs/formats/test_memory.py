"""What the largest states of the formats lab take: no more than a server can give to each visitor."""

from pathlib import Path

import pytest

from qkdemo.labs.formats import Settings
from tests.benchmarks.peaks import peaks

MOST_MB = 100
LARGEST = Settings(d_head=128, n_keys=32, fp8_scale="amax", placement="split", causal=True, norm_in_format=True)
STATES = [
    LARGEST.but(variant="layernorm", accumulator="stored", fp8_cache=True),
    LARGEST.but(variant="dyt", softmax_format="float32", max_subtraction=False, mask="finfo.min"),
    LARGEST.but(variant="rms", fp8_cast="saturate", accumulator="float16", side="normalised", stage="weight"),
]


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux tells a peak that can be forgotten")
def test_the_largest_states_take_no_more_than_a_hundred_megabytes() -> None:
    found = peaks("formats", Settings(n_keys=4, d_head=4), STATES)
    assert max(found) < MOST_MB, found
    assert min(found) > 20, found  # what every one of them keeps: less would not be their own
