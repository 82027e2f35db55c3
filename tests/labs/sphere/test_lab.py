"""The sphere against formulas written out, and the claims that the lab makes."""

import contextlib
import io
import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkdemo.charts.space import camera
from qkdemo.charts.theme import DARK, LIGHT
from qkdemo.labs.sphere import PRESETS, Settings, direction_rows, rows, run, snippet
from qkdemo.labs.sphere.lab import FRAME, LATITUDES, direction, report, unit
from qkdemo.labs.sphere.plane import PLANE
from qkdemo.labs.sphere.regions import borders, regions
from qkdemo.labs.sphere.view import plain_arrows, score_surfaces, sphere
from qkdemo.labs.sphere.words import alt_plain, alt_scores, alt_sphere, explain, shares
from tests.strategies import settings_of


@given(settings=settings_of(Settings))
def test_weights_are_those_of_torch(settings: Settings) -> None:
    settings = settings.but(scale=min(settings.scale, 20), query_length=round(settings.query_length, 1))
    result = run(settings)
    q, k = torch.from_numpy(result.query)[None], torch.from_numpy(result.keys)
    plain = (q @ k.T / math.sqrt(3)).softmax(-1)[0]
    norm = (settings.gain * (torch.nn.functional.normalize(q) @ torch.nn.functional.normalize(k).T)).softmax(-1)[0]
    assert result.plain.weights == pytest.approx(plain.numpy(), rel=1e-9, abs=1e-12)
    assert result.twin.weights == pytest.approx(norm.numpy(), rel=1e-9, abs=1e-12)


def test_all_keys_together_have_the_whole_sphere() -> None:
    result = run(Settings(seed=4))
    for side in (result.plain, result.twin):
        assert sum(side.territory(at) for at in range(5)) == pytest.approx(1)


def test_two_opposite_keys_share_the_sphere_along_the_equator_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    class Drawn:
        @staticmethod
        def standard_normal(shape: tuple[int, int]) -> np.ndarray:
            return np.array([[0.0, 0, 1], [0, 0, -2]])

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Drawn())
    settings = Settings(n_keys=2, gain=3, seed=9123)
    result = run(settings)
    north = LATITUDES[:, None] > 0
    assert (result.twin.winners == 0)[np.broadcast_to(north, result.twin.winners.shape)].all()
    top = 1 / (1 + np.exp(-2 * 3 * np.abs(np.sin(np.radians(LATITUDES)))))
    assert result.twin.top[:, 0] == pytest.approx(top)
    run.cache_clear()


@given(gain=st.floats(0.1, 40), seed=st.integers(0, 50))
def test_g_moves_no_border_and_makes_every_direction_surer(gain: float, seed: int) -> None:
    blunt, sharp = (run(Settings(gain=g, seed=seed)).twin for g in (gain, 2 * gain))
    clear = blunt.top - 1 / 5 > 1e-6  # on a border itself two keys are equal
    assert (blunt.winners == sharp.winners)[clear & (sharp.top > 0.5)].all()
    assert (sharp.top >= blunt.top - 1e-12).all()
    assert sharp.decided >= blunt.decided


@given(scale=st.floats(1, 900), seed=st.integers(0, 50))
def test_the_scale_changes_nothing_on_the_normalised_side(scale: float, seed: int) -> None:
    one, other = (run(Settings(scale=s, seed=seed)) for s in (1, scale))
    assert np.array_equal(one.twin.winners, other.twin.winners)
    assert np.array_equal(one.twin.weights, other.twin.weights)
    assert np.linalg.norm(other.keys, axis=-1) == pytest.approx(scale * np.linalg.norm(one.keys, axis=-1))


def test_arrows_leave_the_frame_as_the_scale_grows() -> None:
    assert [run(Settings(scale=scale)).outside for scale in (1, 2, 10)] == [0, 1, 6]


@pytest.mark.parametrize("scale", [1, 1.2, 2, 3, 4])
def test_as_many_arrows_are_cut_and_say_their_length_as_are_said_to_leave_the_frame(scale: float) -> None:
    for seed in range(20):
        result = run(Settings(scale=scale, seed=seed))
        tips = [trace for trace in plain_arrows(result, LIGHT)["data"] if "text" in trace]
        cut = [trace for trace in tips if trace["marker"]["symbol"] == "square-open"]
        assert len(cut) == result.outside == sum("length" in trace["text"][0] for trace in tips)
        assert all(max(abs(trace[side][0]) for side in "xyz") == pytest.approx(3) for trace in cut)


def test_the_score_is_a_saddle_without_the_norm_and_a_plateau_with_it() -> None:
    result = run(Settings(scale=2, key=2))
    a, b = result.lengths[5], result.lengths[9]
    assert result.plain_scores[9, 5] == pytest.approx(a * b * result.cosine / math.sqrt(3))
    flat = result.twin_scores[1:, 1:]
    assert flat == pytest.approx(np.full(flat.shape, 10 * result.cosine))
    assert np.isnan(result.twin_scores[0]).all()
    q, k = np.linalg.norm(result.query), np.linalg.norm(result.keys[2])
    assert result.plain.logits[2] == pytest.approx(q * k * result.cosine / math.sqrt(3))
    assert result.twin.logits[2] == pytest.approx(10 * result.cosine)


def test_a_query_points_where_latitude_and_longitude_say() -> None:
    assert direction(Settings(latitude=90)) == pytest.approx([0, 0, 1])
    assert direction(Settings(latitude=0, longitude=90)) == pytest.approx([0, 1, 0])
    assert direction(Settings(latitude=0, longitude=-180)) == pytest.approx([-1, 0, 0])


@pytest.mark.parametrize("name", PRESETS)
def test_the_program_prints_the_same_numbers(name: str) -> None:
    settings, out = PRESETS[name], io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(snippet(settings), "program", "exec"), {"__name__": "__main__"})
    printed, result = json.loads(out.getvalue()), run(settings)
    assert printed["plain"] == pytest.approx(result.plain.weights.tolist())
    assert printed["norm"] == pytest.approx(result.twin.weights.tolist())
    assert printed["decided"] == pytest.approx([result.plain.decided, result.twin.decided])


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_pictures_hold_no_number_that_is_none_and_every_key_has_a_colour_of_its_own(theme) -> None:
    result = run(Settings(scale=30, query_length=0))
    for draw in (plain_arrows, sphere, score_surfaces):
        made = draw(result, theme)
        json.dumps(made, allow_nan=False)
        assert "plotly" not in json.dumps(made)
    words = [trace["text"][0] for trace in plain_arrows(result, theme)["data"] if "text" in trace]
    assert sum("length" in word for word in words) == result.outside == 5
    globe = sphere(run(Settings()), theme)["data"]
    tips = {trace["marker"]["color"] for trace in globe if trace.get("marker")}
    assert len(tips) == 6
    assert not tips & {theme.role("plain"), theme.role("norm")}


def test_arrows_are_cut_at_the_frame_and_keep_their_direction() -> None:
    result = run(Settings(scale=20))
    ends = [
        np.array([trace["x"][0], trace["y"][0], trace["z"][0]])
        for trace in plain_arrows(result, LIGHT)["data"]
        if "marker" in trace
    ]
    for end, key in zip(ends, result.keys, strict=False):
        assert np.abs(end).max() == pytest.approx(FRAME)
        assert unit(end) == pytest.approx(unit(key))


def test_the_query_is_on_the_globe_only_where_it_has_a_direction() -> None:
    for length in (1.5, 0):
        drawn = sphere(run(Settings(query_length=length)), LIGHT)["data"]
        assert ["q"] * bool(length) == [text for trace in drawn for text in trace.get("text", []) if text == "q"]


@pytest.mark.parametrize("settings", [Settings(), Settings(seed=4, n_keys=2), Settings(seed=11, n_keys=4)])
def test_the_globe_is_closed_and_its_corners_lie_on_the_sphere(settings: Settings) -> None:
    globe = sphere(run(settings), LIGHT)["data"][0]
    corners = np.array([globe["x"], globe["y"], globe["z"]]).T
    assert np.linalg.norm(corners, axis=1) == pytest.approx(np.ones(len(corners)), abs=1e-3)
    a, b, c = corners[np.array([globe["i"], globe["j"], globe["k"]])]
    assert np.einsum("ij,ij->i", np.cross(b, c), a).sum() / 6 == pytest.approx(4 / 3 * math.pi, rel=0.01)  # its volume
    around = np.cross(b - a, c - a).sum(0)
    assert around == pytest.approx(np.zeros(3), abs=1e-3)  # the surface has no hole, and no piece twice


@pytest.mark.parametrize("settings", [Settings(), Settings(seed=4, n_keys=2), Settings(seed=11, n_keys=4)])
def test_a_region_holds_what_is_nearest_to_its_key_and_ends_where_two_are_equally_near(settings: Settings) -> None:
    units = np.array([unit(key) for key in run(settings).keys])
    keys = tuple(tuple(key) for key in units.tolist())
    found = regions(keys)
    owners = found.owners[found.triangles]
    assert (owners == owners[:, :1]).all()
    middles = found.points[found.triangles].mean(1) @ units.T
    assert (middles.argmax(-1) == owners[:, 0]).all()
    cosines = np.sort(found.points @ units.T, axis=-1)
    own = (found.points * units[found.owners]).sum(-1)
    assert own == pytest.approx(cosines[:, -1], abs=1e-9)
    lines = np.concatenate(borders(keys))
    lines = lines[~np.isnan(lines[:, 0])]
    assert len(lines) > 100
    top = np.sort(lines @ units.T, axis=-1)
    assert top[:, -1] == pytest.approx(top[:, -2], abs=1e-9)


def test_the_camera_turns_and_keeps_its_distance() -> None:
    eye = camera(90, 0)["eye"]
    assert (eye["x"], eye["z"]) == (pytest.approx(0, abs=1e-12), 0)
    assert math.hypot(*camera(35, 50)["eye"].values()) == pytest.approx(eye["y"])


def test_words_name_every_key_and_what_the_tables_say() -> None:
    result = run(Settings(scale=4))
    assert all(f"key {at}" in alt_plain(result) and f"key {at}" in alt_sphere(result) for at in range(5))
    assert len(rows(result)) == 5
    assert "{" not in alt_scores(result)


def test_a_map_has_the_share_of_the_page_where_the_query_has_no_length_and_no_logit_there() -> None:
    sides = PLANE.read(Settings(gain=50), "query_length", [0.0, 1.5])
    assert sides["plain"]["decided_share"][0] == sides["norm"]["logit"][0] == 0
    assert sides["norm"]["decided_share"][0] == report(Settings(gain=50, query_length=0))["norm_decided"] > 0.9
    assert sides["norm"]["decided_share"][1] == sides["norm"]["decided_share"][0]
    assert sides["norm"]["top_weight"][0] == pytest.approx(0.2)


def test_a_query_without_a_length_chooses_no_key_in_the_tables_either() -> None:
    result = run(Settings(query_length=0))
    assert {row["plain_territory"] for row in rows(result)} == {None}
    assert {row["plain_key"] for row in direction_rows(result)} == {None}
    assert sum(float(row["norm_territory"] or 0) for row in rows(result)) == pytest.approx(1)
    assert all(row["plain_territory"] for row in rows(run(Settings())))


def test_a_query_of_length_0_gives_no_key_a_direction_in_plain_attention() -> None:
    result = run(Settings(query_length=0))
    assert shares(result.plain) == "In every direction all keys have the same weight."
    assert shares(result.twin).startswith("Of all directions")
    assert explain(result)[1].startswith("A query that has a length")
    assert shares(run(Settings(query_length=0.1, scale=0.01)).plain).startswith("Of all directions")
