"""Numbers behind claims and stops, worked out again with NumPy alone."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from qkdemo.diagnose import samples
from qkdemo.facts import models as facts
from qkdemo.facts.models import MODELS
from qkdemo.facts.softcap import READINGS
from qkdemo.labs import cache, models
from qkdemo.labs import training as twins
from qkdemo.labs.models import lab as models_lab
from qkdemo.messages import LANGUAGES
from qkdemo.runs.kept.shipped import shipped
from qkdemo.tracks.catalogue import TRACKS, evidence
from qkdemo.tracks.claims import on_models as claims_on_models
from qkdemo.tracks.claims.verdict import VERDICTS
from qkdemo.tracks.prose import without_targets
from qkdemo.tracks.stop import Evidence, Stop
from qkdemo.training.telemetry import CURVES
from tests.tracks.finding import number


def found(track: str, name: str) -> Evidence:
    return evidence(stop(track, name))


def stop(track: str, name: str) -> Stop:
    return next(stop for stop in TRACKS[track] if stop.name == name)


def drawn(keys: int = 16, d: int = 64, mean: float = 0.0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((keys, d)) + mean, rng.standard_normal((keys, d)) + mean


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    terms = np.exp(logits - logits.max(-1, keepdims=True))
    weights: NDArray[np.float64] = terms / terms.sum(-1, keepdims=True)
    return weights


def entropy(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    positive = np.where(weights > 0, weights, 1)
    sums: NDArray[np.float64] = -(positive * np.log(positive)).sum(-1)
    return sums


def unit(x: NDArray[np.float64]) -> NDArray[np.float64]:
    scaled: NDArray[np.float64] = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return scaled


def test_what_a_claim_names_as_its_source_is_linked_and_nothing_else_is() -> None:
    known = {model.link for model in MODELS} | {reading.link for reading in READINGS}
    for stop in TRACKS["claims"]:
        if stop.name == "always_helps":  # a recorded run
            continue
        sources = evidence(stop).sources
        assert set(sources.values()) <= known
        assert bool(sources) == (stop.lab is models.LAB), stop.name
    rows = {model.model: model.link for model in MODELS}
    assert found("claims", "gemma_2").sources == {name: rows[name] for name in ("Gemma 2", "Gemma 3", "Grok-1")}
    for name in ("every_model", "full_width"):
        sources, names = found("claims", name).sources, found("claims", name).numbers["names"]
        assert ", ".join(sources) == names
        assert all(rows[model] == link for model, link in sources.items())
    fused = found("claims", "fused")
    told = " ".join(fused.numbers.values())
    assert set(fused.sources.values()) == {reading.link for reading in READINGS if reading.version in told}


def test_models_that_normalise_v_as_well_normalise_q_and_k() -> None:
    """A norm on the input of the projections, as in BLT, is none of q, k or v."""
    rows = {model.model: model for model in MODELS if model.kind == "model"}
    for name in found("developer", "values").numbers["normalised_values"].split(", "):
        assert rows[name].values
        assert rows[name].qk_norm == "yes"
        assert rows[name].place != "input"


def test_every_verdict_is_given_somewhere() -> None:
    assert {evidence(stop).answer for stop in TRACKS["claims"] if stop.name != "always_helps"} == set(VERDICTS.words)


def test_how_far_two_orders_differ_is_said_of_the_positions_that_were_tried() -> None:
    """Norm and rotary positions by complex numbers: at other positions the logits differ by more."""
    claim = found("claims", "commute")
    vectors, gains = np.random.default_rng(0).standard_normal((2, 64)), np.random.default_rng(10_000)
    (q, k), (gain_q, gain_k) = vectors, gains.uniform(0.5, 1.5, (2, 64))

    def turned(x: NDArray[np.float64], at: NDArray[np.int64]) -> NDArray[np.float64]:
        pairs = (x[:32] + 1j * x[32:]) * np.exp(1j * np.outer(at, 10000.0 ** (-np.arange(32) / 32)))
        return np.concatenate([pairs.real, pairs.imag], -1)

    def rms(x: NDArray[np.float64]) -> NDArray[np.float64]:
        normed: NDArray[np.float64] = x / np.sqrt((x**2).mean() + 1e-6)
        return normed

    at = np.arange(5001)
    first = (turned(rms(q) * gain_q, at + 3) * turned(rms(k) * gain_k, at)).sum(-1) / 8
    last = (turned(rms(q), at + 3) * gain_q * turned(rms(k), at) * gain_k).sum(-1) / 8
    assert number(claim.numbers["norm_first"]) == pytest.approx(first[50], rel=1e-3)
    assert number(claim.numbers["rotary_first"]) == pytest.approx(last[50], rel=1e-3)
    assert number(claim.numbers["apart"]) < 100 * np.abs(first - last).max() / np.abs([first, last]).max()
    told = without_targets(LANGUAGES["en"]["stop.claims.commute.explain"])
    assert "differ by {alike} at most where it was tried" in told
    assert "differ there by up to {apart} % of the largest logit; elsewhere it can be more" in told


def test_a_longer_query_sharpens_its_row_in_plain_attention_alone() -> None:
    q, k = drawn()
    numbers = found("claims", "confidence").numbers
    for factor, name in ((1, "before"), (4, "after")):
        plain = softmax(factor * q[5] @ k.T / 8)
        assert number(numbers[f"plain_{name}"]) == pytest.approx(100 * plain.max(), rel=1e-3)
        row = softmax(10 * unit(factor * q[5]) @ unit(k).T)
        assert number(numbers[f"twin_{name}"]) == pytest.approx(100 * row.max(), rel=1e-3)


def test_logits_of_one_size_are_collapsed_in_one_state_and_open_in_another() -> None:
    numbers = found("claims", "collapsed").numbers
    q, k = drawn()
    collapsed = 64 * q @ k.T / 8
    q, k = drawn(d=256, mean=3)
    open_ = q @ k.T / 16
    for logits, size, share in ((collapsed, "large", "collapsed"), (open_, "open_large", "open")):
        assert number(numbers[size]) == pytest.approx(np.abs(logits).max(), rel=1e-3)
        fraction = entropy(softmax(logits)).mean() / math.log(16)
        assert number(numbers[share]) == pytest.approx(100 * fraction, rel=5e-3)


def test_one_head_of_a_full_width_norm_takes_all_of_it() -> None:
    x = np.zeros((32, 128))
    x[0] = 1.0
    x /= np.sqrt((x**2).mean())
    assert number(found("claims", "full_width").numbers["reached"]) == pytest.approx(
        x[0] @ x[0] / np.sqrt(128), rel=1e-3
    )


def test_a_cap_after_the_softmax_would_be_idle() -> None:
    q, k = drawn()
    plain = softmax(64 * q @ k.T / 8)
    after = 50 * np.tanh(plain / 50)
    before = softmax(50 * np.tanh(64 * q @ k.T / 8 / 50))
    numbers = found("claims", "softcap_place").numbers
    moved = np.abs(after - plain).max()
    assert moved <= number(numbers["moved"]) <= 1.1 * moved  # “by no more than”: rounded up
    assert number(numbers["off"]) == pytest.approx(np.abs(after - before).max(), rel=5e-3)


def test_the_price_of_a_norm_on_latent_keys_is_a_number_per_token_and_head() -> None:
    for track in ("claims", "researcher"):
        assert number(found(track, "latent").numbers["extra"]) == pytest.approx(100 * 128 / (512 + 64), rel=5e-3)


def test_a_number_per_token_and_head_adds_less_than_a_hundredth_to_a_step_and_forming_keys_a_hundredfold() -> None:
    """Each cached number multiplies a logit; the keys of the new token are formed once, for their size."""
    tokens, heads, latent, content, rotary = 32768, 128, 512, 128, 64
    absorbing = 2 * heads * latent * content
    without = 2 * tokens * heads * (latent + rotary) + absorbing
    absorbed = without + tokens * heads + absorbing
    naive = 2 * tokens * heads * (latent * content + content + rotary)  # and what the norms take
    assert 0.004 < absorbed / without - 1 < 0.01
    assert 100 < naive / absorbed < 200
    assert "less than one per cent more operations" in LANGUAGES["en"]["stop.claims.latent.explain"]


def test_a_norm_that_is_a_pass_of_its_own_moves_q_and_k_twice() -> None:
    n, width, d_model = 256, 8 * 64, 256
    norms = 2 * 2 * n * width
    layer = 4 * d_model * width + 2 * n * d_model + 4 * n * width + 4 * n * width
    numbers = found("claims", "free").numbers
    assert number(numbers["traffic"]) == pytest.approx(100 * norms / layer, rel=5e-3)
    assert number(numbers["share"]) < 1


@pytest.mark.parametrize(
    ("name", "identity", "verdict"),
    [
        ("gemma_2", "gemma-2-transformers", "true"),
        ("qwen_2", "qwen2-qwen2-5-transformers", "false"),
        ("command_r", "cohere-command-r-aya-transformers", "true"),
    ],
)
def test_another_table_gives_another_verdict(
    monkeypatch: pytest.MonkeyPatch, name: str, identity: str, verdict: str
) -> None:
    told = tuple(replace(row, norm="rms") if row.id == identity else row for row in MODELS)
    for module in (facts, claims_on_models, models_lab):
        monkeypatch.setattr(module, "MODELS", told)
    asked = stop("claims", name)
    assert asked.evidence(asked.lab.run(asked.state)).answer == verdict


def test_before_anybody_accepted_a_cap_the_claim_about_kernels_was_true(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = stop("claims", "fused")
    result = asked.lab.run(asked.state)
    assert asked.evidence(result).answer == "outdated"
    kept = tuple(reading for reading in READINGS if reading.kernel != "cuDNN" and reading.accepts)
    monkeypatch.setattr(claims_on_models, "READINGS", kept)
    assert asked.evidence(result).answer == "false"  # had nobody ever refused one


def test_the_spectral_norm_bounds_what_drawn_inputs_hardly_use() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((32, 256))
    x /= np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
    rng.permuted(np.ones(32))
    w_q, w_k = (rng.standard_normal((256, 256))[:64] / 16 for _ in "qk")
    largest = np.abs(x @ w_q.T @ w_k @ x.T).max() / 8
    sigma = np.linalg.norm(w_q.T @ w_k, 2)
    numbers = found("researcher", "spectral").numbers
    assert found("researcher", "spectral").answer == "fifteenth"
    assert "six per cent" in LANGUAGES["en"]["stop.researcher.spectral.choice.fifteenth"]
    assert largest / (256 * sigma / 8) == pytest.approx(0.06, rel=0.05)
    assert number(numbers["largest"]) == pytest.approx(largest, rel=1e-3)
    assert number(numbers["product"]) == pytest.approx(sigma, rel=1e-3)
    assert number(numbers["bound"]) == pytest.approx(256 * sigma / 8, rel=1e-3)
    assert number(numbers["apart"]) == pytest.approx(np.linalg.norm(w_q, 2) * np.linalg.norm(w_k, 2), rel=1e-3)


def test_directions_are_told_in_as_many_digits_as_a_count_on_a_grid_has() -> None:
    keys = np.random.default_rng(0).standard_normal((5, 3))
    numbers, directions = found("developer", "territory").numbers, even_directions()
    for side, arrows in (("plain", keys), ("twin", unit(keys))):
        shares = 100 * np.bincount((directions @ arrows.T).argmax(-1), minlength=5) / len(directions)
        for at, name in ((numbers["key"], side), (numbers["short"], f"short_{side}")):
            assert_rounded(shares[int(at)], numbers[name])
    for g, name in ((10, "clear"), (50, "clearer")):
        assert_rounded(clear(g, keys), numbers[name])


def test_decided_directions_are_told_in_as_many_digits_as_a_count_on_a_grid_has() -> None:
    keys = unit(np.random.default_rng(0).standard_normal((5, 3)))
    numbers = found("beginner", "sphere").numbers
    for g, name in ((3, "before"), (50, "after")):
        assert_rounded(clear(g, keys), numbers[name])


def clear(g: float, keys: NDArray[np.float64]) -> float:
    """In how many of a hundred directions one key has a weight of 0.9 or more under the L2 norm."""
    terms = np.exp(g * (even_directions() @ unit(keys).T - 1))
    return 100 * float((terms.max(-1) >= 0.9 * terms.sum(-1)).mean())


def even_directions() -> NDArray[np.float64]:
    """A hundred thousand directions that lie evenly (a Fibonacci lattice)."""
    z = 1 - (2 * np.arange(100_000) + 1) / 100_000
    turn = np.pi * (1 + math.sqrt(5)) * np.arange(100_000)
    return np.column_stack([np.sqrt(1 - z**2) * np.cos(turn), np.sqrt(1 - z**2) * np.sin(turn), z])


def assert_rounded(exact: float, told: str) -> None:
    """Whether `told` is `exact` in as many digits as it has."""
    last = 10.0 ** -len(told.partition(".")[2])
    assert abs(number(told) - exact) <= last / 2 + 0.005, told


def test_the_entries_that_float8_loses_on_both_sides_are_what_loses_every_row() -> None:
    """Those of q alone spoil their own rows, which are not all: one key that is lost spoils every row."""
    numbers = found("claims", "no_nan").numbers
    q, k = (np.abs(200 * x) > 464 for x in drawn())  # half-way from 448, the largest of e4m3, to the next step
    assert (number(numbers["stored"]), number(numbers["stored_k"])) == (q.sum(), k.sum())
    assert k.any()
    assert not q.any(-1).all()


COUNTED = "(of some, only one part)"  # a cross-attention, the text side


def test_wherever_models_are_counted_it_says_that_of_some_a_part_stands_for_them() -> None:
    whole = [model for model in MODELS if model.kind == "model"]
    assert any("cross-attention" in model.model for model in whole)
    counting = {
        key: sentence
        for key, sentence in LANGUAGES["en"].items()
        if re.match(r"stop\..*\.explain$", key) and re.search(r"\{(?:all|models)\}( of them are)? models\b", sentence)
    }
    assert len(counting) == 6
    for key, sentence in counting.items():
        assert COUNTED in sentence, key


def test_more_keys_under_one_bound_leave_less_to_the_first() -> None:
    numbers = found("researcher", "context").numbers
    for keys, name in ((16, "before"), (256, "top")):
        q, k = drawn(keys)
        assert number(numbers[name]) == pytest.approx(softmax(8 * unit(q) @ unit(k).T).max(), rel=1e-3)
    raised = softmax(np.log2(256**2 - 256) * unit(q) @ unit(k).T).max()
    assert number(numbers["raised"]) == pytest.approx(raised, rel=1e-3)


def test_with_more_rows_the_sharpest_is_sharper_while_a_row_is_not() -> None:
    """A weight that is the largest of more rows is larger by chance: the sentence says what a row has in the mean."""
    numbers = found("claims", "longer_text").numbers
    for keys, name in ((16, "few"), (256, "many")):
        q, k = drawn(keys)
        cosines = unit(q) @ unit(k).T
        grown = softmax(np.log2(keys**2 - keys) * cosines).max(-1)
        assert number(numbers[f"fixed_{name}"]) == pytest.approx(softmax(8 * cosines).max(), rel=2e-3)
        assert number(numbers[f"grown_{name}"]) == pytest.approx(grown.max(), rel=2e-3)
        assert number(numbers[f"mean_{name}"]) == pytest.approx(grown.mean(), rel=0.02)


def test_no_cache_is_said_to_be_off_where_it_is_bit_for_bit_what_a_fresh_pass_gives() -> None:
    """The page says so of all three: a limit under which digits say nothing is no number that they "give"."""
    ways = [cache.run(cache.Settings(way=way)) for way in ("raw", "halfway", "finished")]
    numbers = found("claims", "raw_cache").numbers
    assert max(float(way.weight_error.max()) for way in ways) <= number(numbers["raw"]) == 1e-6
    assert set(re.findall(r"\{(\w+)\}", LANGUAGES["en"]["stop.claims.raw_cache.explain"])) == {"raw", "again"}


def test_the_slope_of_softmax_falls_by_thousands() -> None:
    q, k = drawn()
    slopes = [(w * (1 - w)).mean() for w in (softmax(scale**2 * q @ k.T / 8) for scale in (1, 16))]
    stated = found("researcher", "jacobian")
    assert stated.answer == pytest.approx(slopes[1], rel=1e-9)
    assert number(stated.numbers["times"]) == pytest.approx(slopes[0] / slopes[1], rel=1e-3)


def test_the_weight_named_for_a_key_normalised_twice_is_that_of_a_key_normalised_twice() -> None:
    """At step 1 the first key has the gain once too often, the second has not: not the worst of a longer cache."""
    again, fresh = (cache.run(cache.Settings(way=way)) for way in ("normed_again", "finished"))
    assert fresh.weight_error.max() < 1e-6
    numbers = found("claims", "twice").numbers
    assert number(numbers["second"]) == pytest.approx(float(again.weight_error[1]), rel=0.05)
    assert number(numbers["second"]) < number(numbers["worst"])


def test_a_later_token_changes_earlier_rows_of_right_logits_unless_a_mask_hides_its_key() -> None:
    q, k = drawn()
    other = k.copy()
    other[-1] += 1
    right, changed = (unit(q) @ unit(keys).T for keys in (k, other))
    assert not np.allclose(right[:-1], changed[:-1])  # so the test needs a causal mask, and the sentence says so
    hidden = np.triu(np.ones((16, 16), bool), 1)
    assert np.allclose(np.where(hidden, 0, right)[:-1], np.where(hidden, 0, changed)[:-1])
    over_positions, moved = ((q @ (keys / np.linalg.norm(keys, axis=0)).T) for keys in (k, other))
    assert not np.allclose(np.where(hidden, 0, over_positions)[:-1], np.where(hidden, 0, moved)[:-1])
    assert "causal mask" in LANGUAGES["en"]["stop.developer.lines.explain"]


def test_what_is_said_of_a_kept_log_is_read_in_that_log_whatever_was_trained_beside_it() -> None:
    """Another machine rounds otherwise: there the same run can rise for good before its largest logit is large."""
    settings = twins.Settings()
    (plan,) = twins.LAB.plans(settings)
    came = shipped().record(plan)
    assert came is not None
    curves, loss = came.chunk.curves.copy(), CURVES.index("loss")
    curves[:110, 1, loss] = curves[0, 1, loss]  # the twin spikes later
    curves[90:, 0, loss] = np.maximum(curves[90:, 0, loss], 1)
    elsewhere = twins.Result(settings, plan, curves)
    text = (Path(samples.__file__).parent / "examples" / "collapse.jsonl").read_text(encoding="utf-8")
    losses = [json.loads(line)["loss"] for line in text.splitlines()]
    lowest = np.minimum.accumulate(losses)
    high = np.flatnonzero(losses > lowest + np.maximum(0.25, 0.15 * lowest))
    back = np.setdiff1d(np.arange(len(losses)), high)
    said = stop("developer", "case").evidence(elsewhere).numbers
    assert (said["spiked"], said["diverged"]) == (str(high[0] + 1), str(back[-1] + 2))
    beside = stop("developer", "log").evidence(elsewhere).numbers
    assert int(beside["spiked"]) < 91 < int(beside["large"]) < int(beside["twin_spiked"])
    assert "each time" not in LANGUAGES["en"]["stop.developer.log.explain"]


@pytest.mark.parametrize(("ahead", "answer"), [(9, "once"), (10, "ten"), (50, "ten"), (51, "hundred")])
def test_how_far_a_large_logit_runs_ahead_is_answered_as_the_choices_say_it(ahead: int, answer: str) -> None:
    """Fewer than ten steps, ten to fifty, more than fifty: another machine's run can have any of them."""
    settings = twins.Settings()
    (plan,) = twins.LAB.plans(settings)
    came = shipped().record(plan)
    assert came is not None
    curves, largest = came.chunk.curves.copy(), CURVES.index("max_abs_logit")
    lost = int(stop("developer", "log").evidence(twins.Result(settings, plan, curves)).numbers["lost"])
    curves[:, 0, largest] = np.where(np.arange(1, len(curves) + 1) < lost - ahead, 99, 101)
    found = stop("developer", "log").evidence(twins.Result(settings, plan, curves))
    assert (found.answer, found.numbers["ahead"]) == (answer, str(ahead))
