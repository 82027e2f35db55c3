"""Every check, in order: `python -m tests`; without the browser: `python -m tests fast`."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHON = [sys.executable, "-m"]

FAST = {
    "lint": [*PYTHON, "ruff", "check", "."],
    "format": [*PYTHON, "ruff", "format", "--check", "."],
    "types": [*PYTHON, "mypy", "qkdemo", "pages", "app.py"],
    "imports": [sys.executable, "-c", "from importlinter.cli import lint_imports_command as check; check()"],
    "tests": [*PYTHON, "pytest", "--ignore=tests/browser", "--numprocesses=auto"],
}
BROWSER = {"browser": [*PYTHON, "pytest", "tests/browser"]}


def main(words: list[str]) -> int:
    """Runs the checks, says which failed, and returns the exit status: 0 when none did."""
    if words not in ([], ["fast"]):
        print("Usage: python -m tests [fast]")
        return 2
    checks = FAST if words else FAST | BROWSER
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
