"""What a page shows, as a picture in a file: `python -m qkdemo drift --scale 8 --pdf drift.pdf`.

* `add_flags(parser, lab)`; `taken(given)`: the files that are asked for, by kind, out of the flags;
* `check(wanted, states)`: before the work; `write(lab, state, wanted)`: afterwards.
"""

from argparse import ArgumentParser
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, get_args

from qkdemo.charts.paper.files import Kind, as_file
from qkdemo.charts.paper.page import page
from qkdemo.dials import Dials, SettingsError
from qkdemo.labs.caption import caption
from qkdemo.labs.lab import Command
from qkdemo.messages import say
from qkdemo.runs.progress import refuse_unwritable, write_whole

_KINDS: tuple[Kind, ...] = get_args(Kind)


def add_flags(parser: ArgumentParser, lab: Command) -> None:
    """`--svg`, `--png` and `--pdf`, where the lab has figures."""
    for kind in _KINDS if lab.figures is not None else ():
        parser.add_argument(f"--{kind}", metavar="FILE", help=say(f"command.{kind}"))


def taken(given: MutableMapping[str, Any]) -> dict[Kind, str]:
    """Kind → file."""
    return {kind: file for kind in _KINDS if (file := given.pop(kind, None)) is not None}


def check(wanted: Mapping[Kind, str], states: Sequence[Dials]) -> None:
    """Raises SettingsError for a file that cannot be written, and for more than one state."""
    if wanted and len(states) > 1:
        raise SettingsError(say("command.one_figure", count=len(states)))
    for file in wanted.values():
        refuse_unwritable(file)


def write(lab: Command, state: Dials, wanted: Mapping[Kind, str]) -> str:
    """Draw the page of this state into every file; returns a sentence if that fails."""
    failed = ""
    figures = lab.figures(state) if wanted and lab.figures is not None else ()
    for kind, file in wanted.items():
        try:
            drawn = as_file(page(figures, say(f"page.{lab.page}"), caption(lab.page, state), a4=kind == "pdf"), kind)
        except RuntimeError as error:  # an installation without vl-convert
            failed = say("command.unwritable", file=file, reason=error)
        else:
            failed = write_whole(file, drawn) or failed
    return failed
