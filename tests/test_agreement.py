"""A number agrees with what it counts: in every sentence, at every lab's smallest counts, in every stop and command."""

import re
from string import Formatter
from typing import Any

import pytest

from qkdemo.cli.command import main
from qkdemo.dials import Dial, Dials, declarations
from qkdemo.labs.lab import Lab
from qkdemo.labs.learning_rates import lab as rates
from qkdemo.labs.learning_rates.view import rates_exhibit
from qkdemo.labs.learning_rates.words import explain
from qkdemo.labs.training import lab as training
from qkdemo.labs.training.view import status_words
from qkdemo.labs.training.words import explain as explain_twins
from qkdemo.messages import LANGUAGES, say
from qkdemo.runs.workers.live import Status
from qkdemo.tracks.catalogue import TRACKS, text
from qkdemo.tracks.stop import Choose, Stop
from tests.agreement import ADJECTIVE, PLURALS, disagreements, forms_of, texts_in
from tests.labs.test_every_lab import fitting, flags, without_idle_dials
from tests.runs.plans import trained_curves
from tests.strategies import COMPUTED
from tests.tracks.finding import evidence_of

COUNTED = {key: sentence for key, sentence in LANGUAGES["en"].items() if any(forms_of(sentence))}
# What a stop or a quiz counts is what its lab says in one state: those are rendered below, or by their own tests.
ONE_STATE = ("stop.", "claim.", "quiz.beginner.", "quiz.developer.", "quiz.researcher.")
BARE = re.compile(rf"\{{(\w+)\}} {ADJECTIVE}({'|'.join(sorted(PLURALS))})\b")
NO_COUNTS = frozenset(("format", "name", "scale"))  # “{format} loses entries”


# ---- the sentences


@pytest.mark.parametrize("number", [1, "1", 2, "0", "1\u202f024", "21"])
@pytest.mark.parametrize("key", COUNTED)
def test_a_counted_sentence_agrees_with_any_number(key: str, number: object) -> None:
    names = {name for _, name, _, _ in Formatter().parse(LANGUAGES["en"][key]) if name}
    said = say(key, **dict.fromkeys(names, number))
    assert disagreements(said) == []
    for name, one, other in forms_of(LANGUAGES["en"][key]):
        assert one, name
        assert other, name
        assert one != other
        assert (one if str(number) == "1" else other) in said


def test_the_form_of_one_is_for_one_alone() -> None:
    said = [say("note.more", count=count) for count in (0, 1, 2, 11, 21)]
    assert [sentence.split(" of the link ")[0] for sentence in said] == [
        "0 more parts",
        "1 more part",
        "2 more parts",
        "11 more parts",
        "21 more parts",
    ]
    assert said[1].endswith("was changed or left out.")
    assert said[2].endswith("were changed or left out.")


def test_a_sentence_that_counts_says_what_it_would_say_of_one() -> None:
    """Whoever writes `{n} keys` is told to write `{n:key|keys}`."""
    bare = {
        key: match[0]
        for key, sentence in LANGUAGES["en"].items()
        if not key.startswith(ONE_STATE)
        for match in BARE.finditer(sentence)
        if match[1] not in NO_COUNTS
    }
    assert bare == {}


# ---- where they are shown


def smallest(lab: Lab) -> list[Dials]:
    """The states with each count at its least, alone and all together; and every named state so."""
    counts = {
        dial.name: dial.kind.low
        for dial in declarations(lab.settings)
        if isinstance(dial.kind, Dial) and dial.whole and dial.name != "seed"
    }
    states = [lab.settings(), *lab.presets.values()]
    least = [state.but(**counts) for state in states]
    return [*least, *(lab.settings().but(**{name: value}) for name, value in counts.items())]


SMALLEST = [
    pytest.param(lab, state, id=f"{name}-{at}")
    for name, lab in COMPUTED.items()
    for at, state in enumerate(smallest(lab))
]


@pytest.mark.parametrize(("lab", "state"), SMALLEST)
def test_a_lab_at_its_smallest_counts_agrees(lab: Lab, state: Dials) -> None:
    result = lab.run(state)
    drawn = [section.exhibit for section in lab.beneath(result)]
    words = [*lab.explain(result), *(sentence for section in lab.beneath(result) for sentence in section.sentences)]
    drawn += [] if lab.exhibit is None else [lab.exhibit(result)]
    said = [*words, *texts_in(drawn), *texts_in([list(rows()) for rows in lab.tables(result).values()])]
    assert [wrong for sentence in said for wrong in disagreements(sentence)] == []


@pytest.mark.parametrize("lab", COMPUTED.values(), ids=COMPUTED)
def test_a_command_at_its_smallest_counts_agrees(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    state = fitting(without_idle_dials(smallest(lab)[0]))
    assert main([lab.command.word, *flags(state)]) == 0
    captured = capsys.readouterr()
    assert disagreements(captured.out + captured.err) == []


STOPS = [pytest.param(track, stop, id=f"{track}-{stop.name}") for track, stops in TRACKS.items() for stop in stops]


@pytest.mark.parametrize(("track", "stop"), STOPS)
def test_the_sentences_of_a_stop_agree(track: str, stop: Stop) -> None:
    words = [f"choice.{word}" for word in stop.ask.words] if isinstance(stop.ask, Choose) else []
    numbers = evidence_of(stop).numbers
    said = [text(track, stop, part, numbers) for part in ("title", "question", "explain", *words)]
    assert [wrong for sentence in said for wrong in disagreements(sentence)] == []


def test_one_seed_and_one_step_agree_on_the_pages_that_train() -> None:
    small: dict[str, Any] = {"n_layers": 1, "n_heads": 1, "d_head": 8, "n_keys": 8, "batch": 1, "steps": 20}
    sweep = rates.Settings(n_rates=3, n_seeds=1, **small)
    for done in (0, 1, 3):
        curves = [trained_curves(plan) if at < done else None for at, plan in enumerate(rates.plans_of(sweep))]
        result = rates.result_of(sweep, curves)
        said = [*explain(result), *texts_in(rates_exhibit(result, None))]
        assert [wrong for sentence in said for wrong in disagreements(sentence)] == []
    run = training.Settings(fork="rate", fork_at=19, **small)
    plan = training.plan_of(run)
    read = trained_curves(plan)
    for steps in (1, 2, 20, len(read)):
        said = [*explain_twins(plan, read[:steps]), status_words(Status("finished", steps, 1.0), plan)]
        assert [wrong for sentence in said for wrong in disagreements(sentence)] == []
