"""`python -m qkdemo`: the labs from a shell; see `qkdemo.cli.command`."""

import sys

from qkdemo.cli.command import from_a_shell

if __name__ == "__main__":
    sys.exit(from_a_shell())
