"""What every reader of somebody's file owes: one sentence for what is wrong, and no memory for what is not there.

* `InputError`: what was found, where, and what would be right;
* `MOST_BYTES`: how large an array may be that is read whole;
* `kind_of(head)`: what a file is that is none of ours, by its first bytes; `never_read(stream)`: the kind of a file
  of which no part is read, however small; `of_model(data)`: that of JSON which lies beside weights.
"""

import json
import zipfile
from collections.abc import Sequence
from typing import BinaryIO, Final

from qkdemo.messages import say
from qkdemo.notation import spelled

MOST_BYTES: Final = 200 << 20
_KINDS: Final = (
    (b"version https://git-lfs", "lfs"),
    (b"<!DOCTYPE", "page"),
    (b"<!doctype", "page"),
    (b"<html", "page"),
    (b"PK\x03\x04", "zip"),
    (b"\x80\x02", "pickle"),
    (b"\x80\x03", "pickle"),
    (b"\x80\x04", "pickle"),
    (b"\x80\x05", "pickle"),
    (b"\x93NUMPY", "npy"),
    (b"PAR1", "parquet"),
    (b"GGUF", "gguf"),
    (b"\x1f\x8b", "gzip"),
    (b"\x89HDF", "hdf5"),
)
_READ: Final = ("npy", "parquet", "zip")  # .npz
_NAMED: Final = 12  # of many names


class InputError(ValueError):
    """A file or an array that cannot be read. Its sentence, of the key input.<key>, is formed where it is shown."""

    def __init__(self, key: str, /, **values: object) -> None:
        """`values` are what the sentence names."""
        super().__init__(key)
        self.key, self._values = key, values

    def __str__(self) -> str:
        """The sentence."""
        return say(f"input.{self.key}", **self._values)


def kind_of(head: bytes) -> str:
    """What a file with these first bytes is; empty if that is not known."""
    return next((say(f"input.kind.{word}") for start, word in _KINDS if head.startswith(start)), "")


def never_read(stream: BinaryIO) -> str:
    """What a file is that is of a kind that is not read here; empty if it is not known, or read."""
    stream.seek(0)
    head = stream.read(32)
    word = next((word for start, word in _KINDS if head.startswith(start)), "")
    if word == "zip" and _of_torch(stream):
        word = "pickle"
    stream.seek(0)
    return say(f"input.kind.{word}") if word and word not in _READ else ""


def _of_torch(stream: BinaryIO) -> bool:
    """Whether an archive is what torch.save writes."""
    try:
        return any(name.endswith("/data.pkl") for name in zipfile.ZipFile(stream).namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False


def of_model(data: bytes) -> str:
    """What JSON is that lies beside a model's weights and holds none; empty for anything else."""
    try:
        loaded = json.loads(data)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(loaded, dict):
        return ""
    if isinstance(loaded.get("weight_map"), dict):
        return say("input.kind.index")
    return say("input.kind.config") if {"model_type", "architectures"} & loaded.keys() else ""


def some(names: Sequence[str], most: int = _NAMED) -> str:
    """The first of many names.

    >>> some(["a", "b"]), some("abcdefghijklm"), some("abcdef", most=4)
    ('a, b', 'a, b, c, d, e, f, g, h, i, j, k, l, …', 'a, b, c, d, …')
    """
    return ", ".join([*names[:most], *["…"] * (len(names) > most)])


def listed(shape: Sequence[int]) -> str:
    """A shape as people write it: [2, 4, 8]."""
    return "[" + ", ".join(map(str, shape)) + "]"


def sized(count: int) -> str:
    """A number of bytes: 12 bytes, 3.2 MiB.

    >>> sized(12), sized(3355443), sized(5 << 30)
    ('12 bytes', '3.2 MiB', '5.0 GiB')
    """
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << power:
            return f"{spelled(f'{count / (1 << power):.1f}')} {unit}"
    return f"{count} bytes"
