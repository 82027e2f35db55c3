"""What a run leaves behind: the numbers of its steps, and states to go on from, as compact bytes.

* `Chunk`: consecutive steps; `chunk_of(plan, telemetry)`: those of a trainer; `cut`, `after`: some of them;
* `chunk_to_bytes`, `chunk_from_bytes`: curves as float32, maps as codes, packed;
* `state_to_bytes`, `state_from_bytes`: a trainer's state, exactly.

Nothing here is pickled: bytes from a store are read as numbers, and refused if there are too few or too many.
"""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from qkdemo.runs.plan import Plan
from qkdemo.training.telemetry import CURVES, Telemetry
from qkdemo.training.trainer import State

BRIGHTEST: Final = 250  # the code of weight 1; a code is 250 · √weight, so that small weights are told apart
UNDEFINED: Final = 255
_SWIFT: Final = 1  # zlib's level: maps are written while a run goes on


@dataclass(frozen=True, eq=False)
class Chunk:
    """Steps `first` to `last`, counted from 1. Runs beyond a leg's own are NaN."""

    first: int
    curves: NDArray[np.float32]  # [steps, runs, curves], in the order of telemetry.CURVES
    maps: NDArray[np.uint8]  # [steps that have maps, runs, layers, heads, visible pairs]
    mapped: tuple[int, ...]  # the steps that have maps, rising

    @property
    def last(self) -> int:
        """Its last step."""
        return self.first + len(self.curves) - 1


def mapped_steps(plan: Plan, first: int, last: int) -> tuple[int, ...]:
    """At which of these steps attention maps are recorded: the first, and every so many."""
    return tuple(step for step in range(first, last + 1) if (step - 1) % plan.map_stride == 0) if plan.maps else ()


def chunk_of(plan: Plan, telemetry: Telemetry) -> Chunk:
    """What is kept of a trainer's telemetry."""
    first, steps, runs = telemetry.first_step, len(telemetry), telemetry.loss.shape[1]
    curves = np.full((steps, plan.width, len(CURVES)), np.nan, dtype=np.float32)
    for at, name in enumerate(CURVES):
        curves[:, :runs, at] = getattr(telemetry, name)
    mapped = mapped_steps(plan, first, first + steps - 1)
    maps = np.zeros((len(mapped), plan.width, *plan.map_shape), dtype=np.uint8)
    if mapped:
        n = telemetry.maps.shape[-1]
        maps[:, :runs] = _codes(telemetry.maps[[step - first for step in mapped]][..., *np.tril_indices(n)])
    return Chunk(first, curves, maps, mapped)


def cut(chunk: Chunk, last: int) -> Chunk:
    """The steps of `chunk` up to `last`."""
    count = sum(step <= last for step in chunk.mapped)
    return Chunk(chunk.first, chunk.curves[: max(0, last - chunk.first + 1)], chunk.maps[:count], chunk.mapped[:count])


def after(chunk: Chunk, step: int) -> Chunk:
    """The steps of `chunk` after `step`."""
    if chunk.first > step:
        return chunk
    count = sum(one <= step for one in chunk.mapped)
    return Chunk(step + 1, chunk.curves[step + 1 - chunk.first :], chunk.maps[count:], chunk.mapped[count:])


def widened(plan: Plan, chunk: Chunk) -> Chunk:
    """`chunk` with as many runs as `plan` has."""
    more = plan.width - chunk.curves.shape[1]
    return Chunk(
        chunk.first,
        np.pad(chunk.curves, ((0, 0), (0, more), (0, 0)), constant_values=np.nan),
        np.pad(chunk.maps, ((0, 0), (0, more), (0, 0), (0, 0), (0, 0))),
        chunk.mapped,
    )


def joined_chunks(plan: Plan, chunks: Sequence[Chunk]) -> Chunk:
    """Chunks that follow one another, as one; an empty one if there are none."""
    if not chunks:
        shape = (0, plan.width)
        return Chunk(1, np.empty((*shape, len(CURVES)), np.float32), np.empty((*shape, *plan.map_shape), np.uint8), ())
    if len(chunks) == 1:
        return chunks[0]
    return Chunk(
        chunks[0].first,
        np.concatenate([chunk.curves for chunk in chunks]),
        np.concatenate([chunk.maps for chunk in chunks]),
        tuple(chain.from_iterable(chunk.mapped for chunk in chunks)),
    )


def chunk_to_bytes(chunk: Chunk) -> tuple[bytes, bytes]:
    """Curves and maps."""
    return chunk.curves.astype("<f4").tobytes(), zlib.compress(chunk.maps.tobytes(), _SWIFT)


def chunk_from_bytes(plan: Plan, first: int, count: int, curves: bytes, maps: bytes) -> Chunk:
    """The chunk. Raises ValueError if the bytes are not those of `count` steps of `plan`."""
    mapped = mapped_steps(plan, first, first + count - 1)
    shape = (len(mapped), plan.width, *plan.map_shape)
    most = int(np.prod(shape))
    unpacker = zlib.decompressobj()
    try:
        codes = unpacker.decompress(maps, most + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    return Chunk(
        first,
        np.frombuffer(curves, "<f4").reshape(count, plan.width, len(CURVES)),
        np.frombuffer(codes, np.uint8).reshape(shape),
        mapped,
    )


def state_to_bytes(state: State) -> bytes:
    """A line that gives the shapes, then float32 numbers."""
    tensors = [tensor.detach().cpu().contiguous().numpy() for tensor in state.tensors()]
    head = json.dumps({"step": state.step, "shapes": [tensor.shape for tensor in tensors]})
    return head.encode() + b"\n" + b"".join(tensor.astype("<f4").tobytes() for tensor in tensors)


def state_from_bytes(data: bytes) -> State:
    """The state. Raises ValueError if `data` is not one."""
    head, _, rest = data.partition(b"\n")
    try:
        told = json.loads(head)
        tensors, at = [], 0
        for shape in told["shapes"]:
            size = int(np.prod(shape))
            tensors.append(torch.from_numpy(np.frombuffer(rest, "<f4", size, at).reshape(shape).copy()))
            at += 4 * size
        if at != len(rest) or len(tensors) != 4:
            raise ValueError("too many bytes")
        return State(int(told["step"]), *tensors)
    except (TypeError, KeyError) as error:
        raise ValueError(str(error)) from error


def _codes(weights: NDArray[np.float16]) -> NDArray[np.uint8]:
    with np.errstate(invalid="ignore"):
        codes = np.rint(BRIGHTEST * np.sqrt(np.clip(weights.astype(np.float32), 0, 1)))
    return np.where(np.isnan(codes), UNDEFINED, codes).astype(np.uint8)
