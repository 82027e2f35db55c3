"""A pick comes from the browser, where anyone can write it: what fits no exhibit is dropped, never an error."""

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import pytest

from qkdemo.labs import cache, drift, formats, mla, placement
from qkdemo.labs.cache import view as cache_view
from qkdemo.labs.cost import view as cost_view
from qkdemo.labs.drift import view as drift_view
from qkdemo.labs.epsilon import view as epsilon_view
from qkdemo.labs.formats import view as formats_view
from qkdemo.labs.mla import view as mla_view
from qkdemo.labs.placement import view as placement_view
from qkdemo.labs.rope import view as rope_view
from qkdemo.web.lab.exhibit import read_pick

NUMBERS = ("dial", "query", "key", "row", "column", "news")
READERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "cache": partial(cache_view.picked, cache.Settings()),
    "drift": partial(drift_view.picked, drift.Settings()),
    "cost": cost_view.picked,
    "epsilon": epsilon_view.picked,
    "formats": partial(formats_view.picked, formats.Settings()),
    "mla": partial(mla_view.picked, mla.Settings()),
    "placement": partial(placement_view.picked, placement.Settings()),
    "rope": lambda pick: rope_view.picked(pick, "position"),
}


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
