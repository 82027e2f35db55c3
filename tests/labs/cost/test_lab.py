"""The cost lab: counts by hand, a clock of our own, and ways that compute the same attention."""

import itertools
import json

import pytest
import torch

from qkdemo.cli.command import main
from qkdemo.labs.cost import (
    PRESETS,
    WAYS,
    Measured,
    Settings,
    Times,
    explain,
    explain_times,
    measure,
    run,
    snippet,
    sweep,
    time_finding,
    timing,
)

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
        assert times.each_ms == (1000,) * TINY.repeats
        assert times.ratio == 1


def test_a_disturbance_that_lasts_a_round_moves_times_but_no_ratio() -> None:
    """A clock that goes ten times as fast in the second round that counts."""
    ways, ticks = len(WAYS), itertools.count()
    slow = range(2 * ways * 3, 2 * ways * 4)

    def clock() -> float:
        tick = next(ticks)
        return sum(10.0 if at in slow else 1.0 for at in range(tick + 1))

    times = measure(TINY, clock=clock).times[1]
    assert list(times.each_ms) == [1000, 10000, 1000]
    assert list(times.ratios) == [1, 1, 1]
    assert not times.is_apart


def test_measuring_says_how_far_it_is_and_can_be_stopped() -> None:
    heard: list[tuple[int, int]] = []
    measure(TINY, after_round=lambda done, rounds: heard.append((done, rounds)))
    assert heard == [(1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]

    def stop(done: int, rounds: int) -> None:
        raise InterruptedError(f"{done} of {rounds}")

    with pytest.raises(InterruptedError):
        measure(TINY, after_round=stop)


def test_nothing_is_claimed_where_the_rounds_disagree() -> None:
    told = {}
    for word, ratios in {"apart": (1.1, 1.2, 1.3), "mixed": (0.9, 1.2, 1.3), "faster": (0.7, 0.8, 0.9)}.items():
        base, normed = Times("sdpa", (10.0,) * 3, (1.0,) * 3), Times("sdpa_norms", (11.0,) * 3, ratios)
        told[word] = time_finding(Measured(TINY, (base, normed), "a machine", "cpu", 1))
    assert "longer in every one of 3 rounds, 1.2 times (1.1 to 1.3)" in told["apart"]
    assert "no difference can be told" in told["mixed"]
    assert "less time in every one of 3 rounds, 0.8 times (0.7 to 0.9)" in told["faster"]


def test_real_times_are_positive() -> None:
    for times in measure(TINY).times:
        assert 0 < min(times.each_ms) <= times.median_ms


def test_an_unfused_norm_moves_as_many_bytes_as_fused_attention() -> None:
    """q and k read and written are four tensors; q, k and v read and the output written are four too."""
    for result in sweep(Settings()):
        parts = {part.part: part for part in result.parts}
        assert parts["rms"].bytes_moved == parts["attention"].bytes_moved


def test_the_sweep_holds_the_length_chosen() -> None:
    lengths = [result.settings.n_keys for result in sweep(Settings(n_keys=100))]
    assert lengths == sorted(set(lengths))
    assert {16, 100, 1024} <= set(lengths)


@pytest.mark.parametrize("causal", [True, False])
def test_fused_and_explicit_attention_are_the_same_function(causal: bool) -> None:
    settings = TINY.but(causal=causal)
    inputs = [x.double() for x in timing._inputs(settings, "cpu")]
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
    assert len(sentences) == len(WAYS) + 2
    assert "this machine" in sentences[-1]


def test_the_snippet_runs_and_says_the_same_share(capsys: pytest.CaptureFixture[str]) -> None:
    exec(snippet(TINY), {})
    printed = json.loads(capsys.readouterr().out)
    assert printed["share"] == pytest.approx(run(TINY).parts[2].share)
    assert printed["sdpa"] > 0


def test_the_command_line_measures_only_when_told_to(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["cost", "--n-keys=16", "--n-heads=1", "--d-head=16", "--d-model=16", "--repeats=3", "--json"]
    assert main(flags) == 0
    assert "times" not in json.loads(capsys.readouterr().out)
    assert main([*flags, "--measure"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert len(printed["times"]) == 3 * len(WAYS)
    assert printed["device"] == "cpu"
