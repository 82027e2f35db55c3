"""A checkpoint's tensors, read by range: of shards of any size only what is asked for is in memory.

* `open_checkpoint(path)`: a .safetensors file, or an index with its shards; `Checkpoint`: its tensors by name;
* `one_file(file)`: one that is open.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path, PurePath
from typing import Any, Final, Self

from torch import Tensor

from qkdemo.diagnose.readers.inputs import InputError
from qkdemo.diagnose.readers.safetensors import Entry, Safetensors

_MOST_INDEX: Final = 64 << 20  # bytes
_MOST_WEIGHT: Final = 4 << 30  # one layer's fused projection of a very wide model
_MOST_SHARDS: Final = 99_999  # by a name alone
_SHARD: Final = re.compile(
    r"(.*)-(\d{5,})-of-(\d{5,})\.safetensors"
)  # as transformers names them; some have six digits


class Checkpoint:
    """Open files of one checkpoint; close it, or use it in a `with`. Raises InputError."""

    def __init__(
        self,
        files: Mapping[str, Safetensors],
        homes: Mapping[str, str],
        missing: Sequence[str] = (),
        elsewhere: Sequence[str] = (),
    ) -> None:
        """`homes`: tensor → file; `missing`: shards that are not read; `elsewhere`: tensors that an index places there.

        Without an index it is not known what they hold.
        """
        self._files, self._homes = files, homes
        self.missing, self.elsewhere = tuple(missing), tuple(elsewhere)
        self._open = ExitStack()

    @property
    def names(self) -> tuple[str, ...]:
        """Every tensor that can be read."""
        return tuple(self._homes)

    @property
    def formats(self) -> frozenset[str]:
        """What the headers call the format: pt where transformers saved them, mlx where MLX did."""
        return frozenset(str(file.metadata.get("format", "")) for file in self._files.values())

    def entry(self, tensor: str) -> Entry:
        """What the header says of a tensor."""
        return self._files[self._homes[tensor]].entries[tensor]

    def rows(self, tensor: str, start: int, stop: int) -> Tensor:
        """Rows of a tensor in float64."""
        return self._files[self._homes[tensor]].rows(tensor, start, stop, _MOST_WEIGHT).double()

    def read(self, tensor: str) -> Tensor:
        """A tensor in float64."""
        return self.stored(tensor).double()

    def stored(self, tensor: str) -> Tensor:
        """A tensor in the format of its file."""
        return self._files[self._homes[tensor]].read(tensor, _MOST_WEIGHT)

    def keep(self, stack: ExitStack) -> Self:
        """Owns the streams from now on."""
        self._open = stack
        return self

    def close(self) -> None:
        """Close every file."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint at `path`: a .safetensors file, its .index.json, or a folder with either. Raises InputError.

    Of a folder without an index all files are read; a tensor that several hold is that of model.safetensors, or of the
    first. Of one shard beside its index only that shard is read.
    """
    files = [path]
    if path.is_dir():
        files = sorted(path.glob("*.safetensors.index.json"))[:1] or sorted(path.glob("*.safetensors"), key=_order)
        if not files:
            raise InputError("empty_folder", name=path.name)
    if files[0].suffix == ".json":
        return _of_index(files[0])
    if files == [path] and (index := _index_of(path)):
        return _of_index(index, path.name)
    with ExitStack() as stack:
        read = {file.name: Safetensors(stack.enter_context(_opened(file)), file.name) for file in files}
        homes = {tensor: name for name in reversed(read) for tensor in read[name].entries}
        return Checkpoint(read, homes, _other_shards(read)).keep(stack.pop_all())


def one_file(file: Safetensors) -> Checkpoint:
    """A checkpoint of one file, which may be a shard by its name."""
    return Checkpoint({file.name: file}, dict.fromkeys(file.entries, file.name), _other_shards([file.name]))


def _other_shards(names: Collection[str]) -> list[str]:
    """The shards that must be beside these, by their names."""
    found = {
        match[1]: match[3] for name in names if (match := _SHARD.fullmatch(name)) and len(match[2]) == len(match[3])
    }
    every = {
        f"{stem}-{at + 1:0{len(count)}}-of-{count}.safetensors"
        for stem, count in found.items()
        for at in range(min(int(count), _MOST_SHARDS))
    }
    return sorted(every - set(names))


def _index_of(shard: Path) -> Path | None:
    """The index beside a shard that places tensors in it."""
    for index in sorted(shard.parent.glob("*.safetensors.index.json")):
        with suppress(InputError):
            if shard.name in _homes(index).values():
                return index
    return None


def _order(path: Path) -> tuple[bool, str]:
    return path.name != "model.safetensors", path.name


def _opened(path: Path) -> Any:
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError("unopened", name=path.name, reason=error.strerror or "") from None


def _homes(path: Path) -> dict[str, str]:
    """Tensor → file, as an index has them."""
    with _opened(path) as file:
        text = file.read(_MOST_INDEX + 1)
    if len(text) > _MOST_INDEX:
        raise InputError("large_index", name=path.name)
    try:
        homes = json.loads(text)["weight_map"]
        assert all(isinstance(x, str) for pair in homes.items() for x in pair)
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError, RecursionError):
        raise InputError("bad_index", name=path.name) from None
    for file in set(homes.values()):
        if not file.endswith(".safetensors") or file != PurePath(file).name or re.search(r"[\\:\x00-\x1f]", file):
            raise InputError("foreign_shard", name=path.name, file=repr(file))
    return dict(homes)


def _of_index(path: Path, only: str = "") -> Checkpoint:
    """The shards of an index that are there, or `only` one of them."""
    homes = _homes(path)
    there = {only} if only else {file for file in set(homes.values()) if (path.parent / file).is_file()}
    if not there:
        raise InputError("index_alone", name=path.name, count=len(set(homes.values())))
    with ExitStack() as stack:
        files = {file: Safetensors(stack.enter_context(_opened(path.parent / file)), file) for file in sorted(there)}
        known = {name: file for name, file in homes.items() if file in files and name in files[file].entries}
        missing = sorted(set(homes.values()) - there)
        elsewhere = [name for name, file in homes.items() if file in missing]
        return Checkpoint(files, known, missing, elsewhere).keep(stack.pop_all())
