"""The labs from a shell: `python -m qkdemo drift --scale 1,2,4,8,16 --variant l2 --gain 10 --json`.

Dials are flags; a list, separated by commas, sweeps one. Without `--json` a table is printed: for
the eye in a terminal, with plain numbers in a pipe or a file.
A wrong word or value ends with exit code 2 and a line on stderr that says what is wrong.
"""

import errno
import io
import itertools
import json
import os
import shutil
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TextIO

from qkdemo.cli import diagnose, figures, serve
from qkdemo.cli.parser import Parser, joined
from qkdemo.cli.tables import finite, table
from qkdemo.cli.tensors import on_file
from qkdemo.diagnose.readers.inputs import InputError
from qkdemo.dials import Choice, Declaration, Dial, Dials, Sentence, SettingsError, Switch, declarations
from qkdemo.labs.caption import origin, parquet_file
from qkdemo.labs.lab import Command
from qkdemo.labs.registry import LABS
from qkdemo.messages import say
from qkdemo.notation import plain
from qkdemo.runs.batches import price_of
from qkdemo.runs.progress import ProgressLine, refuse_unwritable, write_whole
from qkdemo.training import settings as training

COMMANDS: Final[Mapping[str, Command]] = {lab.command.word: lab.command for lab in LABS.values()}
_LONGEST_RANGE: Final = 10_000
_INTERRUPTED: Final = 130  # what shells say of a program that was ended by Ctrl-C
_MORE_NAMES: Final = {"seed": ("--seeds",)}


def _map(words: Sequence[str]) -> int:
    from qkdemo.cli import maps  # noqa: PLC0415  Altair takes a second to load: only who draws waits

    return maps.main(words)


def _phases(words: Sequence[str]) -> int:
    from qkdemo.cli import phases  # noqa: PLC0415  as rarely asked for

    return phases.main(words)


_APART: Final[Mapping[str, Callable[[Sequence[str]], int]]] = {
    "diagnose": diagnose.main,
    "map": _map,
    "phases": _phases,
    "serve": serve.main,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one lab, draw a map, examine a file, or serve the app; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    apart = _APART.get(words[0]) if words else None
    return apart(words[1:]) if apart else _lab(words)


def _lab(words: Sequence[str]) -> int:
    parser = _parser()
    given = vars(parser.parse_args(joined(words)))
    lab, as_json, preset = COMMANDS[given.pop("lab")], given.pop("json"), given.pop("preset")
    file, measured, tensors = given.pop("parquet", None), given.pop("measure", False), given.pop("tensors", None)
    wanted = figures.taken(given)
    try:
        if file:
            refuse_unwritable(file)
        if tensors:
            lab = on_file(lab, tensors, given)
        states, swept = _states(lab, preset, given)
        figures.check(wanted, states)
    except (SettingsError, InputError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    made = origin(lab.page, states[0].as_dict() | swept | ({"tensors": tensors} if tensors else {}))
    report: dict[str, Any] = {}  # tables; and, from a lab that sums itself up, single numbers
    unkept = figures.write(lab, states[0], wanted)
    if lab.train is not None:
        states = list(dict.fromkeys(states))  # runs are counted: none twice
        runs = [state for state in states if isinstance(state, training.Settings)]
        print(say("command.price", runs=len(runs), price=price_of(runs)), file=sys.stderr)
        found, columns = lab.train(states, ProgressLine())
        report |= found
        unkept = write_whole(file, parquet_file(columns, made)) if file else unkept
    report |= _reported(lab, states, swept, measured=measured)
    if as_json:
        print(json.dumps(finite(made | report), indent=2, ensure_ascii=False))
    else:
        dials, plainly = [dial.name for dial in declarations(lab.settings)], not sys.stdout.isatty()
        parts = [_rows(part) for part in report.values() if isinstance(part, list | dict)]
        room = 0 if plainly else shutil.get_terminal_size().columns
        print("\n\n".join(table(rows, dials, lab.noise, plainly=plainly, room=room) for rows in parts))
    if unkept:  # what was computed is printed nevertheless
        print(f"{parser.prog}: {unkept}", file=sys.stderr)
    return 1 if unkept else 0


def _reported(lab: Command, states: Sequence[Dials], swept: Collection[str], *, measured: bool) -> dict[str, Any]:
    """The tables of all states, one under the other, and single numbers."""
    report: dict[str, Any] = {}
    for state in states:
        made = lab.measured(state) if measured and lab.measured else lab.report(state) if lab.report else {}
        for name, rows in made.items():
            if not isinstance(rows, list):
                report.setdefault(name, rows)
                continue
            named = [{key: getattr(state, key) for key in swept if key not in row} | row for row in rows]
            report.setdefault(name, []).extend(named)
    return report


def _parser() -> Parser:
    parser = Parser(prog="qkdemo", description=say("command.description"), allow_abbrev=False)
    subparsers = parser.add_subparsers(dest="lab", required=True, metavar=say("command.lab"))
    for word, lab in COMMANDS.items():
        sub = subparsers.add_parser(
            word,
            help=say(f"command.{word}"),
            description=say(f"command.{word}"),
            epilog=say("command.lists") + (_definitions() if lab.train is not None else ""),
            allow_abbrev=False,
        )
        sub.add_argument("--json", action="store_true", help=say("command.json"))
        sub.add_argument(
            "--preset",
            choices=list(lab.presets),
            type=lambda name: name.replace("-", "_"),  # both spellings are known
            help=_presets(lab),
            metavar="NAME",
        )
        if lab.on is not None:
            sub.add_argument("--tensors", help=say("command.tensors"), metavar="FILE")
        if lab.measured is not None:
            sub.add_argument("--measure", action="store_true", help=say("command.measure"))
        figures.add_flags(sub, lab)
        if lab.train is not None:
            sub.add_argument("--parquet", help=say("command.parquet"), metavar="FILE")
        for dial in declarations(lab.settings):
            flags = ("--" + dial.name.replace("_", "-"), *_MORE_NAMES.get(dial.name, ()))
            bare: dict[str, Any] = {"nargs": "?", "const": "1"} if isinstance(dial.kind, Switch) else {}
            sub.add_argument(*flags, metavar=_range(dial), help=_help(dial, lab), **bare)
    for word in _APART:  # they read their own words
        subparsers.add_parser(word, help=say(f"command.{word}"), add_help=False)
    return parser


def _definitions() -> str:
    """What the words and columns of a report on trained runs mean."""
    ends = ("solved", "partly", "failed", "end")
    words = (*ends, "learnt_first", "spike", "divergence", "lost", "non_finite", "untuned")
    return "".join(" " + say(f"training.definition.{word}") for word in words)


def _range(dial: Declaration) -> str:
    match dial.kind:
        case Dial(low=low, high=high):
            return f"{plain(low)}…{plain(high)}"
        case Choice():
            return "|".join(dial.allowed_words())
        case Switch():
            return "0|1"
        case Sentence():
            return say("command.sentence")


def _help(dial: Declaration, lab: Command) -> str:
    default = lab.swept.get(dial.name) or dial.write(getattr(lab.base, dial.name))
    return f"{dial.label}. {dial.help} [{default}]".replace("%", "%%")


def _presets(lab: Command) -> str:
    """What `--preset` does, and every state that it knows, with its name on the page."""
    named = "; ".join(f"{name} ({say(f'preset.{lab.page}.{name}')})" for name in lab.presets)
    return f"{say('command.preset')}: {named}".replace("%", "%%")


def _states(
    lab: Command, preset: str | None, given: Mapping[str, str | None]
) -> tuple[list[Dials], dict[str, list[Any]]]:
    """Every combination of the values given, and the names and values of the dials that are swept."""
    cls: type[Dials] = lab.settings
    base: Dials = lab.presets[preset] if preset else lab.base
    texts = dict(lab.swept) | {name: text for name, text in given.items() if text is not None}
    chosen = {name: [cls.from_text(name, part) for part in _parts(name, text)] for name, text in texts.items()}
    combinations = [dict(zip(chosen, values, strict=True)) for values in itertools.product(*chosen.values())]
    states = [base.but(**_renamed(base, combination)) for combination in combinations]
    for name in chosen:
        _refuse_if_idle(name, states, combinations)
    _refuse_misfits(chosen, states)
    return states, _swept(states, {name for name, values in chosen.items() if len(values) > 1})


def _parts(name: str, text: str) -> list[str]:
    """The values of a list: 1,2,4; or 0:20 for 0, 1, …, 19; or both. Raises SettingsError for what is no range."""
    return [value for part in text.split(",") for value in (_between(name, part) if ":" in part else [part])]


def _between(name: str, text: str) -> list[str]:
    low, _, high = text.partition(":")
    if not (low.isdecimal() and high.isdecimal() and 0 < int(high) - int(low) <= _LONGEST_RANGE):
        raise SettingsError(say("command.range", name=name, text=text, most=_LONGEST_RANGE))
    return [str(value) for value in range(int(low), int(high))]


def _swept(states: Sequence[Dials], lists: Collection[str]) -> dict[str, list[Any]]:
    """What each dial goes through that was given as a list or differs between the states, where it acts."""
    swept = {}
    for dial in declarations(type(states[0])):
        values = list(dict.fromkeys(getattr(state, dial.name) for state in states if dial.acts_for(state)))
        if values and (dial.name in lists or any(getattr(state, dial.name) != values[0] for state in states)):
            swept[dial.name] = values
    return swept


def _renamed(base: Dials, values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` with a dial that is idle in this state standing for the one that may go by its name."""
    state, dials = base.but(**values), {dial.name: dial for dial in declarations(type(base))}
    renamed = dict(values)
    for dial in dials.values():
        also = dial.kind.also if isinstance(dial.kind, Dial) else ""
        if also in values and dial.name not in values and dial.acts_for(state) and not dials[also].acts_for(state):
            renamed[dial.name] = dial.check(renamed.pop(also))
    return renamed


def _refuse_if_idle(name: str, states: Sequence[Dials], combinations: Sequence[Mapping[str, Any]]) -> None:
    """Raises SettingsError if a dial was given that changes nothing in any of the states."""
    dials = {dial.name: dial for dial in declarations(type(states[0]))}
    dial = dials[name]
    stands_for_another = any(
        getattr(state, name) != wanted[name] for state, wanted in zip(states, combinations, strict=True)
    )
    if dial.kind.only_for and not stands_for_another and not any(dial.acts_for(state) for state in states):
        other, words = dial.kind.only_for
        write = dials[other].write  # as it is typed
        known = ", ".join(write(word) for word in words)
        value = write(getattr(states[0], other))
        raise SettingsError(say("error.idle", name=name, other=other, value=value, known=known))


def _refuse_misfits(names: Collection[str], states: Sequence[Dials]) -> None:
    """Raises SettingsError if a dial was given a value that another dial of the same state leaves no room for."""
    for dial in declarations(type(states[0])):
        for state in states if dial.name in names else ():
            if misfit := dial.misfit(state):
                raise SettingsError(misfit)


def _rows(part: Any) -> Sequence[Mapping[str, Any]]:
    """A part of a report as rows; counts by variant become one row each."""
    return [{"variant": word, **counts} for word, counts in part.items()] if isinstance(part, dict) else part


def from_a_shell() -> int:
    """`main`, in a terminal or a pipe of any encoding, whose reader may leave early, or a file that may not take it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")  # numbers are written with ·, − and ∞
    if sys.stdout is None:  # closed by the shell
        return _unwritten(os.strerror(errno.EBADF))
    try:
        status = _status()
        sys.stdout.flush()
    except BrokenPipeError:  # … | head
        _let_go(sys.stdout)
        return 0
    except OSError as error:  # a full disk
        if error.filename is not None:  # another file's: whoever opened it answers for it
            raise
        _let_go(sys.stdout)
        return _unwritten(error.strerror or str(error))
    return status


def _status() -> int:
    """The exit code of `main`, also where the parser ends the program: its help is still to be written out."""
    try:
        return main()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    except KeyboardInterrupt:
        print(f"\nqkdemo: {say('command.interrupted')}", file=sys.stderr)
        return _INTERRUPTED


def _unwritten(reason: str) -> int:
    print(f"qkdemo: {say('command.unwritten', reason=reason)}", file=sys.stderr)
    return 1


def _let_go(stream: TextIO) -> None:
    """So that nothing is left to flush at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
