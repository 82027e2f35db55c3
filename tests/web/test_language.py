"""Another language reaches every page: in the pseudo-language no English word is left where people read.

What may be left: code, the names of models, authors, papers and number formats, symbols, and the words of links.
"""

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from qkdemo.charts.spec import Drawn
from qkdemo.facts.models import MODELS
from qkdemo.floats.formats import FORMATS
from qkdemo.labs.lab import TrainedLab
from qkdemo.labs.registry import LABS
from qkdemo.messages import ENGLISH, LANGUAGE, LANGUAGES, PSEUDO, accented, language, later, now, say
from qkdemo.tracks.catalogue import TRACKS, is_trained
from qkdemo.training.sentences import WORDS
from qkdemo.web.pages import PAGES
from tests.web.visit import link_of, visit

_NAMES = {word for model in MODELS for word in re.findall(r"[A-Za-z]{3,}", f"{model.model} {model.repo}")}
_SYMBOLS = {
    "max",
    "MiB",
    "log",
    "exp",
    "cos",
    "softmax",
    "NaN",
    "inf",
    *FORMATS,
    "float",
    "bfloat",
    "fp",
    "cpu",
    "cuda",
    "mps",
}
_LEFT_ALONE = re.compile(
    r"<style>.*?</style>|<svg.*?</svg>|`[^`]*`|\]\([^)]*\)|<[^<>]*>|\$[^$]*\$|https?://\S+|:material/\w+:|&\w+;"
    r"|^\w+\\:(?= \w+=)|[\w\\]+=[\w.\\-]+"  # a state, in the words of links
    r"|python -m [^\n]*|arXiv[\w:. ]*|(?m:^- \[.*$)",  # of the list of sources: titles, and what stands there
    re.DOTALL,
)
_READ = {"title", "subtitle", "label", "finding", "alt", "text", "query_label", "key_label", "hint"}  # of a view
_POINT = re.compile(r"\d\.\d")  # of a number that `notation` has not written
_VERSION = re.compile(r"[A-Z][A-Za-z]+[ -]?[\d/]*\d\.\d")  # of a model
_WORD = re.compile(r"(?<![\w·/.-])[A-Za-z]{3,}(?![\w(./-])")


def english(text: str) -> set[str]:
    """The words of a text that no accent shows to have come from a table."""
    bare = _LEFT_ALONE.sub(" ", text)
    words = set(_WORD.findall(bare)) | set(_POINT.findall(_VERSION.sub(" ", bare)))
    return {word for word in words if word not in _NAMES and word not in _SYMBOLS}


def known_to_models(page: str) -> set[str]:
    """Words that stay English because trained models read them."""
    return set(WORDS) if page == "words" else set()


def texts_of(app: AppTest) -> Iterator[str]:
    """Everything on a page that a person reads."""
    for element in app:
        proto = getattr(element, "proto", None)
        for name in ("body", "label", "help", "placeholder", "value"):
            text = getattr(proto, name, "")
            if isinstance(text, str) and element.type not in ("code", "text_input"):
                yield text
        for option in getattr(proto, "options", ()):
            if isinstance(option, str):
                yield option


def texts_in(drawn: Drawn) -> Iterator[str]:
    """Everything in an exhibit that a person reads."""
    table, view = drawn
    for name in table.column_names:
        if pa.types.is_string(table.schema.field(name).type):
            yield from (text for text in table.column(name).to_pylist() if text)
    yield from _strings(view, table)


def _strings(part: Any, table: pa.Table, key: str = "") -> Iterator[str]:
    match part:
        case str() if key in (
            "title",
            "subtitle",
            "label",
            "finding",
            "alt",
            "text",
            "query_label",
            "key_label",
            "hint",
        ):
            if part not in table.column_names:
                yield part
        case dict():
            for name, value in part.items():
                yield from _strings(value, table, name)
        case list() | tuple():
            for value in part:
                yield from _strings(value, table, key)


@pytest.mark.parametrize("page", PAGES)
def test_no_english_word_is_left_on_a_page(page: str) -> None:
    app = visit(page, {LANGUAGE: PSEUDO})
    assert not app.exception
    left = {word for text in texts_of(app) for word in english(text)}
    assert left - known_to_models(page) == set()


@pytest.mark.parametrize(
    "name", [name for name, lab in LABS.items() if lab.exhibit and not isinstance(lab, TrainedLab)]
)
def test_no_english_word_is_left_in_an_exhibit_though_it_was_drawn_in_english_before(name: str) -> None:
    lab = LABS[name]
    assert lab.exhibit is not None
    result = lab.run(lab.settings())
    lab.exhibit(result)
    token = language.set(PSEUDO)
    try:
        drawn = lab.exhibit(result)
        said = [*texts_in(drawn), *lab.explain(result)]
    finally:
        language.reset(token)
    assert {word for text in said for word in english(text)} - known_to_models(name) == set()


@pytest.mark.parametrize("track", TRACKS)
def test_no_english_word_is_left_at_a_stop(track: str) -> None:
    stops = [stop for stop in TRACKS[track] if not is_trained(stop)]
    for at, stop in enumerate(stops[:6]):
        place = TRACKS[track].index(stop)
        page = stop.lab.name
        app = visit(page, {"track": track, "stop": stop.name, "said": "," * place + "!", LANGUAGE: PSEUDO})
        assert not app.exception
        assert {word for text in texts_of(app) for word in english(text)} == set(), at


def test_the_language_goes_along() -> None:
    app = visit("home", {LANGUAGE: PSEUDO})
    assert link_of(app)[LANGUAGE] == PSEUDO
    app.query_params.clear()  # as the menu's link does
    app.run()
    assert link_of(app)[LANGUAGE] == PSEUDO


def test_english_needs_no_word_in_the_link() -> None:
    app = visit("drift", {LANGUAGE: ENGLISH})
    assert LANGUAGE not in link_of(app)


def test_a_language_that_there_is_not_is_english() -> None:
    app = visit("drift", {LANGUAGE: "tlh"})
    assert LANGUAGE not in link_of(app)
    assert app.main.markdown[0].value.startswith("**What happens")


def test_a_language_in_the_making_says_the_rest_in_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LANGUAGES, "de", {"list.and": "{head} und {last}"})
    token = language.set("de")
    try:
        assert say("list.and", head="a", last="b") == "a und b"
        assert say("question.drift") == LANGUAGES[ENGLISH]["question.drift"]
    finally:
        language.reset(token)


def test_what_was_noted_is_said_in_the_readers_language() -> None:
    noted = later("list.and", head="a", last="b")
    assert noted == "a and b"
    token = language.set(PSEUDO)
    try:
        assert now(noted) == f"a {accented('and')} b"
        assert now("as it is") == "as it is"
    finally:
        language.reset(token)
