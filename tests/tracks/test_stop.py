import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkdemo.tracks.catalogue import TRACKS
from qkdemo.tracks.progress import Said, read_progress, with_said, written_progress
from qkdemo.tracks.stop import Choose, Estimate, closest, only


def test_exactly_one_choice_is_right() -> None:
    assert only(small=False, large=True) == "large"
    with pytest.raises(ValueError, match="none"):
        only(small=False, large=False)
    with pytest.raises(ValueError, match="small, large"):
        only(small=True, large=True)


def test_the_closest_choice_is_the_closest_by_ratio() -> None:
    assert closest(30, {"ten": 10, "hundred": 100}) == "ten"
    assert closest(33, {"ten": 10, "hundred": 100}) == "hundred"


@pytest.mark.parametrize(("guess", "measured", "right"), [(1.4, 1, True), (1 / 1.4, 1, True), (1.6, 1, False)])
def test_an_estimate_is_right_within_a_factor_both_ways(guess: float, measured: float, right: bool) -> None:
    assert Estimate(0.1, 10, "x").says(guess, measured) is right


@pytest.mark.parametrize("measured", [0.0, math.inf, math.nan])
def test_no_estimate_meets_what_is_no_positive_number(measured: float) -> None:
    assert not Estimate(0.1, 10, "x").says(1, measured)


@given(st.data())
def test_progress_survives_a_link(data: st.DataObject) -> None:
    stops = TRACKS[data.draw(st.sampled_from(sorted(TRACKS)))]
    progress = ()
    for stop in stops:
        ask = stop.ask
        guess = st.sampled_from(ask.words) if isinstance(ask, Choose) else st.floats(ask.low, ask.high)
        progress += (Said(data.draw(st.none() | guess), data.draw(st.booleans())),)
    assert read_progress(written_progress(progress, stops), stops) == progress


@given(st.text(max_size=40))
def test_any_text_is_some_progress(text: str) -> None:
    for stops in TRACKS.values():
        progress = read_progress(text, stops)
        assert len(progress) == len(stops)
        assert read_progress(written_progress(progress, stops), stops) == progress


def test_a_stop_that_has_not_begun_leaves_no_trace_in_the_link() -> None:
    nothing = read_progress("", TRACKS["beginner"])
    assert written_progress(nothing, TRACKS["beginner"]) == ""
    assert written_progress(with_said(nothing, 1, Said(shown=True)), TRACKS["beginner"]) == ",!"


# The order in which answers stood in the first links that were handed out. It only grows, at its end.
FIRST_LINKS = {
    "beginner": "arms growth winner stuck overflow fix dial root live confidence remember",
    "developer": "table lines place small_g values half really log calm again codebase",
    "researcher": "bound pair jacobian course floor spectral remedies rate rounding latent context table",
    "claims": (
        "root_width gemma_2 commute entropy bfloat16_exp full_width gained_bound fused row_maximum confidence "
        "before_projection collapsed qwen_2 free epsilon softcap_place scaled_float16 layernorm uniform latent "
        "command_r no_nan every_model always_helps"
    ),
}


@pytest.mark.parametrize("track", FIRST_LINKS)
def test_a_link_of_before_still_says_what_it_said(track: str) -> None:
    """Whatever order the stops have today: an answer stands in the slot in which its stop stood first."""
    slots = {stop.name: stop.slot for stop in TRACKS[track]}
    assert sorted(slots.values()) == list(range(len(slots)))
    first = FIRST_LINKS[track].split()
    assert [slots[name] for name in first] == list(range(len(first)))
    for at, name in enumerate(first):
        progress = read_progress("," * at + "!", TRACKS[track])
        shown = [stop.name for stop, said in zip(TRACKS[track], progress, strict=True) if said.shown]
        assert shown == [name]


def test_the_order_of_the_stops_leaves_links_alone() -> None:
    stops = TRACKS["beginner"]
    names = [stop.name for stop in stops]
    assert names.index("root") == names.index("growth") + 1
    assert names.index("overflow") == names.index("fix") + 1
    said = read_progress("lead!,square", stops)
    assert said[names.index("arms")] == Said("lead", shown=True)
    assert said[names.index("growth")] == Said("square")
    assert written_progress(said, stops) == "lead!,square"
