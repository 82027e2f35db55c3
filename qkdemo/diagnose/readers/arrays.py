"""Arrays that a visitor brings: .safetensors, .npy and .npz files, or JSON as it is pasted, as tensors by name.

* `read_arrays(stream, name)`: every array in it. Raises InputError, with a sentence, for anything else;
* `holds_arrays(data)`: whether bytes are a JSON object of arrays, {"q": [[…]], "k": [[…]]}.

Nothing is unpickled. What a header claims is held against the bytes that are there before any memory is taken. Numbers
keep their format: what was float16 or bfloat16 is read as such.
"""

import json
import math
import re
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from typing import IO, BinaryIO, Final

import numpy as np
import torch
from numpy.lib import format as npy
from torch import Tensor

from qkdemo.diagnose.readers.inputs import MOST_BYTES, InputError, kind_of, listed, never_read, sized
from qkdemo.diagnose.readers.safetensors import Safetensors
from qkdemo.diagnose.scaled import WHOLE, names_float8
from qkdemo.floats.formats import dtype_name
from qkdemo.messages import say

_MAGIC: Final = b"\x93NUMPY"
_JSON: Final = re.compile(rb'\s*\{\s*"(?!log_history)[^"\\]{1,100}"\s*:\s*\[')
_MOST_JSON: Final = 20 << 20  # bytes: ten times as many in memory
_MOST_MEMBERS: Final = 100
_MOST_RATIO: Final = 200  # a deflated array of equal numbers reaches 1000
_LONGEST_HEADER: Final = 10_000
_OF_HEADERS: Final = (RecursionError, OverflowError, tokenize.TokenError)  # NumPy tokenises headers of Python 2
_HEADERS: Final = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_arrays(stream: BinaryIO, name: str) -> Mapping[str, Tensor]:
    """The arrays of a file by name; of a .npy file the only one, named by the file."""
    head = stream.read(8)
    stream.seek(0)
    if head.startswith(_MAGIC):
        return {name.rpartition("/")[2].removesuffix(".npy"): _of_npy(stream, _size(stream), name)}
    if head.startswith(b"PK"):
        return _of_npz(stream, name)
    if name.endswith(".safetensors"):
        file = Safetensors(stream, name)
        _refuse_large(sum(entry.stop - entry.start for entry in file.entries.values()), name)
        arrays = {tensor: file.read(tensor) for tensor in file.entries}
        for tensor, x in arrays.items():
            if x.dtype in WHOLE and "scale" not in tensor.lower() and names_float8(_told_of(tensor, file.metadata)):
                raise InputError("bytes_of_floats", name=tensor, dtype=dtype_name(x.dtype))
        return arrays
    if holds_arrays(stream.read(200)):
        stream.seek(0)
        return _of_json(stream.read(_MOST_JSON + 1), name)
    stream.seek(8)
    raise InputError("not_arrays", name=name, kind=kind_of(head + stream.read(24)) or say("input.kind.unknown"))


def holds_arrays(data: bytes) -> bool:
    """Whether bytes begin as a JSON object of arrays does; records of a log hold numbers."""
    return bool(_JSON.match(data[:200]))


def _told_of(tensor: str, metadata: Mapping[str, str]) -> str:
    """What the header of a .safetensors file says of a tensor, under its name or one that goes on after it: q.dtype."""
    own = re.compile(rf"{re.escape(tensor)}([.:].*|_dtype)?")
    return " ".join(str(text) for key, text in metadata.items() if own.fullmatch(key))


def _of_json(text: bytes, name: str) -> dict[str, Tensor]:
    if len(text) > _MOST_JSON:
        raise InputError("large_file", name=name, most=sized(_MOST_JSON))
    found: dict[str, Tensor] = {}
    try:
        for key, rows in json.loads(text).items():
            found[key] = torch.tensor(rows, dtype=torch.float64)
    except (ValueError, TypeError, RecursionError, RuntimeError, AttributeError, OverflowError):
        raise InputError("json_arrays", name=name) from None
    return found


def _size(stream: BinaryIO) -> int:
    size = stream.seek(0, 2)
    stream.seek(0)
    return size


def _refuse_large(count: int, name: str) -> None:
    if count > MOST_BYTES:
        raise InputError("large_file", name=name, most=sized(MOST_BYTES))


def _of_npz(stream: BinaryIO, name: str) -> dict[str, Tensor]:
    if kind := never_read(stream):  # told before what it holds is counted
        raise InputError("not_arrays", name=name, kind=kind)
    try:
        archive = zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        raise InputError("bad_zip", name=name) from None
    members = archive.infolist()
    for member in members:
        if not member.filename.endswith(".npy"):
            raise InputError("foreign_member", name=name, member=repr(member.filename))
    if len(members) > _MOST_MEMBERS:
        raise InputError("members", name=name, count=len(members), most=_MOST_MEMBERS)
    _refuse_large(sum(member.file_size for member in members), name)
    found: dict[str, Tensor] = {}
    for member in members:
        key = member.filename.removesuffix(".npy")
        if key in found:
            raise InputError("array_twice", name=name, member=repr(key))
        found[key] = _of_member(archive, member, f"{member.filename} in {name}")
    if not found:
        raise InputError("no_array", name=name)
    return found


def _of_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> Tensor:
    if member.file_size > _MOST_RATIO * max(1, member.compress_size) and member.file_size > 1 << 20:
        raise InputError("bomb", name=name, packed=sized(member.compress_size), size=sized(member.file_size))
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # what np.savez writes
        raise InputError("bad_member", name=name)
    try:
        with archive.open(member) as file:
            return _of_npy(file, member.file_size, name)
    except InputError:
        raise
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError, zlib.error):
        raise InputError("bad_member", name=name) from None


def _of_npy(file: IO[bytes], size: int, name: str) -> Tensor:
    try:
        version = npy.read_magic(file)
        if version not in _HEADERS:
            raise InputError("npy_version", name=name, major=version[0], minor=version[1])
        shape, fortran, dtype = _HEADERS[version](file, max_header_size=_LONGEST_HEADER)
    except InputError:
        raise
    except (ValueError, EOFError, OSError, MemoryError, SyntaxError, TypeError, *_OF_HEADERS):
        raise InputError("npy_header", name=name) from None
    _refuse_dtype(dtype, name)
    wanted = math.prod(shape) * dtype.itemsize
    if any(length < 0 for length in shape) or wanted > size:
        raise InputError("npy_shape", name=name, shape=listed(shape), wanted=wanted, size=size)
    data = bytearray(file.read(wanted))
    if len(data) < wanted:
        raise InputError("npy_short", name=name, there=len(data), wanted=wanted)
    if file.read(1):
        raise InputError("npy_trailing", name=name)
    array = np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
    return torch.from_numpy(np.ascontiguousarray(array))


def _refuse_dtype(dtype: "np.dtype[np.generic]", name: str) -> None:
    if dtype.hasobject:
        raise InputError("objects", name=name)
    if dtype.fields or dtype.subdtype:
        raise InputError("structured", name=name)
    if dtype.kind == "V":
        raise InputError("void", name=name, size=dtype.itemsize)
    if dtype.kind == "c":
        raise InputError("complex", name=name)
    if dtype.kind not in "fiub" or dtype.itemsize > 8:
        raise InputError("no_number", name=name, dtype=dtype)
    if not dtype.isnative:
        raise InputError("big_endian", name=name, native=dtype.newbyteorder("=").str[1:])
