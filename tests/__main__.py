"""Every check, in order: `python -m tests`; without the browser: `python -m tests unit`; what is quick: `… fast`.

`python -m tests smoke` is for another Python than the one that runs them all: whether everything can be imported, a
step can be trained and every page opens.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHON = [sys.executable, "-m"]

SLOW = (ROOT / "tests" / "slow.txt").read_text(encoding="utf-8").split()  # by `pytest --durations=0`: 1 s or more
STATIC = {
    "lint": [*PYTHON, "ruff", "check", "."],
    "format": [*PYTHON, "ruff", "format", "--check", "."],
    "types": [*PYTHON, "mypy", "qkdemo", "pages", "app.py"],
    "imports": [sys.executable, "-c", "from importlinter.cli import lint_imports_command as check; check()"],
    "javascript": [*PYTHON, "tests.javascript"],
}
UNIT = {"tests": [*PYTHON, "pytest", "--ignore=tests/browser", "--numprocesses=auto", "--dist=worksteal"]}
FAST = STATIC | {"tests": [*UNIT["tests"], *(f"--ignore={name}" for name in SLOW)]}
SMOKE = {
    "smoke": [
        *[*PYTHON, "pytest", "--numprocesses=auto"],
        *["tests/test_layout.py", "tests/test_dials.py", "tests/training/test_trainer.py"],
        "tests/web/test_pages.py::test_a_page_opens_without_a_word_of_complaint",
    ]
}
BROWSER = {  # two browsers, each with a server of its own; it says which test it ran twice
    "browser": [*PYTHON, "pytest", "tests/browser", "--numprocesses=2", "--dist=loadfile", "--reruns=1", "-rR"]
}


def main(words: list[str]) -> int:
    """Runs the checks, says which failed, and returns the exit status: 0 when none did."""
    if words not in ([], ["fast"], ["unit"], ["smoke"]):
        print("Usage: python -m tests [fast | unit | smoke]")
        return 2
    parts = {"fast": FAST, "unit": STATIC | UNIT, "smoke": SMOKE}
    checks = parts.get("".join(words), STATIC | UNIT | BROWSER)
    failed = []
    for name, command in checks.items():
        print(f"\n── {name}", flush=True)
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            failed.append(name)
    if failed:
        print(f"\nFailed: {', '.join(failed)}.")
        return 1
    print(f"\nAll {len(checks)} checks passed: {', '.join(checks)}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
