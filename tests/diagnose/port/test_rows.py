"""Rows, sequences and parts of a port’s logits that are off alone."""

import math
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from qkdemo.attention.blocks import BlockRecipe, draw_block
from qkdemo.attention.pipeline import trace
from qkdemo.diagnose.findings.examine import examine
from qkdemo.diagnose.findings.of_port import of_port
from qkdemo.diagnose.port import port_of, run
from qkdemo.messages import say
from tests.diagnose.port.ported import BARE, HIDDEN, OTHER, REFERENCE, arrays, file_of, of_size, said_of


def test_one_row_that_differs_is_found_in_many_that_do_not() -> None:
    exact = torch.randn(8, 48, 48, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    mine = exact.clone()
    mine[3, 17] *= 1.1
    report = of_port(run(port_of({"mine": mine.bfloat16(), "reference": exact.bfloat16()})), "port")
    (found,) = (finding for finding in report.findings if finding.level == "bad")
    assert found.key == "port_row"
    assert "those of query 17 in head 3 differ by 1" in found.sentence


def test_what_was_not_compared_is_said() -> None:
    """Logits of several sequences: the port differs in the second one alone, which is not looked at."""
    logits = torch.randn(2, 1, 6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    other = logits.clone()
    other[1] += 1
    sentences = {
        finding.key: finding.sentence
        for finding in examine(file_of({"mine": other, "reference": logits}), "port.npz").findings
    }
    assert "about their first sequence" in sentences["port_part"]
    for mine, reference, key in (
        (logits, logits, "port_part_same"),
        (logits[:1], logits, "port_part"),  # nothing to hold the second against
        (logits + 1, logits, "port_part"),  # the first differs: of the second nothing is said
        (torch.full_like(logits, -math.inf), logits, "port_part"),  # nothing was compared
    ):
        given = {"mine": mine, "reference": reference}
        found = {each.key: each.sentence for each in examine(file_of(given), "port.npz").findings}
        assert {each for each in found if each.startswith(("port_part", "port_sequences"))} == {key}
        same = "In each of the others that both arrays have (1), both are the same but for rounding."
        assert (same in found[key]) is (key == "port_part_same")
    alone = examine(file_of({"mine": logits[:1], "reference": logits[:1]}), "port.npz")
    assert [finding.key for finding in alone.findings] == ["port_same"]
    block = draw_block(BlockRecipe(n_heads=2, n_kv_heads=2, d_head=8, n_keys=64))
    right = trace(REFERENCE, block)
    given = {"q": right.q_projected, "k": right.k_projected, "mine": right.logits, "reference": right.logits}
    long = examine(file_of(given), "port.npz")
    (part,) = (finding.values for finding in long.findings if finding.key == "port_fit")
    assert part == {"first": 0, "last": 47, "all": 64}


def test_all_of_both_logits_is_compared_where_pipelines_are_told_from_a_part() -> None:
    block = draw_block(BlockRecipe(n_heads=2, n_kv_heads=2, d_head=8, n_keys=64))
    right = trace(REFERENCE, block)
    wrong = right.logits.clone()
    wrong[..., 60:] += 1
    given = {"q": right.q_projected, "k": right.k_projected, "mine": wrong, "reference": right.logits}
    given |= {"gamma_q": block.gain_q[0], "gamma_k": block.gain_k[0]}
    found = {finding.key: finding.level for finding in of_port(run(port_of(given)), "port").findings}
    assert found == {"port_pattern": "bad", "port_later": "bad", "port_fit": "good", "port_reference": "good"}
    wrong = right.logits.clone()
    wrong[:, 60:] += 1
    keys = {finding.key for finding in of_port(run(port_of(given | {"mine": wrong})), "port").findings}
    assert "port_pattern" in keys


def test_logits_of_zero_are_those_of_no_pipeline() -> None:
    given = arrays(REFERENCE, REFERENCE)
    zero = given["mine"].masked_fill(~HIDDEN, 0)
    found = {finding.key for finding in of_port(run(port_of(given | {"mine": zero})), "port").findings}
    assert found == {"port_zero", "port_reference"}
    found = {finding.key for finding in of_port(run(port_of(given | {"reference": zero})), "port").findings}
    assert found == {"port_zero_reference"}
    both = given | {"mine": zero, "reference": zero}
    assert {finding.key for finding in of_port(run(port_of(both)), "port").findings} == {"port_same"}


def odd_row(factor: float, ratio: float = 1.0) -> dict[str, str]:
    """What is said of bfloat16 logits that are `ratio` times the reference's, but for row 20, a `factor` of that."""
    reference = torch.randn(64, 64, generator=torch.Generator().manual_seed(3), dtype=torch.float64).bfloat16()
    mine = ratio * reference.double()
    mine[20] *= factor
    report = of_port(run(port_of({"mine": mine.bfloat16(), "reference": reference})), "x")
    return {finding.key: finding.sentence for finding in report.findings}


def test_a_row_that_rounding_every_step_may_leave_is_not_said_to_exceed_storing_over_all() -> None:
    said = odd_row(1.015)
    assert "port_near" not in said
    assert "as storing them in bfloat16 may do" in said["port_row_stored"]
    assert "query 20" in said["port_row_stored"]


def test_a_row_that_is_another_ratio_is_named() -> None:
    said = odd_row(1.07, ratio=8.0)
    assert "port_ratio" not in said
    assert "Over all" in said["port_ratio_over_all"]
    assert "query 20" in said["port_ratio_row"]
    assert "port_ratio_row" not in odd_row(1.0, ratio=8.0)


def test_a_later_sequence_that_differs_is_found() -> None:
    logits = torch.randn(4, 2, 12, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def said(change: Callable[[torch.Tensor], object]) -> dict[str, str]:
        mine = logits.clone()
        change(mine)
        found = of_port(run(port_of({"mine": mine, "reference": logits})), "x").findings
        return {each.key: each.sentence for each in found}

    for change in (
        lambda mine: mine[2].mul_(1.5),
        lambda mine: mine[2, 0, 3, :2].fill_(-math.inf),
        lambda mine: mine[2, 0, 3, 3].fill_(math.nan),
    ):
        told = said(change)
        assert "1 of 3" in told["port_sequences"]
        assert "sequence 2" in told["port_sequences"]
    assert "port_sequences" not in said(lambda mine: mine)
    assert "port_sequences" not in said(lambda mine: mine.mul_(2))  # which the first one shows


@pytest.mark.parametrize("times", [1.0, 8.0, 3.0])
def test_what_is_not_so_in_every_row_is_not_said_of_every_logit(times: float) -> None:
    """RMSNorm with ε of 1e-5 for 1e-6, and one short query."""
    block = of_size(2.0)
    x = block.x.clone()
    x[30] *= 0.3
    block = replace(block, x=x)
    told = said_of(block, times * trace(OTHER, block).logits, trace(BARE, block).logits)
    assert "query 30" in told["port_ratio_row"][0]
    assert told["port_ratio_row"][1] == say("advice.port_ratio_row")
    assert "very logit" not in told["port"][0]
    assert re.search(r"Over all, the port’s logits are [\d.]+ times the reference’s\.( [A-Z]|$)", told["port"][0])
    if times == 8:
        assert "as if 1/√d were missing" in told["port"][0]


def test_a_sentence_on_a_ratio_ends_where_nothing_is_known_of_it() -> None:
    logits = torch.randn(2, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = of_port(run(port_of({"mine": 3.3 * logits, "reference": logits})), "x").findings
    assert [each.sentence[-12:] for each in found if each.key == "port_ratio"] == ["reference’s."]


@pytest.mark.parametrize("times", [1.0, 8.0])
def test_an_odd_row_after_those_that_pipelines_are_told_from_is_named(times: float) -> None:
    block = of_size(1.0, 100)
    right = trace(BARE, block).logits
    mine = times * right
    mine[1, 70] *= 1.3
    told = said_of(block, mine, right)
    key = "port_later" if times == 1 else "port_ratio_row"
    assert "query 70 in head 1" in told[key][0]
    mine = times * right
    assert key not in said_of(block, mine, right)
