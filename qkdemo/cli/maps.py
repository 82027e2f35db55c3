"""`python -m qkdemo map drift --x scale:0.1:1000 --y gain:0.1:100 --measure entropy_fraction --svg map.svg`.

* `main(arguments)`: prints a lab over two of its dials in words, or writes it in the format that is asked for; returns
  the exit code.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from qkdemo.charts.paper.files import MIMES
from qkdemo.cli.parser import Parser
from qkdemo.cli.tables import finite
from qkdemo.dials import Declaration, Dials, SettingsError, Switch, declarations
from qkdemo.labs.registry import LABS
from qkdemo.maps import files
from qkdemo.maps.cells import Canvas, Cells, fill
from qkdemo.maps.difference import difference, example, minus_of, sides_of
from qkdemo.maps.picture import picture
from qkdemo.maps.request import MAPPED, Request, request_of, size_of
from qkdemo.maps.words import alt, caption
from qkdemo.messages import say
from qkdemo.runs.progress import ProgressLine, refuse_unwritable

_DEFAULT: Final = 33
_STDOUT: Final = "-"
_NUMBERS: Final = {"csv": files.as_csv, "parquet": files.as_parquet}
_PICTURES: Final[Mapping[str, Any]] = {kind: partial(files.as_picture, kind=kind) for kind in MIMES}
FORMATS: Final = ("json", *_NUMBERS, *_PICTURES)


def main(arguments: Sequence[str]) -> int:
    """One map; returns the exit code."""
    parser = _parser(arguments)
    given = vars(parser.parse_args(list(arguments)))
    try:
        request, size = _request(given), size_of(_whole(given["cells"]))
        minus = minus_of(request, given["minus"])
        wanted = {name: given[name] for name in FORMATS if given[name] is not None}
        for file in wanted.values():
            if file != _STDOUT:
                refuse_unwritable(file)
    except SettingsError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    cells = _whole_map(request, size)
    if minus is not None:
        cells = difference(cells, None if minus.request is None else _whole_map(minus.request, size), minus)
    for name, file in wanted.items():
        _write(file, _made(name, cells))
    if not wanted:
        print("\n\n".join(alt(cells, role) for role in cells.sides))
    return 0


def _whole_map(request: Request, size: int) -> Cells:
    canvas, progress = Canvas(request), ProgressLine("map.progress")
    for done, total in fill(canvas, size):
        progress(done, total)
    cells = canvas.cells(size, request.measure)
    assert cells is not None
    return cells


def _parser(arguments: Sequence[str]) -> Parser:
    parser = Parser(prog="qkdemo map", description=say("command.map"), allow_abbrev=False)
    subparsers = parser.add_subparsers(dest="lab", required=True, metavar=say("command.lab"))
    asked = {"-h", "--help"} & {*arguments}
    for name in MAPPED:
        lab = LABS[name]
        sub = subparsers.add_parser(name, description=say("command.map"), epilog=_measures(name), allow_abbrev=False)
        for axis in ("x", "y"):
            usual = getattr(lab.plane, axis)
            sub.add_argument(f"--{axis}", default="", metavar="DIAL[:LOW:HIGH]", help=say("map.help.axis", usual=usual))
        sub.add_argument("--measure", default="", metavar="MEASURE", help=say("map.help.measure"))
        sub.add_argument("--cells", default=str(_DEFAULT), metavar="N", help=say("map.help.cells", usual=_DEFAULT))
        minus = _minus(name) if asked and name in arguments else None  # its example costs some of the lab's numbers
        sub.add_argument("--minus", default="", metavar="SIDE|DIAL=VALUE", help=minus)
        for word in FORMATS:
            sub.add_argument(f"--{word}", nargs="?", const=_STDOUT, metavar="FILE", help=say(f"map.help.{word}"))
        for dial in declarations(lab.settings):
            bare: dict[str, Any] = {"nargs": "?", "const": "1"} if isinstance(dial.kind, Switch) else {}
            flag = "--" + dial.name.replace("_", "-")
            sub.add_argument(flag, dest=f"dial:{dial.name}", help=_help(dial), metavar="VALUE", **bare)
    return parser


def _measures(name: str) -> str:
    plane = LABS[name].plane
    assert plane is not None
    known = "; ".join(f"{measure} ({say(f'measure.{measure}')})" for measure in plane.measures)
    return say("map.help.known", known=known).replace("%", "%%")


def _minus(name: str) -> str:
    """What can be subtracted, by words that this lab knows."""
    request = request_of(name, LABS[name].settings(), "", "")
    if sides := sides_of(request):
        return say("map.help.minus", sides=", ".join(sides), example=example(request))
    return say("map.help.minus_state", example=example(request))


def _help(dial: Declaration) -> str:
    return f"{dial.label}. {dial.help} [{dial.write(dial.default)}]".replace("%", "%%")


def _request(given: Mapping[str, Any]) -> Request:
    cls: type[Dials] = LABS[given["lab"]].settings
    texts = {name.removeprefix("dial:"): text for name, text in given.items() if name.startswith("dial:")}
    values = {name: cls.from_text(name, text) for name, text in texts.items() if text is not None}
    return request_of(given["lab"], cls(**values), given["x"], given["y"], given["measure"])


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise SettingsError(say("error.number", name="cells", value=repr(text))) from None


def _made(name: str, cells: Cells) -> bytes:
    if name == "json":
        return (json.dumps(finite(files.as_json(cells)), ensure_ascii=False) + "\n").encode()
    return _NUMBERS[name](cells) if name in _NUMBERS else _PICTURES[name](picture(cells, caption(cells)))


def _write(file: str, data: bytes) -> None:
    if file == _STDOUT:
        sys.stdout.buffer.write(data)
    else:
        Path(file).write_bytes(data)
