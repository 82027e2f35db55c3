"""Logs as programs write them: events of TensorBoard, tables, printed lines."""

import csv
import io
import struct
from typing import Any

LOSS = [2.5, 2.0, 1.5, 1.25, 1.0, 0.75, 0.5, 0.25]  # exact in every format
NORM = [1.0, 1.5, 2.0, 1.0, 1.5, 2.0, 1.0, 0.5]
STEPS = [10 * at for at in range(1, 9)]


def varint(x: int) -> bytes:
    out = bytearray()
    while x > 0x7F:
        out.append(x & 0x7F | 0x80)
        x >>= 7
    return bytes([*out, x])


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def record(event: bytes) -> bytes:
    return struct.pack("<Q", len(event)) + bytes(4) + event + bytes(4)


def events(*, tensors: bool = False, samples: int = 0) -> bytes:
    """TensorBoard 1 wrote simple values, 2 and PyTorch 2's writers tensors; Megatron each curve over samples, too."""
    out = record(b"\x09" + bytes(8) + field(3, b"brain.Event:2"))
    for step, loss, norm in zip(STEPS, LOSS, NORM, strict=True):
        values = b""
        for tag, x in (("train/loss", loss), ("train/grad_norm", norm)):
            number = struct.pack("<f", x)
            shown = field(8, b"\x08\x01" + field(4, number)) if tensors else b"\x15" + number
            values += field(1, field(1, tag.encode()) + shown)
        out += record(b"\x10" + varint(step) + field(5, values))
        if samples:
            again = field(1, field(1, b"train/loss vs samples") + b"\x15" + struct.pack("<f", loss))
            out += record(b"\x10" + varint(step * samples) + field(5, again))
    return out


def table(rows: list[dict[str, Any]]) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(name for row in rows for name in row)))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def lines(pattern: str) -> bytes:
    numbers = zip(STEPS, LOSS, NORM, strict=True)
    return "\n".join(["starting", *(pattern.format(s=s, l=x, g=g) for s, x, g in numbers), "done"]).encode()


ROWS = [{"step": s, "loss": x, "grad_norm": g} for s, x, g in zip(STEPS, LOSS, NORM, strict=True)]
