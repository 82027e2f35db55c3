"""What a stop of a track asks for in the drift exhibit is a column that the exhibit has."""

from functools import lru_cache

import pytest

from qkdemo.labs import drift
from qkdemo.labs.drift.view import drift_exhibit
from qkdemo.tracks.catalogue import TRACKS
from qkdemo.tracks.stop import Estimate

ESTIMATES = [
    pytest.param(stop.ask, id=f"{track}-{stop.name}")
    for track, stops in TRACKS.items()
    for stop in stops
    if stop.lab is drift.LAB and isinstance(stop.ask, Estimate)
]


@lru_cache(maxsize=1)
def drawn_columns() -> set[str]:
    _, view = drift_exhibit(drift.run(drift.Settings()))
    return {line["column"] for panel in view["panels"] if panel["kind"] == "curves" for line in panel["lines"]}


@pytest.mark.parametrize("ask", ESTIMATES)
def test_an_estimate_is_of_a_curve_that_is_drawn(ask: Estimate) -> None:
    assert ask.column in drawn_columns()
