"""The cost lab: counts by hand, a clock of our own, and ways that compute the same attention."""

import itertools
import json

import pytest
import torch

from qkdemo.labs import cost
from qkdemo.labs.cost import PRESETS, WAYS, Settings, explain, explain_times, measure, run

TINY = Settings(n_keys=16, n_heads=2, d_head=16, d_model=16, repeats=3)


def test_counts_of_a_small_layer_by_hand() -> None:
    """16 tokens, 2 heads of 16, model width 16; 136 of 256 pairs are visible."""
    parts = {part.part: part for part in run(TINY).parts}
    assert parts["projections"].flops == 2 * 16 * 4 * 16 * 32
    assert parts["attention"].flops == 2 * 2 * 2 * 136 * 16
    assert parts["rms"].flops == 2 * 4 * 16 * 32
    assert parts["softcap"].flops == 10 * 2 * 136
    assert parts["rms"].bytes_moved == 4 * 4 * 16 * 32
    assert {part.part: part for part in run(TINY.but(causal=False)).parts}["attention"].flops == 2 * 2 * 2 * 256 * 16


def test_the_share_of_the_norms_falls_as_the_text_grows() -> None:
    shares = [run(Settings(n_keys=n)).parts[2].share for n in (16, 64, 128, 256)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] < 0.01


def test_a_clock_is_read_twice_a_run_and_the_warm_up_is_not_counted() -> None:
    """A clock that goes one second a reading, and a thousand times as fast in the two rounds of warm-up."""
    ticks = itertools.count()
    measured = measure(TINY, clock=lambda: (tick := next(ticks)) + (1000 * tick if tick < 4 * len(WAYS) else 0))
    for times in measured.times:
        assert times.lowest_ms == times.median_ms == times.highest_ms == 1000
        assert times.ratio == 1


def test_real_times_are_positive_and_ordered() -> None:
    for times in measure(TINY).times:
        assert 0 < times.lowest_ms <= times.median_ms <= times.highest_ms


@pytest.mark.parametrize("causal", [True, False])
def test_fused_and_explicit_attention_are_the_same_function(causal: bool) -> None:
    settings = TINY.but(causal=causal)
    inputs = [x.double() for x in cost._inputs(settings, "cpu")]
    made = {way: attend(*inputs, settings) for way, attend in WAYS.items()}  # type: ignore[arg-type, call-arg]
    torch.testing.assert_close(made["sdpa"], made["explicit"])
    torch.testing.assert_close(made["sdpa_norms"], made["explicit_norms"])
    torch.testing.assert_close(made["explicit_softcap"], made["explicit"], rtol=0, atol=0.1)
    assert not torch.equal(made["explicit_softcap"], made["explicit"])
    assert not torch.allclose(made["sdpa"], made["sdpa_norms"])


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_described(name: str) -> None:
    assert all(sentence and "{" not in sentence for sentence in explain(run(PRESETS[name])))


def test_times_are_described_with_their_machine() -> None:
    sentences = explain_times(measure(TINY))
    assert len(sentences) == len(WAYS) + 1
    assert "this machine" in sentences[-1]


def test_the_snippet_runs_and_says_the_same_share(capsys: pytest.CaptureFixture[str]) -> None:
    exec(cost.snippet(TINY), {})
    printed = json.loads(capsys.readouterr().out)
    assert printed["share"] == pytest.approx(run(TINY).parts[2].share)
    assert printed["sdpa"] > 0
