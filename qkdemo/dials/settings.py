"""Settings: a frozen dataclass whose fields are dials, read from a link or a command line and written back."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Self, cast, get_args, get_origin, get_type_hints

from qkdemo.dials.declaration import Declaration, SettingsError, echo, listed
from qkdemo.dials.kinds import Choice, Dial, Sentence, Switch, Value
from qkdemo.messages import say

NO_DIAL: Final = "no dial"  # in a field's Annotated: no widget, link or flag sets it, only code


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
                notes.append(say("note.unknown", name=echo(name)))
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
        names = listed([dial.name for dial in declarations(cls)])
        raise SettingsError(say("error.name", name=echo(name), known=names))

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


def _declaration(field: "dataclasses.Field[Any]", hint: Any) -> Declaration:
    if get_origin(hint) is not Annotated:
        raise TypeError(f"{field.name} needs Annotated[type, Dial(...) or Choice(...) or Switch(...)]")
    base, kind = get_args(hint)
    words = get_args(base) if isinstance(kind, Choice) else ()
    return Declaration(name=field.name, kind=kind, default=cast(Value, field.default), whole=base is int, words=words)
