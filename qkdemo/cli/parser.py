"""How the command line answers a wrong word: one line on stderr, whatever was typed, and exit code 2.

* `Parser`: argparse's own, with that, and with the table's words around its help. What it says of a flag that is wrong
  is argparse's own English;
* `joined(arguments)`: with negative values as it can read them.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from qkdemo.messages import say

_NEGATIVE: Final = re.compile(r"-(\d|\.\d|inf\b|nan\b)", re.IGNORECASE)


class Parser(argparse.ArgumentParser):
    """A parser whose faults are one line, and whose help fails where it cannot be written."""

    def __init__(self, *, add_help: bool = True, **more: Any) -> None:
        super().__init__(**more, add_help=False)
        self._positionals.title, self._optionals.title = say("command.positionals"), say("command.options")
        if add_help:
            self.add_argument("-h", "--help", action="help", help=say("command.help"))

    def format_help(self) -> str:
        """The help, after the table's word for usage."""
        return super().format_help().replace("usage:", say("command.usage"), 1)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and end with 2."""
        print(f"{self.prog}: {' '.join(message.split())}", file=sys.stderr)
        sys.exit(2)

    def print_help(self, file: Any = None) -> None:
        """Print the help; argparse's own is silent where it cannot write."""
        print(self.format_help(), end="", file=file or sys.stdout)


def joined(arguments: Sequence[str]) -> list[str]:
    """`arguments` with a negative value joined to its flag: argparse would take -1e9 or -inf for a flag."""
    words: list[str] = []
    for argument in arguments:
        before = words[-1] if words else ""
        if _NEGATIVE.match(argument) and before.startswith("--") and "=" not in before:
            words[-1] += f"={argument}"
        else:
            words.append(argument)
    return words
