"""How a table and a view travel to an exhibit: as one parcel of bytes, in which nothing comes a second time.

* `parts_of(table, exact)`: the columns of a table in parts that change together, packed once for all visitors;
* `parcel(view, table, exact, known)`: the view, and those parts that the browser does not have; the others by name.

A part holds the columns whose names begin alike ("norm.entropy", "norm.heat"): a dial of the norm leaves "plain…"
alone. It is named by its content. `exhibit/rows/parcel.js` opens what is laid out here:

    parcel  head (JSON: rows, view: its bytes, plain, parts: [[name, bytes, or 0 if it was sent before]]) · view · parts
    part    head (JSON: [[column, kind, width, bytes]]) · columns
    column  text: UTF-8, rows apart by U+001E. f8, f4 and u1 hold `width` numbers a row: the first number of all rows,
            then the second …; and of these the lowest bytes, then the next … What lies side by side is then alike.

Each head stands behind its length (4 bytes, little-endian). View and parts are deflated, unless `plain`. Numbers are
float32, which is more than pixels show; but `exact` is float64, and what float32 would make infinite or so small that
it loses digits.
"""

import json
import struct
import threading
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final
from weakref import ReferenceType, ref

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Known = OrderedDict[str, None]  # names of parts, the one used last at the end

MOST_KNOWN: Final = 64  # parts that a browser is taken to have; it keeps twice as many
_BETWEEN: Final = "\x1e"
_QUICKLY: Final = 1  # zlib's level for a view, which often is another in every run; parts stay
_ROOM: Final = 16 << 20  # bytes of packed parts and views that are kept


@dataclass(frozen=True)
class Part:
    """Some columns, deflated."""

    name: str
    packed: bytes


def parcel(view: str, table: pa.Table, exact: str, known: Known, *, plain: bool = False) -> bytes:
    """The bytes for the browser, which has the parts that are `known`; those of this parcel are known afterwards.

    `plain`: for a browser that cannot inflate.
    """
    parts = parts_of(table, exact)
    new = [part for part in parts if part.name not in known]
    for part in parts:
        known[part.name] = None
        known.move_to_end(part.name)
    while len(known) > MOST_KNOWN:
        known.popitem(last=False)
    sent = {part.name: zlib.decompress(part.packed) if plain else part.packed for part in new}
    text = view.encode()
    body = text if plain else _packed(text, _QUICKLY).packed
    named = [[part.name, len(sent.get(part.name, b""))] for part in parts]
    head = {"rows": table.num_rows, "plain": plain, "view": len(body), "parts": named}
    return b"".join([_headed(head), body, *sent.values()])


def parts_of(table: pa.Table, exact: str) -> tuple[Part, ...]:
    """The parts of a table, whose column `exact` keeps every digit. The same table is taken apart once."""
    with _lock:
        at = _seen.get(id(table))
        if at is not None and at[0]() is table and at[1] == exact:
            return at[2]
    groups: dict[str, list[str]] = {}
    for name in table.column_names:
        groups.setdefault(name.split(".")[0], []).append(name)
    parts = tuple(_packed(_laid_out(table.select(names), exact)) for names in groups.values())
    key = id(table)
    with _lock:
        _seen[key] = ref(table, lambda _: _seen.pop(key, None)), exact, parts
    return parts


_lock: Final = threading.Lock()
_seen: Final[dict[int, tuple[ReferenceType[Any], str, tuple[Part, ...]]]] = {}
_kept: Final[OrderedDict[str, Part]] = OrderedDict()  # by name


def _packed(raw: bytes, level: int = zlib.Z_DEFAULT_COMPRESSION) -> Part:
    name = blake2b(raw, digest_size=9).hexdigest()
    with _lock:
        if name in _kept:
            _kept.move_to_end(name)
            return _kept[name]
    part = Part(name, zlib.compress(raw, level))
    with _lock:
        _kept[name] = part
        while sum(len(each.packed) for each in _kept.values()) > _ROOM:
            _kept.popitem(last=False)
    return part


def _laid_out(table: pa.Table, exact: str) -> bytes:
    """The columns as bytes, behind a head that says what they are."""
    kinds, payload = list[list[Any]](), list[bytes]()
    for name, column in zip(table.column_names, table.itercolumns(), strict=True):
        if pa.types.is_string(column.type):
            kind, width, data = "text", 0, _BETWEEN.join(text or "" for text in column.to_pylist()).encode()
        else:
            numbers = _numbers(column)
            stored = numbers if name == exact else _small(numbers)
            kind, width = f"{stored.dtype.kind}{stored.dtype.itemsize}", stored.shape[1]
            data = _planes(stored)
        kinds.append([name, kind, width, len(data)])
        payload.append(data)
    return b"".join([_headed(kinds), *payload])


def _numbers(column: pa.ChunkedArray) -> NDArray[Any]:
    """[rows, width]"""
    array = column.combine_chunks()
    if pa.types.is_fixed_size_list(array.type):
        width = array.type.list_size
        return np.asarray(array.flatten().to_numpy(zero_copy_only=False)).reshape(-1, width)
    return np.asarray(array.to_numpy(zero_copy_only=False)).astype(np.float64).reshape(-1, 1)


def _small(numbers: NDArray[Any]) -> NDArray[Any]:
    """As float32, unless that would lose one of them."""
    if numbers.dtype != np.float64:
        return numbers
    with np.errstate(over="ignore"):
        small = numbers.astype(np.float32)
    lost = (np.isinf(small) & np.isfinite(numbers)) | ((np.abs(small) < np.finfo(np.float32).tiny) & (numbers != 0))
    return numbers if lost.any() else small


def _planes(numbers: NDArray[Any]) -> bytes:
    """Column by column, of each first all lowest bytes."""
    across = np.ascontiguousarray(numbers.T).astype(numbers.dtype.newbyteorder("<"), copy=False)
    return across.view(np.uint8).reshape(-1, numbers.dtype.itemsize).T.tobytes()


def _headed(head: Sequence[Any] | dict[str, Any]) -> bytes:
    text = json.dumps(head, separators=(",", ":"), ensure_ascii=False).encode()
    return struct.pack("<I", len(text)) + text
