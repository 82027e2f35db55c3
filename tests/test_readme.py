"""The README's commands are the ones that CI runs, and what they install is pinned, each package with its hashes."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from qkdemo.labs.registry import LABS
from qkdemo.messages import has, say

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def pins(name: str) -> list[str]:
    """What a file of requirements names, without the files that it includes."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith(("-r ", "#"))]


def release(line: str) -> tuple[str, str]:
    """A package that a line names, and its version."""
    name, pinned = re.split("==| ;", line)[:2]
    return name, pinned


APP = pins("requirements.txt")
REQUIREMENTS = [*APP, *pins("tests/requirements.txt")]
TORCH = "torch==2.13.0"


def commands_under(heading: str) -> list[str]:
    """The fenced lines between a heading of the README and the next one."""
    section = README.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [line for block in re.findall(r"^```sh\n(.*?)^```", section, re.M | re.S) for line in block.splitlines()]


INSTALL = "python3 -m venv .venv && .venv/bin/pip install {lock} && .venv/bin/pip install -r torch-cpu.txt && "


def test_one_command_starts_the_app_and_the_small_build_of_pytorch_comes_first() -> None:
    first, second = commands_under("Start it")
    assert first == INSTALL.format(lock="-r requirements.lock") + ".venv/bin/streamlit run app.py"
    assert second == first.replace("-r torch-cpu.txt", TORCH)


def test_one_command_runs_the_tests() -> None:
    assert commands_under("Run the tests") == [
        INSTALL.format(lock="--no-deps -r tests/requirements.lock") + ".venv/bin/python -m tests"
    ]


def test_ci_takes_its_command_from_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "## Run the tests" in script
    assert "README.md" in script
    assert not re.search(r"\bpip\b|-m tests", script)


@pytest.mark.parametrize("line", REQUIREMENTS)
def test_requirements_name_the_release_that_is_installed(line: str) -> None:
    name, pinned = release(line)
    if (marker := Requirement(line).marker) is not None and not marker.evaluate():
        pytest.skip("of another system")
    assert version(name).split("+")[0] == pinned


# ---- the lock files


def locked(name: str) -> dict[str, list[str]]:
    """Every package of a lock file as `name==version`, and the hashes of its files."""
    found: dict[str, list[str]] = {}
    package = ""
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        if match := re.match(r"[a-z0-9-]+==[^ ]+", line):
            package = match[0]
            found[package] = []
        elif match := re.search("--hash=(sha256:[0-9a-f]{64})", line):
            found[package].append(match[1])
    return found


def plain(name: str) -> str:
    """A package's name as an index writes it (PEP 503)."""
    return re.sub("[-_.]+", "-", name).lower()


@pytest.mark.parametrize("lock", ["requirements.lock", "tests/requirements.lock"])
def test_a_lock_holds_what_is_required_and_the_hashes_of_every_file(lock: str) -> None:
    """Red after a change of the requirements: run `python -m tests.lock`."""
    packages = locked(lock)
    asked = REQUIREMENTS if lock.startswith("tests") else APP
    assert {f"{plain(name)}=={pinned}" for name, pinned in map(release, asked)} - {TORCH} <= {*packages}
    assert [name for name, hashes in packages.items() if not hashes] == []
    assert not any(name.startswith(("torch==", "nvidia-", "triton=")) for name in packages)


def test_the_tests_run_with_the_versions_that_the_app_is_started_with() -> None:
    ours, tests = locked("requirements.lock"), locked("tests/requirements.lock")
    assert ours == {name: tests[name] for name in ours}


def test_a_lock_holds_all_that_its_packages_need_and_pytorch_too() -> None:
    """As they are installed here, without what they need for extras, and what a machine chooses."""
    names = {package.split("==")[0] for package in locked("tests/requirements.lock")}
    missing = [
        (name, need.name)
        for name in [*names, "torch"]
        for need in map(Requirement, _needs(name))
        if need.marker is None or need.marker.evaluate({"extra": ""})
        if plain(need.name) not in {*names, "torch", "torchvision"}
    ]
    assert missing == []


def _needs(name: str) -> list[str]:
    try:
        return requires(name) or []
    except PackageNotFoundError:  # of another system
        return []


def test_pytorch_is_the_same_release_wherever_it_is_named() -> None:
    assert TORCH in APP
    assert (ROOT / "torch-cpu.txt").read_text(encoding="utf-8").splitlines()[-1] == TORCH
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    (metadata,) = tools["uv"]["dependency-metadata"]
    assert f"{metadata['name']}=={metadata['version']}" == TORCH


# ---- what it says of the pages


@pytest.mark.parametrize("lab", [lab for lab in LABS if has(f"question.{lab}")])
def test_the_table_of_pages_asks_what_each_page_asks(lab: str) -> None:
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", README, re.M)
    assert dict(rows)[say(f"page.{lab}")] == say(f"question.{lab}")


@pytest.mark.parametrize("document", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_file_that_a_document_names_is_there(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    layout = text.split("```\napp.py", 1)[1].split("```", 1)[0] if "```\napp.py" in text else ""
    listed = [(line[: len(line) - len(line.lstrip())], line.split()[0]) for line in layout.splitlines()[1:] if line]
    named = {f"qkdemo/{name}" if indent else name for indent, name in listed}
    named |= set(re.findall(r"`((?:qkdemo|tests|pages)/[\w/.]+)`", text))
    assert named
    assert not [name for name in named if not (ROOT / name).exists()]


def test_the_layout_names_every_part_of_the_package() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    parts = {path.parent.name for path in (ROOT / "qkdemo").glob("*/__init__.py")} | {"locale"}
    assert parts <= set(re.findall(r"(?m)^  (\w+)/ ", text))


# ---- what it says of times


MEASURED = re.compile(
    r"% longer|% busy|% of a step|\b(?:about|in) (?:\w+ )?(?:seconds?|minutes?|hours?)\b|sessions? (?:at|per) "
)
DOWNLOADED = re.compile(r"downloads ([\d.]+) GB, (a|eight) minutes? at 50 Mbit/s")


def _paragraphs() -> list[str]:
    prose = re.sub(r"^```.*?^```|^\|.*?$", "", README, flags=re.M | re.S)
    return [" ".join(paragraph.split()) for paragraph in prose.split("\n\n")]


def test_a_measured_time_names_its_machine_and_its_date() -> None:
    measured = [paragraph for paragraph in _paragraphs() if MEASURED.search(paragraph)]
    assert measured
    for paragraph in measured:
        assert "two cores" in paragraph, paragraph
        assert re.search(r"\b20\d\d\b", paragraph), paragraph


def test_a_download_takes_as_long_as_the_readme_says() -> None:
    told = [
        (float(size), {"a": 1, "eight": 8}[minutes]) for size, minutes in DOWNLOADED.findall(" ".join(_paragraphs()))
    ]
    assert len(told) == 2
    for gigabytes, minutes in told:
        assert round(gigabytes * 8000 / 50 / 60) == minutes
