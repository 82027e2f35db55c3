"""What a hall reads of a question once its answer is on screen, and on the last slide."""

import re

import pytest

from qkdemo.tracks.catalogue import GUIDED, TRACKS, told
from qkdemo.tracks.stop import Stop
from qkdemo.web.track.hall import asking
from tests.web.visit import visit

STOPS = [pytest.param(track, stop, id=f"{track}-{stop.name}") for track in GUIDED for stop in TRACKS[track]]


@pytest.mark.parametrize(("track", "stop"), STOPS)
def test_the_sentence_that_asks_stands_alone(track: str, stop: Stop) -> None:
    asked = asking(told(track, stop, "question"))
    assert not re.search(r"^And\b|\b(it|its)\b|\b(largest|least) now\b|\bdoes that\b", asked), asked


@pytest.mark.parametrize(("track", "quiz"), [("developer", "Developer"), ("claims", "Beginner")])  # claims have no quiz
def test_the_last_slide_says_whose_quiz_it_leads_to(track: str, quiz: str) -> None:
    doors = [door.proto.label for door in visit("end", {"track": track}).get("page_link")]
    assert f"Eight questions after the track “{quiz}”" in doors
