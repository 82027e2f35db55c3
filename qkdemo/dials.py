"""Dials, declared once: the one declaration from which everything about a setting is derived.

    @dataclass(frozen=True, kw_only=True)
    class Settings(Dials):
        scale: Annotated[float, Dial(0.01, 1000, log=True)] = 8.0
        variant: Annotated[Variant, Choice()] = "l2"
        causal: Annotated[bool, Switch()] = False
        sentence: Annotated[str, Sentence(("who", "has", "it"), most=9)] = "who has it"

* `Dial`, `Choice`, `Switch`, `Sentence`: what a field may be; its label and help stand in the string table;
* `Dials`: the base class; it checks every value when an instance is made;
* `Dials.from_texts`: reads a link leniently, with a note for whatever it clamped or dropped;
* `Dials.from_text`: reads one value strictly, for the command line;
* `Dials.to_texts`: writes a link;
* `declarations(cls)`: the fields, for whoever builds widgets, flags or tests from them;
* `schema(cls)`: the JSON schema; `NO_DIAL`: for a field that is none.

Nothing here knows Streamlit, torch or argparse. Nothing from a link is evaluated or unpickled.
"""

import dataclasses
import difflib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias, cast, get_args, get_origin, get_type_hints

from qkdemo.messages import has, say
from qkdemo.notation import plain

Value: TypeAlias = float | int | str | bool

# ISO 3, series R20: twenty stops a decade, each about 12 % above the last; 1, 2, 4, 8 and 16 are among them.
_R20: Final = (1.0, 1.12, 1.25, 1.4, 1.6, 1.8, 2.0, 2.24, 2.5, 2.8, 3.15, 3.55, 4.0, 4.5, 5.0, 5.6, 6.3, 7.1, 8.0, 9.0)
NO_DIAL: Final = "no dial"  # in a field's Annotated: no widget, link or flag sets it, only code
_LONGEST_ECHO: Final = 40  # characters of a visitor's text that a sentence repeats


class SettingsError(ValueError):
    """A setting that is not allowed, in a sentence that names it, its value and what would be right."""


@dataclass(frozen=True)
class Dial:
    """A number from `low` to `high`; `log` dials stop at preferred numbers, others every `step`.

    Stops and steps are the widget's: a link or a flag may stand between two of them, so that a state found
    elsewhere can be set exactly.

    `only_for` names another field and its values for which this dial acts: it is shown for those alone.
    `below` and `divides` name another field by whose value this one is bounded. A lab takes the nearest that there is,
    so that turning the other dial moves nothing; whoever types a value that there is not is told (`misfit`).
    """

    low: float
    high: float
    step: float = 1
    log: bool = False
    stops: tuple[float, ...] = ()
    sign: str = ""  # written before the value: "×"
    more: bool = False  # stands under "more dials"
    also: str = ""  # another dial's name that a command line may use for this one where that one is idle
    only_for: tuple[str, tuple[Value, ...]] | None = None
    below: str = ""
    divides: str = ""

    def grid(self) -> tuple[float, ...]:
        """The stops of a logarithmic dial, ends included; empty for a linear one."""
        if self.stops:
            return self.stops
        return preferred_numbers(self.low, self.high) if self.log else ()


@dataclass(frozen=True)
class Choice:
    """One of the words of the field's `Literal`; `available` narrows them on this machine.

    `named` is another dial by whose names they are written: that of a first choice for a second one.
    """

    more: bool = False
    available: Callable[[], Sequence[str]] | None = None
    only_for: tuple[str, tuple[Value, ...]] | None = None
    named: str = ""


@dataclass(frozen=True)
class Switch:
    """On or off."""

    more: bool = False
    only_for: tuple[str, tuple[Value, ...]] | None = None


@dataclass(frozen=True)
class Sentence:
    """One word or more, `most` at the most, of those that are `known`; each stands alone, full stops too."""

    known: tuple[str, ...]
    most: int
    more: bool = False
    only_for: tuple[str, tuple[Value, ...]] | None = None

    def words(self, text: str) -> list[str]:
        """The words of `text` as they are known where they differ in capitals alone; a mark at an end stands alone.

        >>> Sentence(("Ana", "has", "it", "?"), most=9).words("ana  has it?")
        ['Ana', 'has', 'it', '?']
        """
        spelt = {word.lower(): word for word in self.known}
        parts = re.findall(r"[^\s.?]\S*?(?=[.?]*(?:\s|$))|[.?]", text)
        return [spelt.get(part.lower(), part) for part in parts]

    def nearest_word(self, word: str) -> str | None:
        """The known word that is spelt most like `word`; None if none is like it."""
        close = difflib.get_close_matches(word, self.known, n=1)
        return close[0] if close else None


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
        key = f"dial.{self.name}.help"
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
                    return say(f"error.{rule}", name=self.name, value=_echo(value), other=other, bound=_echo(bound))
        return ""

    def check(self, value: Value) -> Value:
        """`value` in the field's own type. Raises SettingsError if it is not allowed."""
        match self.kind:
            case Switch():
                if isinstance(value, bool):
                    return value
                raise SettingsError(say("error.switch", name=self.name, value=_echo(value)))
            case Choice():
                if value in self.allowed_words():
                    return value
                key = "error.unavailable" if value in self.words else "error.word"
                raise SettingsError(say(key, name=self.name, value=_echo(value), known=_listed(self.allowed_words())))
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
                raise SettingsError(say("error.switch", name=self.name, value=_echo(text)))
            case Choice() | Sentence():
                return self.check(text)
            case Dial():
                try:
                    number = float(text)
                    return self._checked_number(number, typed=text if math.isinf(number) else None)
                except ValueError as error:
                    if isinstance(error, SettingsError):
                        raise
                    raise SettingsError(say("error.number", name=self.name, value=_echo(text))) from None

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
            raise SettingsError(say("error.no_words", name=self.name, value=_echo(value)))
        for word in words:
            if word not in kind.known:
                near = kind.nearest_word(word)
                key, others = ("error.unknown_word", near) if near else ("error.strange_word", _listed(kind.known))
                raise SettingsError(say(key, name=self.name, value=_echo(word), known=others))
        if len(words) > kind.most:
            raise SettingsError(say("error.too_many_words", name=self.name, count=len(words), most=kind.most))
        return " ".join(words)

    def _checked_number(self, value: Value, typed: str | None = None) -> Value:
        """`value` in the field's own type; `typed`: what was written, where the number does not show it."""
        assert isinstance(self.kind, Dial)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise SettingsError(say("error.number", name=self.name, value=_echo(value)))
        low, high = plain(self.kind.low), plain(self.kind.high)
        if not self.kind.low <= value <= self.kind.high:  # also false for NaN
            shown = _echo(value) if typed is None else _shortened(typed)
            raise SettingsError(say("error.range", name=self.name, value=shown, low=low, high=high))
        if self.whole and value != int(value):
            raise SettingsError(say("error.whole", name=self.name, value=_echo(value), low=low, high=high))
        return int(value) if self.whole else float(value)


@dataclass(frozen=True, kw_only=True)
class Dials:
    """Base of every lab's `Settings`. Making one checks every field; raises SettingsError.

    `kin`: dials of one name mean the same in all labs of a kin, so that what is set in one of them goes for the others.
    """

    kin: ClassVar[str] = "attention"

    def __post_init__(self) -> None:
        for dial in declarations(type(self)):
            object.__setattr__(self, dial.name, dial.check(getattr(self, dial.name)))

    @classmethod
    def from_texts(cls, texts: Mapping[str, str]) -> tuple[Self, list[str]]:
        """Settings from a link, and a sentence for every value that had to be clamped or dropped.

        Never raises: a link of last year must still open. Names that are no dial of `cls` are noted too.
        """
        known = {dial.name: dial for dial in declarations(cls)}
        values: dict[str, Any] = {}
        notes = []
        for name, text in texts.items():
            if name not in known:
                notes.append(say("note.unknown", name=_echo(name)))
                continue
            try:
                values[name] = known[name].parse(text)
            except SettingsError as error:
                values[name] = known[name].nearest(text)
                notes.append(say("note.mended", error=error, used=known[name].write(values[name])))
        return cls(**values), notes

    @classmethod
    def from_text(cls, name: str, text: str) -> Value:
        """One value, read strictly. Raises SettingsError, also for a `name` that is no dial."""
        for dial in declarations(cls):
            if dial.name == name:
                return dial.parse(text)
        names = _listed([dial.name for dial in declarations(cls)])
        raise SettingsError(say("error.name", name=_echo(name), known=names))

    def to_texts(self, *, defaults: bool = False, base: Self | None = None) -> dict[str, str]:
        """The link of these settings: what differs from `base`, which is all defaults unless given; or everything."""
        base = type(self)() if base is None else base
        return {
            dial.name: dial.write(getattr(self, dial.name))
            for dial in declarations(type(self))
            if defaults or getattr(self, dial.name) != getattr(base, dial.name)
        }

    def but(self, **changes: Any) -> Self:
        """The same settings with some of them changed."""
        return dataclasses.replace(self, **changes)

    def as_dict(self) -> dict[str, Value]:
        """Name to value, in order of declaration."""
        return {dial.name: getattr(self, dial.name) for dial in declarations(type(self))}


def declarations(cls: type[Dials]) -> tuple[Declaration, ...]:
    """The dials of `cls`, in order of declaration."""
    if cls not in _DECLARED:
        hints = get_type_hints(cls, include_extras=True)
        turned = [field for field in dataclasses.fields(cls) if NO_DIAL not in get_args(hints[field.name])]
        _DECLARED[cls] = tuple(_declaration(field, hints[field.name]) for field in turned)
    return _DECLARED[cls]


_DECLARED: Final[dict[type[Dials], tuple[Declaration, ...]]] = {}


def schema(cls: type[Dials]) -> dict[str, Any]:
    """JSON schema of `cls`: an object with one property per dial."""
    properties: dict[str, Any] = {}
    for dial in declarations(cls):
        match dial.kind:
            case Dial(low=low, high=high):
                entry: dict[str, Any] = {"type": "integer" if dial.whole else "number", "minimum": low, "maximum": high}
            case Choice():
                entry = {"enum": list(dial.words)}
            case Switch():
                entry = {"type": "boolean"}
            case Sentence():
                entry = {"type": "string"}
        properties[dial.name] = entry | {"title": dial.label, "description": dial.help, "default": dial.default}
    return {"type": "object", "properties": properties, "additionalProperties": False}


@lru_cache(maxsize=64)
def preferred_numbers(low: float, high: float, per_decade: Literal[20, 10, 5, 4] = 20) -> tuple[float, ...]:
    """The preferred numbers (ISO 3: R20, R10, R5 or R20/5) from `low` to `high`; both ends are included.

    >>> preferred_numbers(1, 10, per_decade=10)
    (1.0, 1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0, 10.0)
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    stops = (float(f"{step}e{decade}") for decade in decades for step in _R20[:: 20 // per_decade])
    return tuple(sorted({float(low), float(high)} | {stop for stop in stops if low <= stop <= high}))


_SWITCH_WORDS: Final = {"1": True, "0": False, "true": True, "false": False, "on": True, "off": False}


def _declaration(field: "dataclasses.Field[Any]", hint: Any) -> Declaration:
    if get_origin(hint) is not Annotated:
        raise TypeError(f"{field.name} needs Annotated[type, Dial(...) or Choice(...) or Switch(...)]")
    base, kind = get_args(hint)
    words = get_args(base) if isinstance(kind, Choice) else ()
    return Declaration(name=field.name, kind=kind, default=cast(Value, field.default), whole=base is int, words=words)


def _echo(value: object) -> str:
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


def _listed(words: Sequence[str]) -> str:
    """`none, l2 and rms`."""
    return words[0] if len(words) == 1 else say("list.and", head=", ".join(words[:-1]), last=words[-1])
