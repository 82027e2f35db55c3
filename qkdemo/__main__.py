"""`python -m qkdemo`, or `qkdemo` once it is installed: the labs from a shell; see `qkdemo.cli.command`."""

import os
import sys
from typing import Final

from qkdemo.messages import known, language, say

LANGUAGE: Final = "QKDEMO_LANG"  # which language the command line speaks


def main() -> int:
    """Run one lab, examine a file, or serve the app; returns the exit code. What watches a model needs torch alone."""
    asked = os.environ.get(LANGUAGE, "")
    if known(asked):
        language.set(asked)
    try:
        from qkdemo.cli.command import from_a_shell  # noqa: PLC0415  it may not be all there
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "qkdemo":
            raise
        sys.stderr.write(f"qkdemo: {say('command.needs', name=error.name)}\n")
        return 2
    return from_a_shell()


if __name__ == "__main__":
    sys.exit(main())
