"""The glossary on a page, and the words of a text as links to it.

* `linked(text)`: Markdown whose words of the field, and whose sources, are links; `read_as(text)`: the same of a
  stop's text, without what drives a chart;
* `word_card(one)`, `reference_list()`: what the page of the glossary shows; `wanted()`: the word that its link names;
  `terms_shown(text)`: the words that are found by a text.
"""

from collections.abc import Callable
from typing import Final
from urllib.parse import quote

import streamlit as st

from qkdemo.facts.references import REFERENCES
from qkdemo.facts.references import linked as with_sources
from qkdemo.messages import in_each_language, say
from qkdemo.tracks.glossary import TERMS, Entry, entry, marked
from qkdemo.tracks.glossary_figures import figure
from qkdemo.tracks.prose import Word, words_of
from qkdemo.web.address.link import LECTURE

PAGE: Final = "glossary"
_TERM: Final = "term"
_INK: Final = "#808080"  # an image takes no colour from the text around it: this one shows on light and on dark


def linked(text: str) -> str:
    """Markdown with the first mention of each word of the field as a link, whose title is its sentence.

    On a projector there are no links: nobody in a hall can follow them.
    """
    return _markdown(text) if _in_a_hall() else _with_words(text)


def read_as(text: str) -> str:
    """A stop's text as Markdown: words and sources are links, what drives a chart is text."""
    words = words_of(text if _in_a_hall() else marked(text))
    return _markdown("".join(word.written if word.source or word.term else word.text for word in words))


def address(term: str) -> str:
    """Where a word of the glossary stands, from any page."""
    return f"{PAGE}?{_TERM}={quote(term)}"


def _in_a_hall() -> bool:
    return st.query_params.get(LECTURE) == "1"


@in_each_language(1024)
def _with_words(text: str) -> str:
    return _markdown(marked(text))


@in_each_language(1024)
def _markdown(text: str) -> str:
    parts = [_part(word) for word in words_of(text)] if "](?" in text else [text]
    return with_sources("".join(parts))


def _part(word: Word) -> str:
    """A word as Markdown; what is no word of the glossary stays as it was."""
    if word.term:
        sentence = entry(word.term).sentence.replace('"', "”")
        return f'[{word.text}]({address(word.term)} "{sentence}")'
    return word.written


def wanted() -> str:
    """The name of the word that the link of the glossary names, or nothing."""
    term = st.query_params.get(_TERM, "")
    return entry(term).name if term in TERMS else ""


def terms_shown(text: str) -> list[Entry]:
    """The words of which a text is a part: by name, else by form, else by sentence or formula; all if it is empty."""
    every, lower = [entry(term) for term in TERMS], text.strip().lower()
    ways: tuple[Callable[[Entry], str], ...] = (
        lambda one: one.name,
        lambda one: say(f"glossary.{one.term}.forms"),
        lambda one: f"{one.sentence} {one.formula}",
    )
    found = ([one for one in every if lower in way(one).lower()] for way in ways)
    return next(filter(None, found), [])


def word_card(one: Entry) -> None:
    """A word: name, picture, sentence, formula."""
    st.markdown(f"## {one.name}")
    st.image(figure(one.term).replace("currentColor", _INK), alt=one.sentence)
    st.markdown(one.sentence)
    st.markdown(f"`{one.formula}`")


def reference_list() -> None:
    """Every source: what it is, where to look, what it says, and when it was read."""
    for one in REFERENCES.values():
        kind = say(f"choice.reading.{one.kind}", instead=one.instead)
        read = say("glossary.page.read", date=one.read.isoformat(), kind=kind)
        used = say("glossary.page.used_in", part=f"{one.part[0].upper()}{one.part[1:]}", says=one.says)
        st.markdown(f"- [{one.who}, *{one.title}*]({one.link}): {used} {read}")
