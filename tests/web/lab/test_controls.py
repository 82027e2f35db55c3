"""Dials as messages to a browser: each message alone says where its dial stands."""

from contextlib import suppress
from typing import Any

import pytest

from qkdemo.dials import Choice, Declaration, Dial, Dials, Sentence, SettingsError, Switch, Value, declarations
from qkdemo.labs.registry import LABS
from qkdemo.web.lab.controls import _word
from tests.strategies import SMALL
from tests.web.visit import standing, visit, widget_of


def told_alone(dial: Declaration, message: Any) -> object:
    """Where a browser puts a dial that it has not drawn before, from one message."""
    match dial.kind:
        case Switch():
            return message.value if message.set_value else message.default
        case Choice():
            word = message.raw_value if message.set_value else message.options[message.default]
            return list(message.options).index(word)
        case Sentence():
            return message.value if message.set_value else message.default
        case Dial():
            place = (message.raw_value or message.value)[0] if message.set_value else message.default[0]
            return message.options[int(place)] if message.options and not message.set_value else place


def wanted(dial: Declaration, state: Dials, widget: Any) -> object:
    value = getattr(state, dial.name)
    match dial.kind:
        case Choice():
            return dial.allowed_words().index(value)
        case Dial() as numbers if numbers.grid():
            return widget.format_func(value)
        case _:
            return value


def another(dial: Declaration) -> Value:
    """A value that is not where the dial stands by itself."""
    match dial.kind:
        case Switch():
            return not dial.default
        case Choice():
            return next((word for word in reversed(dial.allowed_words()) if word != dial.default), dial.default)
        case Sentence(known=known):
            return known[0]
        case Dial() as kind:
            stops = kind.grid() or (kind.low, kind.low + kind.step)
            few = [stop for stop in stops if stop <= SMALL.get(dial.name, kind.high)]
            return dial.check(next(stop for stop in reversed(few or stops) if stop != dial.default))


def turned(page: str) -> dict[str, str]:
    """A link in which every dial stands somewhere else than by itself, as far as they go together."""
    state = LABS[page].settings()
    for dial in declarations(type(state)):
        with suppress(SettingsError):
            state = state.but(**{dial.name: another(dial)})
    return state.to_texts()


@pytest.mark.parametrize("page", LABS)
def test_every_message_of_a_dial_says_where_it_stands_though_an_earlier_one_was_never_drawn(page: str) -> None:
    app = visit(page, turned(page))
    state = standing(app, page)
    drawn = [dial for dial in declarations(type(state)) if dial.acts_for(state)]
    assert any(getattr(state, dial.name) != dial.default for dial in drawn)
    app.run()  # sets nothing: all it can tell is in the dials' own messages
    assert standing(app, page) == state
    for dial in drawn:
        widget = widget_of(app, page, dial)
        assert told_alone(dial, widget.proto) == wanted(dial, state, widget), dial.name


@pytest.mark.parametrize("lab", LABS)
def test_every_choice_has_a_name_that_is_no_word_of_code(lab: str) -> None:
    for dial in declarations(LABS[lab].settings):
        if isinstance(dial.kind, Choice):
            names = {word: _word(dial)(word) for word in dial.words}
            plain = [word for word, name in names.items() if word == name and "_" in word]
            assert not [word for word in plain if not word.startswith("float")], dial.name
            assert len(set(names.values())) == len(names), dial.name
