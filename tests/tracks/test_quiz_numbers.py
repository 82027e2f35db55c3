"""Who computes with the numbers that a question prints finds its answer, and the wrong ones that mistakes lead to."""

import math
import random
from collections.abc import Callable, Mapping

import pytest

from qkdemo.notation import written
from qkdemo.tracks.asked import digits_for, printed
from qkdemo.tracks.quiz import QUIZZES, Question, text
from tests.tracks.test_quiz import number

SEEDS = range(120)
Read = Mapping[str, float]


def entropy(n: float, high: float, low: float) -> float:
    """Of one key at `high` and all others at `low`, in nats."""
    others = (n - 1) * math.exp(low - high)
    return math.log1p(others) + others * (high - low) / (1 + others)


def entropy_of(n: float, high: float, bound: float) -> float:
    """Of a row with so many keys at the bound and the others at minus the bound, in nats."""
    p, q = 1 / (high + (n - high) * math.exp(-2 * bound)), math.exp(-2 * bound)
    return -high * p * math.log(p) - (n - high) * p * q * math.log(p * q)


def entropy_floor(x: Read) -> float:
    return min(entropy_of(x["n"], high, x["bound"]) for high in range(1, min(int(x["n"]), 60)))


# What each number follows from: of every question whose answer is computed from what it prints.
RIGHT: dict[tuple[str, str], Callable[[Read], float]] = {
    ("beginner", "growth"): lambda x: x["k"] ** 2,
    ("beginner", "overflow"): lambda x: math.sqrt(x["largest"] / x["raw"]),
    ("beginner", "twin"): lambda x: x["before"] if x["right"] < x["plain"] else x["fresh_plain"] * x["k"] ** 2,
    ("beginner", "ceiling"): lambda x: x["g"],
    ("developer", "kept_scale"): lambda x: x["g"] / math.sqrt(x["d"]),
    ("developer", "small_g"): lambda x: 100 / (1 + (x["n"] - 1) * math.exp(-2 * x["g"])),
    ("developer", "length_on"): lambda x: math.sqrt(x["d"]),
    ("developer", "cost"): lambda x: (
        100 * 8 * x["n"] / (8 * x["n"] * x["width"] + 2 * x["n"] * (x["n"] + 1))  # heads and head width cancel
    ),
    ("researcher", "jacobian"): lambda x: x["top"] * (1 - x["top"]),
    ("researcher", "rotary_bound"): lambda x: math.sqrt(x["d"]) * x["size"] ** 2,
    ("researcher", "entropy_floor"): entropy_floor,
    ("researcher", "full_width"): lambda x: x["heads"] * math.sqrt(x["d"]),
    ("researcher", "spectral"): lambda x: x["a"] * x["b"],
    ("researcher", "softcap_slope"): lambda x: 1 - (x["capped"] / x["cap"]) ** 2,
    ("researcher", "bfloat_step"): lambda x: 2.0 ** (math.floor(math.log2(x["logit"])) - 7),
    ("researcher", "latent"): lambda x: x["heads"],
}
# The same by another way, and what common mistakes make of the same numbers.
OTHERS: dict[tuple[str, str], dict[str, Callable[[Read], float]]] = {
    ("beginner", "growth"): {"right": lambda x: x["after"] / x["before"], "both": lambda x: 2 * x["k"]},
    ("beginner", "winner"): {"same": lambda x: x["fresh"], "most": lambda x: x["n"]},
    ("beginner", "overflow"): {
        "straight": lambda x: x["largest"] / x["raw"],
        "half": lambda x: x["largest"] / x["raw"] / 2,
    },
    ("beginner", "twin"): {
        "square": lambda x: x["before"] * x["k"] ** 2,
        "once": lambda x: x["before"] * x["k"],
        "shrunk": lambda x: x["before"] / x["k"],
        "plain": lambda x: x["fresh_plain"] * x["k"] ** 2,
        "plain_cube": lambda x: x["fresh_plain"] * x["k"] ** 3,
        "normed": lambda x: x["before"],
    },
    ("developer", "kept_scale"): {
        "right": lambda x: x["g"] / x["root"],
        "rms": lambda x: x["root"],
        "grown": lambda x: x["g"] * math.sqrt(x["d"]),
    },
    ("developer", "length_on"): {"inverse": lambda x: 1 / math.sqrt(x["d"])},
    ("researcher", "jacobian"): {
        "right": lambda x: x["top"] * x["rest"],
        "weight": lambda x: x["top"],
        "square": lambda x: x["top"] ** 2,
    },
    ("researcher", "entropy_floor"): {
        "one_sided": lambda x: entropy(x["n"], x["bound"], 0),
        "one_key": lambda x: entropy(x["n"], x["bound"], -x["bound"]),
    },
    ("researcher", "spectral"): {"right": lambda x: x["after"] / x["before"]},
    ("researcher", "softcap_slope"): {"ratio": lambda x: x["capped"] / x["logit"]},
}


# With how many digits the choices of a question are written; four, unless it says otherwise.
DIGITS = {"winner": 3, "overflow": 3, "small_g": 3, "length_on": 3, "jacobian": 3, "entropy_floor": 3} | {
    "softcap_slope": 3,
    "cost": 2,
    "latent": 9,
}


def rounds_to(value: float, text: str, digits: int) -> bool:
    """Whether `value` is written as `text`; a tie may go either way."""
    return any(written(value * (1 + slip), digits) == text for slip in (-1e-12, 0, 1e-12))


def test_every_question_with_numbers_to_choose_from_is_held_against_what_it_prints() -> None:
    """The spread of attention, and what float16 loses, are measured: no number that is printed gives them."""
    numeric = {
        (track, name)
        for track, questions in QUIZZES.items()
        for name, make in questions.items()
        if "right" in make(random.Random(0)).numbers
    }
    assert numeric == {*RIGHT, ("beginner", "winner"), ("developer", "half")}


@pytest.mark.parametrize(("track", "name"), [*dict.fromkeys([*RIGHT, *OTHERS])])
def test_a_number_computed_from_what_is_printed_is_the_one_that_stands_there(track: str, name: str) -> None:
    derived = [
        *([("right", RIGHT[track, name])] if (track, name) in RIGHT else []),
        *OTHERS.get((track, name), {}).items(),
    ]
    for seed in SEEDS:
        numbers = QUIZZES[track][name](random.Random(seed)).numbers
        read = {word: number(text) for word, text in numbers.items() if text != "∞"}
        for word, derive in derived:
            if word in numbers:
                assert rounds_to(derive(read), numbers[word], DIGITS.get(name, 4)), (
                    seed,
                    word,
                    derive(read),
                    dict(numbers),
                )


@pytest.mark.parametrize(
    ("track", "name", "reached", "bound"),
    [("researcher", "rotary_bound", "reached", "right"), ("beginner", "ceiling", "largest", "right")],
)
def test_no_logit_is_printed_above_the_bound_that_stands_beside_it(
    track: str, name: str, reached: str, bound: str
) -> None:
    """The one must not be written with more digits than the other: 282.84 would seem to pass 282.8."""
    for seed in SEEDS:
        numbers = QUIZZES[track][name](random.Random(seed)).numbers
        assert number(numbers[reached]) <= number(numbers[bound]), seed


@pytest.mark.parametrize("form", ["longer", "closer", "turned", "both"])
def test_the_keys_that_a_question_describes_have_the_shares_that_it_prints(form: str) -> None:
    made = (QUIZZES["beginner"]["confidence"](random.Random(seed)) for seed in SEEDS)
    asked = next(each for each in made if each.form == form)
    question = Question("confidence", asked.numbers, asked.choices, asked.answer, form)
    told = text("beginner", question, "ask")
    read = {word: number(shown) for word, shown in asked.numbers.items()}
    for word in ("size", "lead", "rival", "plain_before", "normed_before"):
        assert f" {asked.numbers[word]}" in told
    angles = (read["lead"], -read["rival"], 150, 200)  # the last two are the far ones
    for side, factor in (("plain", read["size"] ** 2 / math.sqrt(2)), ("normed", 4.0)):
        terms = [math.exp(factor * math.cos(math.radians(angle))) for angle in angles]
        assert rounds_to(100 * terms[0] / sum(terms), asked.numbers[f"{side}_before"], 3)


def test_as_many_digits_are_printed_as_the_answer_needs_and_no_more() -> None:
    raw, largest = 17.1384, 65504.0
    digits = digits_for(lambda shown: [written(math.sqrt(largest / shown(raw)), 3)], 3)
    assert digits == 4
    assert written(math.sqrt(largest / printed(raw, 3)), 3) == "61.9"
    assert written(math.sqrt(largest / printed(raw, 4)), 3) == written(math.sqrt(largest / raw), 3) == "61.8"
