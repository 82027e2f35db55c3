"""A process that reads rows of maps: `python -m qkdemo.maps.worker`.

* `main()`: rows arrive as lines of JSON on standard input, columns leave as lines on standard output, in that order;
* `as_order(row)`: a row as such a line says it.

It ends when its input does: a server that dies leaves no process.
"""

import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any, Final

import torch

from qkdemo.labs.registry import LABS
from qkdemo.maps.cells import Row, read_row

_NICE: Final = 5


def main() -> None:
    """Serve rows until standard input ends."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no answer
    torch.set_num_threads(1)
    if hasattr(os, "nice"):
        os.nice(_NICE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches this process too, whose server ends it
    for line in sys.stdin:
        found = read_row(_row(json.loads(line)))
        sides = {role: {name: column.tolist() for name, column in side.items()} for role, side in found.items()}
        output.write(json.dumps(sides) + "\n")  # shortest digits that read back the same; NaN and Infinity as words
        output.flush()


def as_order(row: Row) -> dict[str, Any]:
    """What the process has to know of a row."""
    return {"lab": row.lab, "settings": row.settings.as_dict(), "dial": row.dial, "values": row.values}


def _row(order: Mapping[str, Any]) -> Row:
    settings = LABS[order["lab"]].settings(**order["settings"])
    return Row(order["lab"], settings, order["dial"], tuple(order["values"]), ())


if __name__ == "__main__":
    main()
