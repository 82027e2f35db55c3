"""The quizzes: one right answer among distinct ones, all computed; other numbers from every seed; whole sentences."""

import dataclasses
import math
import random
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from qkdemo.attention.blocks import BlockRecipe, draw_block
from qkdemo.attention.pipeline import trace
from qkdemo.labs.placement.comparisons import difference
from qkdemo.labs.placement.mistakes import pair_of
from qkdemo.messages import LANGUAGES
from qkdemo.notation import written
from qkdemo.tracks.asked import Asked, numeric
from qkdemo.tracks.quiz import QUIZZES, Question, Settings, marked, quiz, rows, text
from tests.strategies import settings_of
from tests.tracks.test_tracks import NAMES

FEW = settings(max_examples=12)  # each runs eight labs or more
STATES = settings_of(Settings)


def question(state: Settings, name: str) -> Question:
    return next(question for question in quiz(state) if question.name == name)


def number(text: str) -> float:
    """What `written` wrote, to its digits."""
    superscripts = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    return float(text.replace("\u202f", "").replace("−", "-").replace("·10", "e").translate(superscripts))


def close(one: float, other: float) -> bool:
    """To the three digits that most are written with."""
    return math.isclose(one, other, rel_tol=0.01)


@FEW
@given(STATES)
def test_a_quiz_has_eight_questions_with_one_right_answer_among_distinct_ones(state: Settings) -> None:
    questions = quiz(state)
    assert len(questions) == 8
    for each in questions:
        assert each.choices.count(each.answer) == 1
        assert 3 <= len(each.choices) <= 4
        as_written = [text(state.track, each, f"choice.{word}") for word in each.choices]
        assert len(set(as_written)) == len(as_written), as_written


@FEW
@given(STATES)
def test_every_sentence_is_filled_in(state: Settings) -> None:
    for each in quiz(state):
        for part in ("ask", "explain", *(f"choice.{word}" for word in each.choices)):
            filled = text(state.track, each, part)
            assert filled == filled.strip()
            assert not re.search(r"[{}]|\bnan\b|NaN|\bNone\b|  ", filled), filled


@FEW
@given(STATES)
def test_the_same_settings_ask_the_same_and_another_seed_asks_otherwise(state: Settings) -> None:
    quiz.cache_clear()
    first = quiz(state)
    quiz.cache_clear()
    assert quiz(state) == first
    other = quiz(state.but(seed=(state.seed + 1) % 10_000))
    assert sum(one.numbers != two.numbers for one, two in zip(first, other, strict=True)) >= 5


@FEW
@given(STATES)
def test_before_and_after_ask_the_same_questions_with_other_numbers(state: Settings) -> None:
    before, after = quiz(state.but(when="pre")), quiz(state.but(when="post"))
    assert [each.name for each in before] == [each.name for each in after]
    assert [each.form for each in before] == [each.form for each in after]
    assert all(one.numbers != two.numbers for one, two in zip(before, after, strict=True))


def test_after_the_track_a_question_draws_until_it_asks_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def coin(dice: random.Random) -> Asked:
        return Asked(("a", "b"), "a", {"side": str(dice.randint(0, 1))})

    monkeypatch.setitem(QUIZZES, "beginner", {"coin": coin})  # type: ignore[index]
    quiz.cache_clear()
    for seed in range(20):
        before, after = (quiz(Settings(when=when, seed=seed))[0].numbers["side"] for when in ("pre", "post"))
        assert {before, after} == {"0", "1"}
    quiz.cache_clear()


@pytest.mark.parametrize("track", QUIZZES)
def test_no_sentence_holds_a_number_that_was_not_computed(track: str) -> None:
    sentences = {key: sentence for key, sentence in LANGUAGES["en"].items() if key.startswith(f"quiz.{track}.")}
    assert len(sentences) >= 3 * 8
    for key, sentence in sentences.items():
        literal = (
            NAMES.sub("", re.sub(r"\{[^}]*\}", "", sentence))
            .replace("γ − 1", "")
            .replace("1 − tanh²", "")
            .replace("p(1 − p)", "")
        )
        assert not re.search(r"\d", literal), key


# ---- the answers, by another way


SEEDS = range(5)


@pytest.mark.parametrize("seed", SEEDS)
def test_plain_logits_grow_with_the_square_and_normalised_ones_do_not(seed: int) -> None:
    state = Settings(seed=seed)
    growth, twin = question(state, "growth"), question(state, "twin")
    assert close(number(growth.numbers["right"]), number(growth.numbers["k"]) ** 2)
    assert twin.numbers["right"] == twin.numbers["before" if twin.form == "normed" else "plain"]
    assert close(number(twin.numbers["plain"]), number(twin.numbers["k"]) ** 2 * number(twin.numbers["fresh_plain"]))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_key_that_wins_is_the_one_with_the_larger_length_times_cosine(seed: int) -> None:
    asked = question(Settings(seed=seed), "arrows")
    at = {key: (number(asked.numbers[f"length_{key}"]), number(asked.numbers[f"angle_{key}"])) for key in "ab"}
    plain = max(at, key=lambda key: at[key][0] * math.cos(math.radians(at[key][1])))
    assert asked.answer == f"{plain}_{min(at, key=lambda key: at[key][1])}"
    for key, (length, angle) in at.items():
        cosine, query = math.cos(math.radians(angle)), number(asked.numbers["query"])
        assert close(number(asked.numbers[f"plain_{key}"]), query * length * cosine)
        assert close(number(asked.numbers[f"normed_{key}"]), cosine)


def test_no_two_keys_nearly_tie() -> None:
    for seed in range(300):
        asked = QUIZZES["beginner"]["arrows"](random.Random(seed)).numbers
        for side in ("plain", "normed"):
            smaller, larger = sorted(number(asked[f"{side}_{key}"]) for key in "ab")
            assert smaller < 0.905 * larger, asked  # nine tenths at most, as written


@pytest.mark.parametrize("seed", SEEDS)
def test_float16_overflows_at_the_root_of_what_is_left_of_its_range(seed: int) -> None:
    asked = question(Settings(seed=seed), "overflow")
    assert close(number(asked.numbers["right"]), math.sqrt(65504 / number(asked.numbers["raw"])))


@pytest.mark.parametrize("seed", SEEDS)
def test_what_the_beginner_is_told_of_the_norm_holds_in_every_draw(seed: int) -> None:
    state = Settings(seed=seed)
    stuck, ceiling, sure = (question(state, name) for name in ("stuck", "ceiling", "confidence"))
    answers = {"plain_grown": "weaker", "plain_shrunk": "stronger", "normed_grown": "same", "normed_shrunk": "same"}
    assert stuck.answer == answers[stuck.form]
    assert (number(stuck.numbers["ratio"]) == 1) == stuck.form.startswith("normed")
    assert number(ceiling.numbers["largest"]) <= number(ceiling.numbers["g"]) == number(ceiling.numbers["right"])
    assert sure.answer == {"longer": "plain", "closer": "both", "turned": "neither", "both": "normed"}[sure.form]
    assert (sure.numbers["normed_before"] == sure.numbers["normed_after"]) == (sure.form in ("longer", "turned"))


@pytest.mark.parametrize("seed", SEEDS)
def test_dividing_after_the_product_gives_nothing_back(seed: int) -> None:
    asked = question(Settings(track="developer", seed=seed), "half")
    assert all(number(asked.numbers[word]) <= number(asked.numbers["n"]) for word in asked.choices)  # none is absurd
    assert 0 <= number(asked.numbers["too_large"]) < number(asked.numbers["right"]) <= number(asked.numbers["n"])


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_and_lengths_follow_their_formulas(seed: int) -> None:
    state = Settings(track="developer", seed=seed)
    kept, small, length = (question(state, name).numbers for name in ("kept_scale", "small_g", "length_on"))
    assert close(number(kept["right"]), number(kept["g"]) / math.sqrt(number(kept["d"])))
    g, n = number(small["g"]), number(small["n"])
    assert close(number(small["right"]), 100 * math.exp(g) / (math.exp(g) + (n - 1) * math.exp(-g)))
    assert close(number(length["right"]), math.sqrt(number(length["d"])))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_cost_of_two_norms_is_counted_anew(seed: int) -> None:
    asked = question(Settings(track="developer", seed=seed), "cost").numbers
    n, heads, d, width = (number(asked[name]) for name in ("n", "heads", "d", "width"))
    layer = 8 * n * width * heads * d + 4 * heads * d * n * (n + 1) / 2
    assert math.isclose(
        number(asked["right"]), 100 * 8 * n * heads * d / layer, rel_tol=0.06
    )  # written with two digits


@pytest.mark.parametrize("seed", SEEDS)
def test_a_mistake_that_fresh_weights_hide_shows_with_trained_ones(seed: int) -> None:
    hidden = question(Settings(track="developer", seed=seed), "hidden_port")
    worst = question(Settings(track="developer", seed=seed), "worst_port")
    hides = ("rotary_first", "q_gain_on_k", "gain_not_permuted")
    assert (hidden.answer in hides) == (hidden.form == "hidden")
    assert number(hidden.numbers["trained"]) > 1
    first, following = (number(worst.numbers[name]) for name in ("first", "next"))
    assert max(first, following) > 1.2 * min(first, following)
    assert (first > following) == (worst.form == "most")


def test_the_worst_and_the_mildest_mistake_are_those_of_other_draws_and_widths_too() -> None:
    """Who is asked sees neither: on one draw of 32 channels in three the other order of norm and rotary is milder."""

    def off(mistake: str, spread: float, d_head: int, seed: int) -> float:
        left, right = pair_of(mistake)
        recipe = BlockRecipe(d_model=64, n_heads=2, n_kv_heads=2, d_head=d_head, n_keys=16, gain_spread=spread)
        block = draw_block(dataclasses.replace(recipe, seed=seed, offset_stored=left.stored == "one_plus"))
        return difference(trace(left, block), trace(right, block)).logits

    draws = [(d_head, seed) for d_head in (32, 64) for seed in range(100, 105)]
    for seed in range(25):
        asked = QUIZZES["developer"]["worst_port"](random.Random(seed))
        extreme, spread = max if asked.form == "most" else min, number(asked.numbers["spread"])
        sizes = [{name: off(name, spread, *drawn) for name in asked.choices} for drawn in draws]
        agreeing = sum(extreme(size, key=size.__getitem__) == asked.answer for size in sizes)
        assert agreeing >= 0.8 * len(draws), (seed, asked)


def test_only_a_gain_that_differs_between_channels_is_seen_when_a_key_is_normalised_again() -> None:
    """With one number per head a second norm takes off what the first had put on: the questions must say “channel”."""
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 5, 16)))

    def normed(k: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
        return k / k.square().mean(-1, keepdim=True).sqrt() * gain

    per_head, per_channel = torch.tensor([0.5, 1.5])[:, None, None], torch.linspace(0.5, 1.5, 16)
    for gain, same in ((per_head, True), (per_channel, False)):
        once = normed(x, gain)
        assert torch.allclose(normed(once, gain), once) == same
    for key in ("quiz.developer.cached.ask.wrong", "quiz.developer.cached.ask.right", "stop.developer.again.question"):
        assert re.search(r"gain (for each head and|per) channel", LANGUAGES["en"][key]), key


@pytest.mark.parametrize("seed", SEEDS)
def test_the_researchers_numbers_follow_from_what_is_asked(seed: int) -> None:
    state = Settings(track="researcher", seed=seed)
    named = {each.name: each.numbers for each in quiz(state)}
    slope = named["jacobian"]
    top, rest = number(slope["top"]), number(slope["rest"])
    assert close(number(slope["right"]), top * rest)
    rotary = named["rotary_bound"]
    size, d = number(rotary["size"]), number(rotary["d"])
    assert close(number(rotary["right"]), math.sqrt(d) * size**2)
    assert close(number(rotary["naive"]), math.sqrt(d) * size)
    assert number(rotary["reached"]) > 1.5 * number(rotary["naive"])
    full = named["full_width"]
    assert close(number(full["right"]), number(full["heads"]) * math.sqrt(number(full["d"])))
    spectral = named["spectral"]
    assert close(number(spectral["right"]), number(spectral["a"]) * number(spectral["b"]))
    cap = named["softcap_slope"]
    step = 1e-4 * number(cap["logit"])
    at, beyond = (
        number(cap["cap"]) * math.tanh((number(cap["logit"]) + x) / number(cap["cap"])) for x in (-step, step)
    )
    assert close(number(cap["right"]), (beyond - at) / (2 * step))
    bits = named["bfloat_step"]
    assert number(bits["right"]) == 2.0 ** (math.floor(math.log2(number(bits["logit"]))) - 7)  # seven bits of mantissa
    latent = named["latent"]
    assert number(latent["right"]) == number(latent["heads"])


@pytest.mark.parametrize("seed", SEEDS)
def test_no_row_under_the_bound_has_less_entropy_than_the_answer(seed: int) -> None:
    asked = question(Settings(track="researcher", seed=seed), "entropy_floor").numbers
    n, bound = round(number(asked["n"])), math.sqrt(number(asked["d"]))

    def entropy(high: int) -> float:
        """Of a row with so many keys at the bound and the rest at minus the bound: the vertices of the box."""
        p = np.concatenate([np.full(high, 1.0), np.full(n - high, math.exp(-2 * bound))])
        p /= p.sum()
        return float(-(p * np.log(p)).sum())

    least = min(range(1, min(n, 400)), key=entropy)
    assert close(number(asked["right"]), entropy(least))
    assert number(asked["high"]) == least


# ---- marking


def test_marking_counts_what_is_right_and_takes_a_strange_word_for_no_answer() -> None:
    state = Settings()
    answers: list[str | None] = [each.answer for each in quiz(state)]
    assert marked(state, answers).score == 8
    wrong = next(word for word in quiz(state)[0].choices if word != quiz(state)[0].answer)
    result = marked(state, [wrong, None, "<script>", *answers[3:]])
    assert result.answers[:3] == (wrong, None, None)
    assert result.right == (False, False, False, True, True, True, True, True)


def test_what_is_taken_along_says_every_answer_in_words() -> None:
    state = Settings(track="developer", when="post", seed=7)
    taken = rows(marked(state, [None, *(each.answer for each in quiz(state)[1:])]))
    assert [row["right"] for row in taken] == [False, *[True] * 7]
    assert taken[0]["answered"] == ""
    assert all(row["answered"] == row["answer"] for row in taken[1:])
    assert {(row["track"], row["when"], row["seed"]) for row in taken} == {("developer", "post", 7)}


def test_wrong_numbers_that_are_close_to_a_better_choice_are_left_out() -> None:
    dice = random.Random(0)
    asked = numeric(dice, 10, {"near": 11, "far": 20, "same_again": 20.0001, "farther": 40}, {})
    assert asked.choices == ("right", "far", "farther")
    assert asked.numbers["right"] == written(10)
    assert numeric(dice, 0, {"also": 0, "one": 1, "endless": math.inf, "too": math.inf}, {}).choices == (
        "right",
        "one",
        "endless",
    )
    with pytest.raises(ValueError, match="only 2"):
        numeric(dice, 10, {"near": 11, "far": 20}, {})
    with pytest.raises(ValueError, match="undefined"):
        numeric(dice, math.nan, {"near": 11, "far": 20}, {})


def test_the_right_number_is_of_any_size_among_the_choices() -> None:
    others = {"a": 1, "b": 2, "c": 4, "d": 20, "e": 40, "f": 80}
    ranks = [
        sorted(map(number, asked.numbers.values())).index(10.0)
        for asked in (numeric(random.Random(seed), 10, others, {}) for seed in range(400))
    ]
    assert all(70 < ranks.count(rank) < 130 for rank in range(4))


def test_a_question_asked_in_several_ways_has_the_words_of_each() -> None:
    asked = Question("stuck", {"k": "8", "ratio": "0.1", "inverse": "10"}, ("weaker",), "weaker", "plain_grown")
    assert "become 8 times as large" in text("beginner", asked, "ask")
    assert text("beginner", asked, "explain").startswith("10 times less")
