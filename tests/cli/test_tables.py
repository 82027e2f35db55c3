"""Tables of text: counts in full, columns below each other, and numbers that the reader can read, eye or program."""

import io
import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkdemo.cli.command import main
from qkdemo.cli.tables import table
from tests.strategies import COMPUTED

CELLS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**15), 10**15)
    | st.floats(-1e300, 1e300)
    | st.sampled_from([math.inf, math.nan])
)
Capture = pytest.CaptureFixture[str]


@given(CELLS)
def test_in_a_pipe_a_number_is_read_back_to_four_digits_and_a_count_exactly(value: float | None) -> None:
    head, line = table([{"value": value}], plainly=True).splitlines()
    assert head.isascii()
    assert line.isascii()
    assert len(line.split()) == 1
    match value:
        case None:
            assert line.strip() == "-"
        case bool():
            assert line.strip() == str(value)
        case int():
            assert int(line) == value
        case _ if math.isnan(value):
            assert math.isnan(float(line))
        case _:
            assert float(line) == pytest.approx(value, rel=0.5e-3 * 1.001, abs=1e-320)


@given(st.floats(1e-12, 1e6))
def test_in_a_pipe_a_dial_is_what_was_typed(value: float) -> None:
    assert float(table([{"scale": value}], ["scale"], plainly=True).splitlines()[1]) == value


def test_for_the_eye_a_dial_is_told_from_its_neighbour() -> None:
    _, *lines = table([{"scale": 100.01, "logit": 100.01}, {"scale": 100.02, "logit": 100.02}], ["scale"]).splitlines()
    assert [line.split() for line in lines] == [["100.01", "100"], ["100.02", "100"]]


@given(st.lists(st.fixed_dictionaries({"a": CELLS, "long_name": CELLS}), min_size=1), st.booleans())
def test_columns_stand_below_each_other(rows: list[dict[str, float | None]], plainly: bool) -> None:
    lines = table(rows, plainly=plainly).splitlines()
    assert len(lines) == len(rows) + 1
    assert len({len(line) for line in lines}) == 1


def test_of_no_rows_there_is_no_table() -> None:
    assert table([]) == ""


def test_a_terminal_gets_thin_spaces_and_powers_and_a_pipe_does_not(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["cost"]) == 0
    piped = capsys.readouterr().out
    assert piped.isascii()
    assert "1048576" in piped.split()
    assert "0.003123" in piped.split()
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(["cost"]) == 0
    assert {"1\u202f048\u202f576", "3.123·10⁻³"} <= set(screen.getvalue().replace("\n", " ").split(" "))


@pytest.mark.parametrize("lab", COMPUTED)
def test_no_whole_number_is_rounded_in_a_table(capsys: Capture, lab: str) -> None:
    tables = [rows for rows in COMPUTED[lab].report(COMPUTED[lab].settings()).values() if isinstance(rows, list)]
    counts = {str(x) for rows in tables for row in rows for x in row.values() if type(x) is int}
    assert main([lab]) == 0
    assert counts <= set(capsys.readouterr().out.split())
    for_the_eye = " ".join(table(rows).replace("\u202f", "").replace("−", "-") for rows in tables)
    assert counts <= set(for_the_eye.split())


@given(st.lists(st.fixed_dictionaries(dict.fromkeys("abcdef", CELLS)), min_size=1), st.integers(1, 120))
def test_a_terminal_gets_the_columns_that_fit_and_is_told_of_the_others(
    rows: list[dict[str, float]], room: int
) -> None:
    whole, lines = table(rows).splitlines(), table(rows, room=room).splitlines()
    shown = len(lines[0].split())
    if len(whole[0]) <= room:
        assert lines == whole
        return
    assert lines[-1].startswith(f"This window has room for {shown} of 6 columns")
    assert all(full.startswith(cut) for full, cut in zip(whole, lines[:-1], strict=True))
    assert shown == 1 or len(lines[0]) <= room


def test_the_models_fit_a_terminal_and_a_pipe_gets_them_all(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["models"]) == 0
    whole = capsys.readouterr().out.splitlines()
    assert "link" in whole[0]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert main(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(whole) + 1
    assert max(map(len, lines)) <= 100
    assert {"model", "norm", "place"} <= set(lines[0].split())
