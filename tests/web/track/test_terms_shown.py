"""A word of the glossary is found by whatever stands on its card, and by every form that leads to it."""

import pytest

from qkdemo.messages import say
from qkdemo.tracks.glossary import TERMS, entry
from qkdemo.web.track.glossary import terms_shown


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("AdamW", "adam"),
        ("query-key normalisation", "qk_norm"),
        ("tanh", "softcap"),
        ("the shorter", ""),
        ("Row", "row"),
    ],
)
def test_a_text_leads_to_the_words_whose_card_has_it(text: str, term: str) -> None:
    assert [one.term for one in terms_shown(text)] == ([term] if term else [])


def test_every_name_form_and_formula_finds_its_word() -> None:
    for term in TERMS:
        one = entry(term)
        for text in (one.name, one.formula, *say(f"glossary.{term}.forms").split(", ")):
            assert terms_shown(text), (term, text)
        assert one in terms_shown(one.name)
    assert len(terms_shown(" ")) == len(TERMS)
