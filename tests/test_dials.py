"""Dials: what is right passes unchanged, what is wrong gets its sentence, and no link breaks a page."""

import dataclasses
import math
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from qkdemo.dials import (
    Choice,
    Dial,
    Dials,
    Sentence,
    SettingsError,
    Switch,
    Value,
    declarations,
    preferred_numbers,
    schema,
)
from qkdemo.labs.placement import Settings as Placement
from qkdemo.messages import LANGUAGES

Norm = Literal["none", "l2", "rms"]
HERE = ("cpu",)


@dataclass(frozen=True, kw_only=True)
class Sample(Dials):
    """One dial of every kind."""

    scale: Annotated[float, Dial(0.01, 1000, log=True)] = 8.0
    shift: Annotated[float, Dial(-1, 1, step=0.05)] = 0.0
    width: Annotated[int, Dial(2, 256)] = 64
    rank: Annotated[int, Dial(1, 64, stops=(1, 4, 16, 64), only_for=("norm", ("l2", "rms")))] = 4
    norm: Annotated[Norm, Choice()] = "l2"
    device: Annotated[Literal["cpu", "cuda"], Choice(available=lambda: HERE)] = "cpu"
    causal: Annotated[bool, Switch()] = False


DIALS = {dial.name: dial for dial in declarations(Sample)}
ANY_SAMPLE = st.builds(
    Sample,
    scale=st.floats(0.01, 1000),
    shift=st.floats(-1, 1),
    width=st.integers(2, 256),
    rank=st.integers(1, 64),
    norm=st.sampled_from(["none", "l2", "rms"]),
    causal=st.booleans(),
)
HOSTILE = [
    "",
    " ",
    "nan",
    "-nan",
    "inf",
    "-inf",
    "1e999",
    "-1e999",
    "1e-999",
    "-0",
    "0x10",
    "1_000",
    "٣",
    "²",
    "8;9",
    "8 9",
    "None",
    "__import__('os')",
    "<script>alert(1)</script>",
    "{0.__class__}",
    "%s",
    "\x00",
    "\ud800",
    "\u202e8",
    "line\nbreak\u2028and\ttab",
    "1" * 10_000,
    "x" * 10_000,
    "𝟠",
]


@pytest.fixture
def labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A label for every dial of the sample; help for one."""
    texts = {f"dial.{name}.label": name.title() for name in DIALS} | {"dial.scale.help": "How large."}
    kept = {key: text for key, text in LANGUAGES["en"].items() if not key.startswith("dial.")}
    monkeypatch.setitem(LANGUAGES, "en", kept | texts)


def refusal(**values: Any) -> str:
    """The sentence with which Sample refuses these values."""
    with pytest.raises(SettingsError) as caught:
        Sample(**values)
    return str(caught.value)


# --- making one ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "legal", "illegal"),
    [
        ("scale", 0.01, math.nextafter(0.01, 0)),
        ("scale", 1000, math.nextafter(1000, math.inf)),
        ("shift", -1, math.nextafter(-1, -2)),
        ("width", 2, 1),
        ("width", 256, 257),
        ("width", 8, 8.5),
        ("width", 8.0, True),
        ("scale", 1, True),
        ("scale", 1e3, math.inf),
        ("scale", 8.0, math.nan),
        ("scale", 8, "8"),
        ("norm", "l2", "L2"),
        ("norm", "none", ""),
        ("norm", "rms", 0),
        ("device", "cpu", "cuda"),
        ("causal", True, 1),
        ("causal", False, "off"),
    ],
)
def test_a_legal_value_passes_and_its_illegal_neighbour_does_not(name: str, legal: Value, illegal: Value) -> None:
    assert getattr(Sample(**{name: legal}), name) == legal
    assert refusal(**{name: illegal}).startswith(name)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"scale": 2500.0}, "scale must be between 0.01 and 1000, but is 2500."),
        ({"scale": math.nan}, "scale must be between 0.01 and 1000, but is nan."),
        ({"scale": -math.inf}, "scale must be between 0.01 and 1000, but is -inf."),
        ({"scale": "<b>"}, "scale must be a number, but is '<b>'."),
        ({"scale": True}, "scale must be a number, but is true."),
        ({"width": 8.5}, "width must be a whole number between 2 and 256, but is 8.5."),
        ({"width": 300}, "width must be between 2 and 256, but is 300."),
        ({"norm": "layer"}, "norm is 'layer', which is not known here. Known are none, l2 and rms."),
        ({"device": "cuda"}, "device is 'cuda', which this machine does not have. It has cpu."),
        ({"device": "tpu"}, "device is 'tpu', which is not known here. Known are cpu."),
        ({"causal": 2}, "causal must be on or off (1 or 0), but is 2."),
    ],
)
def test_a_refusal_names_the_dial_its_value_and_what_is_allowed(values: dict[str, Any], sentence: str) -> None:
    assert refusal(**values) == sentence


def test_values_take_the_type_of_their_field() -> None:
    sample = Sample(scale=3, width=8.0)  # type: ignore[arg-type]
    assert (type(sample.scale), type(sample.width)) == (float, int)


def test_settings_cannot_be_changed_and_but_checks_again() -> None:
    sample = Sample()
    with pytest.raises(dataclasses.FrozenInstanceError):
        sample.scale = 1.0  # type: ignore[misc]
    assert sample.but(scale=2.0) == Sample(scale=2.0)
    with pytest.raises(SettingsError, match="scale must be between"):
        sample.but(scale=-2.0)


@pytest.mark.parametrize("name", ["scale", "width"])
def test_a_whole_number_beyond_every_float_gets_its_sentence(name: str) -> None:
    assert refusal(**{name: 10**400}).startswith(name)


@pytest.mark.parametrize("name", DIALS)
def test_a_missing_value_gets_its_sentence(name: str) -> None:
    assert refusal(**{name: None}).startswith(name)


# --- links --------------------------------------------------------------------------------------------------------


@given(ANY_SAMPLE, st.booleans())
def test_a_link_restores_the_settings_exactly_and_without_a_note(sample: Sample, defaults: bool) -> None:
    assert Sample.from_texts(sample.to_texts(defaults=defaults)) == (sample, [])


def test_a_link_holds_what_differs_from_the_defaults() -> None:
    assert Sample().to_texts() == {}
    assert Sample(scale=2.5, causal=True).to_texts() == {"scale": "2.5", "causal": "1"}
    assert Sample().to_texts(defaults=True) == {
        "scale": "8",
        "shift": "0",
        "width": "64",
        "rank": "4",
        "norm": "l2",
        "device": "cpu",
        "causal": "0",
    }


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("name", DIALS)
def test_no_hostile_text_breaks_a_page_or_floods_it(name: str, text: str) -> None:
    sample, notes = Sample.from_texts({name: text, text: text})
    assert Sample(**sample.as_dict()) == sample  # whatever was made of it is allowed
    for note in notes:
        assert len(note) < 400
        assert note.isprintable()


@given(st.dictionaries(st.sampled_from(list(DIALS)) | st.text(), st.text()))
def test_no_link_breaks_a_page(texts: dict[str, str]) -> None:
    sample, notes = Sample.from_texts(texts)
    assert Sample(**sample.as_dict()) == sample
    assert len(notes) >= len(texts.keys() - DIALS.keys())  # each of them was noted


@pytest.mark.parametrize(
    ("name", "text", "used"),
    [
        ("scale", "2500", 1000.0),
        ("scale", "-3", 0.01),
        ("scale", "1e999", 1000.0),
        ("scale", "-inf", 0.01),
        ("scale", "nan", 8.0),
        ("scale", "", 8.0),
        ("scale", "<script>", 8.0),
        ("width", "8.4", 8),
        ("width", "8.6", 9),
        ("width", "300", 256),
        ("width", "inf", 256),
        ("width", "nan", 64),
        ("width", "1" * 10_000, 256),
        ("norm", "layer", "l2"),
        ("norm", "", "l2"),
        ("device", "cuda", "cpu"),
        ("causal", "2", False),
        ("causal", "", False),
    ],
)
def test_a_bad_value_is_clamped_or_dropped_with_one_note(name: str, text: str, used: Value) -> None:
    sample, notes = Sample.from_texts({name: text})
    assert getattr(sample, name) == used
    assert sample == Sample().but(**{name: used})
    assert len(notes) == 1
    assert notes[0].endswith(f" The page uses {DIALS[name].write(used)}.")


@pytest.mark.parametrize(
    ("texts", "notes"),
    [
        ({"scale": "2500"}, ["scale must be between 0.01 and 1000, but is 2500. The page uses 1000."]),
        ({"scale": ""}, ["scale must be a number, but is ''. The page uses 8."]),
        (
            {"scale": "x" * 10_000},
            [f"scale must be a number, but is '{'x' * 39}…'. The page uses 8."],
        ),
        ({"width": "8.5"}, ["width must be a whole number between 2 and 256, but is 8.5. The page uses 8."]),
        ({"causal": "maybe"}, ["causal must be on or off (1 or 0), but is 'maybe'. The page uses 0."]),
        ({"colour": "red"}, ["The link names 'colour', which is no dial of this page; it was left out."]),
        ({"line\nbreak": ""}, ["The link names 'line break', which is no dial of this page; it was left out."]),
        ({"width": "32", "scale": "2"}, []),
    ],
)
def test_notes_are_sentences(texts: dict[str, str], notes: list[str]) -> None:
    assert Sample.from_texts(texts)[1] == notes


def test_one_bad_value_spoils_no_other() -> None:
    sample, notes = Sample.from_texts({"width": "32", "scale": "nan", "norm": "rms", "colour": "red"})
    assert sample == Sample(width=32, norm="rms")
    assert len(notes) == 2


@pytest.mark.parametrize("text", ["٣", " 3 ", "3.0", "0.3e1", "+3", "𝟛"])
def test_a_three_is_a_three_however_it_is_typed(text: str) -> None:
    assert Sample.from_texts({"width": text}) == (Sample(width=3), [])


@pytest.mark.parametrize(("text", "value"), [("1", True), ("on", True), ("TRUE", True), ("0", False), ("Off", False)])
def test_a_switch_reads_its_words_in_any_case(text: str, value: bool) -> None:
    assert Sample.from_text("causal", text) is value


@given(st.floats(allow_nan=False))
@example(math.inf)
def test_a_number_outside_goes_to_the_nearer_end(number: float) -> None:
    sample, notes = Sample.from_texts({"scale": repr(number)})
    assert sample.scale == min(max(number, 0.01), 1000)
    assert bool(notes) == (sample.scale != number)


# --- one value, strictly ------------------------------------------------------------------------------------------


@given(ANY_SAMPLE)
def test_what_a_dial_writes_it_reads_back(sample: Sample) -> None:
    for name, dial in DIALS.items():
        value = getattr(sample, name)
        read = Sample.from_text(name, dial.write(value))
        assert read == value
        assert type(read) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("scale", "2500", "scale must be between 0.01 and 1000, but is 2500."),
        ("scale", "٣x", "scale must be a number, but is '٣x'."),
        ("width", "8.5", "width must be a whole number between 2 and 256, but is 8.5."),
        ("norm", "<script>", "norm is '<script>', which is not known here. Known are none, l2 and rms."),
        ("causal", "maybe", "causal must be on or off (1 or 0), but is 'maybe'."),
        (
            "colour",
            "red",
            "There is no dial named 'colour'. There are scale, shift, width, rank, norm, device and causal.",
        ),
    ],
)
def test_the_command_line_refuses_with_the_same_sentences(name: str, text: str, sentence: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Sample.from_text(name, text)
    assert str(caught.value) == sentence


# --- what is derived ----------------------------------------------------------------------------------------------


def test_declarations_stand_in_order_and_know_their_kind() -> None:
    assert list(DIALS) == ["scale", "shift", "width", "rank", "norm", "device", "causal"]
    assert [name for name, dial in DIALS.items() if dial.whole] == ["width", "rank"]
    assert DIALS["norm"].words == ("none", "l2", "rms")
    assert DIALS["device"].words == ("cpu", "cuda")
    assert DIALS["device"].allowed_words() == ("cpu",)
    assert DIALS["scale"].words == ()
    assert Sample().as_dict() == {name: dial.default for name, dial in DIALS.items()}


def test_a_field_without_a_declaration_is_a_fault_of_ours() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Bare(Dials):
        scale: float = 1.0

    with pytest.raises(TypeError, match="scale needs Annotated"):
        Bare()


@pytest.mark.parametrize(("norm", "acts"), [("none", False), ("l2", True), ("rms", True)])
def test_a_dial_acts_only_for_the_states_it_names(norm: Norm, acts: bool) -> None:
    assert DIALS["rank"].acts_for(Sample(norm=norm)) is acts
    assert DIALS["scale"].acts_for(Sample(norm=norm))


@pytest.mark.usefixtures("labels")
def test_labels_are_required_and_help_is_not() -> None:
    assert (DIALS["scale"].label, DIALS["scale"].help) == ("Scale", "How large.")
    assert DIALS["width"].help == ""
    with pytest.raises(KeyError, match=r"dial\.colour\.label"):
        assert dataclasses.replace(DIALS["scale"], name="colour").label


@pytest.mark.usefixtures("labels")
def test_the_schema_says_what_each_dial_allows() -> None:
    described = schema(Sample)
    assert described["type"] == "object"
    assert described["additionalProperties"] is False
    assert list(described["properties"]) == list(DIALS)
    assert described["properties"]["scale"] == {
        "type": "number",
        "minimum": 0.01,
        "maximum": 1000,
        "title": "Scale",
        "description": "How large.",
        "default": 8.0,
    }
    assert described["properties"]["width"]["type"] == "integer"
    assert described["properties"]["norm"]["enum"] == ["none", "l2", "rms"]
    assert described["properties"]["causal"]["type"] == "boolean"


# --- stops --------------------------------------------------------------------------------------------------------


def test_a_dial_stops_at_its_own_stops_or_at_preferred_numbers_or_by_steps() -> None:
    assert Dial(1, 64, stops=(1, 4, 16, 64), log=True).grid() == (1, 4, 16, 64)
    assert Dial(0.5, 16, log=True).grid() == preferred_numbers(0.5, 16)
    assert Dial(0, 1, step=0.1).grid() == ()


def test_preferred_numbers_contain_those_that_lecturers_name() -> None:
    assert {1, 2, 4, 8, 16, 400} <= set(preferred_numbers(0.01, 1000))


@pytest.mark.parametrize("per_decade", [20, 10, 5])
def test_preferred_numbers_divide_a_decade_evenly_within_two_per_cent(per_decade: Literal[20, 10, 5]) -> None:
    stops = preferred_numbers(1, 10, per_decade)
    assert len(stops) == per_decade + 1
    assert [after / before for before, after in pairwise(stops)] == pytest.approx(
        [10 ** (1 / per_decade)] * per_decade, rel=0.02
    )


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.sampled_from([20, 10, 5]))
def test_preferred_numbers_rise_from_one_end_to_the_other(low: float, high: float, per_decade: Any) -> None:
    assume(low < high)
    stops = preferred_numbers(low, high, per_decade)
    assert (stops[0], stops[-1]) == (low, high)
    assert list(stops) == sorted(set(stops))


@given(st.integers(-6, 6), st.integers(1, 6))
def test_every_decade_has_the_same_preferred_numbers(exponent: int, decades: int) -> None:
    low, high = float(f"1e{exponent}"), float(f"1e{exponent + decades}")
    stops = preferred_numbers(low, high)
    assert len(stops) == 20 * decades + 1
    assert all(digits_of(stop) == digits_of(stops[at % 20]) for at, stop in enumerate(stops))


def digits_of(x: float) -> str:
    """The significant digits of `x`: the same for 0.315, 3.15 and 315."""
    return f"{x:.6e}".split("e")[0]


@pytest.mark.parametrize("typed", ["1e400", "-1e400", "inf"])
def test_a_number_beyond_float64_is_reported_as_it_was_typed(typed: str) -> None:
    with pytest.raises(SettingsError) as error:
        Placement.from_text("gain", typed)
    assert str(error.value) == f"gain must be between 0.01 and 100, but is {typed}."
    assert typed in Placement.from_texts({"gain": typed})[1][0]


@dataclass(frozen=True, kw_only=True)
class Told(Dials):
    sentence: Annotated[str, Sentence(("Ana", "has", "it", ".", "?"), most=4)] = "Ana has it"


@pytest.mark.parametrize(
    ("text", "kept"), [("ana  HAS it", "Ana has it"), ("Ana has it?", "Ana has it ?"), (" ? ", "?"), ("..", ". .")]
)
def test_a_sentence_is_kept_as_its_known_words_with_single_spaces(text: str, kept: str) -> None:
    assert Told.from_text("sentence", text) == kept
    assert Told.from_texts({"sentence": kept}) == (Told(sentence=kept), [])


@pytest.mark.parametrize(
    ("text", "mended", "says"),
    [
        ("Anna has it", "Ana has it", "has the word 'Anna', which this model does not know; the nearest word"),
        (
            "Ana sees it",
            "Ana it",
            "the word 'sees', which this model does not know. It knows Ana, has, it, . and ?",
        ),
        ("Ana has it . ?", "Ana has it .", "has 5 words; there is room for 4"),
        ("  ", "Ana has it", "must have one word or more"),
    ],
)
def test_a_sentence_that_is_none_is_refused_by_a_flag_and_mended_in_a_link(text: str, mended: str, says: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(says)):
        Told.from_text("sentence", text)
    settings, (note,) = Told.from_texts({"sentence": text})
    assert settings.sentence == mended
    assert says in note
