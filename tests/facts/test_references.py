"""Statements of fact that no lab computes name a source, and every source says where and when it was read."""

import re
from collections.abc import Iterator
from datetime import date
from typing import get_args

import pytest

from qkdemo.facts.models import MODELS
from qkdemo.facts.references import REFERENCES, KindWord, linked, named_in
from qkdemo.messages import LANGUAGES
from qkdemo.tracks.catalogue import TRACKS
from tests import readability
from tests.tracks.finding import evidence_of

# Words that say that something was found, built or done elsewhere: by people, in models, in programs.
NAMES = {name for model in MODELS for name in re.findall(r"[A-Z][\w-]*[A-Za-z]", model.model.split("(")[0])}
PRODUCTS = {"FlashAttention", "DeepSeek", "Kimi", "ViT-22B", "nGPT", "σReparam", "TransformerEngine", "Grok", "vLLM"}
COMMON = {"Attention", "Vision", "Henry", "Text", "Step", "MLA", "GQA"}  # words that a model's name shares with others
STATES = re.compile(
    r"\bet al\b|\b(?:19|20)\d\d\b|\breported\b|\bwas (?:also )?(?:seen|shown|found) in\b|"
    r"\bstud(?:y|ies|ied)\b|(?<!On )(?<!on )\bpapers?\b|"
    rf"\b(?:{'|'.join(sorted(NAMES - COMMON | PRODUCTS, key=len, reverse=True))})\b"
)
READ_IN_THE_TABLE = ("models.", "column.", "choice.", "preset.", "dial.", "task.", "glossary.", "log.", "cause.")
# Definitions of what this app computes name the paper of a formula beside it; a source of each stands in the code.
FORMULAS = ("how.", "variant.", "bound.", "other_ways.", "method.", "mla.", "error.", "arrows.")


def stated() -> Iterator[tuple[str, str]]:
    """Every sentence that states something found elsewhere, by its key."""
    for key, text in LANGUAGES["en"].items():
        if not key.startswith((*READ_IN_THE_TABLE, *FORMULAS)):
            for sentence in _sentences(text):
                if STATES.search(re.sub(r"\{[^}]*\}", "", sentence)):
                    yield key, sentence


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.?!])\s+(?=[A-ZΑ-Ω“\[{*])", text.replace("et al.", "et al"))


def _has_a_source(key: str, sentence: str) -> bool:
    """A key into the list; or, at a stop that reads the table of models or of kernels, the table's own links."""
    if named_in(sentence):
        return True
    _, track, name, part = (*key.split("."), "", "", "")[:4]
    if part == "question" or part.startswith("choice"):
        return True  # asks, or is chosen
    stop = next((stop for stop in TRACKS.get(track, ()) if stop.name == name), None)
    return stop is not None and (bool(evidence_of(stop).sources) or stop.lab.name == "models")


def test_a_statement_of_fact_names_its_source() -> None:
    lacking = [f"{key}: {sentence}" for key, sentence in stated() if not _has_a_source(key, sentence)]
    assert not lacking, "\n".join(lacking)


def test_such_statements_are_found() -> None:
    for text in (
        "It was reported for large models.",
        "Zhai et al. saw it.",
        "Gemma 2 caps its logits.",
        "FlashAttention refuses.",
    ):
        assert STATES.search(text.replace("et al.", "et al")), text
    assert not STATES.search("The entropy falls as the weight scale grows.")
    assert len(list(stated())) > 20


def test_every_source_that_is_named_is_in_the_list_and_every_source_is_named() -> None:
    used = {name for text in LANGUAGES["en"].values() for name in named_in(text)}
    assert used == set(REFERENCES)


@pytest.mark.parametrize("key", REFERENCES)
def test_a_source_says_where_to_look_and_when_it_was_read(key: str) -> None:
    source = REFERENCES[key]
    assert re.fullmatch(
        r"https://(arxiv\.org/abs/\d{4}\.\d{5}|doi\.org/\S+|github\.com/\S+|huggingface\.co/\S+)", source.link
    )
    assert not re.match(r"\w+\.\w", source.part), "begins a sentence in the list: a file’s name there got a capital"
    assert source.part
    assert source.says.endswith(".")
    assert date(2026, 1, 1) <= source.read
    assert source.kind in get_args(KindWord)
    assert bool(source.instead) == (source.kind == "notes"), "says what was read instead, or was opened itself"
    if source.kind == "code":
        assert re.search(r"/blob/(v[\d.]+|[0-9a-f]{40})/", source.link), "code is read at one version"


def test_a_text_leads_to_its_sources() -> None:
    text = linked("as in ([Crouch et al. 2004](@crouch)), [at scale 2](scale=2)")
    assert text == f"as in ([Crouch et al. 2004]({REFERENCES['crouch'].link})), [at scale 2](scale=2)"
    with pytest.raises(KeyError, match="nobody"):
        linked("[x](@nobody)")


def test_the_words_of_a_source_are_read_without_its_key() -> None:
    assert list(readability.sentences_of("Seen ([Zhai et al. 2023](@entropy_collapse)).")) == [
        "Seen (Zhai et al 2023)."
    ]


def test_a_size_in_billions_is_one_that_its_source_is_said_to_name() -> None:
    found = [(key, text) for key, text in stated() if "billion" in text and key != "references"]
    assert found
    for key, text in found:
        told = " ".join(REFERENCES[name].says for name in named_in(text))
        for size in re.findall(r"\d+ billion", text):
            assert size in told, f"{key}: {size}"
