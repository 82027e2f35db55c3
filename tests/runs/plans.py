"""A plan trained here and now, by the code that a worker runs."""

import numpy as np
from numpy.typing import NDArray

from qkdemo.runs.plan import Plan
from qkdemo.runs.train_to_end import train_whole


def trained_curves(plan: Plan) -> NDArray[np.float32]:
    """Every step of the plan's curves: [steps, runs, curves]."""
    return train_whole(plan).curves
