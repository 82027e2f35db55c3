"""The shape of the house: what lies where, and who stands without whom."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_FILES = 12
MOST_LINES = 300
TOP_LEVEL = {
    ".ci",
    ".gitattributes",
    ".gitignore",
    ".streamlit",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "app.py",
    "docs",
    "pages",
    "pyproject.toml",
    "qkdemo",
    "requirements.lock",
    "requirements.txt",
    "setup.py",
    "tests",
    "torch-cpu.txt",
}

# Every module below qkdemo but qkdemo.web and the command line, imported. In a process of its own: this one may have
# loaded Streamlit, and wraps functions to check their shapes, which hides their examples from doctest.
IMPORT_ALL = """
import doctest, importlib, pkgutil, sys
import qkdemo

def core(package):
    yield package
    for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if found.name != "qkdemo.web" and not found.name.endswith(".__main__"):
            module = importlib.import_module(found.name)
            yield from core(module) if found.ispkg else [module]

modules = list(core(qkdemo))
"""


def in_python(program: str) -> str:
    """What `program` prints in a Python of its own; a failure of it is a failure of the test."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL + program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_nothing_below_web_loads_streamlit() -> None:
    assert in_python("print('streamlit' in sys.modules)") == "False"


def test_every_core_module_says_what_it_is() -> None:
    assert in_python("print([module.__name__ for module in modules if not module.__doc__])") == "[]"


def test_examples_in_docstrings_hold() -> None:
    ran = in_python(
        "results = [doctest.testmod(module) for module in modules]\n"
        "print(sum(result.attempted for result in results))\n"
        "sys.exit(any(result.failed for result in results))"
    )
    assert int(ran) >= 4  # those of notation and settings


def test_top_level_holds_only_what_the_design_allows() -> None:
    ignored = {line.strip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()}
    assert {path.name for path in ROOT.iterdir()} - ignored - {".git"} <= TOP_LEVEL


def test_every_folder_and_every_file_is_read_at_a_glance() -> None:
    root = ROOT / "qkdemo"
    sources = [path for ending in ("py", "js") for path in root.rglob(f"*.{ending}")]
    in_folder = Counter(path.parent.relative_to(ROOT).as_posix() for path in sources)
    assert {folder: n for folder, n in in_folder.items() if n > MOST_FILES} == {}
    lines = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8").count("\n") for path in sources}
    assert {name: n for name, n in lines.items() if n > MOST_LINES} == {}
    assert {path.name for path in root.glob("*.py")} == {"__init__.py", "__main__.py", "messages.py", "notation.py"}


def test_no_page_lies_beside_the_script_that_navigates() -> None:
    """Streamlit runs a page beside it alone, without the shell, for the first deep link into a fresh server."""
    scripts = [path for path in (ROOT / "qkdemo").rglob("*.py") if "st.navigation(" in path.read_text(encoding="utf-8")]
    assert not any((path.parent / "pages").exists() for path in scripts)


def test_what_is_left_out_of_the_quick_checks_is_there() -> None:
    named = (ROOT / "tests" / "slow.txt").read_text(encoding="utf-8").split()
    assert named == sorted(set(named))
    assert [name for name in named if not (ROOT / name).is_file()] == []
