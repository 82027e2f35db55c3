"""The latent-attention lab: both readings are one function, and the costs are counted right."""

import json
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkdemo.labs.mla import PRESETS, Settings, cost, explain, explain_other_ways, run, snippet
from qkdemo.labs.mla import lab as mla
from qkdemo.labs.mla.costs import Widths, burden
from qkdemo.labs.mla.words import findings

SMALL = Settings(n_heads=4, latent=16, d_content=8, d_rotary=4, n_keys=8)


@hypothesis.settings(max_examples=30)
@given(
    st.builds(
        SMALL.but,
        statistic=st.sampled_from(["content", "joint"]),
        gain_spread=st.sampled_from([0.0, 0.5, 0.95]),
        n_keys=st.integers(1, 8),
        latent=st.sampled_from([8, 16, 32]),
        seed=st.integers(0, 50),
    )
)
def test_norm_on_keys_that_are_never_formed_is_exact(settings: Settings) -> None:
    result = run(settings)
    assert result.relative_difference < 1e-13
    assert result.without_norm_difference > 1e-3


def test_in_float32_the_readings_agree_to_its_rounding() -> None:
    assert 0 < run(SMALL.but(format="float32")).relative_difference < 1e-6


@pytest.mark.parametrize("statistic", ["content", "joint"])
def test_costs_at_the_widths_of_deepseek_v3(statistic: Any) -> None:
    """512 + 64 cached numbers per token, 128 heads, keys of 128 + 64: counted by hand."""
    settings, context = PRESETS["deepseek_v3_widths"].but(statistic=statistic), 131072
    plain, naive, full, absorbed = (cost(settings, word, context) for word in mla.COSTS)
    assert plain.cache_bytes == naive.cache_bytes == 2 * 576 * context
    keys = 128 * 192 if statistic == "joint" else 128 * 128 + 64  # a rotary part of its own size is one for all heads
    assert full.cache_bytes == naive.formed_bytes == 2 * keys * context
    assert absorbed.cache_bytes == 2 * (576 + 128 + (statistic == "content")) * context
    once = 1 if statistic == "content" else 128  # one size for both parts: every head has a rotary part of its own
    norm = 4 * 128 * 128 + 2 * 64 + 2 * 64 * once  # squares and sums, of what is shared once; products with 1/rms and γ
    query, forming, scoring = 4 * 128 * 192, 2 * 128 * 128 * 512, 2 * 128 * 192
    assert plain.flops == 2 * context * 128 * 576 + forming
    assert naive.flops == context * (forming + norm + scoring) + query
    assert full.flops == context * scoring + query + forming + norm
    of_size = 128 if statistic == "joint" else 2 * 128  # 1/rms multiplies a logit, or each of its two parts
    key = forming + 2 * (128 * 128 + 64) + 64  # a new token's, for its size; and γ of the rotary key
    assert absorbed.flops == context * (2 * 128 * 576 + of_size) + forming + query + key


def test_a_rotary_key_that_all_heads_share_is_normalised_once_if_its_size_is_its_own() -> None:
    """At 1000 tokens, 128 heads, a latent of 64: 127 heads more multiply 64 entries by 1/rms and γ, for every token."""
    settings = Settings(latent=64, statistic="content")
    costs = [cost(settings.but(statistic=word), "naive", 1000).flops for word in ("content", "joint")]
    assert costs[1] - costs[0] == 1000 * 2 * 127 * 64
    widths = (Widths(n_heads=128, latent=64, d_content=128, d_rotary=64, joint=joint) for joint in (False, True))
    content, joint = (burden("qk_norm", each, 1000) for each in widths)
    assert content.training_flops == 4 * (128 * (128 + 64) + 128 * 128 + 64)
    assert joint.training_flops - content.training_flops == 2 * 127 * 64


def test_with_one_head_a_size_of_both_parts_costs_what_two_sizes_cost_to_form() -> None:
    """Every entry of a key is squared, added, and multiplied by 1/rms and γ."""
    one = Settings(n_heads=1, latent=8, d_content=8, d_rotary=64)
    costs = {cost(one.but(statistic=word), "naive", 16).flops for word in ("content", "joint")}
    assert costs == {16 * (2 * 8 * 8 + 4 * 72 + 2 * 72) + 4 * 72}


def test_what_the_naive_reading_costs_grows_with_the_context_and_the_absorbed_query_does_not() -> None:
    none, short, long = (cost(Settings(), "naive", n).flops for n in (0, 1000, 2000))
    assert long - short == short - none
    assert cost(Settings(), "absorbed", 2000).flops < 2 * cost(Settings(), "absorbed", 1000).flops


@pytest.mark.parametrize("format", ["bfloat16", "float16"])
def test_in_16_bits_the_readings_agree_to_what_16_bits_can_hold(format: Any) -> None:
    """The norm itself changes the logits by far more than the formats do."""
    result = run(SMALL.but(format=format))
    assert 1e-5 < result.relative_difference < 0.01
    assert result.without_norm_difference > 5 * result.relative_difference


def test_keys_are_dear_to_form_at_every_context_but_the_shortest() -> None:
    """One token: the absorbed query, 2 · 128 · 512 a head, costs about twice the one key that is formed."""
    said = findings(run(Settings()))
    assert len(said) == 18
    assert "half" in said[0] or "2.0" in said[0] or "1.9" in said[0]
    assert "114 times" in said[15]


def test_parts_of_a_logit_add_up_and_weights_are_causal() -> None:
    result = run(SMALL)
    for logits in (result.explicit, result.absorbed, result.without_norm):
        weights = logits.weights
        assert np.where(weights < 0, 0, weights).sum(-1) == pytest.approx(1)
        assert ((weights == -1) == np.triu(np.ones(weights.shape[-2:], dtype=bool), 1)).all()
    assert result.explicit.rotary == pytest.approx(result.absorbed.rotary, abs=1e-12)
    assert result.explicit.content == pytest.approx(result.absorbed.content, abs=1e-12)


def test_where_one_looks_changes_no_live_number() -> None:
    assert run(SMALL.but(query=31, key=31, head=3, context=1)).explicit is run(SMALL).explicit


@pytest.mark.parametrize("format", ["float64", "bfloat16"])
def test_bytes_are_two_a_number_whatever_the_format_and_the_sentences_say_so(format: Any) -> None:
    settings = Settings(context=1, format=format)
    assert cost(settings, "absorbed", 1).cache_bytes == 2 * (512 + 64 + 128)
    naive, absorbed = explain(run(settings))[2:4]
    assert naive.endswith(", at 2 bytes a number.")
    assert " in all at 2 bytes a number. " in absorbed


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_described(name: str) -> None:
    assert all(sentence and "{" not in sentence for sentence in explain(run(PRESETS[name])))


@pytest.mark.parametrize("statistic", ["content", "joint"])
def test_the_snippet_is_a_second_opinion(statistic: Any, capsys: pytest.CaptureFixture[str]) -> None:
    settings = SMALL.but(statistic=statistic)
    exec(snippet(settings), {})
    printed = json.loads(capsys.readouterr().out)
    assert printed["relative_difference"] < 1e-13
    assert abs(run(settings).explicit.all).max() == pytest.approx(printed["largest"], rel=1e-12)


def test_a_head_that_is_clipped_by_a_little_is_not_said_to_be_clipped_by_one() -> None:
    grown = SMALL.but(projections=10.0, clip_threshold=1.0)
    found = run(grown).alternatives
    highest = 1 / float(found.factors[found.scales.tolist().index(10.0)].min())
    said = explain_other_ways(run(grown.but(clip_threshold=0.999 * highest)))
    assert any("1 of 4 heads is clipped, the one with the largest logit by c = 0.999." in each for each in said)


@pytest.mark.parametrize(("statistic", "more"), [("joint", 4), ("content", 5)])
def test_every_number_that_the_absorbed_reading_caches_is_counted(statistic: Any, more: int) -> None:
    """A number per token and head; and one for the rotary key where it has a size of its own."""
    settings = Settings(n_heads=4, latent=8, d_rotary=2, statistic=statistic)
    said = f"That is {more} per token and {10 * more} % more"
    assert any(said in sentence for sentence in explain(run(settings)))
