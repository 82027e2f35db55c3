"""The PO file of a language, made and brought up to date from the English tables: `updated(path)`.

What translators' tools show beside a sentence: its key (the context), the file it stands in, and where it counts, which
forms the language has. A translation whose English has changed, or whose key has, is kept and marked fuzzy, with the
English that it was made from; one whose sentence is gone stands at the end of the file, out of use.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from string import Formatter
from typing import Final

from babel.messages import Catalog, Message
from babel.messages.pofile import denormalize, read_po, write_po

from qkdemo.locale import ENGLISH
from qkdemo.locale.cldr import categories, sample
from qkdemo.locale.faults import Fault, faults_of
from qkdemo.locale.tables import FOLDER, holding, read_english, sentences

_HEADER: Final = "# Sentences of qkdemo. CONTRIBUTING.md says how they are translated.\n#"


@dataclass(frozen=True)
class Updated:
    """How far a language is: keys, by what became of them. `taken` came from TOML files of the language."""

    all: int
    said: int
    fuzzy: list[str]
    wrong: dict[str, list[Fault]]
    taken: int


def updated(path: Path, english: Path = FOLDER / ENGLISH) -> Updated:
    """Bring a PO file up to date with the TOML files of `english`, or make it; its folder is named after its language.

    Raises PoFileError if it cannot be read, babel.UnknownLocaleError or ValueError for a folder that is no language.
    """
    spoken, table = path.parent.name, read_english(english)
    catalog = _read(path, spoken)
    _follow(catalog, table)
    before = {message.context: message.previous_id for message in catalog}
    catalog.update(_template(english, spoken), no_fuzzy_matching=True, update_creation_date=False)
    taken = _take(catalog, table, read_english(path.parent))
    for message in catalog:
        message.flags.discard("python-format")  # a per cent sign before a letter
        if message.fuzzy:
            message.previous_id = before.get(message.context, [])
    _write(path, catalog)
    said = holding(catalog, table)
    wrong = {key: found for key, text in said.items() if (found := faults_of(table[key], text, spoken))}
    fuzzy = [str(message.context) for message in catalog if message.id and message.fuzzy]
    return Updated(len(table), len(said) - len(wrong), fuzzy, wrong, taken)


def _read(path: Path, spoken: str) -> Catalog:
    locale = spoken.replace("-", "_")
    if not path.exists():
        return Catalog(locale, project="qkdemo", header_comment=_HEADER, charset="utf-8", fuzzy=False)
    with path.open("rb") as file:
        catalog = read_po(file, locale, abort_invalid=True)
    for message in catalog:  # Babel writes the English that was translated, `#|`, and reads it as a comment
        lines = [line.removeprefix("| ") for line in message.user_comments if line.startswith("| ")]
        message.user_comments = [line for line in message.user_comments if not line.startswith("| ")]
        if lines and message.fuzzy:
            message.previous_id = [denormalize("\n".join(lines).partition("msgid ")[2])]
    return catalog


def _follow(catalog: Catalog, english: Mapping[str, str]) -> None:
    """Move each translation to the sentence that its key has today, or the key that its sentence has; marked fuzzy."""
    known = {message.context for message in catalog}
    moved = {sentence: key for key, sentence in english.items() if key not in known}
    for message in list(catalog):
        key = message.context if message.context in english else moved.get(str(message.id))
        if message.string and key is not None and (key, english[key]) != (message.context, message.id):
            catalog.delete(message.id, message.context)
            catalog.add(
                english[key],
                message.string,
                context=key,
                flags={*message.flags, "fuzzy"},
                user_comments=message.user_comments,
                previous_id=message.id,
            )


def _template(english: Path, spoken: str) -> Catalog:
    catalog = Catalog()
    for path, key, sentence in sentences(english):
        where = f"qkdemo/locale/{path.parent.name}/{path.name}"
        catalog.add(sentence, context=key, locations=[(where, 0)], auto_comments=_forms(sentence, spoken))
    return catalog


def _forms(sentence: str, spoken: str) -> list[str]:
    """For the translator of a sentence that counts: the forms of the language, in their order."""
    counted = sorted({name for _, name, forms, _ in Formatter().parse(sentence) if name and forms})
    order = " | ".join(f"{word} ({sample(word, spoken) or '…'})" for word in categories(spoken))
    return [f"{name}: {order}" for name in counted]


def _take(catalog: Catalog, english: Mapping[str, str], old: Mapping[str, str]) -> int:
    """Take over what TOML files of the language say and the catalogue does not."""
    taken = 0
    for key in old.keys() & english.keys():
        message = catalog.get(english[key], key)
        if isinstance(message, Message) and not message.string:
            message.string = old[key]
            taken += 1
    return taken


def _write(path: Path, catalog: Catalog) -> None:
    text = BytesIO()
    write_po(text, catalog, include_previous=True)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.getvalue())
