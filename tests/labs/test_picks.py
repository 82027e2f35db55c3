"""A pick comes from the browser, where anyone can write it: what fits no exhibit is dropped, never an error."""

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import pytest

from qkdemo.labs.registry import LABS
from qkdemo.web.lab.exhibit import read_pick

NUMBERS = ("dial", "query", "key", "row", "column", "news")
READERS: dict[str, Callable[[Any], Any]] = {lab.name: partial(lab.picked, lab.settings()) for lab in LABS.values()}


@pytest.mark.parametrize("lab", READERS)
@pytest.mark.parametrize("value", [0, 1, 10**6])
def test_no_pick_of_any_names_breaks_a_lab(lab: str, value: int) -> None:
    for count in range(1, len(NUMBERS) + 1):
        for names in combinations(NUMBERS, count):
            pick = read_pick(dict.fromkeys(names, value))
            assert pick is not None
            assert isinstance(READERS[lab](pick), dict)


@pytest.mark.parametrize("lab", READERS)
@pytest.mark.parametrize("message", [{"column": 1}, {"news": 3}, {"command": "play"}])
def test_what_fits_no_exhibit_sets_no_dial(lab: str, message: dict[str, Any]) -> None:
    pick = read_pick(message)
    assert pick is not None
    assert READERS[lab](pick) == {}
