"""Every dial and every remedy of training has its words."""

import pytest

from qkdemo.dials import declarations
from qkdemo.messages import has, say
from qkdemo.training.remedies import REMEDIES
from qkdemo.training.settings import RemedyWord, Settings


@pytest.mark.parametrize("dial", declarations(Settings), ids=lambda dial: dial.name)
def test_every_dial_has_a_label_and_a_help(dial: object) -> None:
    assert dial.label  # type: ignore[attr-defined]
    assert dial.help  # type: ignore[attr-defined]


@pytest.mark.parametrize("word", REMEDIES)
def test_every_remedy_has_a_name_and_says_what_it_acts_on(word: RemedyWord) -> None:
    assert has(f"variant.{word}.name")
    assert has(f"variant.{word}.short")
    assert say(f"variant.{word}.acts").startswith("Acts on ")


def test_every_remedy_that_can_be_chosen_is_there() -> None:
    (dial,) = [dial for dial in declarations(Settings) if dial.name == "variant"]
    assert set(dial.words) == set(REMEDIES)
