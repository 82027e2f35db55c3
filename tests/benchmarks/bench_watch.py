"""What watching costs a training step: `python -m tests.benchmarks.bench_watch`.

A step of Qwen3 with AdamW: bare, watched between two measured steps, and measured. At every = 100 a step costs
(99 between + 1 measured) / 100 of them; the aim is less than 3 % over a bare one. Runs are interleaved, and the
fastest of each kind counts, so that a busy machine disturbs the ratio little.
"""

import time
from collections.abc import Callable
from typing import Any, Final

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from qkdemo import watch
from tests.benchmarks.printing import head, line

EVERY: Final = 100
ROUNDS: Final = 5
SIZES: Final = {
    "4 layers, 8 heads, width 256, 8 × 128 tokens": {"width": 256, "layers": 4, "heads": 8, "batch": 8, "tokens": 128},
    "2 layers, 8 heads, width 512, 1 × 512 tokens": {"width": 512, "layers": 2, "heads": 8, "batch": 1, "tokens": 512},
}


def stepper(size: dict[str, int]) -> tuple[Any, Any, Callable[[], None]]:
    """A model, its optimiser, and one step of training."""
    torch.manual_seed(0)
    width = size["width"]
    shape = {"hidden_size": width, "intermediate_size": 3 * width, "num_hidden_layers": size["layers"]}
    shape |= {"num_attention_heads": size["heads"], "num_key_value_heads": size["heads"] // 2}
    model = Qwen3ForCausalLM(Qwen3Config(vocab_size=4096, head_dim=width // size["heads"], **shape))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    ids = torch.randint(0, 4096, (size["batch"], size["tokens"]))

    def step() -> None:
        optimizer.zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()

    return model, optimizer, step


def milliseconds(step: Callable[[], None]) -> float:
    """Processor time of one step: on one thread a busy machine does not change it much."""
    start = time.process_time()
    step()
    return 1e3 * (time.process_time() - start)


def main() -> None:
    """A line for each kind of step, and the share that watching adds at every = 100."""
    torch.set_num_threads(1)
    head("Watching a training step, baseline: the same step without")
    for name, size in SIZES.items():
        model, optimizer, step = stepper(size)
        step()
        bare, between, measured = list[float](), list[float](), list[float]()
        for _ in range(ROUNDS):
            bare.append(milliseconds(step))
            with watch(model, every=EVERY, optimizer=optimizer):
                measured.append(milliseconds(step))  # step 0 is due
                between.append(milliseconds(step))
        base = min(bare)
        line(f"{name}: between", min(between), base)
        line(f"{name}: measured", min(measured), base)
        share = ((EVERY - 1) * min(between) + min(measured)) / EVERY / base - 1
        print(f"  at every = {EVERY}: {100 * share:+.1f} % of a step")


if __name__ == "__main__":
    main()
