"""What a hall reads of a question once its answer is on screen."""

import re

import pytest

from qkdemo.tracks.catalogue import TRACKS, told
from qkdemo.tracks.stop import Stop
from qkdemo.web.track.hall import asking


@pytest.mark.parametrize("stop", TRACKS["beginner"], ids=lambda stop: stop.name)
def test_the_sentence_that_asks_a_beginner_stands_alone(stop: Stop) -> None:
    asked = asking(told("beginner", stop, "question"))
    assert not re.search(r"^And\b|\b(it|its)\b|\b(largest|least) now\b", asked), asked
