"""What becomes of entries: against counting them by hand, one by one."""

import math
from typing import Final, Literal

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from qkdemo.attention.norms import NormWord
from qkdemo.floats.formats import ALL_FORMATS
from qkdemo.labs.formats import PRESETS, Settings, choices_of, recipe_of, rows, run
from qkdemo.labs.formats.stages.error_counts import _Order, tally
from qkdemo.labs.formats.stages.exact import exactly
from qkdemo.labs.formats.stages.kinds import IN_NORM, OVER_KEYS, STAGES, STORED, Choices, Inputs, drawn
from qkdemo.labs.formats.stages.rounded import follow
from tests.following import SMALL, at, held_by, row
from tests.strategies import settings_of

FLOATS: Final[list[Literal["float32", "bfloat16", "float16"]]] = ["float32", "bfloat16", "float16"]


def counted_by_hand(state: Settings, variant: NormWord) -> dict[str, dict[str, int]]:
    """n_inf, n_nan, n_zero, n_merged and n_leaked of the chosen format's stages, entry by entry."""
    inputs = drawn(recipe_of(state), causal=state.causal)
    choices = choices_of(state, variant)
    held, truth = follow(inputs, at(state.scale), choices), exactly(inputs, at(state.scale)[0], choices)
    counts: dict[str, dict[str, int]] = {}
    for stage in held:
        values, exact_values = held_by(held, stage, state.storage), truth[stage][0].tolist()
        order = truth["masked"][0].tolist() if stage in OVER_KEYS else exact_values
        found = dict.fromkeys(("n", "n_inf", "n_nan", "n_zero", "n_merged", "n_leaked"), 0)
        for i, of_row in enumerate(values):
            seen = [j for j in range(len(of_row)) if not (stage in OVER_KEYS and state.causal and j > i)]
            by_size = sorted(seen, key=lambda j: order[i][j])
            least = 1e-12 * max(abs(order[i][j]) for j in seen)
            found["n"] += len(seen)
            found["n_inf"] += sum(math.isinf(of_row[j]) for j in seen)
            found["n_nan"] += sum(math.isnan(of_row[j]) for j in seen)
            positive = stage in ("exp", "sum", "weight")
            found["n_zero"] += sum(of_row[j] == 0 and (positive or exact_values[i][j] != 0) for j in seen)
            if stage == "weight":
                found["n_leaked"] += sum(of_row[j] > 0 for j in range(len(of_row)) if j not in seen)
            for place, j in enumerate(by_size):
                beside = by_size[max(place - 1, 0) : place] + by_size[place + 1 : place + 2]
                found["n_merged"] += of_row[j] not in (0, math.inf, -math.inf) and any(
                    of_row[j] == of_row[m] and abs(order[i][j] - order[i][m]) > least for m in beside
                )
        counts[stage] = found
    return counts


@settings(max_examples=15)
@given(settings_of(Settings, at_most=SMALL))
def test_counts_are_those_of_counting_by_hand(state: Settings) -> None:
    table = [each for each in rows(run(state)) if each["format"] == state.storage]
    for variant in ("none", state.variant):
        by_hand = counted_by_hand(state, variant)
        of_variant = {each["stage"]: each for each in table if each["variant"] == variant}
        assert of_variant.keys() == by_hand.keys()
        for stage, counts in by_hand.items():
            assert {name: of_variant[stage][name] for name in counts} == counts, (stage, variant)


@settings(max_examples=10)
@given(settings_of(Settings, at_most=SMALL))
def test_no_count_exceeds_the_entries_and_each_entry_has_one_fate(state: Settings) -> None:
    for each in rows(run(state)):
        n = each["n"]
        assert isinstance(n, int)
        fates = [each[name] for name in ("n_inf", "n_nan", "n_zero", "n_merged")]
        assert 0 <= sum(fates) <= n, each  # type: ignore[arg-type]
        assert each["max_rel_error"] is None or 0 <= each["max_rel_error"] < math.inf  # type: ignore[operator]


def test_the_relative_error_of_a_stored_number_is_half_a_step_at_most() -> None:
    for word in FLOATS:  # in 8 bits some entries of the draw are subnormal
        half_step = 2.0 ** -(ALL_FORMATS[word].mantissa_bits + 1)
        assert half_step / 2 < row(Settings(scale=1), word, "none", "q_stored")["max_rel_error"] <= half_step


def test_plain_attention_has_no_stages_inside_a_norm() -> None:
    stages = {each["stage"] for each in rows(run(Settings())) if each["variant"] == "none"}
    assert stages == set(STAGES) - set(IN_NORM)
    assert {each["stage"] for each in rows(run(Settings())) if each["variant"] == "l2"} == set(STAGES)


def test_bfloat16_merges_logits_where_float16_overflows_and_the_other_way_round() -> None:
    """Range trouble and step trouble, beside each other."""
    state = PRESETS["bf16_training"]
    assert row(state, "bfloat16", "none", "scaled")["n_merged"] > 0
    assert row(state, "float16", "none", "scaled")["n_merged"] < row(state, "bfloat16", "none", "scaled")["n_merged"]
    assert row(Settings(), "bfloat16", "none", "raw_product")["n_inf"] == 0


@pytest.mark.parametrize("q", [20.0, 22.0])
def test_an_entry_that_underflows_exactly_has_no_relative_error(q: float) -> None:
    """Logits of 60 q and 24 q are both cut to 448: the second weight is a half. Exactly it is exp(−36 q): e⁻⁷²⁰, which
    float64 tells with a few bits, and e⁻⁷⁹², which is zero there."""
    queries, k, v = (torch.tensor(x, dtype=torch.float64) for x in ([[q]], [[60.0], [24.0]], [[1.0], [1.0]]))
    choices = Choices(fp8_cast="saturate", softmax_format="float32")
    inputs, once = Inputs(queries, k, v), torch.ones(1, dtype=torch.float64)
    found, e4m3 = tally(inputs, once, choices), STORED.index("float8_e4m3fn")
    weight = exactly(inputs, once, choices)["weight"][0, 0, 1].item()
    assert weight < 2.3e-308
    assert (weight == 0) == (q > 20.7)
    assert found.max_rel_error[e4m3, STAGES.index("weight")].tolist() == [0.5]  # of the first weight, exactly 1
    assert not np.isinf(found.max_rel_error).any()


def test_logits_that_are_equal_but_for_the_order_of_their_sums_do_not_merge() -> None:
    """DyT at a large α makes ±γ of every channel: many logits are one number, and float64 moves each by its order."""
    equal = torch.tensor([[[0.0, 3.0, 1.0, 3.0, 1.0, 2.0, -math.inf]]], dtype=torch.float64)
    moved = equal + 1e-15 * torch.tensor([0, 1, 2, 3, 1, 1, 0.0])
    pairs = [_Order.of(x).differ.sum() for x in (equal, moved)]
    assert pairs == [3, 3]  # 0 and 1, 1 and 2, 2 and 3; and no hidden key
    apart = equal + torch.tensor([0, 1e-10, 0, 0, 1e-10, 0, 0])
    assert _Order.of(apart).differ.sum() == 5
