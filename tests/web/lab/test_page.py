"""What the page of a lab makes once for all visitors."""

import dataclasses

import pytest

from qkdemo.labs import drift, epsilon
from qkdemo.labs.drift.sharpness_view import sharpness_exhibit
from qkdemo.messages import PSEUDO, language
from qkdemo.web.lab.made import made
from qkdemo.web.lab.page import _tab


def test_a_state_is_answered_and_drawn_once_in_each_language() -> None:
    asked = list[epsilon.Settings]()

    def run(settings: epsilon.Settings) -> epsilon.Result:
        asked.append(settings)
        return epsilon.run(settings)

    lab = dataclasses.replace(epsilon.LAB, run=run)
    first, again = made(lab, epsilon.Settings()), made(lab, epsilon.Settings())
    assert first is again
    assert len(asked) == 1
    token = language.set(PSEUDO)
    try:
        other = made(lab, epsilon.Settings())
    finally:
        language.reset(token)
    assert len(asked) == 2
    assert other[1][-1].sentences != first[1][-1].sentences
    assert made(lab, epsilon.Settings(norm="layernorm"))[0].settings.norm == "layernorm"


def test_the_page_shows_what_the_lab_says() -> None:
    settings = drift.Settings(scale=16)
    result, sections = made(drift.LAB, settings)
    told = [sentence for section in sections for sentence in section.sentences]
    assert told == list(drift.explain(drift.run(settings))[1:])
    assert result.settings == settings
    table, view = _tab(drift.LAB, settings, "sharpness.tab").exhibit or pytest.fail("nothing is drawn")
    assert view["dial"]["at"] == settings.gain
    assert table.num_rows > 2


def test_the_second_exhibit_is_the_same_table_for_the_same_state() -> None:
    settings = drift.Settings(scale=16)
    swept = drift.sharpness(settings)
    assert swept is not None
    first, again = (sharpness_exhibit(swept, drift.run(settings))[0] for _ in range(2))
    assert first is again  # so that it is packed once
    plain = drift.run(settings).plain
    at = int(abs(drift.run(settings).scales - 16).argmin())
    assert first["plain.top_weight"][0].as_py() == plain.top_weight[at]
