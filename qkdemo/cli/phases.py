"""`python -m qkdemo phases`: trains the phase diagram of training, and goes on where it was stopped.

* `main(arguments)`: prints the table, or with `--json` every cell; returns the exit code.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from qkdemo.cli.parser import Parser
from qkdemo.cli.tables import table
from qkdemo.dials import SettingsError
from qkdemo.maps.phases import RECORDED, RUNS, cells, read, rows, train
from qkdemo.messages import say
from qkdemo.runs.batches import price_of
from qkdemo.runs.progress import ProgressLine, refuse_unwritable
from qkdemo.training.settings import identity


def main(arguments: Sequence[str]) -> int:
    """Train what is missing, and print all."""
    parser = Parser(prog="qkdemo phases", description=say("command.phases"), allow_abbrev=False)
    parser.add_argument("--into", metavar="FILE", help=say("phases.help.into"))
    parser.add_argument("--json", action="store_true", help=say("command.json"))
    given = parser.parse_args(list(arguments))
    file = Path(given.into) if given.into else RECORDED
    known = {identity(end.settings) for end in read(file)}
    missing = [run for run in RUNS if identity(run) not in known]
    if missing:
        try:
            refuse_unwritable(str(file))
        except SettingsError as error:
            print(f"{parser.prog}: {error}", file=sys.stderr)
            return 2
        print(say("command.price", runs=len(missing), price=price_of(missing)), file=sys.stderr)
        train(file, progress=ProgressLine("phases.progress"))
    ends = read(file)
    print(say("phases.took", runs=len(ends), seconds=round(sum(end.seconds for end in ends))), file=sys.stderr)
    found = rows(cells(ends))
    if given.json:
        print(json.dumps({"rows": found}, indent=2, ensure_ascii=False))
    else:
        print(table(found, ["learning_rate", "qk_start"], plainly=not sys.stdout.isatty()))
    return 0
