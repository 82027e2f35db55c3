"""What every lab owes its visitors, at its ends, in its presets and between. A new lab is tested by existing."""

import contextlib
import functools
import io
import json
import math
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qkdemo.cli.command import main
from qkdemo.dials import Dial, Dials, declarations
from qkdemo.labs import models
from qkdemo.labs.caption import origin
from qkdemo.labs.lab import Lab
from tests.strategies import COMPUTED, ends, settings_of

UNFINISHED = re.compile(r"[{}]|\b(nan|inf|none|null|true|false)\b|  |\n", re.IGNORECASE)
COUNTS = ("_rows", "_lost")  # how the columns end that count what is not finite


def states() -> Iterator[Any]:
    for word, lab in COMPUTED.items():
        yield pytest.param(lab, lab.settings(), id=f"{word}: default")
        for name, preset in lab.presets.items():
            yield pytest.param(lab, preset, id=f"{word}: preset {name}")
        for name, state in ends(lab.settings):
            yield pytest.param(lab, state, id=f"{word}: {name}")


def forget() -> None:
    """Empties every cache of ours, so that what is computed again is computed."""
    for name, module in list(sys.modules.items()):
        if name.startswith("qkdemo."):
            for entry in vars(module).values():
                if isinstance(entry, functools._lru_cache_wrapper):
                    entry.cache_clear()


def without_idle_dials(state: Dials) -> Dials:
    """`state` with every dial that does not act in it at its default: a command line refuses those."""
    idle = {dial.name: dial.default for dial in declarations(type(state)) if not dial.acts_for(state)}
    return state.but(**idle)


def fitting(state: Dials) -> Dials:
    """`state` with the nearest value that there is where another dial leaves no room: a command line refuses those."""
    fits: dict[str, Any] = {}
    for dial in declarations(type(state)):
        if dial.misfit(state):
            assert isinstance(dial.kind, Dial)
            value, bound = getattr(state, dial.name), getattr(state, dial.kind.below or dial.kind.divides)
            divisors = [size for size in range(1, value + 1) if bound % size == 0]
            fits[dial.name] = bound - 1 if dial.kind.below else divisors[-1]
    return state.but(**fits)


def flags(state: Dials) -> list[str]:
    """The command line of `state`."""
    return [f"--{name.replace('_', '-')}={text}" for name, text in state.to_texts().items()]


def as_json(value: Any) -> Any:
    """What JSON makes of `value`, with ∞ and NaN as words."""
    if isinstance(value, dict):
        return {key: as_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(entry) for entry in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def printed(lab: Lab, state: Dials) -> dict[str, Any]:
    """What the command line prints for `state`, read strictly: JSON knows no NaN."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main([lab.command.word, *flags(state), "--json"]) == 0
    read: dict[str, Any] = json.loads(out.getvalue(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    return read


def check(lab: Lab, state: Dials) -> None:
    """Everything that holds for any lab in any state."""
    report = lab.report(state)
    assert_finite_or_counted({name: value for name, value in report.items() if not isinstance(value, list)})
    for name, rows in report.items():
        if not isinstance(rows, list):  # a single number: the lab sums itself up
            continue
        assert rows or lab is models.LAB, f"{name} is empty"  # a filter may let nothing pass
        assert len({tuple(row) for row in rows}) <= 1, f"rows of {name} name different columns"
        for row in rows:
            assert_finite_or_counted(row)
    sentences = lab.explain(lab.run(state))
    assert sentences
    for sentence in sentences:
        assert_sentence(sentence)


def assert_finite_or_counted(row: dict[str, Any]) -> None:
    counted = any(value for key, value in row.items() if key.endswith(COUNTS))
    for key, value in row.items():
        assert value is None or isinstance(value, bool | int | float | str), key
        if isinstance(value, float) and not key.startswith("first_"):  # the first of what never happens is at ∞
            assert math.isfinite(value) or counted, f"{key} is {value}, and no column counts why"


def assert_sentence(sentence: str) -> None:
    assert not UNFINISHED.search(sentence), sentence
    assert sentence[0] == sentence[0].upper(), sentence
    assert sentence[-1] in ".?!", sentence


@pytest.mark.parametrize(("lab", "state"), list(states()))
def test_a_lab_keeps_its_promises_at_its_ends_and_in_its_presets(lab: Lab, state: Dials) -> None:
    check(lab, state)
    first = as_json(lab.report(state))
    typed = fitting(without_idle_dials(state))
    read = printed(lab, typed)
    assert {name: read.pop(name) for name in ("lab", "settings", "made_with")} == origin(lab.name, typed.as_dict())
    assert read == first  # the command line prints the report, whole
    forget()
    assert as_json(lab.report(state)) == first


@pytest.mark.parametrize(("lab", "state"), list(states()))
def test_the_program_of_every_state_runs_and_prints(lab: Lab, state: Dials) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(next(iter(lab.programs(lab.run(state)).values()))(), "program", "exec"), {"__name__": "__main__"})
    assert out.getvalue().strip()


@pytest.mark.parametrize("lab", COMPUTED.values(), ids=COMPUTED)
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_lab_keeps_its_promises_between_its_ends(lab: Lab, data: st.DataObject) -> None:
    check(lab, data.draw(settings_of(lab.settings)))


@pytest.mark.parametrize("lab", COMPUTED.values(), ids=COMPUTED)
def test_a_lab_says_what_it_is_and_labels_every_dial(lab: Lab) -> None:
    assert lab.question.endswith("?")  # a lab is one question
    for dial in declarations(lab.settings):
        assert dial.label, dial.name
        assert dial.help, dial.name


@pytest.mark.parametrize("lab", COMPUTED.values(), ids=COMPUTED)
def test_presets_are_settings_that_a_link_restores(lab: Lab) -> None:
    for preset in lab.presets.values():
        assert lab.settings.from_texts(preset.to_texts()) == (preset, [])
