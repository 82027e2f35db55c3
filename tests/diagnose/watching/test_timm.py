"""Watching timm's own vision transformer: nothing changes, and every measure is what loops in float64 find."""

from typing import Any

import pytest
import torch
from torch import nn

from qkdemo import assert_qk_norm, watch
from qkdemo.diagnose.watching.heads import MEASURES, Call
from tests.diagnose.watching.test_heads import by_hand
from tests.diagnose.watching.timm_models import vision_transformer

X = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("qk_norm", [False, True])
def test_outputs_and_gradients_of_timms_class_are_the_same_bit_for_bit(*, qk_norm: bool) -> None:
    plain, watched = (vision_transformer(qk_norm=qk_norm) for _ in range(2))
    with watch(watched) as report:
        other = watched(X)
        other.square().sum().backward()
    one = plain(X)
    one.square().sum().backward()
    assert torch.equal(one, other)
    for before, after in zip(plain.parameters(), watched.parameters(), strict=True):
        assert before.grad is not None
        assert after.grad is not None
        assert torch.equal(before.grad, after.grad)
    assert {row["layer"] for row in report.rows} == {"blocks.0.attn", "blocks.1.attn"}
    assert len(report.rows) == 2 * 3


@pytest.mark.parametrize("qk_norm", [False, True])
def test_measures_of_timms_class_are_what_loops_find_in_float64(*, qk_norm: bool) -> None:
    """q and k as the class's own norms hand them on; without a norm timm has an identity there."""
    model = vision_transformer(qk_norm=qk_norm).double()
    seen: dict[str, dict[str, torch.Tensor]] = {}
    for name, module in model.named_modules():
        layer, _, last = name.rpartition(".")
        if last in ("q_norm", "k_norm"):

            def keep(_: nn.Module, __: Any, made: torch.Tensor, layer: str = layer, side: str = last[0]) -> None:
                seen.setdefault(layer, {})[side] = made.detach()

            module.register_forward_hook(keep)
    with torch.no_grad(), watch(model) as report:
        model(X.double())
    assert len(seen) == 2
    for layer, pair in seen.items():
        wanted = by_hand(Call(q=pair["q"], k=pair["k"], scale=model.get_submodule(layer).scale))  # type: ignore[arg-type]
        for row in (row for row in report.rows if row["layer"] == layer):
            for measured in MEASURES:
                assert row[measured] == pytest.approx(wanted[measured][row["head"]], rel=1e-9, abs=1e-12), measured


def test_timms_norm_is_told_from_none() -> None:
    assert [each.state for each in assert_qk_norm(vision_transformer(qk_norm=True), X)] == ["on", "on"]
    with pytest.raises(AssertionError, match="not seen to be on in 2 of 2 attention layers"):
        assert_qk_norm(vision_transformer(qk_norm=False), X)


def test_a_product_that_timm_forms_by_itself_is_not_seen_and_the_report_says_what_to_do() -> None:
    model = vision_transformer(qk_norm=False)
    for block in model.blocks:  # type: ignore[union-attr]
        block.attn.fused_attn = False  # type: ignore[union-attr]
    with watch(model) as report:
        model(X)
    assert not report.rows
    assert "report.see(layer, q, k, scale=…)" in str(report)
