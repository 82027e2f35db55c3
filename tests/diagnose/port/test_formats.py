"""What rounding leaves in a port’s logits is told from a mistake, in every number format."""

import math
import re
from dataclasses import replace

import pytest
import torch

from qkdemo.attention.blocks import BlockRecipe, draw_block
from qkdemo.attention.pipeline import trace
from qkdemo.diagnose.findings.of_port import of_port
from qkdemo.diagnose.port import port_of, run
from tests.diagnose.port.ported import BARE, BLOCK, HIDDEN, MISREAD, OTHER, REFERENCE, arrays, of_size, said_of


@pytest.mark.parametrize("cause", ["scale_one", "norm_skipped", "rotary_first", "layout"])
def test_sixteen_bits_are_enough_for_the_common_ones(cause: str) -> None:
    found = run(port_of(arrays(REFERENCE.but(**MISREAD[cause]), kind=torch.bfloat16)))
    assert found.verdict is not None
    assert found.verdict.cause == cause


@pytest.mark.parametrize(("kind", "roundoff"), [("bfloat16", 2.0**-8), ("float16", 2.0**-11), ("float32", 2.0**-24)])
def test_a_difference_is_called_rounding_only_if_it_is_of_the_size_of_one(kind: str, roundoff: float) -> None:
    """0.4 % in bfloat16, 0.05 % in float16: the unit roundoff. Twice that may come from rounding every step."""
    exact = torch.randn(4, 40, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    noise = torch.randn(4, 40, 40, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    dtype = getattr(torch, kind)
    room = 256 * 2.0**-24  # of sums in float32

    def said(times: float) -> str:
        moved = exact * (1 + times * (roundoff + room) * noise)
        made = port_of({"mine": moved.to(dtype), "reference": exact.to(dtype)})
        return of_port(run(made), "port").findings[0].key

    wider = 1.7 if kind != "float32" else 0.0  # of float32 the sums leave more than the steps
    assert [said(times) for times in (0, 0.5, 6)] == ["port_same", "port_same", "port_pattern"]
    assert said(wider) == ("port_near" if wider else "port_same")


def test_the_format_is_told_by_the_numbers_where_they_were_saved_in_a_wider_one() -> None:
    exact = torch.randn(2, 30, 30, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for kind in (torch.bfloat16, torch.float16, torch.float32):
        made = port_of({"mine": exact.to(kind).double(), "reference": exact.to(torch.float32).to(kind).float()})
        assert made.format == kind


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("queries", [2, 4, 8])
def test_a_scale_is_named_however_roughly_a_narrow_format_gives_the_ratio(queries: int, seed: int) -> None:
    """The reference's norm is rounded to bfloat16, the port's is not: the ratio is 1/8 but for that."""
    recipe = BlockRecipe(n_heads=1, n_kv_heads=1, d_head=64, d_model=32, n_keys=queries, causal=False, seed=seed)
    block = draw_block(recipe)
    right, wrong = REFERENCE.but(scale="one", order="none"), REFERENCE.but(order="none")
    traced = trace(right, block)
    rounded = [x.bfloat16().double() for x in (traced.q, traced.k)]
    found = {"q": traced.q_projected, "k": traced.k_projected, "gamma_q": block.gain_q[0], "gamma_k": block.gain_k[0]}
    found |= {"reference": (rounded[0] @ rounded[1].mT).bfloat16(), "mine": trace(wrong, block).logits.bfloat16()}
    said = [finding.sentence for finding in of_port(run(port_of(found)), "x").findings]
    assert not any("{" in sentence for sentence in said)


def test_a_ratio_near_one_is_told_from_one() -> None:
    """1/√80 in bfloat16 is 1.000116 times as large."""
    rounded = float(torch.tensor(80**-0.5).bfloat16()) * 80**0.5
    found = arrays(REFERENCE)
    found["mine"] = found["mine"] * rounded
    (alone,) = (
        each.sentence
        for each in of_port(run(port_of({x: found[x] for x in ("mine", "reference")})), "x").findings
        if each.key == "port_ratio"
    )
    (fitted,) = (each.sentence for each in of_port(run(port_of(found)), "x").findings if each.key == "port")
    assert "logit of the port is 1.0001 times the reference’s" in alone
    assert "Every logit is 1.0001 times the expected one: a rounded scale does that" in fitted


@pytest.mark.parametrize("size", [0.6, 0.8, 1.0])
def test_a_reference_with_another_epsilon_is_said_with_its_scale_and_the_factor(size: float) -> None:
    """ε of 1e-5 for 1e-6 leaves 1 − 9e-6/size² of every logit, and that is no scale g."""
    block = of_size(size)
    right = trace(OTHER, block).logits
    named = said_of(block, right, right)["port_reference"][0]
    factor = re.search(r"scale: 1/√d, but for a factor (0\.9999\d*), as an ε of 1·10⁻⁵ or a rounded scale", named)
    assert factor is not None
    assert 1 - float(factor[1]) == pytest.approx(9e-6 / size**2, rel=0.5)
    told = said_of(block, 8 * right, right)
    assert "A missing 1/√d does that" in told["port"][0]
    assert "differs in: scale." in told["port"][0]
    both = said_of(block, 8 * trace(BARE, block).logits, right)["port"][0]
    assert "A missing 1/√d does that" in both


@pytest.mark.parametrize("size", [0.6, 1.0])
def test_a_port_with_another_epsilon_is_not_told_to_change_its_scale(size: float) -> None:
    block = of_size(size)
    right, other = trace(BARE, block).logits, trace(OTHER, block).logits
    for mine, reference, ratio, epsilon in ((other, right, "0.9999", "⁻⁵"), (right, other, "1.0000", "⁻⁶")):
        sentence, advice = said_of(block, mine, reference)["port"]
        assert f"Every logit is {ratio}" in sentence
        assert re.search(rf"a rounded scale does that, or an ε of [\d.]+·10{epsilon} in the norm", sentence)
        assert "differs in" not in sentence
        assert "and ε of both norms" in advice
    report = of_port(run(port_of({"mine": 1.0001 * right, "reference": right})), "x").findings
    (alone,) = (each for each in report if each.key == "port_ratio")
    assert "A rounded scale may do that, or another ε" in alone.sentence
    assert "and ε of both norms" in alone.advice


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("size", [0.018, 0.026, 0.065, 0.1])
def test_a_port_that_is_the_reference_in_sixteen_bits_is_right_whatever_its_epsilon(
    kind: torch.dtype, size: float
) -> None:
    """As of OLMo 2, whose ε is 1e-5: within the port’s format the reference is nearly one with 1e-6."""
    right = trace(OTHER, of_size(size)).logits.float()
    said = said_of(of_size(size), right.to(kind), right)
    assert said.keys() <= {"port_same", "port_reference_rough", "port_unknown_reference"}
    assert "port_same" in said
    if "port_reference_rough" in said:
        sentence = said["port_reference_rough"][0]
        assert f"what rounding every step to {str(kind).removeprefix('torch.')} may leave" in sentence
        factor = re.search(r"scale: (?:1/√d, but for a factor )?(0\.9[\d]*)?", sentence)
        assert factor is not None
        assert float(factor[1] or 1) == pytest.approx(1 - 9e-6 / (size**2 + 1e-5), abs=0.008)
        assert "scale: g" not in sentence
        of_steps = math.sqrt(7) * torch.finfo(kind).eps / 2
        assert factor[1] or 9e-6 / size**2 < 1.1 * of_steps


def test_of_an_unknown_reference_another_epsilon_is_asked_for() -> None:
    block = of_size(0.1)
    right = trace(BARE.but(epsilon=1e-2), block).logits
    sentence, advice = said_of(block, right, right)["port_unknown_reference"]
    assert "ε of RMSNorm or LayerNorm other than 10⁻⁶" in sentence
    assert "once with 10⁻⁶" in advice


def with_steps_in(kind: torch.dtype, cause: str = "") -> dict[str, torch.Tensor]:
    """q and k in 16 bits, and float32 logits of them: the reference's from steps in `kind`, the port's in float32."""
    made = trace(REFERENCE, BLOCK)
    q, k = (x.to(torch.bfloat16) for x in (made.q_projected, made.k_projected))
    x = torch.cat([side.double().movedim(0, 1).flatten(1) for side in (q, k)], 1)
    one = torch.eye(x.shape[1], dtype=torch.float64)
    block = replace(BLOCK, x=x, w_q=one[: 4 * 16], w_k=one[4 * 16 :], w_v=one[4 * 16 :], w_o=None)
    right, wrong = trace(REFERENCE, block), trace(REFERENCE.but(**MISREAD.get(cause, {})), block)
    turned_k = right.k.repeat_interleave(len(right.q) // len(right.k), 0)  # each query head's own
    logits = right.q.to(kind).double() @ turned_k.to(kind).double().mT / 4
    found = {"q": q, "k": k, "gamma_q": BLOCK.gain_q[0], "gamma_k": BLOCK.gain_k[0]}
    return found | {
        name: each.masked_fill(HIDDEN, -math.inf).float()
        for name, each in (("reference", logits), ("mine", wrong.logits))
    }


def test_steps_rounded_to_the_format_of_q_and_k_are_no_mistake_though_logits_are_wider() -> None:
    found = {each.key: each for each in of_port(run(port_of(with_steps_in(torch.bfloat16))), "x").findings}
    assert found.keys() == {"port_near", "port_reference_rough"}
    assert "more than storing them in float32 leaves" in found["port_near"].sentence
    assert "rounding every step to bfloat16 may leave" in found["port_near"].sentence
    wide = {name: x.double() for name, x in with_steps_in(torch.bfloat16).items()}  # told by the numbers alone, too
    assert {each.key for each in of_port(run(port_of(wide)), "x").findings} == found.keys()
    exact = {each.key for each in of_port(run(port_of(with_steps_in(torch.float32))), "x").findings}
    assert exact == {"port_same", "port_reference"}


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("cause", sorted(MISREAD))
def test_a_mistake_is_named_beside_steps_that_were_rounded(cause: str, kind: torch.dtype) -> None:
    found = run(port_of(with_steps_in(kind, cause)))
    assert found.verdict is not None
    assert found.verdict.cause == cause
    assert found.rough == (kind if kind is torch.bfloat16 else None)
    assert (found.rounded, found.exact) in [(each.kind, each.limit) for each in found.port.roundings]
    assert not any(each.key == "port_ratio_row" for each in of_port(found, "x").findings)


def test_a_small_mistake_is_found_where_no_step_was_rounded() -> None:
    """Less than rounding to the format of q and k would leave: but the reference fits them to float32."""
    found = with_steps_in(torch.float32)
    found["mine"] = found["mine"] * 1.0001
    assert "port" in {each.key for each in of_port(run(port_of(found)), "x").findings}
    found = with_steps_in(torch.bfloat16)
    found["mine"] = found["reference"] * 1.0001
    assert "port_ratio" in {each.key for each in of_port(run(port_of(found)), "x").findings}
    found["mine"] = found["reference"] * 4
    said = {each.key: each.sentence for each in of_port(run(port_of(found)), "x").findings}
    assert said.keys() == {"port", "port_reference_rough"}
    assert "√16 = 4 times" in said["port"]


def test_that_steps_were_rounded_is_offered_only_for_what_it_can_leave() -> None:
    given = {name: x for name, x in with_steps_in(torch.float32).items() if name in ("mine", "reference")}
    noise = torch.randn(given["mine"].shape, generator=torch.Generator().manual_seed(0))
    for size, offered in ((4e-5, False), (3e-4, True), (0.02, True), (1.0, False)):
        made = port_of(given | {"mine": given["mine"] * (1 + size * noise)})
        (said,) = (each.sentence for each in of_port(run(made), "x").findings if each.key == "port_pattern")
        assert ("Steps in 16 bits" in said) is offered


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_steps_in_sixteen_bits_are_offered_where_no_single_cause_fits(kind: torch.dtype) -> None:
    """A right port whose turned q and k are rounded before their product, as in a fused kernel; q and k in float32."""
    made = trace(REFERENCE, BLOCK)
    given = {"q": made.q_projected, "k": made.k_projected, "gamma_q": BLOCK.gain_q[0], "gamma_k": BLOCK.gain_k[0]}
    mine = made.q.to(kind).double() @ made.k.to(kind).double().mT / 4
    tilted = made.logits * (1 + 4e-5 * torch.randn(24, generator=torch.Generator().manual_seed(0)))
    for logits, offered in ((mine, True), (tilted, False)):
        given |= {name: x.masked_fill(HIDDEN, -math.inf) for name, x in (("mine", logits), ("reference", made.logits))}
        found = run(port_of({name: x.float() for name, x in given.items()}))
        assert found.verdict is not None
        assert found.verdict.cause == "unknown"
        (said,) = (each.sentence for each in of_port(found, "x").findings if each.key == "port")
        assert ("Steps in 16 bits" in said) is offered
