"""The cache lab: labels, proven against recomputation from scratch by an implementation of its own."""

import json
from typing import Any

import hypothesis
import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from qkdemo.attention.blocks import draw_block
from qkdemo.floats.formats import FORMATS
from qkdemo.labs.cache import PRESETS, Settings, every, explain, run, snippet
from qkdemo.labs.cache import lab as cache
from qkdemo.labs.cache.words import findings
from qkdemo.notation import written

Array = NDArray[np.float64]
SMALL = Settings(n_keys=6, d_head=8, n_heads=2, format="float64")


def rms(x: Array, epsilon: float) -> Array:
    return np.asarray(x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon))


def turned(x: Array, at: float) -> Array:
    half = x.shape[-1] // 2
    angle = at * 10000.0 ** (-np.arange(half) / half)
    z = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angle)
    return np.concatenate([z.real, z.imag], -1)


def kept(x: Array, quantised: str, largest: Array) -> Array:
    if quantised == "none":
        return x
    if quantised.startswith("int8"):
        return np.asarray(np.round(x / largest * 127) * largest / 127)
    return np.asarray((x / largest * 448).astype(ml_dtypes.float8_e4m3fn).astype(np.float64) * largest / 448)


class Server:
    """Decodes token by token: writes each key once, reads the whole cache at every step."""

    def __init__(self, settings: Settings) -> None:
        block = draw_block(cache.recipe_of(settings))
        shape = (settings.n_keys, settings.n_heads, settings.d_head)
        self.q, self.k = ((block.x @ w.mT).reshape(shape).numpy() for w in (block.w_q, block.w_k))
        self.gain_q, self.gain_k = block.gain_q.numpy(), block.gain_k.numpy()
        self.settings, self.norm_first = settings, settings.order == "norm_rotary"
        self.positions = [settings.offset + t for t in range(settings.n_keys)]

    def norm(self, x: Array, gain: Array) -> Array:
        return rms(x, self.settings.epsilon) * gain

    def finish(self, x: Array, gain: Array, at: float) -> Array:
        return turned(self.norm(x, gain), at) if self.norm_first else self.norm(turned(x, at), gain)

    def write(self, x: Array, at: float) -> Array:
        gain = self.gain_k
        match self.settings.way:
            case "raw":
                return x
            case "halfway":
                return self.norm(x, gain) if self.norm_first else turned(x, at)
            case "normed_again":
                return self.norm(x if self.norm_first else turned(x, at), gain)
            case "other_heads_gain":
                return self.finish(x, np.roll(gain, 1, 0), at)
            case way:
                return self.finish(x, gain, at + (way == "one_late"))

    def read(self, x: Array, at: float) -> Array:
        match self.settings.way:
            case "raw":
                return self.finish(x, self.gain_k, at)
            case "halfway":
                return turned(x, at) if self.norm_first else self.norm(x, self.gain_k)
            case "normed_again":
                return turned(x, at) if self.norm_first else x
            case _:
                return x

    def weights(self, step: int, keys: list[Array]) -> Array:
        query = self.finish(self.q[step], self.gain_q, self.positions[step])
        e = np.exp(np.einsum("hd,shd->hs", query, np.array(keys)) / np.sqrt(query.shape[-1]))
        return np.asarray(e / e.sum(-1, keepdims=True))


def decoded(settings: Settings) -> tuple[Array, Array]:
    """Largest difference of a weight, and of its logarithm, step by step, between this cache and everything anew."""
    server, errors, logs = Server(settings), [], []
    written = [server.write(x, at) for x, at in zip(server.k, server.positions, strict=True)]
    per_head = settings.quantised.endswith("head")
    largest = np.abs(written).max((0, 2))[:, None] if per_head else np.abs(written).max()[None, None]
    held = [kept(x, settings.quantised, largest) for x in written]
    for step in range(settings.n_keys):
        if settings.way == "normed_again":
            held[:step] = [server.norm(x, server.gain_k) for x in held[:step]]
        seen = list(enumerate(server.positions[: step + 1]))
        cached = [server.read(held[s], at) for s, at in seen]
        fresh = [server.finish(server.k[s], server.gain_k, at) for s, at in seen]
        found, truth = server.weights(step, cached), server.weights(step, fresh)
        errors.append(np.abs(found - truth).max())
        logs.append(np.abs(np.log(found / truth)).max())
    return np.array(errors), np.array(logs)


STATES = st.builds(
    SMALL.but,
    way=st.sampled_from(["raw", "halfway", "finished", "normed_again", "other_heads_gain", "one_late"]),
    quantised=st.sampled_from(["none", "int8_tensor", "int8_head", "fp8_tensor", "fp8_head"]),
    order=st.sampled_from(["norm_rotary", "rotary_norm"]),
    gains=st.sampled_from(["unit", "tied", "untied"]),
    head_spread=st.sampled_from([1.0, 4.0]),
    n_heads=st.sampled_from([1, 2]),
    n_keys=st.integers(1, 6),
    offset=st.sampled_from([0, 1000]),
    epsilon=st.sampled_from([1e-12, 1e-6]),
    format=st.sampled_from(["float64", "float32", "bfloat16", "float16"]),
    seed=st.integers(0, 50),
)


@hypothesis.settings(max_examples=150)
@given(STATES)
def test_every_label_is_what_recomputing_from_scratch_says(settings: Settings) -> None:
    result = run(settings)
    errors, logs = decoded(settings)
    if settings.n_keys == 1:
        assert result.label == "undecided"
        assert errors[0] == 0
        return
    assert (result.label == "wrong") == bool((logs > cache.SAME_FUNCTION).any())
    if result.label == "wrong":
        assert result.from_step == np.flatnonzero(logs > cache.SAME_FUNCTION)[0]
    elif result.label == "exact":
        assert (result.weight_error == 0).all()
    if settings.format == "float64":
        assert result.weight_error == pytest.approx(errors, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("order", ["norm_rotary", "rotary_norm"])
@pytest.mark.parametrize("way", ["raw", "halfway", "finished"])
def test_what_is_stored_may_differ_but_the_function_may_not(way: Any, order: Any) -> None:
    assert run(Settings(way=way, order=order, format="float64")).label == "exact"
    narrow = run(Settings(way=way, order=order, format="bfloat16")).label
    assert narrow == ("rounding" if way == "halfway" else "exact")


def test_a_norm_at_every_read_drives_a_key_to_its_largest_gain() -> None:
    """k = [3, 4], gain [2, 0.5]: once [1.70, 0.57], twice [2.68, 0.22], 21 times [2.83, 8.6e-13]."""
    x, gain = np.array([3.0, 4.0]), np.array([2.0, 0.5])
    times = [x := rms(x, 0) * gain for _ in range(21)]
    assert times[0] == pytest.approx([1.697056, 0.5656854], rel=1e-6)
    assert times[1] == pytest.approx([2.683282, 0.2236068], rel=1e-6)
    assert times[20] == pytest.approx([2.828427, 8.574798e-13], rel=1e-6)
    result = run(PRESETS["normed_at_every_read"].but(n_keys=32))
    assert result.logit_error[-1] > 2 * result.logit_error[1] > 0


def test_a_norm_at_every_read_leaves_a_key_fewer_and_fewer_channels() -> None:
    result = run(Settings(n_keys=32, gain_spread=0.9))
    fresh, cached = (channels[:, :, 0] for channels in (result.fresh_channels, result.cached_channels))
    assert (np.ptp(fresh, axis=1) == 0).all()
    assert (cached[:, 0] == fresh[:, 0]).all()  # the newest key has been through the norm once
    assert (cached[:, -1] < fresh[:, -1] / 2).all()


def test_weights_of_both_passes_are_distributions_over_the_keys_seen() -> None:
    result = run(Settings())
    for weights in (result.fresh_weights, result.cached_weights):
        assert weights.sum(-1) == pytest.approx(1, rel=1e-6)
        assert (np.triu(weights, 1) == 0).all()
    gap = np.abs(result.cached_weights - result.fresh_weights).max((0, 2))
    assert gap == pytest.approx(result.weight_error, abs=1e-6)


@pytest.mark.parametrize("looked", [{"step": 0}, {"step": 63}, {"head": 7, "key": 63}])
def test_where_one_looks_changes_no_number(looked: dict[str, Any]) -> None:
    result = run(Settings(**looked))
    assert (result.weight_error == run(Settings()).weight_error).all()
    assert all(at < size for at, size in zip(result.shown, (16, 4, 16), strict=True))


def test_each_step_has_its_own_sentence_and_says_its_own_error() -> None:
    result = run(Settings())
    said = findings(result)
    assert "single key" in said[0]
    for step, (sentence, error) in enumerate(zip(said[1:], result.weight_error[1:], strict=True), 1):
        assert f"step {step} " in sentence
        assert written(error, 3) in sentence
    assert "every cache looks right" in findings(run(Settings(n_keys=1)))[0]


def test_unit_gains_hide_a_norm_that_is_applied_twice() -> None:
    assert run(PRESETS["unit_gains_hide_it"]).label == "rounding"
    assert run(PRESETS["unit_gains_hide_it"].but(gains="untied")).label == "wrong"


def test_no_mistake_shows_in_the_first_step() -> None:
    for result in every(Settings(format="float64")):
        assert result.weight_error[0] == 0
        assert result.from_step != 0


def test_a_quantised_cache_is_not_called_wrong() -> None:
    said = " ".join(explain(run(PRESETS["int8_after_the_norm"])))
    assert "not what a fresh pass gives, first seen at step" in said
    assert "wrong" not in said


def test_keys_are_compared_as_they_enter_the_product_and_this_is_said() -> None:
    """Raw keys are off by less: one scale fits the large head, and the norm makes the small ones as large."""
    settings = PRESETS["int8_before_the_norm"]
    raw = draw_block(cache.recipe_of(settings))
    k = (raw.x @ raw.w_k.mT).reshape(-1, settings.n_heads, settings.d_head).movedim(0, 1).float()
    step = k.abs().max() / 127
    itself = ((k / step).round() * step - k).norm() / k.norm()
    off = run(settings).key_error[-1]
    assert itself < off / 4
    said = [sentence for sentence in explain(run(settings)) if sentence.startswith("Stored as int8")]
    stored = "Stored as int8, one scale, before the norm: at the last step the keys that enter q·k are off by"
    assert said == [f"{stored} {written(off, 3)} relative."]


def test_quantising_after_the_norm_costs_less_when_heads_differ_in_size() -> None:
    before, after = (run(PRESETS[f"int8_{when}_the_norm"]).key_error[-1] for when in ("before", "after"))
    assert after < before / 3


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_described(name: str) -> None:
    assert all(sentence and "{" not in sentence for sentence in explain(run(PRESETS[name])))


@pytest.mark.parametrize("way", ["raw", "halfway", "finished", "normed_again", "other_heads_gain", "one_late"])
@pytest.mark.parametrize(
    "changes",
    [
        {"gains": "tied", "quantised": "int8_head"},
        {"order": "rotary_norm", "offset": 100, "quantised": "fp8_tensor"},
        {},
    ],
)
def test_the_snippet_is_a_second_opinion(way: str, changes: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    settings = SMALL.but(way=way, head_spread=2, **changes)
    exec(snippet(settings), {})
    printed = json.loads(capsys.readouterr().out)["weight_error"]
    assert run(settings).weight_error == pytest.approx(printed, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("way", ["halfway", "normed_again"])
@pytest.mark.parametrize("format", ["float32", "bfloat16", "float16"])
def test_the_snippet_stores_in_the_format_chosen(way: str, format: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A sum in another order may round to the neighbouring number: one step of the format in a weight.

    In float32 the sums themselves round so, some of them after each other.
    """
    settings = SMALL.but(way=way, format=format)
    exec(snippet(settings), {})
    printed = json.loads(capsys.readouterr().out)["weight_error"]
    step = torch.finfo(FORMATS[format].dtype).eps  # type: ignore[index]
    assert run(settings).weight_error == pytest.approx(printed, abs=16 * step if format == "float32" else step)
    assert max(printed) > 0 or (way, format) == ("halfway", "float32")


def test_without_another_head_there_is_no_other_heads_gain() -> None:
    said = "With one head there is no other head"
    assert any(said in sentence for sentence in explain(run(SMALL.but(way="other_heads_gain", n_heads=1))))
    assert not any(said in sentence for sentence in explain(run(SMALL.but(way="other_heads_gain"))))


def test_an_error_of_a_mistake_is_not_put_down_to_8_bits() -> None:
    """Keys that are normalised again are off by far more than int8 brings: both are named."""
    said = "both together put the keys that enter q·k off"
    assert any(said in each for each in explain(run(SMALL.but(way="normed_again", quantised="int8_head"))))
    assert not any(said in each for each in explain(run(SMALL.but(way="finished", quantised="int8_head"))))


@pytest.mark.parametrize(
    "changes",
    [
        {"way": "other_heads_gain", "n_heads": 1},
        {"way": "other_heads_gain", "gains": "unit"},
        {"way": "normed_again", "gains": "unit", "epsilon": 1e-12},
    ],
)
def test_an_error_of_8_bits_is_not_put_down_to_a_way_that_is_no_mistake_here(changes: dict[str, Any]) -> None:
    """Without quantising, this way gives what a fresh pass gives."""
    settings = SMALL.but(**changes)
    assert run(settings).label != "wrong"
    said = explain(run(settings.but(quantised="int8_head")))
    assert said[0].endswith("because its keys are stored as int8, a scale per head.")
    assert not any("both together" in sentence for sentence in said)
    both = explain(run(SMALL.but(way="one_late", quantised="int8_head")))
    assert both[0].endswith(
        "because its keys are turned one position too far and its keys are stored as int8, a scale per head."
    )
