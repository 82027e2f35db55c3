"""A file of any kind that is read here, examined.

* `examine(data, name)`: from its bytes; `are_arrays(data)`: whether these are arrays;
* `examine_path(path)`: from a path, where only a part of a large checkpoint is read.
"""

import io
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from torch import Tensor

from qkdemo.diagnose import port, tensors
from qkdemo.diagnose.curves import causes
from qkdemo.diagnose.findings.finding import Report
from qkdemo.diagnose.findings.of_checkpoint import of_checkpoint
from qkdemo.diagnose.findings.of_logs import of_logs
from qkdemo.diagnose.findings.of_port import of_port
from qkdemo.diagnose.findings.of_tensors import of_tensors
from qkdemo.diagnose.readers.arrays import holds_arrays, read_arrays
from qkdemo.diagnose.readers.inputs import MOST_BYTES, InputError, never_read, of_model, sized
from qkdemo.diagnose.readers.logs import holds_history, read_logs
from qkdemo.diagnose.readers.safetensors import Safetensors
from qkdemo.diagnose.weights import checkpoint, layers

_ARRAYS: Final = (b"\x93NUMPY", b"PK")
_OF_WEIGHTS: Final = re.compile(r"weight|bias|lora_|exp_avg", re.IGNORECASE)
_NO_LOG: Final = ("no_log", "short_log", "json_arrays")  # as an index or a config.json seems to be
_NAMED: Final = 12  # columns that an error names


def examine(data: bytes, name: str, *, reference: tuple[bytes, str] | None = None, **options: Any) -> Report:
    """A file from its bytes. `options` are those of `tensors.pair_of`, and `columns`, which corrects a log's roles.

    `reference`: bytes and name of a file with the logits that a port should have given; `data` then holds the port's.
    Raises InputError.
    """
    if len(data) > MOST_BYTES:
        _refuse_kind(io.BytesIO(data), name)
        raise InputError("large_upload", name=name, most=sized(MOST_BYTES))
    try:
        return _examined(data, name, reference, options)
    except InputError as error:
        if error.key in _NO_LOG and (kind := of_model(data)):
            raise InputError("not_a_log", name=name, kind=kind) from None
        raise


def _examined(data: bytes, name: str, reference: tuple[bytes, str] | None, options: dict[str, Any]) -> Report:
    columns = options.pop("columns", None)
    if reference is not None:
        mine, other = read_arrays(io.BytesIO(data), name), read_arrays(io.BytesIO(reference[0]), reference[1])
        return of_port(port.run(port.port_of(port.together(mine, other))), name)
    if are_arrays(data):
        return _of_arrays(read_arrays(io.BytesIO(data), name), name, options)
    if name.endswith(".safetensors"):
        file = Safetensors(io.BytesIO(data), name)
        try:
            return of_checkpoint(layers.run(checkpoint.one_file(file)), name)
        except InputError as error:
            if error.key != "no_attention" or _are_weights(file.entries):
                raise
        return _of_arrays(read_arrays(io.BytesIO(data), name), name, options)
    logs = read_logs(data, name)
    known = sorted({column for log in logs for column in log.columns})
    for column in (columns or {}).values():
        if column and column not in known:
            key = "unknown_column_of_many" if len(known) > _NAMED else "unknown_column"
            raise InputError(key, name=name, column=column, columns=", ".join(known[:_NAMED]), count=len(known))
    return of_logs([causes.run(log, columns) for log in logs], name)


def are_arrays(data: bytes) -> bool:
    """Whether bytes are arrays of NumPy, or of JSON as they are pasted."""
    return data.startswith(_ARRAYS) or (holds_arrays(data) and not holds_history(data))


def _are_weights(names: Mapping[str, object]) -> bool:
    """Whether these are tensors of a checkpoint, as an adapter's, and no arrays of which two may be q and k."""
    if not any(map(_OF_WEIGHTS.search, names)):
        return False
    return not (port.holds_port(names) or tensors.names_pair(names))


def _of_arrays(arrays: Mapping[str, Tensor], name: str, options: Mapping[str, Any]) -> Report:
    if port.holds_port(arrays):
        return of_port(port.run(port.port_of(arrays)), name)
    return of_tensors(tensors.run(tensors.pair_of(arrays, **options)), name)


def examine_path(path: Path, config: Path | None = None, reference: Path | None = None, **options: Any) -> Report:
    """A file, or a folder of shards, from a path: of a checkpoint only what is needed is read. Raises InputError."""
    if reference is not None:
        return examine(_read(path), path.name, reference=(_read(reference), reference.name), **options)
    if path.is_dir() or path.name.endswith(".safetensors.index.json"):
        return _checkpoint_at(path, config)
    if path.suffix == ".safetensors":
        try:
            return _checkpoint_at(path, config)
        except InputError as error:
            if error.key != "no_attention":
                raise
    return examine(_read(path), path.name, **options)


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            with path.open("rb") as file:
                _refuse_kind(file, path.name)
            raise InputError("large_file", name=path.name, most=sized(MOST_BYTES))
        return path.read_bytes()
    except OSError as error:
        raise InputError("unopened", name=path.name, reason=error.strerror or "") from None


def _refuse_kind(stream: BinaryIO, name: str) -> None:
    """Of a kind that is not read no part is, either."""
    if kind := never_read(stream):
        raise InputError("not_arrays", name=name, kind=kind)


def _checkpoint_at(path: Path, config: Path | None) -> Report:
    beside = (path if path.is_dir() else path.parent) / "config.json"
    with checkpoint.open_checkpoint(path) as opened:
        told = _config(config or beside) if config or os.path.lexists(beside) else {}
        if told is None and config:
            raise InputError("bad_config", name=config.name)
        return of_checkpoint(layers.run(opened, told), path.name, unread=beside.name if told is None else "")


def _config(path: Path) -> Mapping[str, Any] | None:
    """A config; None if it cannot be read."""
    try:
        loaded = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return loaded if isinstance(loaded, dict) else None
