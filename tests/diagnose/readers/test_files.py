"""Every way in which a file can be wrong gets its sentence, before memory is taken; what is right is read exactly."""

import io
import json
import math
import struct
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkdemo.diagnose.findings import examine as examined
from qkdemo.diagnose.readers import arrays
from qkdemo.diagnose.readers.arrays import read_arrays
from qkdemo.diagnose.readers.inputs import InputError
from qkdemo.diagnose.readers.safetensors import _OTHER_BITS, Safetensors

GOOD = safetensors.torch.save({"a": torch.tensor([[1.0, 2], [3, 4]]), "b": torch.tensor([5.0])})


def opened(data: bytes) -> Safetensors:
    return Safetensors(io.BytesIO(data), "x.safetensors")


def made(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(shape: Any, offsets: Any, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def npy(array: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array, **options)
    return out.getvalue()


def header_of(shape: str, descr: str = "<f4") -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def npz(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return out.getvalue()


def saved_by_torch(count: int = 2) -> bytes:
    out = io.BytesIO()
    torch.save({f"layers.{at}.weight": torch.ones(2, 3) for at in range(count)}, out)
    return out.getvalue()


def test_what_the_formats_own_library_writes_is_read() -> None:
    kinds = (
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.float8_e4m3fn,
        torch.float8_e5m2,
        torch.int64,
        torch.bool,
    )
    tensors = {str(kind): torch.arange(6).reshape(2, 3).to(kind) for kind in kinds} | {"none": torch.zeros(0, 3)}
    file = opened(safetensors.torch.save(tensors))
    for name, tensor in tensors.items():
        assert file.read(name).dtype == tensor.dtype
        assert file.read(name).double().tolist() == tensor.double().tolist()
        if len(tensor):
            assert file.rows(name, 1, 2).double().tolist() == tensor[1:].double().tolist()


def test_bits_of_narrow_formats_are_what_they_mean() -> None:
    data = bytes.fromhex("803F40C0") + bytes.fromhex("7E7F38FF") + bytes.fromhex("7B7C3CFE")
    header = {
        "bf16": entry([2], [0, 4], "BF16"),
        "e4m3": entry([4], [4, 8], "F8_E4M3"),
        "e5m2": entry([4], [8, 12], "F8_E5M2"),
        "e4m3fnuz": entry([2], [12, 14], "F8_E4M3FNUZ"),
        "e5m2fnuz": entry([2], [14, 16], "F8_E5M2FNUZ"),
    }
    data += bytes.fromhex("7F80") + bytes.fromhex("7F80")
    file = opened(made(header, data))
    assert file.read("bf16").tolist() == [1.0, -3.0]
    assert file.read("e4m3").float().tolist() == pytest.approx([448, math.nan, 1, math.nan], nan_ok=True)
    assert file.read("e5m2").float().tolist() == pytest.approx([57344, math.inf, 1, math.nan], nan_ok=True)
    assert file.read("e4m3fnuz").float().tolist() == pytest.approx([240, math.nan], nan_ok=True)
    assert file.read("e5m2fnuz").float().tolist() == pytest.approx([57344, math.nan], nan_ok=True)


@pytest.mark.parametrize("dtype", ["F4", "F6_E2M3", "F6_E3M2", "U16", "U32", "U64", "C64"])
def test_a_format_that_is_known_and_not_read_stops_only_its_own_tensor(dtype: str) -> None:
    file = opened(
        made(
            {"a": entry([4], [0, _OTHER_BITS[dtype] // 2], dtype), "b": entry([0], [_OTHER_BITS[dtype] // 2] * 2)},
            bytes(_OTHER_BITS[dtype] // 2),
        )
    )
    assert file.read("b").tolist() == []
    with pytest.raises(InputError, match=f"a is stored as {dtype}, which is no number format that is read here"):
        file.read("a")


WRONG_SAFETENSORS: dict[str, tuple[bytes, str]] = {
    "data cut": (GOOD[:-8], "ends early: 12 of 20 bytes"),
    "header cut": (GOOD[:40], "ends within its header"),
    "seven bytes": (bytes(7), "has 7 bytes"),
    "empty": (b"", "has 0 bytes"),
    "LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "Git LFS pointer"),
    "page": (b"<!DOCTYPE html><html><body>no</body></html>", "a web page"),
    "zip": (npz(a=npy(np.zeros(2))), "a ZIP archive"),
    "of torch.save": (saved_by_torch(), "not a .safetensors file, but a Python pickle"),
    "pickle": (b"\x80\x02}q\x00" + bytes(60), "pickle, which could run anything"),
    "length bomb": (struct.pack("<Q", 2**63) + b"{}", "claims a header of 9223372036854775808 bytes"),
    "just too long": (struct.pack("<Q", 100_000_001) + b"{}", "claims a header of 100000001 bytes"),
    "no JSON": (made(b"{'a': 1}"), "is no JSON"),
    "deep JSON": (made(b"[" * 50_000), "is no JSON"),
    "no object": (made([1]), "no JSON object"),
    "twice": (made(b'{"a": 1, "a": 2}'), "names 'a' twice"),
    "huge shape": (made({"a": entry([2**32, 2**32], [0, 16])}, bytes(16)), "which is 73786976294838206464 bytes"),
    "negative": (made({"a": entry([-1], [0, 4])}, bytes(4)), "a shape or a place that is none"),
    "no word": (
        made({"a": entry([1], [0, 4]) | {"dtype": 3}}, bytes(4)),
        "has a dtype, a shape or a place that is none",
    ),
    "axes": (made({"a": entry([1] * 17, [0, 4])}, bytes(4)), "a in x.safetensors has 17 axes; at most 16 are read"),
    "no header": (
        struct.pack("<Q", 300) + bytes(200),
        "The download is not complete, or this is no .safetensors file.",
    ),
    "real": (made({"a": entry([1.5], [0, 4])}, bytes(4)), "a shape or a place that is none"),
    "true": (made({"a": entry([True], [0, 4])}, bytes(4)), "a shape or a place that is none"),
    "no place": (made({"a": {"dtype": "F32", "shape": [1]}}, bytes(4)), "lacks its dtype, shape or place"),
    "unknown": (made({"a": entry([1], [0, 4], "F31")}, bytes(4)), "'F31', which is no known format"),
    "overlap": (made({"a": entry([1], [0, 4]), "b": entry([1], [0, 4])}, bytes(4)), "overlaps the tensor before it"),
    "gap": (made({"a": entry([1], [0, 4]), "b": entry([1], [8, 12])}, bytes(12)), "leaves 4 bytes unused"),
    "trailing": (GOOD + b"x", "has 1 byte after its last tensor"),
}


@pytest.mark.parametrize("name", WRONG_SAFETENSORS)
def test_a_wrong_safetensors_file_gets_its_sentence(name: str) -> None:
    data, sentence = WRONG_SAFETENSORS[name]
    with pytest.raises(InputError) as error:
        opened(data)
    assert sentence in str(error.value)
    assert str(error.value).endswith((".", "?"))


def test_a_tensor_that_is_too_large_or_not_there_gets_its_sentence() -> None:
    file = opened(GOOD)
    for act, sentence in (
        (lambda: file.read("c"), "has no tensor 'c'"),
        (lambda: file.read("a", most=8), "a needs more than 8 bytes, and no more is read at once"),
        (lambda: file.rows("a", 1, 3), r"a has the shape \[2, 2\], so no rows 1 to 3"),
    ):
        with pytest.raises(InputError, match=sentence):
            act()


@given(data=st.binary(max_size=200), at=st.integers(0, len(GOOD) - 1), byte=st.integers(0, 255))
def test_any_bytes_are_read_or_get_a_sentence(data: bytes, at: int, byte: int) -> None:
    flipped = GOOD[:at] + bytes([byte]) + GOOD[at + 1 :]
    for mess in (data, made(data), flipped):
        with suppress(InputError):
            file = opened(mess)
            for name, found in file.entries.items():
                if found.dtype == "F32":
                    file.read(name)


def test_arrays_are_read_from_all_three_kinds(tmp_path: Path) -> None:
    q, k = np.arange(6, dtype=np.float16).reshape(2, 3), np.asfortranarray(np.ones((2, 3)))
    files = {
        "pair.npz": npz(q=npy(q), k=npy(k)),
        "pair.safetensors": safetensors.torch.save({"q": torch.from_numpy(q), "k": torch.ones(2, 3).double()}),
    }
    for name, data in files.items():
        found = read_arrays(io.BytesIO(data), name)
        assert sorted(found) == ["k", "q"]
        assert found["q"].dtype == torch.float16
        assert found["q"].tolist() == q.tolist()
        assert found["k"].tolist() == k.tolist()
    assert list(read_arrays(io.BytesIO(npy(q)), "folder/q.npy")) == ["q"]


def bomb() -> bytes:
    return npz(a=npy(np.zeros(1 << 21)))


WRONG_ARRAYS: dict[str, tuple[Callable[[], bytes], str]] = {
    "objects": (lambda: npy(np.array([{"a": 1}, None], dtype=object), allow_pickle=True), "holds Python objects"),
    "structured": (lambda: npy(np.zeros(2, [("a", "f4")])), "is a structured array"),
    "complex": (lambda: npy(np.zeros(2, complex)), "holds complex numbers"),
    "void": (lambda: npy(np.zeros(2, "V2")), "raw entries of 2 bytes, and does not say in which number format"),
    "big endian": (lambda: npy(np.zeros(2, ">f4")), r"holds big-endian numbers; save it with .astype('f4')"),
    "text": (lambda: npy(np.array(["a"])), "holds <U1, which is no number"),
    "huge": (lambda: header_of("(1000000000000,)"), "claims the shape [1000000000000]"),
    "huge square": (lambda: header_of("(4294967296, 4294967296)"), "claims the shape"),
    "negative": (lambda: header_of("(-1,)"), "claims the shape [-1]"),
    "short": (lambda: npy(np.zeros(20))[:-4], "ends early: 156 of 160 bytes"),
    "trailing": (lambda: npy(np.zeros(2)) + b"x" * 200, "has bytes after its last number"),
    "long header": (lambda: header_of("(1,)" + " " * 60_000), "has no .npy header that can be read"),
    "header bomb": (lambda: b"\x93NUMPY\x02\x00\xf0\xff\xff\xff", "has no .npy header that can be read"),
    "version": (lambda: b"\x93NUMPY\x09\x00" + bytes(40), ".npy format 9.0"),
    "zip bomb": (bomb, "Save it without compression: np.savez, not np.savez_compressed."),
    "member": (lambda: npz(a=header_of("(1000000000000,)")), "a.npy in x claims the shape"),
    "cut zip": (lambda: npz(a=npy(np.zeros(9)))[:-30], "is no whole ZIP archive"),
    "of torch.save": (saved_by_torch, "is a Python pickle, which could run anything and is never opened: save"),
    "of torch.save, 144 tensors": (lambda: saved_by_torch(144), "is a Python pickle, which could run anything"),
    "foreign": (lambda: b"hello, world, this is text", "x is of a kind that is not known here"),
    "pickle": (lambda: b"\x80\x04\x95" + bytes(40), "could run anything"),
}


def test_a_size_just_above_the_most_is_not_written_as_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "_MOST_JSON", 20 << 10)
    with pytest.raises(InputError) as error:
        read_arrays(io.BytesIO(json.dumps({"q": [0] * 9000}).encode()), "x.json")
    assert str(error.value).startswith("x.json holds more than 20.0 KiB, and no more of such a file is read.")


@pytest.mark.parametrize("name", WRONG_ARRAYS)
def test_a_wrong_array_gets_its_sentence(name: str) -> None:
    build, sentence = WRONG_ARRAYS[name]
    with pytest.raises(InputError) as error:
        read_arrays(io.BytesIO(build()), "x")
    assert sentence in str(error.value)


def test_a_zip_of_other_things_or_of_too_many_gets_its_sentence() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("../evil.txt", "x")
    with pytest.raises(InputError, match=r"holds \.npy files alone"):
        read_arrays(io.BytesIO(out.getvalue()), "x.npz")
    with zipfile.ZipFile(out, "a") as archive:
        for at in range(101):
            archive.writestr(f"{at}.jpg", "x")
    with pytest.raises(InputError, match=r"holds \.npy files alone"):
        read_arrays(io.BytesIO(out.getvalue()), "x.npz")
    with pytest.raises(InputError, match="holds 101 arrays"):
        read_arrays(io.BytesIO(npz(**{f"a{at}": npy(np.zeros(1)) for at in range(101)})), "x.npz")


LARGE: dict[str, tuple[bytes, str]] = {
    "m.gguf": (b"GGUF\x03\x00\x00\x00", "m.gguf is a GGUF file, which is not read here"),
    "old.bin": (b"\x80\x02}q\x00", "old.bin is a Python pickle, which could run anything"),
    "torch.bin": (saved_by_torch(144), "torch.bin is a Python pickle, which could run anything"),
    "m.h5": (b"\x89HDF\r\n\x1a\n", "m.h5 is an HDF5 file"),
    "x.msgpack": (bytes(8), "Bring a part of it as .npz, .safetensors or a log"),
}


@pytest.mark.parametrize("name", LARGE)
def test_of_what_is_too_large_the_kind_is_told_first(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No part of such a file is read either, where its kind is not."""
    data, sentence = LARGE[name]
    monkeypatch.setattr(examined, "MOST_BYTES", 4)
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError) as error:
        examined.examine_path(tmp_path / name)
    assert sentence in str(error.value)
    with pytest.raises(InputError) as error:
        examined.examine(data, name)
    wanted = sentence if "part" not in sentence else "From a shell a .safetensors checkpoint of any size is read"
    assert wanted in str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("model.safetensors.index.json", {"weight_map": {"a": "b.safetensors"}}, "an index of shards"),
        ("config.json", {"architectures": ["X"], "model_type": "x", "windows": [1]}, "the config.json of a model"),
        ("config.json", {"architectures": ["X"], "model_type": "x"}, "the config.json of a model"),
        ("config.json", {"a": [[1], [2, 3]], "model_type": "x"}, "the config.json of a model"),
    ],
)
def test_what_lies_beside_weights_is_told_by_its_kind(name: str, content: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=f"{name} is no training log, but {sentence}"):
        examined.examine(json.dumps(content, indent=2).encode(), name)


@given(at=st.integers(0, 10_000), byte=st.integers(0, 255), cut=st.integers(0, 10_000))
def test_a_damaged_archive_is_read_or_gets_a_sentence(at: int, byte: int, cut: int) -> None:
    whole = npz(q=npy(np.arange(12.0)), k=npy(np.ones(3, "f2")))
    damaged = bytearray(whole)
    damaged[at % len(whole)] = byte
    for data in (bytes(damaged), whole[: cut % len(whole)]):
        with suppress(InputError):
            read_arrays(io.BytesIO(data), "x.npz")


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("names", [("q", "k"), ("query_states", "key_states"), ("mine", "reference")])
def test_pasted_arrays_are_read_whatever_their_names_and_lines(names: tuple[str, str], indent: int | None) -> None:
    arrays = {name: [[1.0, 2.0], [3.0, 4.0]] for name in names}
    read = read_arrays(io.BytesIO(json.dumps(arrays, indent=indent).encode()), "pasted lines")
    assert {name: x.tolist() for name, x in read.items()} == arrays
