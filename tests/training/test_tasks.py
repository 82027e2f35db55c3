"""The tasks: pure batches, whose counted symbols can be known from what stands before them."""

import math
from pydoc_data.topics import topics

import numpy as np
import pytest

from qkdemo.messages import say
from qkdemo.training.tasks import TASKS, Batch, TaskWord, batch_of, text_digest

LENGTHS = (8, 16, 32, 64)


def drawn(word: TaskWord, n_keys: int = 32, batch: int = 64, seed: int = 3, step: int = 5) -> Batch:
    return batch_of(TASKS[word], n_keys, batch, seed, step)


@pytest.mark.parametrize("word", TASKS)
def test_a_batch_is_a_pure_function_of_its_arguments(word: TaskWord) -> None:
    once = drawn(word)
    drawn(word, seed=9)
    again = drawn(word)
    for name in ("tokens", "targets", "counted"):
        assert np.array_equal(getattr(once, name), getattr(again, name))
    assert not np.array_equal(once.tokens, drawn(word, step=6).tokens)
    assert not np.array_equal(once.tokens, drawn(word, seed=4).tokens)


@pytest.mark.parametrize("n_keys", LENGTHS)
@pytest.mark.parametrize("word", TASKS)
def test_a_target_is_the_next_token_and_some_of_every_batch_count(word: TaskWord, n_keys: int) -> None:
    batch = drawn(word, n_keys)
    assert batch.tokens.shape == batch.targets.shape == batch.counted.shape == (64, n_keys)
    assert np.array_equal(batch.tokens[:, 1:], batch.targets[:, :-1])
    assert batch.tokens.min() >= 0
    assert batch.targets.max() < TASKS[word].symbols()
    assert batch.counted.any(axis=1).all()
    assert not batch.counted[:, : TASKS[word].first_counted(n_keys)].any()


@pytest.mark.parametrize("n_keys", LENGTHS)
def test_a_copy_repeats_what_stood_half_a_sequence_before(n_keys: int) -> None:
    batch = drawn("copy", n_keys)
    back = n_keys // 2 + 1
    for row, at in np.argwhere(batch.counted):
        assert batch.targets[row, at] == batch.tokens[row, at + 1 - back]
    assert batch.counted.sum() == 64 * (n_keys - back)  # 15 positions of 32


def test_a_noisy_copy_replaces_one_symbol_in_ten() -> None:
    batch = drawn("noisy_copy", batch=2000)
    rows, at = np.nonzero(batch.counted)
    wrong = batch.targets[rows, at] != batch.tokens[rows, at - 16]
    assert wrong.mean() == pytest.approx(0.1, abs=0.01)
    p = np.full(16, 0.1 / 15)
    p[0] = 0.9
    assert TASKS["noisy_copy"].floor == pytest.approx(-(p * np.log(p)).sum())


def test_induction_repeats_with_a_period_of_its_own() -> None:
    batch = drawn("induction")
    whole = np.concatenate([batch.tokens, batch.targets[:, -1:]], axis=1)
    periods = set()
    for row in range(64):
        period = int(batch.counted[row].argmax())
        assert 8 <= period <= 16
        assert np.array_equal(whole[row, period:], whole[row, :-period])
        periods.add(period)
    assert len(periods) > 5


@pytest.mark.parametrize("n_keys", LENGTHS)
def test_of_induction_the_least_possible_loss_is_what_the_page_says(n_keys: int) -> None:
    """Of one who holds every period that has begun for equally likely, and each that does not fit for impossible.

    That it has begun is known: only from there on losses count.
    """
    batch = drawn("induction", n_keys, batch=20_000)
    text = np.concatenate([batch.tokens, batch.targets[:, -1:]], axis=1)
    periods = np.arange(n_keys // 4, n_keys // 2 + 1)
    still, loss = np.ones((len(text), len(periods))), np.zeros(text.shape)
    for at in range(text.shape[1]):
        fits = np.stack([text[:, at] == text[:, at - p] if at >= p else np.full(len(text), 1 / 16) for p in periods], 1)
        if at > periods[0]:
            begun = still * (periods < at)  # the first symbol that is repeated does not count yet
            with np.errstate(divide="ignore", invalid="ignore"):
                loss[:, at] = -np.log((begun * fits).sum(1) / begun.sum(1))
        still *= fits
    least = loss[:, 1:][batch.counted].mean()
    assert 1e-4 < least < 0.002
    assert "In “induction” the least possible loss, less than 0.002 nats, is counted as 0." in say("how.training")


@pytest.mark.parametrize("n_keys", LENGTHS)
def test_recall_asks_for_values_that_it_has_told(n_keys: int) -> None:
    batch = drawn("recall", n_keys)
    for row in range(64):
        told = dict(zip(batch.tokens[row, : n_keys // 2 : 2], batch.tokens[row, 1 : n_keys // 2 : 2], strict=True))
        assert len(told) == n_keys // 4  # keys do not repeat
        for at in np.flatnonzero(batch.counted[row]):
            assert batch.targets[row, at] == told[batch.tokens[row, at]]


def test_addition_adds() -> None:
    batch = drawn("addition")
    for row, at in np.argwhere(batch.counted):
        assert batch.targets[row, at] == (batch.tokens[row, at - 1] + batch.tokens[row, at]) % 23


def test_text_is_windows_of_the_help_topics() -> None:
    letters = sorted(set(_text()))
    batch = drawn("text")
    assert "".join(letters[symbol] for symbol in batch.tokens[0]) in _text()
    assert batch.counted.all()
    assert TASKS["text"].floor is None
    share = np.array([_text().count(letter) for letter in letters]) / len(_text())
    assert TASKS["text"].chance() == pytest.approx(-(share * np.log(share)).sum())
    assert len(text_digest()) == 16


def _text() -> str:
    return "\n".join(topics[name] for name in sorted(topics)).encode("ascii", "replace").decode()


def test_chance_is_the_logarithm_of_the_symbols_that_can_be_right() -> None:
    assert TASKS["copy"].chance() == pytest.approx(math.log(16)) == pytest.approx(2.773, abs=1e-3)
    assert TASKS["addition"].chance() == pytest.approx(3.135, abs=1e-3)
    assert TASKS["recall"].chance() == pytest.approx(math.log(16))  # a value, and not one of the 16 keys
