"""The float16 matmul of a device itself, counted like an emulated format.

* `native_counts(inputs, scales, choices, device)`: what becomes of its raw products.

Nothing is emulated here: q and k, as float16 holds them when they enter the product, are multiplied by the device's
own routine, in whatever order and with whatever accumulator it has.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from qkdemo.floats.devices import DeviceWord
from qkdemo.floats.formats import ALL_FORMATS
from qkdemo.floats.stacks import Stack
from qkdemo.labs.formats.stages.error_counts import Counts, counts_of
from qkdemo.labs.formats.stages.kinds import Choices, Inputs
from qkdemo.labs.formats.stages.rounded import Held, follow


def native_products(
    inputs: Inputs, scales: Float[Tensor, "scales"], choices: Choices, device: DeviceWord
) -> Float[Tensor, "scales queries keys"]:
    """q·k as `device` computes it in float16."""
    held = follow(inputs, scales[None], choices, ["float16"], until="q_entering")
    q, k = (held[stage].values[0].to(torch.float16).to(device) for stage in ("q_entering", "k_entering"))
    return (q @ k.mT).double().cpu()


def native_counts(inputs: Inputs, scales: Float[Tensor, "scales"], choices: Choices, device: DeviceWord) -> Counts:
    """The counts of the raw products that `device` computes in float16, [1, scales] each."""
    values = native_products(inputs, scales, choices, device)[None]
    held = Held(values, values.isinf(), Stack([ALL_FORMATS["float16"]]))
    return counts_of("raw_product", held, inputs, scales, choices)
