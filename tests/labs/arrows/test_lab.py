"""The arrows against the formula written out, and the claims that the lab makes."""

import contextlib
import io
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkdemo.floats.formats import FORMATS
from qkdemo.labs.arrows import PRESETS, Settings, explain, percent, run, snippet
from tests.strategies import settings_of

LIMIT = FORMATS["float16"].limit


def by_hand(settings: Settings) -> tuple[list[float], list[float]]:
    """Shares of both sides, from lengths and angles alone: no vector is formed."""
    angle = settings.query_angle
    cosines = [math.cos(math.radians(other - angle)) for _, other in settings.keys]
    sizes = [settings.scale * size for size in (settings.query_length, *(size for size, _ in settings.keys))]
    units = [size / max(size, 1e-12) for size in sizes]
    plain = [sizes[0] * size * c / math.sqrt(2) for size, c in zip(sizes[1:], cosines, strict=True)]
    norm = [settings.gain * units[0] * unit * c for unit, c in zip(units[1:], cosines, strict=True)]
    return softmax(plain), softmax(norm)


def softmax(logits: list[float]) -> list[float]:
    terms = [math.exp(logit - max(logits)) for logit in logits]
    return [term / math.fsum(terms) for term in terms]


@given(settings=settings_of(Settings))
def test_shares_are_those_of_lengths_and_angles(settings: Settings) -> None:
    settings = settings.but(format="float64", scale=min(settings.scale, 30))
    result = run(settings, [settings.scale])
    plain, norm = by_hand(settings)
    largest = max(1.0, np.abs(result.plain.logits).max())
    assert result.plain.shares[0] == pytest.approx(plain, abs=1e-14 * largest)  # e^x carries x's rounding along
    assert result.twin.shares[0] == pytest.approx(norm, abs=1e-13)


@pytest.mark.parametrize("scale", [2, 4, 32, 1000])
def test_when_all_arrows_grow_plain_attention_takes_the_longest_and_its_twin_the_one_that_agrees(scale: float) -> None:
    settings = Settings(scale=scale)
    result = run(settings, [scale])
    longest = max(range(5), key=lambda key: settings.keys[key][0])
    closest = min(range(5), key=lambda key: abs(settings.keys[key][1] - settings.query_angle))
    assert longest != closest
    assert result.plain.winner(0) == longest
    assert result.twin.winner(0) == closest


def test_growing_changes_nothing_on_the_normalised_side() -> None:
    shares = run(Settings()).twin.shares
    assert shares == pytest.approx(np.broadcast_to(shares[0], shares.shape), rel=1e-9)


@given(length=st.floats(0.1, 3), grown=st.floats(0.1, 3))
def test_the_length_of_the_query_moves_the_plain_side_alone(length: float, grown: float) -> None:
    before, after = (run(Settings(query_length=x), [1.0]) for x in (length, grown))
    assert after.twin.shares == pytest.approx(before.twin.shares, rel=1e-9)
    longer = max(length, grown) > min(length, grown) * 1.01
    tops = sorted((x.plain.shares.max() for x in (before, after)), reverse=(length > grown))
    if longer:
        assert [before.plain.shares.max(), after.plain.shares.max()] == tops


def test_the_preset_that_overflows_has_a_score_beyond_float16_and_no_shares() -> None:
    settings = PRESETS["overflow"]
    result = run(settings, [settings.scale])
    products = [settings.scale**2 * settings.query_length * size for size, _ in settings.keys]
    assert max(products) > LIMIT
    assert np.isnan(result.plain.shares).all()
    assert np.isfinite(result.twin.shares).all()
    assert any("no shares" in sentence for sentence in explain(result))
    below = settings.but(scale=100)
    assert np.isfinite(run(below, [100.0]).plain.shares).all()


@pytest.mark.parametrize("preset", PRESETS)
def test_its_program_prints_the_same_shares(preset: str) -> None:
    settings, out = PRESETS[preset], io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(snippet(settings), "snippet", "exec"), {"__name__": "__main__"})
    printed, result = json.loads(out.getvalue()), run(settings, [settings.scale])
    for name, side in (("plain", result.plain), ("norm", result.twin)):
        assert printed[name] == pytest.approx(side.shares[0].tolist(), rel=1e-9, nan_ok=True)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0 %"), (0.004, "< 1 %"), (0.005, "1 %"), (0.994, "99 %"), (0.995, "> 99 %"), (1, "100 %")],
)
def test_a_share_that_is_neither_nothing_nor_all_is_not_written_as_such(share: float, text: str) -> None:
    assert percent(share) == text


def test_words_with_the_same_share_are_named_together() -> None:
    """Two equal keys at one angle on either side of the query: neither is listened to more than the other."""
    alike = {"query_angle": 0, "key_2_angle": 20, "key_2_length": 1.4, "key_4_angle": -20, "key_4_length": 1.4}
    said = explain(run(Settings(**alike)))[0]  # type: ignore[arg-type]
    assert "listens most to “cat” and “on” on both sides" in said


def test_an_arrow_of_length_0_is_not_said_to_have_length_1() -> None:
    said = "An arrow of length 0 has no direction"
    assert any(said in sentence for sentence in explain(run(Settings(key_3_length=0))))
    assert not any(said in sentence for sentence in explain(run(Settings())))


def test_scores_that_are_all_lost_below_are_not_said_to_be_above() -> None:
    """All keys lie opposite to the query: every score is −∞, and −∞ − (−∞) has no value either."""
    keys = {f"key_{at}_{name}": value for at in range(1, 6) for name, value in (("angle", 180), ("length", 2.0))}
    result = run(Settings(scale=1000, format="float16", query_angle=0, query_length=2, **keys))
    assert (result.plain.raw[result.at] == -np.inf).all()
    said = " ".join(explain(result))
    assert said.startswith("The largest score is infinite, so plain attention has no shares.")
    assert "+∞" not in said
