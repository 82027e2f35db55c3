"""`--svg`, `--png` and `--pdf`: what a page shows, in a file; one state, and a file that can be written."""

from pathlib import Path

import pytest

from qkdemo.cli.command import main

Capture = pytest.CaptureFixture[str]


def test_the_page_of_a_state_is_drawn_into_a_file_beside_the_table(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "page.svg"
    assert main(["epsilon", "--size", "0.001", "--svg", str(file)]) == 0
    assert "0.001" in capsys.readouterr().out
    drawn = file.read_text(encoding="utf-8")
    assert "size=0.001" in drawn
    assert "Length after the norm, by size of the vector" in drawn


def test_more_than_one_state_and_a_place_that_cannot_be_written_are_refused(tmp_path: Path, capsys: Capture) -> None:
    assert main(["epsilon", "--size", "0.001,0.01", "--pdf", str(tmp_path / "page.pdf")]) == 2
    assert capsys.readouterr().err == "qkdemo: A figure shows one state, and these are 2: give every dial one value.\n"
    assert main(["epsilon", "--pdf", str(tmp_path)]) == 2
    assert list(tmp_path.iterdir()) == []
