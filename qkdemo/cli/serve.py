"""`qkdemo serve`: the app, as `streamlit run app.py` starts it.

* `main(arguments)`: serves until it is stopped; `arguments` are those of `streamlit run`, as in --server.port=8600.
"""

import os
import subprocess
import sys
from collections.abc import Sequence

from qkdemo import SERVED


def main(arguments: Sequence[str]) -> int:
    """Serve the app; returns the exit code, where this process does not itself become the server."""
    command = [sys.executable, "-m", "streamlit", "run", str(SERVED / "app.py"), *arguments]
    if os.name == "posix":
        os.execv(command[0], command)  # noqa: S606  so that whoever stops this process stops the server
    return subprocess.run(command, check=False).returncode  # noqa: S603  one program, and the words of who calls it
