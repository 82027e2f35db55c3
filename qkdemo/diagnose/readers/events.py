"""TensorBoard's event files: scalars by step, read with limits and without TensorBoard.

* `is_events(data)`: whether bytes begin as such a file does; `read_events(data, name)`: a row per step.

A file is a row of records: length (8 bytes), its checksum (4), the record, its checksum (4). A record is a protocol
buffer `Event`: step (field 2), summary (5) of values (1), each with a tag (1) and a number, either simple_value (2) or
a tensor (8) of one float. Checksums are not verified; a record cut at the file's end is left out, as TensorBoard does.
(github.com/tensorflow/tensorboard, event.proto and summary.proto.)
"""

import re
import struct
from collections.abc import Iterator
from typing import Any, Final

from qkdemo.diagnose.readers.inputs import InputError

_LONGEST: Final = 64 << 20  # bytes of a record: an image, not a scalar
_MOST_VALUES: Final = 2_000_000
_OTHER_STEPS: Final = re.compile(r".*[ _]vs[ _](samples|tokens)", re.IGNORECASE)  # Megatron writes each curve twice
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def is_events(data: bytes) -> bool:
    """Whether the first record says brain.Event, as every event file does."""
    return len(data) > 24 and b"brain.Event:" in data[12:64]


def read_events(data: bytes, name: str) -> list[dict[str, Any]]:
    """A row per step, again where it comes back: {"step": …, tag: value}. Raises InputError for a damaged file."""
    rows: list[dict[str, Any]] = []
    count = 0
    for record in _records(data, name):
        try:
            step, values = _event(record)
        except (IndexError, struct.error, ValueError):
            raise InputError("bad_events", name=name) from None
        count += len(values)
        if count > _MOST_VALUES:
            raise InputError("many_events", name=name, most=_MOST_VALUES)
        if values and (not rows or rows[-1]["step"] != step or values.keys() & rows[-1].keys()):
            rows.append({"step": step})
        if values:
            rows[-1] |= values
    return rows


def _records(data: bytes, name: str) -> Iterator[bytes]:
    at = 0
    while at + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        if length > _LONGEST:
            raise InputError("bad_events", name=name)
        if at + 16 + length > len(data):
            return  # still being written
        yield data[at + 12 : at + 12 + length]
        at += 16 + length


def _event(record: bytes) -> tuple[int, dict[str, float]]:
    step, values = 0, dict[str, float]()
    for field, kind, value in _fields(record):
        if field == 2 and kind == _VARINT:
            step = value
        elif field == 5 and kind == _BYTES:
            for inner, inner_kind, summary in _fields(value):
                if inner == 1 and inner_kind == _BYTES:
                    values |= _value(summary)
    return step, values


def _value(summary: bytes) -> dict[str, float]:
    tag, number = "", None
    for field, kind, value in _fields(summary):
        if field == 1 and kind == _BYTES:
            tag = value.decode("utf-8")
        elif field == 2 and kind == _FIXED32:
            (number,) = struct.unpack("<f", value)
        elif field == 8 and kind == _BYTES:
            number = _tensor(value)
    return {} if number is None or not tag or _OTHER_STEPS.fullmatch(tag) else {tag: number}


def _tensor(tensor: bytes) -> float | None:
    """The only number of a tensor of one float32 (dtype 1); None for any other."""
    dtype, number = 0, None
    for field, kind, value in _fields(tensor):
        if field == 1 and kind == _VARINT:
            dtype = value
        elif field in (4, 5) and kind in (_BYTES, _FIXED32) and len(value) == 4:  # tensor_content, float_val
            (number,) = struct.unpack("<f", value)
    return number if dtype == 1 else None


def _fields(message: bytes) -> Iterator[tuple[int, int, Any]]:
    """Field number, wire type and value of everything in a protocol buffer."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        field, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield field, kind, value
            continue
        if kind == _BYTES:
            length, at = _varint(message, at)
        elif kind in (_FIXED32, _FIXED64):
            length = 4 if kind == _FIXED32 else 8
        else:
            raise ValueError(kind)
        if at + length > len(message):
            raise ValueError(length)
        yield field, kind, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError(at)
