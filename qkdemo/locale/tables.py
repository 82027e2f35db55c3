"""What each language says: a table from keys to sentences.

* `LANGUAGES`: the languages that lie in this folder; `read_english(folder)`: the TOML files of one folder as one table;
* `sentences(folder)`: the same, file by file; `Translation(path)`: a language's PO file, read when it is first spoken;
* `holding(catalog, english)`: which messages of a PO file translate what English says today.

A key is the message's context in the PO file. A message that is empty, marked fuzzy, or that translates another
sentence than the English of today is not said, nor is one with a fault (`faults`): English is, in its place.
"""

import tomllib
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from qkdemo.locale import ENGLISH
from qkdemo.locale.faults import faults_of

if TYPE_CHECKING:
    from babel.messages import Catalog

FOLDER: Final = Path(__file__).parent
PO: Final = "qkdemo.po"


def sentences(folder: Path) -> Iterator[tuple[Path, str, str]]:
    """Every sentence of a folder's TOML files: its file, its key, and it. Raises ValueError for a key said twice."""
    known: dict[str, str] = {}
    for path in sorted(folder.glob("*.toml")):
        for key, sentence in _flatten(tomllib.loads(path.read_text(encoding="utf-8"))):
            if key in known:
                raise ValueError(f"{key} stands in {known[key]} already: delete it in {path.name}, or rename it there")
            known[key] = path.name
            yield path, key, sentence


def read_english(folder: Path = FOLDER / ENGLISH) -> dict[str, str]:
    """The sentences of a folder's TOML files by their keys. Raises ValueError for a key said twice."""
    return {key: sentence for _, key, sentence in sentences(folder)}


def _flatten(branch: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in branch.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, str(value).strip()


def holding(catalog: "Catalog", english: Mapping[str, str]) -> dict[str, str]:
    """The translations of the sentences that English says today, by their keys."""
    usable = {message.context: message for message in catalog if message.string and not message.fuzzy}
    return {key: str(usable[key].string).strip() for key in english if key in usable and usable[key].id == english[key]}


class Translation(Mapping[str, str]):
    """What a PO file says in the language that its folder is named after, of the table `english`."""

    def __init__(self, path: Path, english: Mapping[str, str]) -> None:
        self._path, self._english = path, english

    @cached_property
    def _table(self) -> dict[str, str]:
        try:
            from babel.messages.pofile import read_po  # noqa: PLC0415  English does not wait for it
        except ModuleNotFoundError:  # where PyTorch alone is installed, to watch a model
            return {}
        with self._path.open("rb") as file:
            said = holding(read_po(file), self._english)
        spoken = self._path.parent.name
        return {key: text for key, text in said.items() if not faults_of(self._english[key], text, spoken)}

    def __getitem__(self, key: str) -> str:
        return self._table[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


def _languages() -> dict[str, Mapping[str, str]]:
    english = read_english()
    others = {path.parent.name: Translation(path, english) for path in sorted(FOLDER.glob(f"*/{PO}"))}
    return {ENGLISH: english, **others}


LANGUAGES: Final = _languages()
