"""A sweep of the weight scale in batches, as labs make it, beside a plain loop over its scales: the same numbers."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import torch
from torch import Tensor

from qkdemo.attention.measures import Measures, attend
from qkdemo.floats.formats import FORMATS
from qkdemo.labs.drift import Settings, state_of, sweep_scales
from qkdemo.labs.drift.state import State, blocks, scores_at, visible_keys
from tests.benchmarks.printing import head, line

Measured = dict[str, Tensor]
REPEATS: Final = 5
NAMES: Final = ("max_abs_logit", "top_weight", "entropy", "entropy_fraction", "softmax_slope", "undefined_rows")
CASES: Final = (
    Settings(),
    Settings(variant="rms", format="bfloat16", causal=True),
    Settings(n_keys=64),
    Settings(n_keys=256, n_heads=4),
)


def main() -> None:
    """One line per case."""
    torch.set_num_threads(1)
    head("Sweep over the weight scale, baseline: a loop over the scales")
    for settings in CASES:
        state, scales = state_of(settings), sweep_scales(settings)
        batches = blocks(scales, state.recipe)
        ones = [torch.tensor([scale], dtype=torch.float64) for scale in scales]
        together, batch_ms = timed(partial(measured, state, batches))
        one_by_one, loop_ms = timed(partial(measured, state, ones))
        tolerance = 1e3 * torch.finfo(FORMATS[settings.format].working_dtype).eps  # sums are taken in another order
        for name in NAMES:
            torch.testing.assert_close(together[name], one_by_one[name], rtol=tolerance, atol=0, equal_nan=True)
        dials = " ".join(f"{name}={text}" for name, text in settings.to_texts().items()) or "default state"
        line(f"{len(scales)} scales, {dials}", batch_ms, loop_ms)


def measured(state: State, batches: Sequence[Tensor]) -> Measured:
    """The measures of one side at every scale, batch after batch."""
    visible = visible_keys(state)
    parts: list[Measures] = [attend(scores_at(state, scales).logits, visible)[1] for scales in batches]
    return {name: torch.cat([getattr(part, name) for part in parts]) for name in NAMES}


def timed(work: Callable[[], Measured]) -> tuple[Measured, float]:
    """What `work` returns, and the fewest milliseconds it took."""
    took = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        made = work()
        took.append(1e3 * (time.perf_counter() - start))
    return made, min(took)


if __name__ == "__main__":
    main()
