"""The number formats in which a forward pass can run here.

* `available_formats()`: float32, and bfloat16 where the machine multiplies in it;
* `forward_in(format, device)`: a context in which matrix products run in that format.
"""

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Literal, TypeAlias

import torch

ForwardFormat: TypeAlias = Literal["float32", "bfloat16"]


@cache
def available_formats() -> tuple[ForwardFormat, ...]:
    """The formats that some device here multiplies in; where it only emulates bfloat16, that is left out."""
    native = torch.cuda.is_available() or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return ("float32", "bfloat16") if native else ("float32",)


def forward_in(format: ForwardFormat, device: str) -> AbstractContextManager[object]:
    """Matrix products in `format`; weights, softmax, loss and the optimiser stay in float32."""
    if format == "float32":
        return nullcontext()
    return torch.autocast(device, dtype=torch.bfloat16)
