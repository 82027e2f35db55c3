"""Every stop of every track: its answer is computed, its sentences quote what was computed, its words drive its lab."""

import json
import math
import re
from functools import lru_cache

import pytest

from qkdemo.dials import declarations
from qkdemo.labs import mla, rope
from qkdemo.labs import training as twins
from qkdemo.labs.training.words import findings
from qkdemo.messages import LANGUAGES, has
from qkdemo.notation import written
from qkdemo.runs.plan import outcomes
from qkdemo.tracks import catalogue
from qkdemo.tracks.catalogue import TRACKS, is_trained, text
from qkdemo.tracks.points import POINTS
from qkdemo.tracks.prose import Word, words_of
from qkdemo.tracks.stop import Choose, Evidence, Stop
from tests.runs.plans import trained_curves
from tests.tracks.finding import PINS, differences, evidence_of, pinned, trained

STOPS = [pytest.param(track, stop, id=f"{track}-{stop.name}") for track, stops in TRACKS.items() for stop in stops]
ANSWERS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in PINS.glob("*.json")}
# Names that hold a digit, and a year: no measured number.
MODELS = "Gemma|Llama|OLMo|Qwen|DeepSeek-V|Swin v|Cohere|Kimi K|GPT-"
NAMES = re.compile(
    rf"(bfloat|float|int|fp|bf|e)\d+(m\d)?(fn)?|1 ?/ ?√d\w*|d\^-¼|(?:{MODELS})\s?\d+|"
    r"ViT-22B|Grok-1|\bL2\b|log2|dim=-?1|1 − tanh²|W_?[0-9]|\b(?:19|20)\d\d\b|\bT = 1\b|1 \+ γ|‖q‖²|T²|O\(T"
)


def part_names(stop: Stop) -> list[str]:
    choices = [f"choice.{word}" for word in stop.ask.words] if isinstance(stop.ask, Choose) else []
    return ["title", "question", *choices, "explain"]


@pytest.mark.parametrize(("track", "stop"), STOPS)
def test_the_answer_is_computed_and_is_one_that_can_be_given(track: str, stop: Stop) -> None:
    evidence = evidence_of(stop)
    if isinstance(stop.ask, Choose):
        assert evidence.answer in stop.ask.words
        assert 2 <= len(stop.ask.words) <= 5
    else:
        assert isinstance(evidence.answer, float)
        assert stop.ask.low <= evidence.answer <= stop.ask.high
        assert stop.ask.says(evidence.answer, evidence.answer)
        assert stop.ask.high / stop.ask.low > stop.ask.within**4  # a guess in the middle need not be right


@pytest.mark.parametrize(("track", "stop"), STOPS)
def test_answer_and_numbers_are_those_that_were_read_when_the_words_were_written(track: str, stop: Stop) -> None:
    """After a change that is meant, `python -m tests.tracks.finding` writes them anew: read the difference."""
    found, kept = pinned(stop), ANSWERS[track].get(stop.name, {})
    changed = {name: (kept.get(name), found.get(name)) for name in differences(found, kept)}
    assert not changed, f"pinned and found are {changed}. If this is meant: python -m tests.tracks.finding {track}"


@pytest.mark.parametrize(("track", "stop"), STOPS)
def test_no_two_numbers_stand_side_by_side(track: str, stop: Stop) -> None:
    """“At scale 8 98 weights” reads as one number."""
    numbers = evidence_of(stop).numbers
    for part in part_names(stop):
        read = re.sub(r"\[([^\]]*)\]\([^()]*\)", r"\1", text(track, stop, part, numbers))
        assert not re.search(r"\d −?\d", read), read


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        (0.05354651736840006, 0.053546517368539936),  # one answer on two processors
        ("7.2·10⁻¹⁶", "9.3·10⁻¹⁶"),  # equal but for rounding on both
        ("1.743·10⁻⁵", "1.742·10⁻⁵"),  # on either side of the last digit
        ("3\u202f100", "3\u202f100"),
    ],
)
def test_a_pin_holds_on_another_processor(found: str | float, kept: str | float) -> None:
    assert not differences({"number": found}, {"number": kept})


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        (0.0535466, 0.0535465),
        ("241", "242"),  # a count
        ("1.744·10⁻⁵", "1.742·10⁻⁵"),
        ("1.6·10⁻²⁵", "2.4·10⁻³³"),  # small, and no rounding
        ("lead", "swap"),
        ("1", 1.0),
        ("NaN", "∞"),
    ],
)
def test_a_pin_sees_a_change_of_what_is_read(found: str | float, kept: str | float) -> None:
    assert differences({"number": found}, {"number": kept}) == ["number"]


def test_a_pin_sees_a_number_that_is_gone_or_new() -> None:
    assert differences({"old": "1"}, {"old": "1", "new": "2"}) == ["new"]
    assert differences({"old": "1", "new": "2"}, {"old": "1"}) == ["new"]


def test_no_answer_is_pinned_for_a_stop_that_is_gone() -> None:
    assert {track: list(answers) for track, answers in ANSWERS.items()} == {
        track: [stop.name for stop in stops] for track, stops in TRACKS.items()
    }


@pytest.mark.parametrize(("track", "stop"), STOPS)
def test_every_sentence_is_there_and_every_number_in_it_was_computed(track: str, stop: Stop) -> None:
    numbers = evidence_of(stop).numbers
    for part in part_names(stop):
        filled = text(track, stop, part, numbers)
        assert filled == filled.strip()
        assert not re.search(r"[{}]|\bnan\b|\bNone\b", filled), filled
        bare = text(track, stop, part, dict.fromkeys(numbers, "")) if numbers else filled
        template = template_of(track, stop, part)
        for word in words_of(template):
            literal = NAMES.sub("", re.sub(r"\{[^}]*\}", "", word.text))
            targets = set(word.turns.values())
            digits = [digit for digit in re.findall(r"\d[\d.]*", literal) if digit not in targets]
            assert not digits, f"{part}: {digits} are not computed: {bare}"


def test_a_whole_dial_is_quoted_with_every_digit() -> None:
    ask = Choose(("yes", "no"))
    state = mla.Settings(context=131072)
    stop = Stop(name="whole", lab=mla, state=state, ask=ask, evidence=lambda found: Evidence("yes"), points=())
    assert catalogue._states(stop)["state_context"] == "131\u202f072"


@lru_cache(maxsize=256)
def lines_of(stop: Stop, role: str) -> list[dict[str, str]]:
    """The lines of the page's exhibit that a word with this role picks out; all others fade."""
    found = trained(stop.state) if is_trained(stop) else stop.lab.run(stop.state)
    _, view = stop.lab.exhibit(found)
    return [line for panel in view["panels"] for line in panel.get("lines", []) if line["role"] == role]


@pytest.mark.parametrize(
    ("track", "name", "words", "number", "row"),
    [
        ("claims", "commute", "rotary first", "rotary_first", {"position": rope.Settings().position}),
        ("researcher", "pair", "The right bound", "pairwise", {}),
        ("researcher", "rate", "The slope", "after", {"size": 10}),
    ],
)
def test_a_word_picks_out_the_line_whose_number_its_sentence_quotes(
    track: str, name: str, words: str, number: str, row: dict[str, float]
) -> None:
    stop = next(stop for stop in TRACKS[track] if stop.name == name)
    (word,) = (word for word in words_of(template_of(track, stop, "explain")) if word.text == words)
    table, _ = stop.lab.exhibit(stop.lab.run(stop.state))
    at = next(at for at in range(len(table)) if all(math.isclose(table[of][at].as_py(), x) for of, x in row.items()))
    shown = {written(table[line["column"]][at].as_py()) for line in lines_of(stop, word.role)}
    assert evidence_of(stop).numbers[number] in shown


def template_of(track: str, stop: Stop, part: str) -> str:
    key = f"stop.{track}.{stop.name}.{part}"
    return LANGUAGES["en"][key if has(key) else f"stop.{track}.any.{part}"]


@pytest.mark.parametrize(("track", "stop"), STOPS)
def test_the_words_that_drive_the_chart_name_dials_and_roles_that_there_are(track: str, stop: Stop) -> None:
    dials = {dial.name: dial for dial in declarations(type(stop.state))}
    driving = [
        word for word in words_of(text(track, stop, "explain", evidence_of(stop).numbers)) if word != Word(word.text)
    ]
    for word in driving:
        for name, value in word.turns.items():
            dials[name].parse(value)
        assert not word.role or lines_of(stop, word.role), word
    assert not any(
        Word(word.text) != word
        for part in ("title", "question")
        for word in words_of(text(track, stop, part, evidence_of(stop).numbers))
    )


@pytest.mark.parametrize(("track", "stop"), STOPS)
def test_the_run_turns_something_that_acts_at_its_stop(track: str, stop: Stop) -> None:
    dials = {dial.name: dial for dial in declarations(type(stop.state))}
    if stop.start is not None:
        assert stop.turned
        assert all(dials[name].acts_for(stop.state) for name in stop.turned)


def test_every_point_of_the_subject_is_taught_somewhere() -> None:
    taught = {point for stops in TRACKS.values() for stop in stops for point in stop.points}
    assert taught == set(POINTS)


def test_names_are_unique_within_a_track() -> None:
    for stops in TRACKS.values():
        assert len({stop.name for stop in stops}) == len(stops)


@pytest.mark.parametrize("track", [track for track in TRACKS if track != "claims"])
def test_a_track_has_eight_to_fourteen_stops(track: str) -> None:
    assert 8 <= len(TRACKS[track]) <= 14


@pytest.mark.parametrize("track", TRACKS)
def test_right_answers_do_not_stand_in_the_same_place_throughout(track: str) -> None:
    places = [
        stop.ask.words.index(str(evidence_of(stop).answer)) for stop in TRACKS[track] if isinstance(stop.ask, Choose)
    ]
    assert max(places.count(place) for place in places) <= 0.7 * len(places)


def test_a_number_that_bounds_is_rounded_away_from_what_it_bounds() -> None:
    """A new sentence with such a number is to be looked at: then it stands here."""
    rounded_up = {
        *("claims.commute.apart", "claims.commute.centred", "claims.full_width.per_head"),
        "claims.softcap_place.moved",
        *("claims.softcap_place.off", "developer.small_g.most", "developer.calm.loss", "researcher.floor.most"),
        *("researcher.rounding.most", "researcher.context.ceiling"),
    }
    rounded_down = {
        *("claims.entropy.least", "claims.fresh_test.least", "claims.fresh_test.trained", "claims.rounding.least"),
    }
    exact = {  # or a limit under which digits say nothing
        *("claims.commute.alike", "claims.bfloat16_exp.with_max", "claims.bfloat16_exp.far"),
        *("claims.latent.difference", "claims.scale_free.moved", "claims.half_precision.far", "claims.raw_cache.raw"),
        *("claims.twice.unit", "claims.rounding.exact", "claims.always_bounded.l2_bound", "claims.layernorm.same"),
        *(
            "developer.values.start_token_spread",
            "developer.again.unit",
            "developer.territory.clear_from",
            "developer.log.clip",
            "researcher.course.clip",
        ),
        *("researcher.latent.difference", "researcher.context.bound", "developer.rms.users"),
        "beginner.overflow.bfloat_top",  # “after rounding”, it says
    }
    before = r"(?:at most|up to|at least|no more than|not more than|more than|less than|above|below|within|exceeds?) "
    bounding = re.compile(
        rf"{before}(?:the )?±?\{{(\w+)\}}|\{{(\w+)\}}(?: %)? (?:or (?:more|less|below)|at (?:most|least))"
    )
    found = {
        f"{key.split('.')[1]}.{key.split('.')[2]}.{one or other}"
        for key, sentence in LANGUAGES["en"].items()
        if re.match(r"stop\..*\.(question|explain)$", key)
        for one, other in bounding.findall(sentence)
    }
    assert found == rounded_up | rounded_down | exact


def test_one_run_has_one_collapse_step_on_every_page_that_names_it() -> None:
    """The default run, in the tracks, in the headline of its page, and in the report of the command line."""
    stops = {stop.name: stop for track in TRACKS.values() for stop in track if is_trained(stop)}
    live, log, course = (evidence_of(stops[name]).numbers for name in ("live", "log", "course"))
    plan = twins.plan_of(twins.Settings())
    curves = trained_curves(plan)
    plain = outcomes(plan, curves)[0]
    assert {live["since"], log["lost"], course["lost"]} == {str(plain.lost_at)}
    assert {log["large"], course["at"]} == {str(plain.first_step_logit_over_100)}
    assert log["ahead"] == str(plain.warned)
    headline = findings(plan, curves, len(curves))[-1]
    assert (
        f"forgot it at step {plain.lost_at}, {plain.warned} steps after its largest logit was first above 100"
        in headline
    )
