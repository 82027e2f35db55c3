"""One declared dial: its label, its limits, and how a value of it is read, checked and written."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from qkdemo.dials.kinds import Choice, Dial, Sentence, Switch, Value
from qkdemo.messages import has, say
from qkdemo.notation import plain

if TYPE_CHECKING:
    from qkdemo.dials.settings import Dials

_LONGEST_ECHO: Final = 40  # characters of a visitor's text that a sentence repeats
_SWITCH_WORDS: Final = {"1": True, "0": False, "true": True, "false": False, "on": True, "off": False}


class SettingsError(ValueError):
    """A setting that is not allowed, in a sentence that names it, its value and what would be right."""


@dataclass(frozen=True)
class Declaration:
    """One field of a `Dials` class: its name, type, default and what kind of control it is."""

    name: str
    kind: Dial | Choice | Switch | Sentence
    default: Value
    whole: bool  # an int
    words: tuple[str, ...]  # of a Choice

    @property
    def label(self) -> str:
        return say(f"dial.{self.name}.label")

    @property
    def help(self) -> str:
        use = self.kind.use if isinstance(self.kind, Dial | Choice) else ""
        key = f"dial.{self.name}.help{use and f'_{use}'}"
        return say(key) if has(key) else ""

    def allowed_words(self) -> tuple[str, ...]:
        """The words that can be chosen on this machine."""
        if isinstance(self.kind, Choice) and self.kind.available is not None:
            here = self.kind.available()
            return tuple(word for word in self.words if word in here)
        return self.words

    def acts_for(self, settings: "Dials") -> bool:
        """Whether this dial changes anything in the state `settings`."""
        rule = self.kind.only_for
        return rule is None or getattr(settings, rule[0]) in rule[1]

    def misfit(self, settings: "Dials") -> str:
        """What the state `settings` does not have of this dial's value, in a sentence; empty if it has it."""
        if isinstance(self.kind, Dial):
            value: Any = getattr(settings, self.name)
            for rule, other in (("below", self.kind.below), ("divides", self.kind.divides)):
                bound: Any = getattr(settings, other) if other else None
                if bound is not None and (value >= bound if rule == "below" else bound % value):
                    return say(f"error.{rule}", name=self.name, value=echo(value), other=other, bound=echo(bound))
        return ""

    def check(self, value: Value) -> Value:
        """`value` in the field's own type. Raises SettingsError if it is not allowed."""
        match self.kind:
            case Switch():
                if isinstance(value, bool):
                    return value
                raise SettingsError(say("error.switch", name=self.name, value=echo(value)))
            case Choice():
                if value in self.allowed_words():
                    return value
                key = "error.unavailable" if value in self.words else "error.word"
                raise SettingsError(say(key, name=self.name, value=echo(value), known=listed(self.allowed_words())))
            case Dial():
                return self._checked_number(value)
            case Sentence():
                return self._checked_sentence(self.kind, value)

    def parse(self, text: str) -> Value:
        """The value that `text` writes. Raises SettingsError for what is not of the field's type."""
        match self.kind:
            case Switch():
                if text.lower() in _SWITCH_WORDS:
                    return _SWITCH_WORDS[text.lower()]
                raise SettingsError(say("error.switch", name=self.name, value=echo(text)))
            case Choice() | Sentence():
                return self.check(text)
            case Dial():
                try:
                    number = float(text)
                    return self._checked_number(number, typed=text if math.isinf(number) else None)
                except ValueError as error:
                    if isinstance(error, SettingsError):
                        raise
                    raise SettingsError(say("error.number", name=self.name, value=echo(text))) from None

    def write(self, value: Value) -> str:
        """The text of `value` in a link or on a command line; `parse` reads it back exactly."""
        if isinstance(value, bool):
            return "1" if value else "0"
        return value if isinstance(value, str) else plain(value)

    def nearest(self, text: str) -> Value:
        """What a lenient reader makes of `text`: the nearer end of the range, or the default."""
        if isinstance(self.kind, Dial):
            try:
                number = float(text)
            except ValueError:
                return self.default
            if not math.isnan(number):
                inside = min(max(number, self.kind.low), self.kind.high)
                return round(inside) if self.whole else inside
        if isinstance(self.kind, Sentence):
            words = self.kind.words(text)
            known = [word if word in self.kind.known else self.kind.nearest_word(word) for word in words]
            return " ".join([word for word in known if word][: self.kind.most]) or self.default
        return self.default

    def fitting(self, value: Value) -> Value | None:
        """What this dial makes of the value of one that means the same: the nearest in its range; None if it has none.

        >>> width = Declaration(name="d_head", kind=Dial(4, 64), default=16, whole=True, words=())
        >>> width.fitting(256), width.fitting(32), width.fitting("wide")
        (64, 32, None)
        """
        if isinstance(self.kind, Dial) and isinstance(value, int | float):
            value = min(max(value, self.kind.low), self.kind.high)
        try:
            return self.check(value)
        except SettingsError:
            return None

    def _checked_sentence(self, kind: Sentence, value: Value) -> Value:
        """`value` with single spaces, its words spelt as they are known."""
        words = kind.words(value) if isinstance(value, str) else []
        if not words:
            raise SettingsError(say("error.no_words", name=self.name, value=echo(value)))
        for word in words:
            if word not in kind.known:
                near = kind.nearest_word(word)
                key, others = ("error.unknown_word", near) if near else ("error.strange_word", listed(kind.known))
                raise SettingsError(say(key, name=self.name, value=echo(word), known=others))
        if len(words) > kind.most:
            raise SettingsError(say("error.too_many_words", name=self.name, count=len(words), most=kind.most))
        return " ".join(words)

    def _checked_number(self, value: Value, typed: str | None = None) -> Value:
        """`value` in the field's own type; `typed`: what was written, where the number does not show it."""
        assert isinstance(self.kind, Dial)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise SettingsError(say("error.number", name=self.name, value=echo(value)))
        low, high = plain(self.kind.low), plain(self.kind.high)
        if not self.kind.low <= value <= self.kind.high:  # also false for NaN
            shown = echo(value) if typed is None else _shortened(typed)
            raise SettingsError(say("error.range", name=self.name, value=shown, low=low, high=high))
        if self.whole and value != int(value):
            raise SettingsError(say("error.whole", name=self.name, value=echo(value), low=low, high=high))
        return int(value) if self.whole else float(value)


def echo(value: object) -> str:
    """A visitor's value as a sentence repeats it: short, on one line, words in quotes."""
    match value:
        case str():
            return repr(_shortened(value))
        case float():
            return plain(value)
        case _:
            return _shortened(str(value).lower())


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_ECHO else line[: _LONGEST_ECHO - 1] + "…"


def listed(words: Sequence[str]) -> str:
    """`none, l2 and rms`."""
    return words[0] if len(words) == 1 else say("list.and", head=", ".join(words[:-1]), last=words[-1])
