"""Reads .safetensors files by range: the header first, and of the data only what is asked for.

* `Safetensors(stream, name)`: what the header says, checked against the file before anything is allocated;
* `Entry`: one tensor: its dtype, shape and place; `read(name)` and `rows(name, start, stop)` give it as a tensor.

Format: 8 bytes with the header's length, a JSON header {name: {dtype, shape, data_offsets}}, the data. Checked: length
of the header, names twice, unknown dtypes, shape × dtype against the range, ranges that overlap, leave gaps or end
elsewhere than the file does. (github.com/huggingface/safetensors, section "Format".)
"""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import torch
from torch import Tensor

from qkdemo.diagnose.readers.inputs import MOST_BYTES, InputError, kind_of, listed, never_read, sized

_LONGEST_HEADER: Final = 100_000_000  # bytes, as the format's own reader has it
_MOST_AXES: Final = 16
DTYPES: Final[Mapping[str, torch.dtype]] = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "F8_E4M3FNUZ": torch.float8_e4m3fnuz,
    "F8_E5M2FNUZ": torch.float8_e5m2fnuz,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "F8_E8M0": torch.uint8,  # its bytes, as files of older programs have them: PyTorch below 2.7 lacks the format
    "BOOL": torch.bool,
}
_OTHER_BITS: Final[Mapping[str, int]] = {
    "U16": 16,
    "U32": 32,
    "U64": 64,
    "C64": 64,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
}


@dataclass(frozen=True)
class Entry:
    """One tensor of a file. `dtype` is the format's word, `start` and `stop` are bytes from the file's beginning."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


class Safetensors:
    """An open file; raises InputError if it is not whole. The caller closes the stream."""

    def __init__(self, stream: BinaryIO, name: str = "the file") -> None:
        """`name` is how sentences call it."""
        self._stream, self.name = stream, name
        self._size = stream.seek(0, os.SEEK_END)
        self.entries, self.metadata = self._header()

    def read(self, tensor: str, most: int = MOST_BYTES) -> Tensor:
        """A tensor, whole. Raises InputError for a name that is not there, or one of more than `most` bytes."""
        entry = self._entry(tensor)
        return self._range(tensor, entry, entry.start, entry.stop, entry.shape, most)

    def rows(self, tensor: str, start: int, stop: int, most: int = MOST_BYTES) -> Tensor:
        """Rows `start` to `stop` of a tensor's first axis; nothing else of it is read."""
        entry = self._entry(tensor)
        if not entry.shape or not 0 <= start <= stop <= entry.shape[0]:
            raise InputError("no_rows", tensor=tensor, shape=listed(entry.shape), start=start, stop=stop)
        row = (entry.stop - entry.start) // max(1, entry.shape[0])
        shape = (stop - start, *entry.shape[1:])
        return self._range(tensor, entry, entry.start + start * row, entry.start + stop * row, shape, most)

    def _entry(self, tensor: str) -> Entry:
        if tensor not in self.entries:
            raise InputError("no_tensor", name=self.name, tensor=repr(tensor))
        return self.entries[tensor]

    def _range(self, tensor: str, entry: Entry, start: int, stop: int, shape: tuple[int, ...], most: int) -> Tensor:
        if entry.dtype not in DTYPES:
            raise InputError("unread_dtype", tensor=tensor, dtype=entry.dtype)
        if stop - start > most:
            raise InputError("too_large_at_once", tensor=tensor, most=sized(most))
        self._stream.seek(start)
        data = bytearray(self._stream.read(stop - start))
        if len(data) < stop - start:
            raise InputError("being_written", name=self.name, tensor=tensor)
        if not data:
            return torch.empty(shape, dtype=DTYPES[entry.dtype])
        return torch.frombuffer(data, dtype=DTYPES[entry.dtype]).reshape(shape)

    # ---- the header

    def _header(self) -> tuple[dict[str, Entry], dict[str, str]]:
        self._stream.seek(0)
        head = self._stream.read(8)
        if len(head) < 8:
            raise InputError("too_short", name=self.name, size=self._size)
        length = int.from_bytes(head, "little")
        if length > min(self._size - 8, _LONGEST_HEADER):
            self._stream.seek(0)
            if words := kind_of(self._stream.read(32)):
                words = never_read(self._stream) or words  # an archive may be torch.save's
                raise InputError("foreign", name=self.name, kind=words)
            if length > _LONGEST_HEADER:
                raise InputError("long_header", name=self.name, length=length, most=_LONGEST_HEADER)
            raise InputError("cut_header", name=self.name, there=self._size - 8, length=length)
        self._stream.seek(8)
        return self._checked(_json(self._stream.read(length), self.name), 8 + length)

    def _checked(self, header: Any, begin: int) -> tuple[dict[str, Entry], dict[str, str]]:
        if not isinstance(header, dict):
            raise InputError("no_object", name=self.name)
        metadata = header.pop("__metadata__", {})
        entries = {tensor: self._read_entry(tensor, given, begin) for tensor, given in header.items()}
        end = begin
        for tensor, entry in sorted(entries.items(), key=lambda item: (item[1].start, item[1].stop)):
            if entry.start < end:
                raise InputError("overlap", tensor=tensor, name=self.name)
            if entry.start > end:
                raise InputError("gap", tensor=tensor, name=self.name, count=entry.start - end)
            end = entry.stop
        if end > self._size:
            raise InputError("ends_early", name=self.name, there=self._size - begin, wanted=end - begin)
        if end < self._size:
            raise InputError("trailing", name=self.name, count=self._size - end)
        return entries, metadata if isinstance(metadata, dict) else {}

    def _read_entry(self, tensor: str, given: Any, begin: int) -> Entry:
        try:
            dtype, shape, (start, stop) = given["dtype"], tuple(given["shape"]), given["data_offsets"]
        except (TypeError, KeyError, ValueError):
            raise InputError("entry_lacks", tensor=tensor, name=self.name) from None
        whole = all(isinstance(x, int) and not isinstance(x, bool) and x >= 0 for x in (*shape, start, stop))
        if not whole or not isinstance(dtype, str):
            raise InputError("entry_none", tensor=tensor, name=self.name)
        if len(shape) > _MOST_AXES:
            raise InputError("many_axes", tensor=tensor, name=self.name, count=len(shape), most=_MOST_AXES)
        bits = DTYPES[dtype].itemsize * 8 if dtype in DTYPES else _OTHER_BITS.get(dtype)
        if bits is None:
            raise InputError("unknown_dtype", tensor=tensor, name=self.name, dtype=repr(dtype))
        wanted = (math.prod(shape) * bits + 7) // 8
        if stop - start != wanted:
            raise InputError(
                "wrong_place",
                tensor=tensor,
                name=self.name,
                shape=listed(shape),
                dtype=dtype,
                wanted=wanted,
                there=stop - start,
            )
        return Entry(dtype, shape, begin + start, begin + stop)


def _json(text: bytes, name: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            twice = next(key for at, (key, _) in enumerate(pairs) if key in dict(pairs[:at]))
            raise InputError("twice", name=name, tensor=repr(twice))
        return found

    try:
        return json.loads(text, object_pairs_hook=unique)
    except InputError:
        raise
    except (ValueError, RecursionError):
        raise InputError("no_json", name=name) from None
