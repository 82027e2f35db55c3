"""What holds the sentences is held itself."""

import pytest

from qkdemo.messages import say
from tests.oracles import NOTHING, Said, heard, hold, keys, near


def test_what_is_said_is_heard_with_its_key_and_its_numbers() -> None:
    with heard() as said:
        text = say("server.descriptors", limit=1, visitors="1\u202f024", hall=30)
    assert [(each.key, each.sentence, each.number("visitors")) for each in said] == [("server.descriptors", text, 1024)]
    assert say("server.descriptors", limit=1, visitors="1", hall=30)  # and nothing more is heard
    assert len(said) == 1


def test_a_sentence_without_an_oracle_and_one_that_is_false_fail() -> None:
    said = [Said("a.b", {"n": "2"}, "There are 2.")]
    assert hold(said, {"a.b": lambda each, state: each.number("n") == state}, 2) == {"a.b"}
    assert hold(said, {"a.b": NOTHING}, 3) == {"a.b"}
    with pytest.raises(AssertionError, match="There are 2"):
        hold(said, {"a.b": lambda each, state: each.number("n") == state}, 3)
    with pytest.raises(AssertionError, match="no oracle for a"):
        hold(said, {}, 2)


def test_numbers_are_the_same_as_far_as_they_are_written() -> None:
    assert near(169.2, 169.231)
    assert not near(169.2, 170)
    assert near(float("nan"), float("nan"))
    assert near(float("inf"), float("inf"))
    assert not near(float("inf"), 1.0)


def test_keys_are_those_of_the_tables() -> None:
    assert "finding.healthy" in keys("finding.")
