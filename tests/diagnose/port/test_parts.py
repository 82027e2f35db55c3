"""From which queries and keys pipelines are told, where the first ones are hidden or tell nothing."""

import math
from dataclasses import replace

import pytest
import torch

from qkdemo.attention.blocks import Block, BlockRecipe, draw_block
from qkdemo.attention.norms import NormWord
from qkdemo.attention.pipeline import Pipeline, trace
from qkdemo.diagnose.findings.finding import Finding
from qkdemo.diagnose.findings.of_port import of_port
from qkdemo.diagnose.port import Port, port_of, run
from tests.diagnose.port.ported import BARE, OTHER, REFERENCE

ROWS = 128
LEAST = torch.finfo(torch.float32).min
CAUSAL = torch.ones(ROWS, ROWS, dtype=torch.bool).tril()


def drawn(rows: int = ROWS, padded: int = 0) -> Block:
    """Positions as transformers counts them: from 0 behind the padding, and 1 of every token of it."""
    block = draw_block(BlockRecipe(n_heads=4, n_kv_heads=2, d_head=16, d_model=32, n_keys=rows))
    at = torch.arange(rows) - padded
    return replace(block, positions=at.masked_fill(at < 0, 1).double())


def port_with(
    block: Block, mine: torch.Tensor, reference: torch.Tensor, seen: torch.Tensor, hides: float = LEAST
) -> Port:
    made = trace(REFERENCE, block)
    given = {"q": made.q_projected, "k": made.k_projected, "gamma_q": block.gain_q[0], "gamma_k": block.gain_k[0]}
    given |= {name: x.masked_fill(~seen, hides) for name, x in (("mine", mine), ("reference", reference))}
    return port_of({name: x.float() for name, x in given.items()} | {"positions": block.positions})


def said(made: Port) -> dict[str, Finding]:
    return {each.key: each for each in of_port(run(made), "x").findings}


@pytest.mark.parametrize("hides", [LEAST, -math.inf])
@pytest.mark.parametrize("padded", [0, 20, 47, 48, 100, 126])
def test_behind_padding_on_the_left_pipelines_are_told_from_what_is_seen(padded: int, hides: float) -> None:
    block = drawn(padded=padded)
    seen = CAUSAL & (torch.arange(ROWS) >= padded)
    right = trace(REFERENCE, block).logits
    made = port_with(block, right, right, seen, hides)
    assert made.block is not None
    of_part = slice(made.first, made.first + made.fitted)
    assert torch.equal(made.block.positions, block.positions[of_part])
    assert torch.equal(made.part(made.visible), seen[of_part, of_part])
    most = min(48, ROWS - padded)
    assert made.part(made.visible).sum() >= 0.95 * most * (most + 1) / 2 - most
    assert said(made).keys() == {"port_same", "port_reference", "port_fit"}
    if padded <= 100:
        found = run(port_with(block, trace(REFERENCE.but(order="rotary_norm"), block).logits, right, seen, hides))
        assert found.verdict is not None
        assert found.verdict.cause == "rotary_first"
        assert found.differing == ["order"]
        assert "port_later" not in {each.key for each in of_port(found, "x").findings}


def test_rows_of_padding_that_see_every_key_do_not_stand_for_the_others() -> None:
    """As transformers leaves them for some kernels; each has position 1, and rotary cannot be told from them."""
    padded = 60
    block = drawn(padded=padded)
    block = replace(block, x=block.x.clone())
    block.x[:padded] = block.x[0]
    seen = CAUSAL & (torch.arange(ROWS) >= padded)
    seen[:padded] = True
    right, wrong = (trace(REFERENCE.but(layout=word), block).logits for word in ("half_split", "interleaved"))
    assert said(port_with(block, right, right, seen)).keys() == {"port_same", "port_reference", "port_fit"}
    assert run(port_with(block, wrong, right, seen)).differing == ["layout"]


def test_queries_whose_logits_are_all_0_tell_no_pipeline() -> None:
    """Padding of zeros, and no mask in the logits."""
    block = drawn()
    block = replace(block, x=block.x.clone())
    block.x[:70] = 0
    right, wrong = (trace(REFERENCE.but(order=order), block).logits for order in ("norm_rotary", "rotary_norm"))
    assert said(port_with(block, right, right, CAUSAL)).keys() == {"port_same", "port_reference", "port_fit"}
    assert run(port_with(block, wrong, right, CAUSAL)).differing == ["order"]


def test_no_pipeline_is_called_unknown_where_none_of_its_pairs_was_looked_at() -> None:
    """Keys so far from each query that no part holds both."""
    block = drawn()
    right = trace(REFERENCE, block).logits
    at = torch.arange(ROWS)
    keys = said(port_with(block, right, right, at[:, None] - at >= 48)).keys()
    assert keys == {"port_same", "port_fit"}


def test_what_differs_outside_that_part_is_said_beside_which_part_is_the_same() -> None:
    padded = 60
    block = drawn(padded=padded)
    right = trace(REFERENCE, block).logits
    wrong = right.clone()
    wrong[2, 120] *= 1.4
    found = said(port_with(block, wrong, right, CAUSAL & (torch.arange(ROWS) >= padded)))
    assert found.keys() == {"port_pattern", "port_later", "port_reference", "port_fit"}
    values = found["port_later"].values
    assert (values["query"], values["head"]) == (120, 2)
    first, last = (int(str(values[word])) for word in ("first", "last"))
    assert padded - 2 <= first
    assert last < 120
    assert torch.equal(wrong[:, first : last + 1], right[:, first : last + 1])


@pytest.mark.parametrize("norm", ["rms", "layernorm"])
def test_without_rotary_no_angles_are_rounded(norm: NormWord) -> None:
    """Of 1024 positions rounded angles may leave 6e-5, and float32 without them leaves less than 1e-6."""
    block = drawn(1024)
    unturned: dict[str, Pipeline] = {
        name: pipeline.but(norm=norm, order="none", gain="channel") for name, pipeline in (("6", BARE), ("5", OTHER))
    }
    right, wrong = (trace(unturned[name], block).logits for name in "65")
    off = float((wrong - right).norm() / right.norm())
    assert 5e-6 < off < 1024 * 2**-24
    seen = torch.ones(1024, 1024, dtype=torch.bool)
    found = said(port_with(block, wrong, right, seen))
    assert found.keys() == {"port", "port_reference", "port_fit"}
    assert run(port_with(block, wrong, right, seen)).known.epsilon == pytest.approx(1e-5, rel=0.1)
    assert said(port_with(block, right, right, seen)).keys() == {"port_same", "port_reference", "port_fit"}


def test_with_rotary_rounded_angles_may_leave_as_much() -> None:
    block = drawn(1024)
    right, wrong = (trace(REFERENCE.but(epsilon=epsilon), block).logits for epsilon in (1e-6, 1e-5))
    found = said(port_with(block, wrong, right, torch.ones(1024, 1024, dtype=torch.bool)))
    assert found.keys() == {"port_near", "port_reference", "port_fit"}
