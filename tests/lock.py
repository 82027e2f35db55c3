"""Makes the lock files anew from what the requirements name: `python -m tests.lock`, after any change of them.

* `requirements.lock`: what the app needs; `tests/requirements.lock`: that and what the tests need. Every package with
  its version and the hashes of its files, for every system and every Python from 3.11 on.

Versions that stand in a lock file stay, unless a requirement asks for another; `python -m tests.lock --upgrade` takes
the newest. PyTorch stands in neither: `torch-cpu.txt` says why. Nor does torchvision, which timm asks for: its builds
differ by machine too, and the tests do without it. So the tests' file is installed with `--no-deps`.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
LOCKS: Final = {"requirements.txt": "requirements.lock", "tests/requirements.txt": "tests/requirements.lock"}
_COMPILE: Final = ["uv", "pip", "compile", "--universal", "--python-version=3.11", "--generate-hashes", "--no-annotate"]
_LEFT_OUT: Final = ("--no-emit-package=torch", "--no-emit-package=torchvision")
_APART: Final = [*_LEFT_OUT, "--custom-compile-command=python -m tests.lock", "--quiet"]


def main(words: list[str]) -> int:
    """Writes both files, the tests' with the app's versions; returns the exit status."""
    if words not in ([], ["--upgrade"]):
        print("Usage: python -m tests.lock [--upgrade]")
        return 2
    for named, lock in LOCKS.items():
        same = [] if lock == "requirements.lock" else ["--constraint=requirements.lock"]
        command = [sys.executable, "-m", *_COMPILE, *_APART, *same, *words, named, f"--output-file={lock}"]
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
