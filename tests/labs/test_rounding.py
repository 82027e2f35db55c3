"""What is rounding is said to be that, and nothing more: another machine's last digits change no text."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from qkdemo.charts.columns import gap, gap_in_words
from qkdemo.cli.tables import table
from qkdemo.floats.formats import noise
from qkdemo.labs import cache, mla, placement, rope
from qkdemo.labs.cache.view import cache_exhibit
from qkdemo.labs.registry import LABS
from qkdemo.web.lab.takeaway import without_noise

ULPS = (0, 1, 3, 40)  # of another machine, beside this one's


@pytest.mark.parametrize("x", [0.0, 3e-17, 7.2e-16, 9.3e-16, 1.1e-15, 4e-14])
def test_a_difference_that_is_rounding_reads_the_same_whatever_its_digits(x: float) -> None:
    assert gap(x, noise("float64")) == "< 10⁻¹²"
    assert gap_in_words(x, noise("float64")) == "less than 10⁻¹²"


def test_a_difference_that_is_more_keeps_its_digits() -> None:
    assert gap(1.25e-3, noise("float64")) == "1.25·10⁻³"
    assert gap_in_words(0.0123, noise("float32")) == "0.0123"
    assert gap(0.0, noise("bfloat16")) == "0"
    assert gap(float("nan"), noise("float64")) == "undefined"


def moved(lab: Any, settings: Any, fields: tuple[str, ...], ulps: int) -> list[str]:
    """What the lab says of a result whose differences are some units in the last place of 1 further apart."""
    found = lab.run(settings)
    further = {name: getattr(found, name) + ulps * np.finfo(float).eps for name in fields}
    return list(lab.LAB.explain(replace(found, **further)))


# The same function read in two ways: what sets the sides apart is the order of sums.
ALIKE = {
    "placement": (
        placement,
        placement.PRESETS["gain_permuted"],
        ("relative_raw_error", "relative_score_error", "largest_weight_difference", "relative_output_error"),
    ),
    "cache": (
        cache,
        cache.Settings(way="halfway", format="float64"),
        ("weight_error", "logit_error", "key_error"),
    ),
    "mla": (mla, mla.Settings(), ("relative_difference",)),
}


@pytest.mark.parametrize("name", ALIKE)
def test_a_few_units_in_the_last_place_change_no_sentence(name: str) -> None:
    lab, settings, fields = ALIKE[name]
    assert len({tuple(moved(lab, settings, fields, ulps)) for ulps in ULPS}) == 1


def test_the_logit_that_does_not_move_does_so_on_any_machine() -> None:
    found = rope.run(rope.Settings())
    texts = set()
    for ulps in ULPS:
        logit = found.norm_rotary.logit.copy()
        logit[0] += ulps * np.finfo(float).eps * abs(logit[0])
        side = replace(found.norm_rotary, logit=logit)
        texts.add(tuple(rope.LAB.explain(replace(found, norm_rotary=side))))
    assert len(texts) == 1


def test_the_chart_of_a_cache_draws_rounding_as_none() -> None:
    drawn, view = cache_exhibit(cache.run(cache.Settings(way="normed_again", gains="unit", epsilon=1e-12)))
    ticks = next(panel for panel in view["panels"] if panel.get("y", {}).get("ticks"))["y"]["ticks"]
    assert ticks[0][1] == "0"
    assert set(drawn["error.finished"].to_pylist()) == {ticks[0][0]}


ROWS = [{"relative_score_error": x, "logits": 0.5} for x in (7.2e-16, 9.3e-16)]


@pytest.mark.parametrize("plainly", [False, True])
def test_a_table_prints_rounding_the_same_on_any_machine(plainly: bool) -> None:
    first, second = (table([row], (), placement.LAB.noise, plainly=plainly) for row in ROWS)
    assert first == second
    assert first.split()[2:] == (["0", "0.5"] if plainly else ["<", "10⁻¹²", "0.5"])


def test_a_page_shows_rounding_as_none_and_its_files_keep_every_digit() -> None:
    assert without_noise(ROWS, placement.LAB.noise) == [{"relative_score_error": 0.0, "logits": 0.5}] * 2
    assert ROWS[0]["relative_score_error"] == 7.2e-16


def test_every_column_that_may_be_rounding_is_a_column_of_a_table() -> None:
    for lab in LABS.values():
        if not lab.noise:
            continue
        known: set[str] = set()
        result = lab.run(lab.settings())
        for make in lab.tables(result).values():
            known |= {name for row in make() for name in row}
        if lab.report is not None:
            for state in (lab.settings(), *lab.presets.values()):
                for part in lab.report(state).values():
                    known |= {name for row in part for name in row} if isinstance(part, list) else set()
        assert set(lab.noise) <= known, lab.name
