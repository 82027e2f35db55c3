"""A number in a sentence stands on the page: every stop says where, and there it is."""

import math
import re
from functools import lru_cache

import pytest

from qkdemo.charts.spec import Drawn
from qkdemo.dials import Dials
from qkdemo.labs import models, sphere, training
from qkdemo.labs.sphere.words import shares
from qkdemo.labs.training.view import NO_ROWS, recorded_exhibit
from qkdemo.messages import LANGUAGES, say
from qkdemo.notation import read as number
from qkdemo.notation import written
from qkdemo.tracks.catalogue import TRACKS, is_trained
from qkdemo.tracks.stop import Choose, Estimate, Evidence, Read, Stop
from qkdemo.web.read_off import MOST, columns_of, dial_name, shown_value, that_matter, with_marks
from qkdemo.web.track.evidence import drawn
from tests.runs.plans import trained_curves
from tests.tracks.finding import evidence_of

STOPS = [pytest.param(track, stop, id=f"{track}-{stop.name}") for track, stops in TRACKS.items() for stop in stops]
DRAWN = [(track, stop) for track, stops in TRACKS.items() for stop in stops if stop.lab not in (models.LAB, sphere.LAB)]
DERIVED = {  # of numbers of the beginner's explanations, those that are no reading: which key, how many, a ratio
    *("users", "key", "twin_key", "ratio", "fall", "wide", "pairs", "rows", "even", "chance", "all", "without", "cost"),
}


def exhibit_of(stop: Stop, state: Dials) -> Drawn:
    """What the stop's page draws; of a trained one, the run that a worker would have recorded."""
    if is_trained(stop):
        return _trained(state)
    exhibit = drawn(stop, state)
    assert exhibit is not None
    return exhibit


@lru_cache(maxsize=4)
def _trained(state: Dials) -> Drawn:
    assert isinstance(state, training.Settings)
    plan = training.plan_of(state)
    return recorded_exhibit(training.Result(state, plan, trained_curves(plan)))


def is_written(x: float, text: str) -> bool:
    """Whether `text` writes `x`, with as many digits as it has."""
    mantissa = re.sub(r"[^0-9.]", "", text.split("·", maxsplit=1)[0])
    digits = len((mantissa if "." in mantissa else mantissa.rstrip("0")).replace(".", "").lstrip("0")) or 1
    return any(number(written(x, n)) == number(text) for n in range(digits, max(digits, 4) + 1))


@pytest.mark.parametrize(("track", "stop"), STOPS)
def test_every_stop_says_where_the_page_shows_its_numbers(track: str, stop: Stop) -> None:
    assert stop.reads
    assert set(stop.reads) <= set(evidence_of(stop).numbers)


@pytest.mark.parametrize(("track", "stop"), [pytest.param(*place, id=f"{place[0]}-{place[1].name}") for place in DRAWN])
def test_what_is_read_off_the_exhibit_is_what_the_sentence_says(track: str, stop: Stop) -> None:
    found = evidence_of(stop)
    for name, read in stop.reads.items():
        table, view = exhibit_of(stop, stop.state.but(**read.turns))
        assert any(read.column in columns_of(panel) for panel in view["panels"]), (name, read.column)
        if read.of in ("place", "level"):
            continue
        shown = shown_value(table, view, read, read.turns)
        if read.of == "last":
            assert written(shown, 1) == written(number(found.numbers[name]), 1)  # one digit: another mean of a run
        else:
            assert is_written(shown, found.numbers[name]), (name, shown, found.numbers[name])


@pytest.mark.parametrize(("track", "stop"), [place for place in DRAWN if is_trained(place[1])])
def test_a_run_whose_rows_are_on_their_way_is_marked_where_a_recorded_one_is_or_not_at_all(
    track: str, stop: Stop
) -> None:
    table, view = exhibit_of(stop, stop.state)
    everywhere = (-math.inf, math.inf)
    with_marks(NO_ROWS, view, (track, stop), evidence_of(stop), everywhere)
    marked = with_marks(table, view, (track, stop), evidence_of(stop), everywhere)
    assert any(panel.get("points") or panel.get("levels") or panel.get("marks") for panel in marked["panels"])


@pytest.mark.parametrize(("track", "stop"), [pytest.param(*place, id=f"{place[0]}-{place[1].name}") for place in DRAWN])
def test_one_screen_has_room_for_all_that_a_stop_is_read_from(track: str, stop: Stop) -> None:
    _, view = exhibit_of(stop, stop.state)
    matter = that_matter(view, stop)
    assert 1 <= len(matter) <= MOST
    drawn = set[str]().union(*map(columns_of, matter))
    for read in stop.reads.values():
        assert read.column in drawn or not set(read.turns) <= {dial_name(view)}, read.column
    if isinstance(stop.ask, Estimate):  # the answer is drawn, and read where it is asked for
        here = [read for read in stop.reads.values() if stop.state.but(**read.turns) == stop.state]
        answers = [read for read in here if read.column == stop.ask.column]
        assert answers
        table, _ = exhibit_of(stop, stop.state)
        answer = evidence_of(stop).answer
        assert shown_value(table, view, answers[0], {}) / answers[0].times == pytest.approx(answer, rel=1e-6)


def test_the_beginners_sentences_hold_no_other_measured_number() -> None:
    for stop in TRACKS["beginner"]:
        quoted = set(re.findall(r"\{(\w+)\}", LANGUAGES["en"][f"stop.beginner.{stop.name}.explain"]))
        measured = {name for name in quoted if not name.startswith(("state_", "start_"))} - DERIVED
        assert measured <= set(stop.reads), stop.name


@pytest.mark.parametrize(("track", "stop"), [(t, s) for t, ss in TRACKS.items() for s in ss if s.lab is models.LAB])
def test_the_table_of_models_has_as_many_rows_as_the_sentence_says(track: str, stop: Stop) -> None:
    for name, read in stop.reads.items():
        assert read.column == "model"
        assert str(len(models.run(stop.state.but(**read.turns)).models)) == evidence_of(stop).numbers[name]


@pytest.mark.parametrize(("track", "stop"), [(t, s) for t, ss in TRACKS.items() for s in ss if s.lab is sphere.LAB])
def test_the_sphere_says_beside_its_pictures_which_share_of_directions_a_stop_names(track: str, stop: Stop) -> None:
    found = evidence_of(stop)
    for name, read in stop.reads.items():
        result = sphere.run(stop.state.but(**read.turns))
        role, _, word = read.column.partition(".")
        side = {"plain": result.plain, "norm": result.twin}[role]
        share = getattr(side, word) if read.entry is None else getattr(side, word)(read.entry)
        assert is_written(read.times * share, found.numbers[name])
        said = say("number.percent", x=found.numbers[name])
        if read.entry is not None:
            assert say("sphere.region", key=read.entry, share=said) in shares(side)
        else:
            assert said in " ".join((sphere.explain(result)[1], shares(side)))


def test_numbers_are_written_where_they_are_read_and_no_further_than_the_question_lets_see() -> None:
    track, stop = next(place for place in DRAWN if place[1].name == "growth")
    assert isinstance(stop.ask, Choose)
    table, view = exhibit_of(stop, stop.state)
    found = evidence_of(stop)

    def points(low: float, high: float) -> list[tuple[float, str]]:
        marked = with_marks(table, view, (track, stop), found, (low, high))
        (panel,) = that_matter(marked, stop)
        return [(point["x"], point["label"]) for point in panel["points"]]

    before, after = (found.numbers[name] for name in ("before", "after"))
    assert points(-math.inf, math.inf) == [(1.0, before), (stop.state.scale, after)]
    assert points(-math.inf, 1.0) == [(1.0, before)]


def test_a_level_and_a_place_are_drawn_in_the_panel_that_they_belong_to() -> None:
    found = {
        stop.name: with_marks(*exhibit_of(stop, stop.state), (track, stop), evidence_of(stop), (-math.inf, math.inf))
        for track, stop in DRAWN
        if stop.name in ("lines", "overflow")
    }
    level = next(p for p in found["lines"]["panels"] if p.get("levels"))["levels"][0]
    assert level["y"] == number(level["label"].split(": ")[1])
    lost = next(p for p in found["overflow"]["panels"] if "plain.raw_lost" in columns_of(p))
    assert [mark["x"] for mark in lost["marks"]].count(pytest.approx(55.65, rel=1e-3)) == 1  # the lab's own, not twice


def test_a_share_is_marked_in_per_cent() -> None:
    ask, reads = Choose(("yes", "no")), {"top": Read(column="plain.top_weight", times=100)}
    plain = next(stop for track, stop in DRAWN if stop.name == "growth")
    stop = Stop(name="x", lab=plain.lab, state=plain.state, ask=ask, evidence=plain.evidence, points=(), reads=reads)
    table, view = exhibit_of(plain, plain.state)
    panel = that_matter(
        with_marks(table, view, ("beginner", stop), Evidence("yes", {"top": "100"}), (-math.inf, math.inf)), stop
    )[0]
    assert panel["points"][0]["label"] == say("lesson.mark.percent", x="100")
