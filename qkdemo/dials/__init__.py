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

from qkdemo.dials.declaration import Declaration, SettingsError
from qkdemo.dials.kinds import Choice, Dial, Sentence, Switch, Value, preferred_numbers
from qkdemo.dials.settings import NO_DIAL, Dials, declarations, schema

__all__ = [
    "NO_DIAL",
    "Choice",
    "Declaration",
    "Dial",
    "Dials",
    "Sentence",
    "SettingsError",
    "Switch",
    "Value",
    "declarations",
    "preferred_numbers",
    "schema",
]
