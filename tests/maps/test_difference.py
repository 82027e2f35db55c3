"""Two maps subtracted: each cell is the difference of what both labs say there, and what leaves the app says so too."""

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pyarrow import csv

from qkdemo.cli.command import main
from qkdemo.dials import SettingsError
from qkdemo.labs.registry import LABS
from qkdemo.maps.cells import Cells, whole
from qkdemo.maps.difference import difference, example, minus_of
from qkdemo.maps.files import as_csv, as_json, program
from qkdemo.maps.picture import look_of, marks_table, picture
from qkdemo.maps.request import MAPPED, request_of
from qkdemo.maps.words import alt, caption, finding

DRIFT = LABS["drift"]
AXES = ("scale:0.1:1000", "d_head")


def subtracted(text: str, measure: str = "entropy_fraction", **dials: object) -> tuple[Cells, Cells]:
    request = request_of("drift", DRIFT.settings(**dials), *AXES, measure)
    minus = minus_of(request, text)
    assert minus is not None
    first = whole(request, 9)
    other = None if minus.request is None else whole(minus.request, 9)
    return first, difference(first, other, minus)


def test_a_side_less_the_other_is_the_difference_of_what_both_show() -> None:
    first, apart = subtracted("plain")
    assert list(apart.sides) == ["norm"]
    assert np.array_equal(apart.shown("norm"), first.shown("norm") - first.shown("plain"))


def test_less_another_state_is_what_the_lab_says_there_less_what_it_says_here() -> None:
    _, apart = subtracted("variant=rms,seed=3")
    state = DRIFT.settings(variant="rms", seed=3, scale=apart.x[2], d_head=apart.y[3])
    assert DRIFT.report is not None
    here = DRIFT.report(state.but(variant="l2", seed=0))["rows"]
    there = DRIFT.report(state)["rows"]
    for role, one, other in zip(("plain", "norm"), here, there, strict=True):
        assert apart.shown(role)[3, 2] == one["entropy_fraction"] - other["entropy_fraction"]


def test_of_a_measure_over_decades_it_is_the_difference_of_powers_of_ten() -> None:
    first, apart = subtracted("plain", "max_abs_logit")
    ratio = first.shown("norm") / first.shown("plain")
    assert np.allclose(10 ** apart.shown("norm"), ratio, rtol=1e-12)
    assert "powers of ten" in look_of(apart).title


def test_colours_go_as_far_down_as_up_from_0() -> None:
    _, apart = subtracted("plain")
    low, high = look_of(apart).domain
    assert -low == high == np.abs(apart.shown("norm")).max()


def test_where_the_sides_do_not_differ_it_says_so_and_draws_no_line() -> None:
    _, apart = subtracted("variant=rms")
    assert "plain attention minus the same at variant=rms: 0 in every cell that has a number" in finding(apart).lower()
    assert "line" not in marks_table(apart, "plain")["layer"].to_pylist()
    assert "line" in marks_table(apart, "norm")["layer"].to_pylist()


@pytest.mark.parametrize("measure", ["logit", "max_abs_logit"])
def test_what_differs_by_rounding_alone_does_not_differ(measure: str) -> None:
    """Norm, then rotary depends on the distance alone: at another position the logits are the same."""
    request = request_of("rope", LABS["rope"].settings(), "distance", "d_head", measure)
    minus = minus_of(request, "position=1000")
    assert minus is not None
    assert minus.request is not None
    apart = difference(whole(request, 9), whole(minus.request, 9), minus)
    assert "norm, then rotary minus the same at position=1000: 0 in every cell" in finding(apart).lower()
    assert np.abs(apart.shown("right")).max() > 0.01


def test_a_state_that_its_sides_name_does_not_tell_is_told() -> None:
    _, apart = subtracted("variant=rms,seed=3")
    assert "scale g minus RMSNorm at variant=rms, seed=3: " in finding(apart)
    assert "attention minus the same at variant=rms, seed=3" in finding(apart)
    assert "at variant=rms, seed=3" in caption(apart)


def test_a_cell_that_is_undefined_on_one_side_is_undefined_in_the_difference() -> None:
    first, apart = subtracted("plain", format="float16")
    lost = np.isnan(first.shown("plain"))
    assert lost.any()
    assert np.isnan(apart.shown("norm"))[lost].all()
    assert "undefined" in alt(apart, "norm")


def test_words_count_the_cells_above_and_below_0() -> None:
    first, apart = subtracted("plain")
    change = first.shown("norm") - first.shown("plain")
    assert f"above 0 in {(change > 0).sum()} of {change.size} cells, below 0 in {(change < 0).sum()}" in finding(apart)
    assert "L2 norm and learned scale g minus plain attention" in caption(apart)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("foo", "'foo' is no side of this map. It has plain, norm."),
        ("variant=l2", "'variant=l2' is the state of the map itself."),
        ("scale=3", "scale is an axis of the map"),
        ("colour=3", "'colour' is no dial that the other map can differ in."),
        ("seed=x", "seed must be"),
    ],
)
def test_what_cannot_be_subtracted_is_refused_in_a_sentence(text: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said.replace(".", r"\.")):
        minus_of(request_of("drift", DRIFT.settings(), *AXES), text)


def test_a_map_of_one_side_names_another_state_instead() -> None:
    request = request_of("placement", LABS["placement"].settings(), "", "")
    with pytest.raises(SettingsError, match="this map has one side") as refused:
        minus_of(request, "right")
    example = str(refused.value).split("such as ")[1].rstrip(".")
    assert minus_of(request, example) is not None


@pytest.mark.parametrize("name", MAPPED)
def test_the_state_that_is_named_as_an_example_changes_what_the_map_shows_at_first(name: str) -> None:
    request = request_of(name, LABS[name].settings(), "", "")
    found = minus_of(request, example(request))
    assert found is not None
    assert found.request is not None
    dial, values = request.x.dial.name, [request.x.low, getattr(request.settings, request.x.dial.name), request.x.high]
    here, there = (each.plane.read(each.settings, dial, values) for each in (request, found.request))
    apart = [here[role][request.measure] - there[role][request.measure] for role in here]
    assert np.nanmax(np.abs(apart)) > 1e-3 * np.nanmax(np.abs([here[role][request.measure] for role in here]))


def test_nothing_is_subtracted_where_nothing_is_named() -> None:
    assert minus_of(request_of("drift", DRIFT.settings(), *AXES), "") is None


def test_files_hold_both_numbers_and_their_difference_and_the_program_draws_it(tmp_path: Path) -> None:
    _, apart = subtracted("plain")
    table = csv.read_csv(io.BytesIO(as_csv(apart))).to_pydict()
    assert np.allclose(
        np.subtract(table["entropy_fraction"], table["subtracted"]), table["difference"], rtol=0, atol=1e-15
    )
    assert as_json(apart)["difference"] == {"norm": "L2 norm and learned scale g minus plain attention"}
    (tmp_path / "qkdemo-map.csv").write_bytes(as_csv(apart))
    (tmp_path / "draw.py").write_text(program(apart), encoding="utf-8")
    done = subprocess.run([sys.executable, "draw.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("63 cells drawn")
    assert "domainMid" in (tmp_path / "map.html").read_text(encoding="utf-8")
    assert picture(apart, "caption")["vconcat"]


def test_the_command_subtracts_and_says_what_it_cannot(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["map", "drift", "--x", AXES[0], "--y", AXES[1], "--cells", "9"]
    assert main([*words, "--minus", "plain", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    _, apart = subtracted("plain")
    assert made["sides"]["norm"]["difference"] == apart.shown("norm").tolist()
    assert main([*words, "--minus", "foo"]) == 2
    assert "'foo' is no side" in capsys.readouterr().err
