"""A track beside its pages: what a visitor says, what is shown when, and what the link holds."""

import json
from collections.abc import Callable
from itertools import product, zip_longest

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from qkdemo.messages import LANGUAGES
from qkdemo.tracks.catalogue import GUIDED, TRACKS, is_trained, text, told
from qkdemo.tracks.progress import Said, written_progress
from qkdemo.tracks.prose import without_targets, words_of
from qkdemo.tracks.stop import Choose, Estimate, Stop
from qkdemo.web.track.driving import turned_by
from qkdemo.web.track.lesson import page_of
from qkdemo.web.track.shown import was_right
from tests.tracks.finding import evidence_of
from tests.web.visit import complaints, link_of, standing, visit

Place = tuple[str, int]


def first(
    wanted: Callable[[Stop], bool], *, then: Callable[[Stop, Stop | None], bool] = lambda stop, after: True
) -> Place:
    """The first stop of a guided track that is wanted, and whose successor is."""
    for track in GUIDED:
        for at, (stop, after) in enumerate(zip_longest(TRACKS[track], TRACKS[track][1:])):
            if not is_trained(stop) and wanted(stop) and then(stop, after):
                return track, at
    raise LookupError("no such stop")


CHOICE = first(lambda stop: isinstance(stop.ask, Choose) and stop.start is not None and hasattr(stop.state, "seed"))
ESTIMATE = first(lambda stop: isinstance(stop.ask, Estimate) and stop.start is not None)
CONCEALED = first(lambda stop: stop.start is None)
LAST_ON_ITS_PAGE = first(lambda stop: True, then=lambda stop, after: after is not None and after.lab is not stop.lab)


def stop_at(place: Place) -> Stop:
    return TRACKS[place[0]][place[1]]


def arrive(place: Place, **more: str) -> AppTest:
    stop = stop_at(place)
    return visit(page_of(stop).name, {"track": place[0], "stop": stop.name, **more})


def said_at(place: Place, said: Said) -> str:
    track, at = place
    stops = TRACKS[track]
    return written_progress(tuple(said if i == at else Said() for i in range(len(stops))), stops)


def dials_of(app: AppTest, stop: Stop) -> dict[str, object]:
    """What the dials that the stop turns stand at, by the widgets."""
    return {name: getattr(standing(app, page_of(stop).name), name) for name in stop.turned}


def explained(app: AppTest) -> str:
    """The explanation that stands beside the page."""
    prose = next(part.proto for part in app.get("bidi_component") if part.proto.component_name.endswith(".prose"))
    return "".join(word["text"] for word in json.loads(json.loads(prose.json)["words"]))


def press(app: AppTest, button: str) -> None:
    app.button(key=f"lesson:{button}").click().run()
    assert not app.exception


def test_a_stop_begins_before_its_run_and_the_run_turns_its_dials_and_tells_its_numbers() -> None:
    stop = stop_at(CHOICE)
    app = arrive(CHOICE)
    assert dials_of(app, stop) == {name: getattr(stop.start, name) for name in stop.turned}
    app.radio(key=f"lesson:{CHOICE[0]}:{stop.name}").set_value(stop.ask.words[-1]).run()
    assert link_of(app)["said"] == said_at(CHOICE, Said(stop.ask.words[-1]))
    press(app, "show")
    assert dials_of(app, stop) == stop.turned
    assert link_of(app) == {
        "track": CHOICE[0],
        "stop": stop.name,
        "said": said_at(CHOICE, Said(stop.ask.words[-1], shown=True)),
    }
    explanation = without_targets(text(CHOICE[0], stop, "explain", evidence_of(stop).numbers))
    assert explained(app) == explanation


def test_an_estimate_is_kept_and_judged_by_its_ratio_to_what_was_measured() -> None:
    stop = stop_at(ESTIMATE)
    app = arrive(ESTIMATE)
    slider = app.select_slider(key=f"lesson:{ESTIMATE[0]}:{stop.name}")
    slider.set_value(slider.options and stop.ask.low).run()
    press(app, "show")
    assert link_of(app)["said"] == said_at(ESTIMATE, Said(stop.ask.low, shown=True))
    measured = evidence_of(stop)
    assert was_right(stop, measured.answer, measured) is True
    assert was_right(stop, float(measured.answer) * stop.ask.within * 1.01, measured) is False
    assert was_right(stop, None, measured) is None


def test_a_page_that_would_give_the_answer_away_is_not_drawn_before_the_prediction() -> None:
    app = arrive(CONCEALED)
    assert not app.button_group  # what is taken away, which every lab's page has
    press(app, "show")
    assert app.button_group


def test_the_answer_may_be_shown_without_a_prediction_and_no_prediction_is_taken_after_it() -> None:
    stop = stop_at(CHOICE)
    app = arrive(CHOICE)
    press(app, "show")
    assert link_of(app)["said"] == said_at(CHOICE, Said(shown=True))
    assert f"lesson:{CHOICE[0]}:{stop.name}" not in [radio.key for radio in app.radio]
    assert "lesson:show" not in [button.key for button in app.button]


def test_a_link_says_the_stop_its_answers_and_dials_that_were_turned_otherwise() -> None:
    stop = stop_at(CHOICE)
    app = arrive(CHOICE, said=said_at(CHOICE, Said(shown=True)), seed="7")
    assert dials_of(app, stop) == stop.turned
    assert standing(app, page_of(stop).name).as_dict()["seed"] == 7
    assert link_of(app)["seed"] == "7"
    press(app, "reset")
    assert link_of(app) == {"track": CHOICE[0], "stop": stop.name}
    assert dials_of(app, stop) == {name: getattr(stop.start, name) for name in stop.turned}
    assert standing(app, page_of(stop).name).as_dict()["seed"] == stop.state.seed


def test_the_next_stop_brings_its_own_page_and_keeps_what_was_said() -> None:
    track, at = LAST_ON_ITS_PAGE
    app = arrive(LAST_ON_ITS_PAGE)
    press(app, "show")
    said = link_of(app)["said"]
    press(app, "next")
    after = TRACKS[track][at + 1]
    assert link_of(app) == {"track": track, "stop": after.name, "said": said}
    assert any(told(track, after, "title") in html.body for html in app.get("html"))
    press(app, "back")
    assert link_of(app) == {"track": track, "stop": stop_at(LAST_ON_ITS_PAGE).name, "said": said}


def test_a_link_that_names_a_stop_on_another_page_leads_to_the_page_of_the_stop() -> None:
    stop = stop_at(CHOICE)
    other = next(name for name in ("drift", "rope") if name != page_of(stop).name)
    app = visit(other, {"track": CHOICE[0], "stop": stop.name})
    assert not app.exception
    assert dials_of(app, stop) == {name: getattr(stop.start, name) for name in stop.turned}


def test_another_track_is_entered_on_the_same_page_with_the_dials_as_they_stand_but_what_it_asks_about() -> None:
    stop = stop_at(CHOICE)
    other = next(
        track for track in TRACKS if track != CHOICE[0] and any(there.lab is stop.lab for there in TRACKS[track])
    )
    app = arrive(CHOICE)
    press(app, "show")
    page = page_of(stop).name
    app.slider(key=f"{page}.seed").set_value(7).run()
    before = standing(app, page).as_dict()
    app.radio(key="lesson:track").set_value(other).run()
    assert not app.exception
    assert link_of(app)["track"] == other
    there = next(each for each in TRACKS[other] if each.name == link_of(app)["stop"])
    asked = {name: getattr(there.start, name) for name in there.turned}
    assert standing(app, page).as_dict() == before | asked


def test_the_run_is_the_stops_own_whatever_was_turned_before_it() -> None:
    stop = stop_at(CHOICE)
    app = arrive(CHOICE, seed="7")
    press(app, "show")
    assert standing(app, page_of(stop).name).as_dict()["seed"] == stop.state.seed


def test_leaving_a_track_leaves_the_page_as_it_is() -> None:
    stop = stop_at(CHOICE)
    app = arrive(CHOICE)
    press(app, "show")
    press(app, "leave")
    assert not {"track", "stop", "said"} & link_of(app).keys()
    assert dials_of(app, stop) == stop.turned


@pytest.mark.parametrize(
    ("query", "complaint"), [({"track": "kale"}, "track"), ({"track": "beginner", "stop": "kale"}, "stop")]
)
def test_a_link_to_what_there_is_not_says_so(query: dict[str, str], complaint: str) -> None:
    app = visit("drift", query)
    assert not app.exception
    assert f"names a {complaint}" in complaints(app)[0]


def test_nothing_that_a_link_says_breaks_a_stop() -> None:
    stop = stop_at(CHOICE)

    @settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
    @given(
        st.text(max_size=30) | st.sampled_from(["!", ",,!", "nan,nan!", "9e999", "a,b,c!,,,,,,,,,,,,,,,"]),
        st.text(max_size=5),
    )
    def survives(said: str, lecture: str) -> None:
        app = visit(page_of(stop).name, {"track": CHOICE[0], "stop": stop.name, "said": said, "lecture": lecture})
        assert not app.exception

    survives()


def test_lecture_mode_is_one_switch_and_stays_in_the_link() -> None:
    app = arrive(CHOICE)
    app.button(key="lecture:switch").click().run()
    assert link_of(app)["lecture"] == "1"
    press(app, "show")
    press(app, "next")
    assert link_of(app)["lecture"] == "1"
    app.button(key="lecture:switch").click().run()
    assert "lecture" not in link_of(app)


def test_a_claim_is_judged_on_its_own_page() -> None:
    app = visit("claims")
    assert not app.exception
    at, stop = next((at, stop) for at, stop in enumerate(TRACKS["claims"]) if not is_trained(stop))
    answer = str(evidence_of(stop).answer)
    app.radio(key=f"claims:{stop.name}").set_value(answer).run()
    app.button(key=f"claims:{stop.name}:show").click().run()
    assert not app.exception
    assert link_of(app) == {"said": said_at(("claims", at), Said(answer, shown=True))}
    assert any(told("claims", stop, f"choice.{answer}") in markdown.value for markdown in app.markdown)
    assert f"claims:{stop.name}" not in [radio.key for radio in app.radio]


def test_sources_of_a_claim_are_links_on_both_its_pages() -> None:
    at, stop = next((at, stop) for at, stop in enumerate(TRACKS["claims"]) if stop.name == "qwen_2")
    said = said_at(("claims", at), Said(shown=True))
    links = [f"[{words}]({address})" for words, address in evidence_of(stop).sources.items()]
    assert len(links) == 2
    for page, query in {"claims": {}, "models": {"track": "claims", "stop": stop.name}}.items():
        app = visit(page, query | {"said": said})
        assert not app.exception
        assert any(all(link in markdown.value for link in links) for markdown in app.markdown), page


@pytest.mark.parametrize("track", TRACKS)
def test_a_pressed_word_leads_where_its_sentence_is_true_whichever_was_pressed_before(track: str) -> None:
    for stop in TRACKS[track]:
        words = words_of(LANGUAGES["en"][f"stop.{track}.{stop.name}.explain"])
        driving = [at for at, word in enumerate(words) if word.turns]
        for one, other in product(driving, repeat=2):
            alone = stop.state.but(**turned_by([words[other]], 0, stop.state))
            after = stop.state.but(**turned_by(words, one, stop.state))
            assert after.but(**turned_by(words, other, stop.state)) == alone, (stop.name, words[one], words[other])
