"""Languages: a few sentences of German and Polish as a translator would write them, in a folder of a test's own."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from babel.messages import Catalog
from babel.messages.pofile import read_po, write_po

from qkdemo.locale.catalogue import updated
from qkdemo.locale.tables import PO, Translation, read_english
from qkdemo.messages import language

GERMAN = {
    "app.titled": "{page} · qkdemo",
    "controls.more": "Weitere Regler",
    "dial.scale.label": "Skala der Gewichte",
    "list.and": "{head} und {last}",
    "note.more": "{count:weiterer Teil|weitere Teile} des Links {count:=wurde|wurden} weggelassen.",
    "number.less": "weniger als {x}",
    "number.percent": "{x} %",
    "number.undefined": "nicht bestimmt",
    "question.drift": "Was geschieht mit Attention, wenn die Gewichte wachsen, und was ändert eine Norm?",
    "words.more": "{words} oder {count:ein anderes Wort|eines von anderen Wörtern}",
}
POLISH = {
    "list.and": "{head} i {last}",
    "note.more": "{count:=Jest|Są|Jest|Jest} {count:zbędna część|zbędne części|zbędnych części|zbędnej części}.",
    "arrows.counting.l2": "Z QK norm liczy się {counting} z {keys:klucza|kluczy|kluczy|klucza}.",
}


def made(folder: Path, spoken: str, texts: Mapping[str, str]) -> Path:
    """The PO file of a language with some translations."""
    path = folder / spoken / PO
    updated(path)
    catalog, english = opened(path), read_english()
    for key, text in texts.items():
        catalog.get(english[key], key).string = text
    saved(path, catalog)
    return path


def opened(path: Path) -> Catalog:
    """A PO file, as a translator's tool reads it."""
    with path.open("rb") as file:
        return read_po(file, abort_invalid=True)


def saved(path: Path, catalog: Catalog) -> None:
    """And writes it."""
    with path.open("wb") as file:
        write_po(file, catalog, include_previous=True)


def translation(folder: Path, spoken: str, texts: Mapping[str, str]) -> Translation:
    """What a language says with a few sentences of it translated."""
    return Translation(made(folder, spoken, texts), read_english())


@contextmanager
def speaking(spoken: str) -> Iterator[None]:
    """Speak a language here."""
    token = language.set(spoken)
    try:
        yield
    finally:
        language.reset(token)
