"""What the largest states of the placement lab take: no more than a server can give to each visitor."""

from pathlib import Path

import pytest

from qkdemo.labs.placement import Settings
from tests.benchmarks.peaks import peaks

MOST_MB = 90
LARGEST = Settings(
    d_model=512, n_heads=8, n_kv_heads=8, d_head=128, n_keys=64, head_spread=16, token_spread=16, seed=99
)
STATES = [
    LARGEST.but(format="bfloat16", gain_spread=0.45, left_place="input", left_bias="channel", right_place="weights"),
    LARGEST.but(format="float16", causal=True, left_norm="none", left_on="qkv", right_norm="dyt", right_on="q"),
    LARGEST.but(gains="unit", mean=3, right_grouping="tile", right_layout="interleaved", right_conversion="weights"),
]


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux tells a peak that can be forgotten")
def test_the_largest_states_take_no_more_than_ninety_megabytes() -> None:
    found = peaks("placement", Settings(d_model=8, d_head=8, n_keys=2, n_heads=1, n_kv_heads=1), STATES)
    assert max(found) < MOST_MB, found
    assert min(found) > 20, found  # four matrices of a block alone: less would not be their own
