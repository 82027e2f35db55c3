"""The README's commands are the ones that CI runs, and what they install is pinned."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
REQUIREMENTS = [
    line
    for name in ("requirements.txt", "tests/requirements.txt")
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines()
    if not line.startswith(("-r ", "#"))
]


def commands_under(heading: str) -> list[str]:
    """The fenced lines between a heading of the README and the next one."""
    section = README.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [line for block in re.findall(r"^```sh\n(.*?)^```", section, re.M | re.S) for line in block.splitlines()]


def test_one_command_starts_the_app() -> None:
    assert commands_under("Start it") == [
        "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt && .venv/bin/streamlit run app.py"
    ]


def test_one_command_runs_the_tests() -> None:
    assert commands_under("Run the tests") == [
        "python3 -m venv .venv && .venv/bin/pip install -r tests/requirements.txt && .venv/bin/python -m tests"
    ]


def test_ci_takes_its_command_from_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "## Run the tests" in script
    assert "README.md" in script
    assert not re.search(r"\bpip\b|-m tests", script)


@pytest.mark.parametrize("line", REQUIREMENTS)
def test_requirements_name_the_release_that_is_installed(line: str) -> None:
    name, pinned = line.split("==")
    assert version(name).split("+")[0] == pinned
