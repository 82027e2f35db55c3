"""What travels to an exhibit can be read as its module says, loses nothing that is shown, and comes once."""

import json
import struct
import zlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from qkdemo.web.lab.parcel import MOST_KNOWN, Known, parcel

ROWS = 5
NUMBERS = np.array([1e-3, 0.1, np.inf, -np.inf, np.nan])
CODES = np.arange(ROWS * 4, dtype=np.uint8).reshape(ROWS, 4)
ARMS = np.linspace(0, 1, ROWS * 3, dtype=np.float32).reshape(ROWS, 3)


def lists(array: np.ndarray) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])


def table(**more: Any) -> pa.Table:
    columns = {"scale": [0.1, 1 / 3, 1.0, 3.0, 10.0], "scale.text": ["×0.1", "×⅓", "×1", "", "×10"], "norm": NUMBERS}
    return pa.table(columns | {"norm.heat": lists(CODES), "norm.arms": lists(ARMS)} | more)


def headed(data: bytes) -> tuple[Any, bytes]:
    length = struct.unpack("<I", data[:4])[0]
    return json.loads(data[4 : 4 + length]), data[4 + length :]


def opened(data: bytes, had: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
    """The view and the columns, by another reading of the layout; `had` holds the parts of earlier parcels."""
    head, rest = headed(data)
    had = {} if had is None else had
    inflate = (lambda raw: raw) if head["plain"] else zlib.decompress
    view, rest = inflate(rest[: head["view"]]).decode(), rest[head["view"] :]
    columns: dict[str, Any] = {}
    for name, length in head["parts"]:
        if length:
            had[name], rest = columns_in(inflate(rest[:length]), head["rows"]), rest[length:]
        columns |= had[name]
    assert not rest
    return view, columns


def columns_in(raw: bytes, rows: int) -> dict[str, Any]:
    kinds, rest = headed(raw)
    found: dict[str, Any] = {}
    for name, kind, width, length in kinds:
        data, rest = rest[:length], rest[length:]
        if kind == "text":
            found[name] = data.decode().split("\x1e")
            continue
        size = int(kind[1])
        planes = np.frombuffer(data, np.uint8).reshape(size, -1)
        numbers = np.ascontiguousarray(planes.T).view(f"<{kind}").reshape(width, rows).T
        found[name] = numbers[:, 0] if width == 1 else numbers
    return found


def test_every_column_arrives() -> None:
    view, columns = opened(parcel('{"a": "≤"}', table(), "scale", Known()))
    assert view == '{"a": "≤"}'
    assert columns["scale"].tolist() == [0.1, 1 / 3, 1.0, 3.0, 10.0]  # exactly: it is sent back and found again
    assert columns["scale.text"] == ["×0.1", "×⅓", "×1", "", "×10"]
    np.testing.assert_array_equal(columns["norm"], NUMBERS.astype(np.float32))
    np.testing.assert_array_equal(columns["norm.heat"], CODES)
    np.testing.assert_array_equal(columns["norm.arms"], ARMS)


@pytest.mark.parametrize("value", [1e300, 1e-300, -1e39])
def test_a_number_that_float32_cannot_hold_keeps_its_column_in_float64(value: float) -> None:
    given = np.array([value, 1, 2, 3, np.inf])
    assert opened(parcel("", table(wide=given), "scale", Known()))[1]["wide"].tolist() == given.tolist()


def test_a_part_that_is_known_is_named_and_not_sent_again() -> None:
    known, had = Known(), dict[str, Any]()
    first = parcel("{}", table(), "scale", known)
    opened(first, had)
    again = parcel("{}", table(), "scale", known)
    assert len(again) < len(first) / 2
    assert [length for _, length in headed(again)[0]["parts"]] == [0, 0]
    assert opened(again, had)[1].keys() == opened(first)[1].keys()
    changed = parcel("{}", table(norm=np.ones(ROWS)), "scale", known)
    assert [length > 0 for _, length in headed(changed)[0]["parts"]] == [False, True]
    assert opened(changed, had)[1]["norm"].tolist() == [1] * ROWS


def test_what_was_not_used_for_long_is_sent_again() -> None:
    known = Known()
    parcel("{}", table(), "scale", known)
    for n in range(MOST_KNOWN):
        parcel("{}", table(norm=np.full(ROWS, float(n))), "scale", known)
    assert len(known) == MOST_KNOWN
    assert [length > 0 for _, length in headed(parcel("{}", table(), "scale", known))[0]["parts"]] == [False, True]


def test_a_browser_that_cannot_inflate_gets_it_plain() -> None:
    deflated, plain = (opened(parcel("{}", table(), "scale", Known(), plain=plain)) for plain in (False, True))
    assert deflated[0] == plain[0]
    for name, column in deflated[1].items():
        np.testing.assert_array_equal(plain[1][name], column)


def test_a_table_without_rows_arrives() -> None:
    empty = pa.table({"step": pa.array([], pa.float64()), "finding": pa.array([], pa.string())})
    assert opened(parcel("{}", empty, "step", Known()))[1]["step"].tolist() == []
