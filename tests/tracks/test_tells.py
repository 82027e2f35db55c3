"""No rule finds the right answer without knowing it: not a place, nor a length, nor the size of a number, nor what is
unlike the others, nor what the question says already."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise

import pytest

from qkdemo.tracks.catalogue import GUIDED, TRACKS, text
from qkdemo.tracks.quiz import QUIZZES, Question, Settings, quiz
from qkdemo.tracks.quiz import text as quiz_text
from qkdemo.tracks.stop import Choose
from tests.tracks.finding import evidence_of, number

SEEDS = range(200)
BY_MUCH = 0.12  # above chance, over the questions of a quiz
IN_ONE = 0.25  # above chance, in one of them

Choices = Sequence[tuple[str, float | None]]  # as they are written, and as numbers if they are that
Rule = Callable[[Choices, str], list[int]]  # of the choices and the question: the places among which it would guess


def _extreme(keys: Sequence[float], best: float) -> list[int]:
    return [at for at, key in enumerate(keys) if key == best]


def _by_length(pick: Callable[[Sequence[float]], float]) -> Rule:
    def rule(choices: Choices, question: str) -> list[int]:
        lengths = [float(len(words)) for words, _ in choices]
        return _extreme(lengths, pick(lengths))

    return rule


def _by_size(rank: int) -> Rule:
    def rule(choices: Choices, question: str) -> list[int]:
        sizes = [size for _, size in choices if size is not None]
        return _extreme(sizes, sorted(sizes)[min(rank, len(sizes) - 1)]) if len(sizes) == len(choices) else []

    return rule


def _at(place: int) -> Rule:
    return lambda choices, question: [min(place, len(choices) - 1)]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _by_likeness(pick: Callable[[Sequence[float]], float]) -> Rule:
    """By how much of a choice the others say too: of numbers how near the next one is, of words how many are shared."""

    def rule(choices: Choices, question: str) -> list[int]:
        sizes = [size for _, size in choices]
        likeness = []
        for at, (words, size) in enumerate(choices):
            others = [choices[other] for other in range(len(choices)) if other != at]
            if None not in sizes and size:
                gaps = [abs(math.log(abs(size / other))) if other else math.inf for _, other in others]
                likeness.append(-round(min(gaps), 6))
            else:
                own = _words(words)
                likeness.append(sum(len(own & _words(other)) for other, _ in others) / max(len(own), 1))
        return _extreme(likeness, pick(likeness))

    return rule


def _in_question(choices: Choices, question: str) -> list[int]:
    """Those of the numbers that the question names."""
    named = {
        number(word.rstrip(".")) for word in re.findall(r"[\d.\u202f]+(?:·10[⁻⁰¹²³⁴-⁹]+)?", question) if word.strip(".")
    }
    found = [at for at, (_, size) in enumerate(choices) if size is not None and size in named]
    return found or list(range(len(choices)))


RULES: dict[str, Rule] = {
    **{f"choice {place + 1}": _at(place) for place in range(4)},
    "the longest": _by_length(max),
    "the shortest": _by_length(min),
    **{f"number {rank + 1} by size": _by_size(rank) for rank in range(4)},
    "the odd one out": _by_likeness(min),
    "the one most like the others": _by_likeness(max),
    "a number of the question": _in_question,
}


def _choices(track: str, question: Question) -> list[tuple[str, float | None]]:
    def size(word: str) -> float | None:
        return number(question.numbers[word]) if question.answer == "right" else None

    return [(quiz_text(track, question, f"choice.{word}"), size(word)) for word in question.choices]


@cache
def _quizzes(track: str) -> list[tuple[Question, ...]]:
    """Its questions at every seed."""
    return [quiz.__wrapped__(Settings(track=track, seed=seed)) for seed in SEEDS]  # type: ignore[arg-type]


@cache
def _hits(track: str) -> dict[str, dict[str, list[float]]]:
    """Rule → question → how far above chance it was, seed by seed."""
    found: dict[str, dict[str, list[float]]] = {rule: defaultdict(list) for rule in RULES}
    for questions in _quizzes(track):
        for question in questions:
            choices, right = _choices(track, question), question.choices.index(question.answer)
            asked = quiz_text(track, question, "ask")
            for name, rule in RULES.items():
                if guessed := rule(choices, asked):
                    chance = 1 / len(choices)
                    found[name][question.name].append((right in guessed) / len(guessed) - chance)
    return found


@pytest.mark.parametrize("track", QUIZZES)
@pytest.mark.parametrize("rule", RULES)
def test_no_rule_beats_chance_by_much_in_a_quiz(track: str, rule: str) -> None:
    by_question = _hits(track)[rule]
    means = {name: sum(above) / len(above) for name, above in by_question.items()}
    assert max(means.values()) < IN_ONE, means
    assert sum(means.values()) / len(means) < BY_MUCH, means


@pytest.mark.parametrize("track", QUIZZES)
def test_no_word_is_right_in_most_seeds(track: str) -> None:
    """Of a question whose choices are words, no one answer can be learnt by heart."""
    answers: dict[str, Counter[str]] = defaultdict(Counter)
    for questions in _quizzes(track):
        for question in questions:
            if question.answer != "right":
                answers[question.name][question.answer] += 1
    for name, counts in answers.items():
        assert max(counts.values()) < 0.5 * len(SEEDS), (name, counts)


@pytest.mark.parametrize("track", GUIDED)
def test_no_rule_finds_the_answers_of_a_track(track: str) -> None:
    """The stops are few and fixed: a rule may be right once more than chance, and a half."""
    stops = [stop for stop in TRACKS[track] if isinstance(stop.ask, Choose)]
    for name in (name for name in RULES if "number" not in name):
        above = 0.0
        for stop in stops:
            assert isinstance(stop.ask, Choose)
            found = evidence_of(stop)
            choices = [(text(track, stop, f"choice.{word}", found.numbers), None) for word in stop.ask.words]
            asked = text(track, stop, "question", found.numbers)
            guessed, right = RULES[name](choices, asked), stop.ask.words.index(str(found.answer))
            above += (right in guessed) / len(guessed) - 1 / len(choices) if guessed else 0
        assert above < 0.2 * len(stops), (name, above)


def test_true_false_and_it_depends_are_a_third_each_of_the_claims() -> None:
    verdicts = Counter(evidence_of(stop).answer for stop in TRACKS["claims"])
    for word in ("true", "false", "depends"):
        assert 0.28 < verdicts[word] / len(TRACKS["claims"]) < 0.38, verdicts


def test_the_words_of_a_claim_do_not_give_its_verdict() -> None:
    """“Can” and “always” stand in true and in false statements; none of them depends, as the rule on the page says."""
    by_word: dict[str, Counter[object]] = {"can": Counter(), "always": Counter()}
    for stop in TRACKS["claims"]:
        words = text("claims", stop, "title").lower().replace(",", "").split()
        for word, others in (("can", {"can", "cannot"}), ("always", {"always", "every"})):
            if others & set(words):
                by_word[word][evidence_of(stop).answer] += 1
    for word, verdicts in by_word.items():
        assert verdicts["depends"] == 0, (word, verdicts)
        assert verdicts["true"] >= 2 <= verdicts["false"], (word, verdicts)


def test_verdicts_do_not_follow_from_the_one_before() -> None:
    verdicts = [evidence_of(stop).answer for stop in TRACKS["claims"]]
    same = sum(one == other for one, other in pairwise(verdicts))
    assert 0.15 < same / (len(verdicts) - 1) < 0.5
