"""A plan trained here and now, from its first step to its last, by the code that a worker runs.

* `train_whole(plan, progress)`: every step, as a finished record would hold it. No store, no other process.
"""

from typing import Any

from qkdemo.runs.batches import Progress, keep_freed_memory, one_thread
from qkdemo.runs.kept.record import Chunk, chunk_from_bytes, joined_chunks
from qkdemo.runs.plan import Plan
from qkdemo.runs.workers.job import Hand, Job, train


def train_whole(plan: Plan, progress: Progress = lambda done, total: None) -> Chunk:
    """Every step of `plan`. Raises SettingsError or RuntimeError for one that cannot be trained here to its end."""
    chunks: list[Chunk] = []

    def emit(kind: str, told: dict[str, Any], data: tuple[bytes, ...]) -> None:
        if kind == "rows":
            chunks.append(chunk_from_bytes(plan, told["first"], told["count"], *data))
            progress(chunks[-1].last, plan.steps)

    keep_freed_memory()
    with one_thread():
        train(Job(plan, plan.steps, 0), None, Hand(), emit)
    chunk = joined_chunks(plan, chunks)
    if chunk.last < plan.steps:
        raise RuntimeError(f"{chunk.last} of {plan.steps} steps")  # the ceiling of computing for one job
    return chunk
