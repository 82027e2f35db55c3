"""Where the arithmetic can run on this machine."""

from functools import cache
from typing import Literal, TypeAlias

import torch

DeviceWord: TypeAlias = Literal["cpu", "cuda", "mps"]


@cache
def available_devices() -> tuple[DeviceWord, ...]:
    """The devices that torch can use here; cpu always, and first."""
    found: list[DeviceWord] = ["cpu"]
    if torch.cuda.is_available():
        found.append("cuda")
    if torch.backends.mps.is_available():
        found.append("mps")
    return tuple(found)


def device_for(word: DeviceWord, dtype: torch.dtype) -> DeviceWord:
    """`word`, or cpu where that device lacks `dtype`: MPS has no float64."""
    return "cpu" if word == "mps" and dtype == torch.float64 else word
