"""`python -m qkdemo phases`: trains a phase diagram of training, and goes on where it was stopped.

* `main(arguments)`: prints the table, or with `--json` every cell; returns the exit code.

    python -m qkdemo phases --x learning_rate --y n_layers --cells 5 --seeds 2 --remedies none,rms --into mine.jsonl
"""

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from qkdemo.cli.parser import Parser
from qkdemo.cli.tables import table
from qkdemo.dials import SettingsError
from qkdemo.maps.phases.cells import RECORDED, cells, read, rows, train
from qkdemo.maps.phases.diagram import DEFAULT, SIDES, Diagram, diagram_of
from qkdemo.messages import say
from qkdemo.runs.batches import price_of
from qkdemo.runs.progress import ProgressLine, refuse_unwritable
from qkdemo.training.settings import identity


def main(arguments: Sequence[str]) -> int:
    """Train what is missing, and print all."""
    parser = Parser(prog="qkdemo phases", description=say("command.phases"), allow_abbrev=False)
    for word, usual in (("x", DEFAULT.x), ("y", DEFAULT.y), ("remedies", ",".join(DEFAULT.remedies))):
        parser.add_argument(f"--{word}", default=usual, help=say(f"phases.help.{word}"))
    for word, number in (("cells", SIDES[-1]), ("seeds", len(DEFAULT.seeds))):
        parser.add_argument(f"--{word}", default=number, type=int, metavar="N", help=say(f"phases.help.{word}"))
    parser.add_argument("--into", metavar="FILE", help=say("phases.help.into"))
    parser.add_argument("--json", action="store_true", help=say("command.json"))
    given = parser.parse_args(list(arguments))
    try:
        diagram = _diagram(given)
        file = Path(given.into) if given.into else RECORDED
        known = {identity(end.settings) for end in read(file, diagram)}
        missing = [run for run in diagram.runs if identity(run) not in known]
        if missing:
            refuse_unwritable(str(file))
    except SettingsError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    if missing:
        print(say("command.price", runs=len(missing), price=price_of(missing)), file=sys.stderr)
        train(file, progress=ProgressLine("phases.progress"), diagram=diagram)
    ends = read(file, diagram)
    print(say("phases.took", runs=len(ends), seconds=round(sum(end.seconds for end in ends))), file=sys.stderr)
    found = rows(cells(ends, diagram), diagram)
    if given.json:
        print(json.dumps({"rows": found}, indent=2, ensure_ascii=False))
    else:
        print(table(found, [diagram.x, diagram.y], plainly=not sys.stdout.isatty()))
    return 0


def _diagram(given: Namespace) -> Diagram:
    made = diagram_of(given.x, given.y, given.cells, given.seeds, given.remedies.split(","))
    if made is not DEFAULT and not given.into:
        raise SettingsError(say("phases.help.into_needed"))
    return made
