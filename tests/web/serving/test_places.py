"""Connections that stay open: one client cannot take what others need, and what is given back can be had again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkdemo.web.serving.places import MOST, NAMELESS, OF_ADDRESS, OF_VISITOR, Place, Places


def taken(places: Places, visitor: str, address: str) -> list[Place]:
    """As many as there are for them."""
    found = []
    while (place := places.take(visitor, address)) is not None:
        found.append(place)
    return found


@pytest.mark.parametrize(
    ("visitor", "address", "most"),
    [("a", "", OF_VISITOR), ("a", "10.0.0.1", OF_VISITOR), ("", "10.0.0.1", NAMELESS), ("", "", MOST)],
)
def test_one_client_has_some_places_and_others_have_the_rest(visitor: str, address: str, most: int) -> None:
    places = Places()
    assert len(taken(places, visitor, address)) == most
    assert (places.take("b", "10.0.0.2") is None) == (most == MOST)


def test_one_address_with_as_many_names_as_it_likes_leaves_half_to_others() -> None:
    places = Places()
    held = [place for at in range(1000) if (place := places.take(f"v{at}", "10.0.0.1")) is not None]
    assert len(held) == OF_ADDRESS
    assert sum(places.take(f"w{at}", f"10.0.1.{at}") is not None for at in range(250)) == MOST - OF_ADDRESS


@given(st.lists(st.tuples(st.sampled_from(["", "a", "b"]), st.sampled_from(["", "x", "y"]), st.booleans())))
def test_what_is_given_back_can_be_had_again(wishes: list[tuple[str, str, bool]]) -> None:
    places, held = Places(5, 3, 2, 1), list[Place]()
    for visitor, address, back in wishes:
        if back and held:
            held.pop().leave()
        elif (place := places.take(visitor, address)) is not None:
            held.append(place)
        assert len(held) <= 5
    for place in held:
        place.leave()
        place.leave()  # a second time changes nothing
    assert len(taken(places, "new", "z")) == 2
