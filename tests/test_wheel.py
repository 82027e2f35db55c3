"""The wheel, built, unpacked and used: what watches a model needs torch alone, and of the app nothing is left out."""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PARTS = (
    "qkdemo",
    "pages",
    ".streamlit",
    "app.py",
    "setup.py",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "requirements.txt",
)

# Refuses every package of the app, and what those bring along, as an environment does in which they are missing.
ALONE = """
import sys

class Missing:
    names = {"streamlit", "numpy", "pyarrow", "jaxtyping", "sqlalchemy", "segno", "itsdangerous"} | {
        "pandas", "altair", "plotly", "starlette", "tornado", "transformers", "beartype"}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""
WATCHED = """
import torch
from qkdemo import assert_qk_norm, watch

model = torch.nn.MultiheadAttention(16, 2, batch_first=True)
with watch(model, to="seen.jsonl") as report:
    x = torch.randn(1, 5, 16)
    model(x, x, x)
print(len(report.rows), report)
assert callable(assert_qk_norm)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the wheel of this tree unpacks to, built without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    tree, out = folder / "tree", folder / "out"
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, tree / part)
    build = f"from setuptools import build_meta; build_meta.build_wheel({str(folder)!r})"
    done = subprocess.run([sys.executable, "-c", build], cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(out)
    return out


def run(wheel: Path, program: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """A program in a Python that sees the unpacked wheel and what is installed, but not this tree."""
    start = f"import sys; sys.path.insert(0, {str(wheel)!r})\n"
    return subprocess.run(
        [sys.executable, "-I", "-c", start + program], cwd=folder, capture_output=True, text=True, check=False
    )


def test_every_file_of_the_app_is_in_the_wheel_and_no_other(wheel: Path) -> None:
    def files(folder: Path) -> set[str]:
        found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        return {path.relative_to(folder).as_posix() for path in found}

    served = {f"served/pages/{name}" for name in files(ROOT / "pages")} | {
        "served/app.py",
        "served/.streamlit/config.toml",
    }
    assert files(wheel / "qkdemo") == files(ROOT / "qkdemo") | served


def test_a_model_is_watched_with_torch_alone(wheel: Path, tmp_path: Path) -> None:
    done = run(wheel, ALONE + WATCHED, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 step 0, worst heads:")
    rows = [json.loads(line) for line in (tmp_path / "seen.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["head"] for row in rows] == [0, 1]


COMMAND = "import sys; from qkdemo.__main__ import main; sys.argv = ['qkdemo', *{words}]; sys.exit(main())"


def test_the_command_says_what_to_install_where_the_app_is_missing(wheel: Path, tmp_path: Path) -> None:
    done = run(wheel, ALONE + COMMAND.format(words=["drift"]), tmp_path)
    assert done.returncode == 2
    assert 'pip install "qkdemo[app]"' in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_runs_labs_and_examines_files(wheel: Path, tmp_path: Path) -> None:
    done = run(wheel, COMMAND.format(words=["drift", "--scale", "1", "--json"]), tmp_path)
    assert json.loads(done.stdout)["settings"]["scale"] == 1, done.stderr
    done = run(wheel, COMMAND.format(words=["diagnose", "--example", "log"]), tmp_path)
    assert done.returncode == 1, done.stderr
    assert "Large logits came before that" in done.stdout


def test_the_app_finds_its_pages_and_its_settings_in_the_wheel(wheel: Path, tmp_path: Path) -> None:
    done = run(
        wheel,
        "from qkdemo import SERVED\n"
        "from qkdemo.web.pages import PAGES\n"
        "print(SERVED, *(entry.script for entry in PAGES.values()), sep='\\n')",
        tmp_path,
    )
    served, *scripts = map(Path, done.stdout.splitlines())
    assert served == wheel / "qkdemo" / "served", done.stderr
    assert (served / "app.py").is_file()
    assert (served / ".streamlit" / "config.toml").is_file()
    assert scripts
    assert all(script.is_file() for script in scripts)


def test_the_extra_names_the_packages_that_the_app_is_started_with(wheel: Path) -> None:
    (metadata,) = wheel.glob("*.dist-info/METADATA")
    lines = metadata.read_text(encoding="utf-8").splitlines()
    named = {
        line.partition(": ")[2].partition(";")[0].strip()
        for line in lines
        if line.startswith("Requires-Dist") and "app" in line
    }
    lines_of_ours = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert named == {line.partition(";")[0].strip() for line in lines_of_ours if line}
    assert [line for line in lines if line.startswith("Requires-Dist") and "extra" not in line] == [
        "Requires-Dist: torch>=2.5"
    ]
