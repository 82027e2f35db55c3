"""A plan trained here and now, by the code that a worker runs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qkdemo.training.batches import one_thread
from qkdemo.training.plan import Plan
from qkdemo.training.record import Chunk, chunk_from_bytes, joined_chunks
from qkdemo.training.worker import Hand, Job, train


def trained_curves(plan: Plan) -> NDArray[np.float32]:
    """Every step of the plan's curves: [steps, runs, curves]."""
    chunks: list[Chunk] = []

    def emit(kind: str, told: dict[str, Any], data: tuple[bytes, ...]) -> None:
        if kind == "rows":
            chunks.append(chunk_from_bytes(plan, told["first"], told["count"], *data))

    hand = Hand()
    hand.set_pace(float("inf"))
    with one_thread():
        train(Job(plan, plan.steps, 0), None, hand, emit)
    return joined_chunks(plan, chunks).curves
