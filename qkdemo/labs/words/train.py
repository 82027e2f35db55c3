"""Trains both models and writes their weights: `python -m qkdemo.labs.words.train [FILE]`. It takes a few minutes.

On the machine that made the recorded files the same bits come again. On another one rounding differs, and training
magnifies that: `BEGUN_FILE` holds some weights after the first `BEGUN_STEPS` steps, and a test makes these again within
`TOLERANCE` of the way that they have come since the start.

* `trained(steps)`: the weights of both models after so many steps, or after the last one;
* `leaves_of(row)`: the leaves that a forward pass reads, of a run's whole row of parameters.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from qkdemo.labs.words.network import FILE, RUNS, SHAPE
from qkdemo.training.network.parameters import views
from qkdemo.training.trainer import Trainer

_USED = ("embedding", "position", "gain", "head")
_USED_OF_LAYER = ("attention_gain", "qkv", "out", "mlp_gain", "up", "down", "gamma_q", "gamma_k")


BEGUN_FILE: Final = FILE.with_name("begun.npz")
BEGUN_STEPS: Final = 40
TOLERANCE: Final = 0.02
_BEGUN: Final = ("embedding", "0.qkv")


def trained(steps: int | None = None) -> dict[str, NDArray[np.float32]]:
    """Name → weights, as the file holds them."""
    trainer = Trainer(list(RUNS.values()), maps=False)
    trainer.advance(next(iter(RUNS.values())).steps if steps is None else steps)
    rows = trainer.state.parameters
    return {f"{side}.{name}": leaf for at, side in enumerate(RUNS) for name, leaf in leaves_of(rows[at]).items()}


def leaves_of(row: torch.Tensor) -> Mapping[str, NDArray[np.float32]]:
    """What the forward pass of these two models reads."""
    names = {*_USED, *(f"{layer}.{name}" for layer in range(SHAPE.n_layers) for name in _USED_OF_LAYER)}
    return {name: leaf[0].numpy() for name, leaf in views(row[None], SHAPE).items() if name in names}


def main(arguments: Any = None) -> None:
    """Train, and write."""
    given = sys.argv[1:] if arguments is None else arguments
    torch.set_num_threads(1)
    weights: Any = trained()
    np.savez(Path(given[0]) if given else FILE, **weights)
    if not given:
        begun: Any = {name: leaf for name, leaf in trained(BEGUN_STEPS).items() if name.split(".", 1)[1] in _BEGUN}
        np.savez(BEGUN_FILE, **begun)


if __name__ == "__main__":
    main()
