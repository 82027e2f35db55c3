"""`python -m qkdemo map`: what it writes, and the one line with which it refuses."""

import json
import re
from pathlib import Path

import pytest

from qkdemo.cli.command import main
from qkdemo.labs.registry import LABS
from qkdemo.maps.difference import minus_of
from qkdemo.maps.request import MAPPED, request_of

RANGES = ("--x", "scale:0.1:1000", "--y", "gain:0.1:100", "--cells", "9")


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    try:
        code: object = main(["map", *words])
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "")
    (line,) = captured.err.splitlines()
    return line


def test_without_a_format_it_says_what_the_picture_shows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["map", "drift", *RANGES]) == 0
    plain, norm = capsys.readouterr().out.split("\n\n")
    assert "along “Weight scale” alone" in plain
    assert "along “Learned scale g” alone" in norm


def test_json_is_strict_and_takes_the_labs_own_dials(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["map", "drift", *RANGES, "--format", "float16", "--measure", "raw_lost", "--json"]) == 0
    made = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert (made["settings"]["format"], made["measure"]) == ("float16", "raw_lost")
    assert made["sides"]["plain"]["bound"][0][0] == "inf"


def test_every_format_is_written_to_its_file(tmp_path: Path) -> None:
    begins = {"csv": b'"side"', "parquet": b"PAR1", "svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF", "json": b"{"}
    flags = [word for name in begins for word in (f"--{name}", str(tmp_path / f"map.{name}"))]
    assert main(["map", "drift", *RANGES, *flags]) == 0
    for name, beginning in begins.items():
        assert (tmp_path / f"map.{name}").read_bytes().startswith(beginning)


def test_wrong_words_are_answered_in_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert refused(capsys, "drift", "--x", "gain", "--y", "gain").startswith("qkdemo map: x and y are both gain.")
    assert refused(capsys, "drift", "--cells", "129").startswith("qkdemo map: 129 cells along a side are too many")
    assert refused(capsys, "drift", "--cells", "many") == "qkdemo map: cells must be a number, but is 'many'."
    assert "invalid choice: 'models'" in refused(capsys, "models")
    assert "cannot be written" in refused(capsys, "drift", "--svg", str(tmp_path / "no" / "map.svg"))
    assert refused(capsys, "drift", "--scale", "0").startswith("qkdemo map: scale must be between")


@pytest.mark.parametrize("lab", MAPPED)
def test_what_a_help_names_as_subtracted_is_taken(lab: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["map", lab, "--help"])
    said = " ".join(capsys.readouterr().out.split())
    sides, state = re.search(
        r"what is subtracted: (?:a side \((.*?)\), or )?another state, such as (\S+)", said
    ).groups()
    request = request_of(lab, LABS[lab].settings(), "", "")
    for text in (*(sides.split(", ") if sides else ()), state):
        assert minus_of(request, text) is not None
