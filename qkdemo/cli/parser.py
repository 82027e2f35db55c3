"""How the command line answers a wrong word: one line on stderr, whatever was typed, and exit code 2.

* `Parser`: argparse's own, with that.
"""

import argparse
import sys
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """A parser whose faults are one line, and whose help fails where it cannot be written."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and end with 2."""
        print(f"{self.prog}: {' '.join(message.split())}", file=sys.stderr)
        sys.exit(2)

    def print_help(self, file: Any = None) -> None:
        """Print the help; argparse's own is silent where it cannot write."""
        print(self.format_help(), end="", file=file or sys.stdout)
