"""Every reader of somebody's file, as a target for fuzzing: `python -m tests.diagnose.fuzz csv [FLAGS of libFuzzer]`.

That needs atheris (`pip install atheris`, which has wheels for some Pythons alone); the corpus that it found lies in
`corpus/`, a folder for each reader, and is replayed by `test_fuzz.py` without it. A target reads what it is given to
the end, report and all, or raises InputError; anything else is a fault.
"""

import hashlib
import importlib
import io
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import safetensors.torch
import torch

from qkdemo.diagnose.findings.examine import examine
from qkdemo.diagnose.paper import as_json, html
from qkdemo.diagnose.readers.arrays import read_arrays
from qkdemo.diagnose.readers.inputs import InputError
from qkdemo.diagnose.readers.safetensors import Safetensors
from qkdemo.diagnose.weights.checkpoint import open_checkpoint
from qkdemo.diagnose.weights.layers import run as run_checkpoint

CORPUS: Final = Path(__file__).parent / "corpus"
_LONGEST: Final = 20_000  # bytes of an input
_MOST_MEMORY: Final = 2048  # MiB
_SHARD: Final = safetensors.torch.save({"model.layers.0.self_attn.q_proj.weight": torch.ones(4, 4)})


def read_safetensors(data: bytes) -> None:
    """The header, and every tensor that it names."""
    file = Safetensors(io.BytesIO(data), "x.safetensors")
    for name in file.entries:
        with suppress(InputError):
            file.read(name)


def read_index(data: bytes) -> None:
    """An index of shards, beside one shard."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.safetensors").write_bytes(_SHARD)
        index = Path(folder) / "model.safetensors.index.json"
        index.write_bytes(data)
        with open_checkpoint(index) as opened:
            run_checkpoint(opened)


def read_whole(data: bytes, name: str) -> None:
    """A file of any kind, through its diagnosis to its report."""
    report = examine(data, name)
    html(report)
    as_json(report)


TARGETS: Final[Mapping[str, Callable[[bytes], object]]] = {
    "safetensors": read_safetensors,
    "checkpoint": partial(read_whole, name="x.safetensors"),
    "index": read_index,
    "arrays": lambda data: read_arrays(io.BytesIO(data), "x.npz"),
    "tensors": partial(read_whole, name="x.npz"),
    "events": partial(read_whole, name="events.out.tfevents.1"),
    "parquet": partial(read_whole, name="x.parquet"),
    "csv": partial(read_whole, name="x.csv"),
    "jsonl": partial(read_whole, name="x.jsonl"),
    "trainer_state": partial(read_whole, name="trainer_state.json"),
    "lines": partial(read_whole, name="x.log"),
    "pasted": partial(read_whole, name="pasted"),
}


def attempt(reader: str, data: bytes) -> None:
    """Raises whatever is no InputError."""
    with suppress(InputError):
        TARGETS[reader](data)


def main(reader: str, flags: list[str]) -> None:
    """Fuzz one reader; flags are libFuzzer's, as in -max_total_time=600."""
    import atheris  # noqa: PLC0415  only who fuzzes needs it

    for name in [name for name in sys.modules if name.startswith(("qkdemo.diagnose", "tests.diagnose"))]:
        del sys.modules[name]
    with atheris.instrument_imports(include=["qkdemo.diagnose"]):
        attempt_it = importlib.import_module("tests.diagnose.fuzz").attempt  # its readers anew, now watched
    folder = CORPUS / reader

    def keep(data: bytes) -> None:
        try:
            attempt_it(reader, data)
        except BaseException:
            (folder / f"found-{hashlib.sha256(data).hexdigest()[:12]}").write_bytes(data)
            raise

    limits = [f"-max_len={_LONGEST}", "-timeout=20", f"-rss_limit_mb={_MOST_MEMORY}"]
    atheris.Setup([sys.argv[0], *limits, *flags, str(folder)], keep)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
