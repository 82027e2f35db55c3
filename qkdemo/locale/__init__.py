"""Languages: English in `en/*.toml`, every other one in `<language>/qkdemo.po`, which translators' tools read.

* `language`: which one is spoken in this thread; `ENGLISH`, `PSEUDO`: the source, and one for tests;
* `tables`: what each language says; `faults`: what is wrong with a translation, which is then not said;
* `cldr`: which form a number asks for, and how it is written, as Unicode's CLDR has it (by Babel);
* `catalogue`, `python -m qkdemo.locale <language>`: makes the file of a language, or brings it up to date.

English needs no Babel: what loads it here is loaded when another language is spoken.
"""

from contextvars import ContextVar
from typing import Final

ENGLISH: Final = "en"
PSEUDO: Final = "en-XA"  # as Unicode's CLDR names it
language: ContextVar[str] = ContextVar("language", default=ENGLISH)
