"""`python -m qkdemo diagnose FILE`: what is wrong with somebody's own tensors, checkpoint or log.

* `main(arguments)`: 0 if the file is healthy, 1 if something was found, 2 if it cannot be read.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from qkdemo.cli.parser import Parser
from qkdemo.cli.tables import table
from qkdemo.diagnose.findings.examine import examine, examine_path
from qkdemo.diagnose.findings.finding import Report
from qkdemo.diagnose.paper import as_json, html
from qkdemo.diagnose.readers.columns import ROLES
from qkdemo.diagnose.readers.inputs import InputError
from qkdemo.diagnose.samples import SAMPLES
from qkdemo.messages import say

_MOST_ROWS: Final = 20


def main(arguments: Sequence[str]) -> int:
    """Examine one file; returns the exit code."""
    parser = _parser()
    given = parser.parse_args(list(arguments))
    try:
        columns = dict(_column(text) for text in given.column)
        options = {"scale": given.scale, "causal": given.causal, "swapped": given.swap, "columns": columns}
        if given.example:
            name, make = SAMPLES[given.example]
            report = examine(make(), name, **options)
        elif given.file:
            config, reference = (Path(file) if file else None for file in (given.config, given.reference))
            report = examine_path(Path(given.file), config, reference, **options)
        else:
            parser.error(say("diagnose.help.missing", known=", ".join(SAMPLES)))
        if given.html:
            _write(Path(given.html), html(report))
    except InputError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    print(json.dumps(as_json(report), indent=2, ensure_ascii=False) if given.json else _in_words(report))
    return 0 if report.healthy else 1


def _parser() -> Parser:
    parser = Parser(prog="qkdemo diagnose", description=say("diagnose.help.what"), epilog=say("diagnose.help.exit"))
    parser.add_argument("file", nargs="?", metavar="FILE", help=say("diagnose.help.file"))
    parser.add_argument("--example", choices=list(SAMPLES), help=say("diagnose.help.example"))
    parser.add_argument("--json", action="store_true", help=say("diagnose.help.json"))
    parser.add_argument("--html", metavar="FILE", help=say("diagnose.help.html"))
    parser.add_argument("--reference", metavar="FILE", help=say("diagnose.help.reference"))
    parser.add_argument("--config", metavar="FILE", help=say("diagnose.help.config"))
    parser.add_argument("--scale", type=float, metavar="X", help=say("diagnose.help.scale"))
    parser.add_argument("--causal", action="store_true", help=say("diagnose.help.causal"))
    parser.add_argument("--swap", action="store_true", help=say("diagnose.help.swap"))
    parser.add_argument("--column", action="append", default=[], metavar="ROLE=NAME", help=say("diagnose.help.column"))
    return parser


def _column(text: str) -> tuple[str, str]:
    role, equals, name = text.partition("=")
    if not equals or role not in ROLES:
        raise InputError("bad_column", text=repr(text), known=", ".join(ROLES))
    return role, name


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError("unwritten", name=path.name, reason=error.strerror or "") from None


def _in_words(report: Report) -> str:
    parts = []
    for finding in report.findings:
        parts.append(f"{say(f'report.level.{finding.level}')} {finding.sentence}")
        if finding.advice:
            parts.append(f"  {finding.advice}")
    plainly = not sys.stdout.isatty()
    for name, rows in report.tables.items():
        parts += ["", say(f"report.table.{name}"), table(list(rows)[:_MOST_ROWS], [], plainly=plainly)]
        if len(rows) > _MOST_ROWS:
            parts.append(say("report.more", shown=_MOST_ROWS, all=len(rows)))
    return "\n".join(parts)
