"""The small language: what it draws is what may follow, and its questions have one answer."""

import numpy as np
import pytest

from qkdemo.training.sentences import KINDS, STORIES, WORDS, decided, drawn, following

FACTS = "Ana has the red box . Ben has the blue hat ."


def texts(count: int, length: int = 40) -> list[list[str]]:
    return [[WORDS[at] for at in text] for text in drawn(np.random.default_rng(5), count, length)]


def test_every_word_that_is_drawn_may_follow_those_before_it() -> None:
    for text in texts(60):
        for at, word in enumerate(text):
            assert word in following(text[:at]), (text[:at], word)


def test_where_it_is_decided_one_word_may_follow() -> None:
    found = drawn(np.random.default_rng(5), 60, 40)
    places = decided(found)
    assert places.any(axis=1).mean() > 0.9
    for row, at in np.argwhere(places):
        assert len(following([WORDS[word] for word in found[row, : at + 1]])) == 1
    assert {WORDS[word] for word in found[:, 1:][places[:, :-1]]} == {*KINDS["A"], *KINDS["M"], "is", "are"}


def test_the_first_stories_can_be_drawn_alone() -> None:
    told = {" ".join(WORDS[at] for at in text) for text in drawn(np.random.default_rng(5), 60, 32, n_stories=1)}
    assert {text.split()[0] for text in told} == {*KINDS["A"]}
    assert all(text[text.index(". who") :].count("who has the") >= 2 for text in told)


def test_every_story_and_every_part_is_drawn() -> None:
    told = [" ".join(text) for text in texts(200)]
    for word in WORDS:
        assert any(f" {word} " in f" {text} " for text in told)
    for part in ("who is she ?", "who is he ?", "who has the", "she has the", "near the"):
        assert any(part in text for text in told)
    starts = {text.split()[0] for text in told}
    assert starts == {*KINDS["A"], *KINDS["M"], "the"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (f"{FACTS} who is he ?", {"Ben"}),
        (f"{FACTS} who is she ?", {"Ana"}),
        (f"{FACTS} who has the box ?", {"Ana"}),
        (f"{FACTS} who has the hat ? Ben . who has the box ?", {"Ana"}),
        (f"{FACTS} she has the", {"red"}),
        ("the box near the hats", {"is"}),
        ("the boxes near the hat", {"are"}),
        ("the boxes near the hat are red . the cup near the boxes", {"is"}),
        ("Ana has the", set(KINDS["cd"])),
        (f"{FACTS[:-1]}. who has the", {"box", "hat"}),
        ("Ana has the red box . Ben has the", {"blue", "green", "white"}),
        ("", {*KINDS["A"], *KINDS["M"], "the"}),
        ("Ana has the red box . Eva", set()),
        ("who is near Ana ?", set()),
    ],
)
def test_what_may_follow(words: str, expected: set[str]) -> None:
    assert following(words.split()) == expected


def test_each_letter_has_words_enough_and_stories_name_no_word_that_is_unknown() -> None:
    letters = set("".join(KINDS))
    for kind, known in KINDS.items():
        assert len(known) >= len(kind)
    for story in STORIES:
        for name in " ".join((story.opening, *story.parts)).split():
            assert name in letters or name in WORDS
    assert len(set(WORDS)) == len(WORDS)


def test_length_cuts_a_text_and_changes_nothing_before() -> None:
    long, short = (drawn(np.random.default_rng(1), 8, length) for length in (33, 33))
    assert np.array_equal(long, short)
    assert drawn(np.random.default_rng(1), 8, 9).shape == (8, 9)
