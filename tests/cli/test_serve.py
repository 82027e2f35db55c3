"""`qkdemo serve` starts the script that the README starts, with the words of who calls it."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from qkdemo.cli.command import main


@pytest.mark.skipif(os.name != "posix", reason="elsewhere the server is a process of its own")
def test_serve_becomes_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[Sequence[str]] = []

    def execv(program: str, words: Sequence[str]) -> None:
        assert program == sys.executable
        became.append(words)
        raise SystemExit(0)

    monkeypatch.setattr(os, "execv", execv)
    with pytest.raises(SystemExit):
        main(["serve", "--server.port=8600"])
    (words,) = became
    assert words[1:4] == ["-m", "streamlit", "run"]
    assert Path(words[4]).samefile(Path(__file__).parents[2] / "app.py")
    assert words[5:] == ["--server.port=8600"]
