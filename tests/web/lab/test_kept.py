"""What is made for one visitor is kept for the next, up to a number of bytes."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from qkdemo import messages
from qkdemo.labs.drift import LAB
from qkdemo.web.lab.kept import bytes_of, within
from qkdemo.web.lab.made import made, make

MB = 1 << 20


@dataclass(frozen=True)
class Made:
    """A table, and a part of another array."""

    table: pa.Table
    part: np.ndarray


def test_as_much_is_kept_as_there_is_room_for_and_what_was_asked_for_longest_ago_goes() -> None:
    calls = []

    @within(3 * MB + 4096)
    def zeros(name: str, megabytes: int = 1) -> np.ndarray:
        calls.append(name)
        return np.zeros(megabytes * MB, dtype=np.uint8)

    for name in "abcabcada":  # three fit; d pushes out b
        zeros(name)
    assert calls == list("abcd")
    zeros("b")
    assert calls[-1] == "b"
    zeros("large", megabytes=2)
    assert sum(bytes_of(one) for one, _ in zeros.kept.values()) <= 3 * MB + 4096
    zeros("too large", megabytes=4)
    assert not zeros.kept


def test_every_language_has_its_own() -> None:
    @within(MB)
    def spoken() -> str:
        return messages.language.get()

    assert spoken() == "en"
    token = messages.language.set(messages.PSEUDO)
    try:
        assert spoken() == messages.PSEUDO
    finally:
        messages.language.reset(token)


def test_bytes_are_those_of_all_that_is_held_once() -> None:
    column = np.zeros(MB // 8)
    one = Made(pa.table({"x": np.zeros(MB // 8)}), column[:3])
    assert 2 * MB <= bytes_of(one) < 2.01 * MB
    assert bytes_of([one, one, {"again": column}]) < 2.01 * MB
    assert bytes_of("x" * MB) >= MB


def test_what_a_page_shows_is_kept_by_its_size() -> None:
    settings = LAB.settings(n_keys=8, d_head=8)
    assert made(LAB, settings) is made(LAB, settings)
    sizes = [size for _, size in made.kept.values()]
    table, _ = made(LAB, settings)[1][0].exhibit
    assert table.nbytes < sizes[-1] == pytest.approx(bytes_of(make(LAB, settings)), rel=0.1)
