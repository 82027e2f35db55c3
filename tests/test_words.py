"""One word for one thing, in everything that people read; and nothing that only sounds good."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from qkdemo.facts.models import MODELS
from qkdemo.messages import LANGUAGES
from tests import readability

ROOT = Path(__file__).parents[1]
PLACEHOLDER = re.compile(r"\{[^}]*\}")
# What is not said, and what is said for it. Length is a vector's, a norm is an operation; a score comes before 1/√d, a
# logit after it; a row is one-hot, a gradient is saturated, a task is forgotten, an entry overflows; the softmax slope
# keeps its noun; a variant is a QK norm, a remedy is anything.
TERMS = {
    r"\btwins?\b": "normalised attention, the normalised model, or: with {variant}",
    r"\braw (scores?|products?|logits?)\b": "score",
    r"\bnorms of (q|k|both|vectors)\b|\bthe norm of (q|k|a vector)\b": "length",
    r"\b(lost|loses?) (the|its|their) task\b|\blost it again\b": "forgot the task",
    r"\bsaturated (rows?|attention)\b|\bstarts? saturated\b": "one-hot, of a row",
    r"\bone-hot (head|gradient)s?\b": "saturated, of a gradient",
    r"\bself-attention scores?\b": "score",
    r"\bsoft[- ]cap\b": "softcap",
    r"\bgr(ow|ows|ew|own) (about )?(\w+ )?times\b": "become … times as large: eight times can be eight occasions",
    r"\b(norm|rotary) first scores\b|\bkey score\b|\bscores? (is|are) [^.,;]*/ ?√": "logit: a score comes before 1/√d",
    r"\bnever formed\b": "need not be formed",
    r"\bany PyTorch model\b": "name the calls that are seen: attention in plain code of its own is not",
    r"\bkeys of every head, just before\b": "before the scores: rotary may follow, and a norm may span all heads",
    r"\b(go|goes|keeps?) (on )?growing\b": "can still grow: whether it does is for a run to show",
    r"\b(to|on) a fixed length\b|\bfixes the length\b": "divides by its size: a gain may follow, or RMSNorm ends at √d",
    r"\btimes (larger|longer)\b": "times as large: four times as large is three times larger, to some",
    r"\bnormalized\b|\bnormalization\b|\bcolor\b": "British spelling",
}
APHORISMS = (
    *("mind", "has not noticed", "licence for", "not your memory", "grow along", "comes of it", "nearly empty"),
    *(
        "cannot be taken back",
        "the disease",
        "anecdote",
        "any wiser",
        "buys back",
        "held back",
        "For no query anything",
    ),
    *("It is not blurred", "fares no better", "No rescue", "is idle", "brings the others back", "tells it all"),
)
HEARSAY = (
    *(r"\boften (told|given|said|swapped|claimed)\b", r"\bin what people write\b", r"\bas (all|real) models do\b"),
    *(r"\b(usual|common) (sayings?|claims?|formulas?)\b", r"\bsome other (libraries|people|models)\b"),
    *(r"\bevery real\b", r"\beverybody knows\b", r"\bwell[- ]known\b", r"\bof course\b", r"\bis common\b"),
)
PLAIN_SLOPE = ("beginner", "developer", "drift", "live", "training", "points", "quiz_beginner")
LONGEST = {"beginner": 30, "quiz_beginner": 36, "developer": 34}  # words in a sentence


def sentences() -> Iterator[tuple[str, str]]:
    for key, text in LANGUAGES["en"].items():
        if not key.endswith(".forms"):
            yield key, re.sub(r"  +", " ", PLACEHOLDER.sub("", text))
    yield "README.md", (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("pattern", TERMS)
def test_one_word_is_used_for_one_thing(pattern: str) -> None:
    found = {key: match[0] for key, text in sentences() if (match := re.search(pattern, text, re.IGNORECASE))}
    assert not found, f"say instead: {TERMS[pattern]}"


@pytest.mark.parametrize("phrase", APHORISMS)
def test_no_sentence_is_an_aphorism(phrase: str) -> None:
    assert not [key for key, text in sentences() if re.search(rf"\b{phrase}\b", text)]


@pytest.mark.parametrize("pattern", HEARSAY)
def test_no_sentence_is_hearsay(pattern: str) -> None:
    """What others do, or say, is read in a source or left out; the notes of the table are read too."""
    every = [*sentences(), *((model.id, model.note) for model in MODELS)]
    assert not [key for key, text in every if re.search(pattern, text, re.IGNORECASE)]


def test_a_softmax_slope_keeps_its_noun() -> None:
    for name in PLAIN_SLOPE:
        for key, text in readability.texts()[name].items():
            alone = re.findall(r"(?<!oftmax )\b[Ss]lopes?\b", PLACEHOLDER.sub("", text))
            assert not alone, key


@pytest.mark.parametrize("track", readability.LIMITS)
def test_every_stop_is_as_easy_to_read_as_its_track_promises(track: str) -> None:
    grades = {name: readability.grade(text) for name, text in readability.stops(track).items()}
    assert max(grades.values()) <= readability.LIMITS[track], grades


@pytest.mark.parametrize("track", readability.LIMITS)
def test_a_quiz_is_no_harder_to_read_than_its_track(track: str) -> None:
    texts = [text for key, text in readability.texts()[f"quiz_{track}"].items() if "about" not in key]
    assert readability.grade(" ".join(texts)) <= readability.LIMITS[track]


@pytest.mark.parametrize("name", LONGEST)
def test_sentences_are_short(name: str) -> None:
    for key, text in readability.texts()[name].items():
        for sentence in readability.sentences_of(text):
            assert len(sentence.split()) <= LONGEST[name], f"{key}: {sentence}"


def test_a_sentence_outside_the_tracks_ends_before_its_37th_word() -> None:
    """What stands under “How computed” is for those who look a formula up."""
    for name, texts in readability.texts().items():
        if name not in readability.TRACKS:
            for key, text in texts.items():
                if not key.startswith("how."):
                    for sentence in readability.sentences_of(text):
                        assert len(sentence.split()) <= 36, f"{key}: {sentence}"


def test_syllables_are_counted_as_they_are_spoken() -> None:
    spoken = {
        "attention": 3,
        "scale": 1,
        "largest": 2,
        "twice": 1,
        "length": 1,
        "normalised": 3,
        "multiplied": 3,
        "queries": 2,
        "entropy": 3,
        "direction": 3,
        "needed": 2,
        "scaled": 1,
        "sizes": 2,
        "lines": 1,
        "multiple": 3,
        "models": 2,
        "arrows": 2,
        "weights": 1,
        "divided": 3,
        "transformer": 3,
        "position": 3,
        "sentence": 2,
    }
    assert {word: readability.syllables(word) for word in spoken} == spoken


def test_the_grade_is_that_of_the_formula() -> None:
    easy, hard = "The cat sat on the mat.", "Normalisation eliminates multiplicative interactions between magnitudes."
    assert readability.grade(easy) == pytest.approx(0.39 * 6 + 11.8 * 1 - 15.59)
    assert readability.grade(hard) > 20
    assert readability.grade("") == 0
