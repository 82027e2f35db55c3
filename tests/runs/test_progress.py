"""How far a command is, line by line."""

import pytest

from qkdemo.runs import progress
from qkdemo.runs.progress import ProgressLine


def test_the_time_that_is_left_is_that_of_what_was_done_since_the_first_line(monkeypatch, capsys) -> None:
    clock = iter([50.0, 54.0, 70.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    shown = ProgressLine("phases.progress")
    for done in (20, 40, 120):  # 20 were known before it began
        shown(done, 120)
    said = [line.split("] ")[1] for line in capsys.readouterr().err.splitlines()]
    assert said == ["20 of 120 runs", "40 of 120 runs, about 16 s left", "120 of 120 runs"]


@pytest.mark.parametrize("words", ["command.progress", "map.progress", "phases.progress"])
def test_before_anything_is_done_no_time_is_said_to_be_left(words: str, capsys) -> None:
    ProgressLine(words)(0, 40)
    assert "left" not in capsys.readouterr().err
