"""Short q and k, whose size an ε in the norm changes from row to row: no ratio holds for every logit."""

import math
from typing import Any

import pytest
import torch

from qkdemo.attention.blocks import BlockRecipe, draw_block
from qkdemo.attention.pipeline import trace
from qkdemo.diagnose.findings.of_port import of_port
from qkdemo.diagnose.port import Result, port_of, run
from tests.diagnose.port.ported import BARE, HIDDEN

WIDTH = 64
BLOCK = draw_block(BlockRecipe(n_heads=2, n_kv_heads=2, d_head=WIDTH, d_model=32, n_keys=24, causal=True))
MADE = trace(BARE, BLOCK)
SIZES = torch.linspace(0.5, 2, 24)[:, None]  # of rows


def ported(size: float, mine: tuple[float | None, float], reference: tuple[float | None, float]) -> Result:
    """Both logits, each of a norm and a scale; the norm is RMSNorm with that ε, or L2 where it is None."""
    q, k = (x * SIZES * size for x in (MADE.q_projected, MADE.k_projected))
    found = {"q": q, "k": k}
    angles = torch.arange(24)[:, None] / 10000 ** (torch.arange(0, WIDTH, 2).double() / WIDTH)
    for name, (epsilon, scale) in (("mine", mine), ("reference", reference)):

        def side(x: torch.Tensor, epsilon: float | None = epsilon) -> torch.Tensor:
            square = x.square().sum(-1, keepdim=True)
            x = x / square.sqrt() if epsilon is None else x / (square / WIDTH + epsilon).sqrt()
            one, other = x.chunk(2, -1)
            return torch.cat([one * angles.cos() - other * angles.sin(), other * angles.cos() + one * angles.sin()], -1)

        found[name] = (side(q) @ side(k).mT * scale).masked_fill(HIDDEN, -math.inf)
    return run(port_of({name: x.float() for name, x in found.items()}))


def said_of(found: Result) -> dict[str, str]:
    return {finding.key: finding.sentence for finding in of_port(found, "x").findings}


@pytest.mark.parametrize("size", [0.02, 0.005, 0.001, 0.0002])
@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 1e-7, 1e-5, None])
def test_another_epsilon_is_named_and_no_rounded_scale(size: float, epsilon: float | None) -> None:
    """None is F.normalize(q) · √d for each side, together d: the same as RMSNorm without ε."""
    found = ported(size, (epsilon, (WIDTH if epsilon is None else 1) / WIDTH**0.5), (1e-6, WIDTH**-0.5))
    said = said_of(found)
    assert said.keys() == {"port", "port_reference"}
    assert "rounded" not in said["port"]
    assert "The pattern says ε: with an ε of" in said["port"]
    assert found.known.epsilon == pytest.approx(epsilon or 0.0, abs=1e-4 * size**2, rel=0.02)
    assert found.differing == []


@pytest.mark.parametrize("size", [0.005, 0.0005])
def test_l2_beside_rmsnorm_is_named_without_a_ratio_that_holds_nowhere(size: float) -> None:
    rms, scale = 1e-6, WIDTH**-0.5
    for mine, reference, differing in (
        ((None, scale), (rms, scale), ["norm"]),
        ((None, 1.0), (rms, scale), ["norm", "scale"]),
        ((rms, scale), (None, scale), ["norm"]),
        ((rms, 10 / WIDTH), (None, 10.0), ["norm", "scale"]),
    ):
        found = ported(size, mine, reference)
        said = said_of(found)
        assert found.differing == differing
        assert said.keys() == {"port", "port_reference"}
        assert not any(words in said["port"] for words in (" times the ", "logit is "))


def test_of_vectors_of_usual_size_the_ratio_is_said() -> None:
    scale = WIDTH**-0.5
    for mine, cause in (
        ((None, scale), "unit_vectors"),
        ((None, 1.0), "scale_twice"),
        ((1e-6, 1.001 * scale), "near_one"),
    ):
        found = ported(1.0, mine, (1e-6, scale))
        assert found.verdict is not None
        assert found.verdict.cause == cause
        assert "logit is " in said_of(found)["port"]


@pytest.mark.parametrize("change", [{"norm": "none"}, {"place": "full_width"}])
def test_of_one_pair_a_norm_over_all_heads_is_not_told_from_none(change: dict[str, Any]) -> None:
    block = draw_block(BlockRecipe(n_heads=8, n_kv_heads=2, d_head=16, d_model=32, n_keys=1))
    right, wrong = trace(BARE, block), trace(BARE.but(**change), block)
    given = {"q": right.q_projected, "k": right.k_projected, "mine": wrong.logits, "reference": right.logits}
    found = run(port_of(given))
    assert found.verdict is not None
    assert found.verdict.cause == "too_few"


@pytest.mark.parametrize("normed", [False, True])
def test_a_reference_with_another_epsilon_has_no_other_scale_than_a_port_without_a_norm(*, normed: bool) -> None:
    """Rows of one size: ε multiplies every logit by the same number, as a scale would."""
    gain = torch.linspace(0.5, 2, WIDTH).double()
    angles = torch.arange(24)[:, None] / 10000 ** (torch.arange(0, WIDTH, 2).double() / WIDTH)
    q, k = (x / x.square().mean(-1, keepdim=True).sqrt() / 50 for x in (MADE.q_projected, MADE.k_projected))

    def turned(x: torch.Tensor) -> torch.Tensor:
        one, other = x.chunk(2, -1)
        return torch.cat([one * angles.cos() - other * angles.sin(), other * angles.cos() + one * angles.sin()], -1)

    def logits(norm: bool, epsilon: float) -> torch.Tensor:
        sides = [turned(x / (x.square().mean(-1, keepdim=True) + epsilon).sqrt() * gain if norm else x) for x in (q, k)]
        return (sides[0] @ sides[1].mT * WIDTH**-0.5).masked_fill(HIDDEN, -math.inf)

    given = {"q": q, "k": k, "gamma_q": gain, "gamma_k": gain}
    given |= {"mine": logits(normed, 1e-6), "reference": logits(True, 1e-5)}
    found = run(port_of({name: x.float() for name, x in given.items()}))
    assert set(found.differing) == ({"scale"} if normed else {"norm", "gain"})
    if normed:
        assert "differs in: scale (or ε of the norm)" in said_of(found)["port"]
