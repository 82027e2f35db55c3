"""Every sentence of the formats lab that depends on a result, held against the entries of every stage."""

import random

import numpy as np
import pytest

from qkdemo.labs.formats import Settings, explain, run
from qkdemo.labs.formats.lab import sweep
from qkdemo.labs.formats.stages.kinds import STAGES, STORED
from qkdemo.labs.formats.table import _findings, formats_table
from qkdemo.labs.formats.view import _losses
from tests.labs.formats.truths import NAMES, TRUTHS, About, Entries, cell
from tests.labs.told import HOW_MANY, SEED, computed, hold, states
from tests.oracles import heard

SMALL = {"n_keys": 8, "d_head": 16}


def test_every_sentence_of_a_result_has_an_oracle() -> None:
    needed = computed(r"formats\.finding\..*", r"formats\.(lost|undefined|undefined_weights|vanished|vanished_alone)")
    needed |= computed(r"formats\.(merged|flushed|blurred|off|visible|safe|leaked|beginning|beginning_early)")
    needed |= computed(
        r"formats\.(never|never_early)", r"formats\.rule\..*", r"formats\.panel\.(losing|later|never|absent).*"
    )
    assert needed == set(TRUTHS)


def test_every_sentence_is_true_wherever_the_dials_stand() -> None:
    draw, held = random.Random(SEED), set[str]()
    with np.errstate(all="ignore"):
        for state in states(Settings, 8, SMALL):
            result, swept = run(state), sweep(state)
            with heard() as said:
                explain(result)
                for word in STORED:
                    _losses(result, swept, word)
            held |= hold(said, TRUTHS, NAMES, About(state, state.scale), state)
            sides = (swept.plain, swept.twin)
            with heard() as said:
                told = _findings.__wrapped__(result.sides, sides, state.storage, state.mask, swept.scales)
            assert len(told) == len(swept.scales)
            at = -1
            chosen = set(draw.sample(range(len(told)), 6))
            for each in said:
                plain = each.key.startswith("formats.finding.plain")
                at += plain and not each.key.endswith("leaked")
                if at in chosen and each.key.startswith("formats.finding"):
                    about = About(state, swept.scales[at], "plain" if plain else "twin")
                    held |= hold([each], TRUTHS, NAMES, about, state)
    if HOW_MANY:
        print(len(held), "of", len(TRUTHS), "were heard; not", sorted(set(TRUTHS) - held))
    assert len(held) > 0.4 * len(TRUTHS)


@pytest.mark.parametrize("state", [Settings(), Settings(causal=True), *states(Settings, 4, SMALL)])
def test_a_cell_of_the_grid_counts_what_it_names(state: Settings) -> None:
    table = formats_table(state)
    at = table["scale"].to_pylist().index(state.scale)
    with np.errstate(all="ignore"):
        for role, variant in (("plain", "none"), ("norm", state.variant)):
            for word in STORED:
                it = Entries(state, variant, word, state.scale)
                texts = table[f"grid.{word}.{role}"][at].as_py().split("\t")
                for stage, text in zip(STAGES, texts, strict=True):
                    assert cell(it, stage, text), (word, role, stage, text)


def test_of_entries_that_are_lost_in_two_ways_all_are_counted_and_none_is_named() -> None:
    table = formats_table(Settings())
    at, place = table["scale"].to_pylist().index(400), STAGES.index("max_subtracted")
    assert table["grid.float16.plain"][at].as_py().split("\t")[place] == "256 lost"


def test_a_stage_that_neither_side_has_is_not_said_to_lose_nothing() -> None:
    state = Settings(variant="dyt", stage="q_sum_of_squares", **SMALL)
    assert _losses(run(state), sweep(state), "float16")["title"] == "float16: there is no sum of squares of q"


def test_rows_are_not_counted_by_their_sums_where_others_are_undefined_by_an_infinite_one() -> None:
    """Three sums are no number; in the fourth row ∞ / ∞ is none either, for no maximum was subtracted."""
    kernel = Settings(max_subtraction=False, causal=True, accumulator="stored", product_format="float32")
    state = kernel.but(d_head=8, n_keys=4, seed=20)
    with heard() as said:
        explain(run(state))
    told = [each for each in said if each.key.startswith("formats.undefined")]
    assert "After it 9 of 10 attention weights are no number." in told[0].sentence
    hold(told, TRUTHS, NAMES, About(state, state.scale), state)


def test_what_loses_entries_at_the_smallest_scale_is_not_said_to_do_so_from_there_on() -> None:
    """float8_e4m3fn has no ∞: a mask of −∞ is no number in it, at any weight scale."""
    state = Settings(storage="float8_e4m3fn", causal=True, stage="weight", **SMALL)
    with heard() as said:
        explain(run(state))
    told = next(each for each in said if each.key == "formats.beginning")
    assert "; logit as exp takes it already at 0.01" in told.sentence
    panel = _losses(run(state), sweep(state), "float8_e4m3fn")
    assert panel["title"] == "float8_e4m3fn: this stage loses entries already at ×0.01, the smallest scale"
    assert [mark["label"] for mark in panel["marks"]] == ["already at ×0.01"] * 2


def test_a_stage_that_loses_entries_for_a_while_above_the_listed_scales_is_not_said_to_do_so_below_them() -> None:
    kernel = Settings(storage="float8_e4m3fn", accumulator="stored", product_format="float16", placement="on_q")
    state = kernel.but(max_subtraction=False, fp8_cast="saturate", fp8_scale="amax", d_head=4, n_keys=4, seed=4286)
    with heard() as said:
        explain(run(state))
    told = next(each for each in said if each.key == "formats.beginning_early")
    lost = [Entries(state, "none", "float8_e4m3fn", scale).lost("weight") > 0 for scale in (2.6, 22.9, 63.0, 1000.0)]
    assert lost == [False, False, True, False]
    assert told.sentence.endswith(
        "score at 22.87; exponential at 2.521; row sum at 2.478. "
        "At some scales a stage loses entries, though not at every larger one; "
        "the first such stage is the attention weight."
    )
