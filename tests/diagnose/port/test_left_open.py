"""What two choices do alike, or rounding hides, is not said to be one of them."""

import math
from typing import Any

import pytest
import torch

from qkdemo.attention.pipeline import Pipeline, trace
from qkdemo.diagnose.findings.finding import Finding
from qkdemo.diagnose.findings.of_port import of_port
from qkdemo.diagnose.port import Result, port_of, run
from qkdemo.diagnose.readers.inputs import InputError
from qkdemo.messages import say
from tests.diagnose.port.ported import BARE, BLOCK, REFERENCE, arrays, in_16_bits, of_size

UNIT = REFERENCE.but(norm="l2")


def said(found: Result) -> dict[str, Finding]:
    return {each.key: each for each in of_port(found, "x").findings}


def scaled(given: dict[str, torch.Tensor], scale: float, kind: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    return given | {name: (scale * given[name]).to(kind) for name in ("mine", "reference")}


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("times", [1.0, math.sqrt(128 / 168), 0.3])  # over 1/√d; the second is that of Gemma 3 27B
def test_unit_vectors_with_the_references_scale_are_another_norm(*, times: float, kind: torch.dtype) -> None:
    found = run(port_of(scaled(arrays(UNIT), times, kind)))
    assert found.verdict is not None
    assert found.verdict.cause == "unit_vectors"
    assert found.differing == ["norm"]
    assert found.known.mine_factor == found.factor == pytest.approx(times, rel=1e-2)
    (row,) = of_port(found, "x").tables["choices"]
    assert [row["reference"], row["mine"]] == [say("choice.norm.rms"), say("choice.norm.l2")]


@pytest.mark.parametrize(
    ("reference", "mine", "times", "named"),
    [
        (REFERENCE.but(scale="one"), UNIT.but(scale="one"), 1.0, "scale_or_norm"),  # as Gemma 3n; or a scale of 1/d
        (REFERENCE, UNIT.but(layout="interleaved"), 0.7, "scale_or_norm"),
        (UNIT.but(scale="one"), REFERENCE.but(scale="one"), 10.0, "scale_or_norm"),  # as x-transformers has it
        (REFERENCE, REFERENCE.but(scale="one"), 1.0, "scale"),  # a norm of one side alone is none that is tried
        (REFERENCE, REFERENCE.but(scale="one", layout="interleaved"), 0.7, "scale"),
    ],
)
def test_a_scale_that_another_norm_does_too_is_named_with_it(
    reference: Pipeline, mine: Pipeline, times: float, named: str
) -> None:
    found = run(port_of(scaled(arrays(mine, reference), times)))
    assert "norm" not in found.differing
    rows = [row["choice"] for row in of_port(found, "x").tables["choices"]]
    assert say(f"choice_name.{named}") in rows


@pytest.mark.parametrize("cap", [0.0, 50.0])
def test_a_softcap_of_the_port_is_not_said_of_a_reference_that_does_not_tell(cap: float) -> None:
    """Logits in bfloat16 are those of both; float32 tells the port's softcap. No softcap was brought."""
    torch.manual_seed(0)
    given = {side: (1.3 * torch.randn(2, 48, 64)).bfloat16() for side in "qk"}
    given["reference"] = in_16_bits(**given, cap=cap)
    given["mine"] = in_16_bits(given["q"].float(), given["k"].float(), turn=-1, cap=50)
    found = run(port_of(given))
    assert found.differing == ["layout"]
    assert "cap" in found.untold
    untold = say("finding.port_untold", choice=say("finding.port_capped", softcap="50"))
    assert untold in str(said(found)["port_reference"].values["pipeline"])


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32])
def test_a_row_that_is_apart_may_be_left_by_rounding(kind: torch.dtype) -> None:
    """Where products cancel that were rounded at their own size, one row can be more off than all are."""
    reference = torch.randn(64, 64, generator=torch.Generator().manual_seed(3), dtype=torch.float64).to(kind)
    mine = reference.double()
    found = run(port_of({"mine": mine.to(kind), "reference": reference}))
    mine[20] *= 1 + 4 * found.exact
    told = said(run(port_of({"mine": mine.to(kind), "reference": reference})))["port_row"]
    assert "usually" in told.sentence
    assert "in float64 if they were" in told.advice


def test_a_gain_that_is_read_otherwise_is_not_said_to_be_other_gains() -> None:
    """In 16 bits: some gains fit, and rounding hides that they are one larger."""
    torch.manual_seed(0)
    given = {side: torch.randn(4, 40, 64).bfloat16() for side in "qk"}
    gains = {f"gamma_{side}": (1 + 0.1 * torch.randn(64)).bfloat16() for side in "qk"}

    def logits(added: int) -> torch.Tensor:
        q, k = (
            (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)) * (added + gains[f"gamma_{side}"])
            for side, x in given.items()
        )
        return in_16_bits(q, k)

    found = run(port_of(given | gains | {"reference": logits(0), "mine": logits(1)}))
    assert found.differing == ["stored"]
    assert found.verdict is not None
    assert found.verdict.cause == "gain"
    assert str(said(found)["port"].values["pattern"]) == say("finding.port_differs", names=say("choice_name.stored"))


def test_gains_of_one_that_are_read_as_one_larger_are_named() -> None:
    made = trace(BARE, BLOCK)
    given = {"q": made.q_projected, "k": made.k_projected, "reference": made.logits, "mine": 4 * made.logits}
    given |= {"gamma_q": torch.ones(16), "gamma_k": torch.ones(16)}
    assert say("cause.gains_too") in said(run(port_of(given)))["port"].sentence


def test_unit_vectors_of_rms_norm_with_a_small_epsilon_are_not_told_from_it() -> None:
    """The ε of torch's RMSNorm, 1.2·10⁻⁷: what it leaves of L2 with √d is less than rounding."""
    block = of_size(0.1)
    small: dict[str, Any] = {"epsilon": float(torch.finfo(torch.float32).eps)}
    made = trace(BARE.but(**small), block)
    given = {"q": made.q_projected, "k": made.k_projected, "reference": made.logits, "mine": 2 * made.logits}
    found = run(port_of({name: x.float() for name, x in given.items()}))
    assert found.reference is not None
    assert found.reference.norm == "l2"
    assert "norm" in found.untold


@pytest.mark.parametrize("shape", [(16,), (64,), (4, 16)])
def test_gains_of_a_head_or_of_all_are_read(shape: tuple[int, ...]) -> None:
    given = arrays(REFERENCE) | {"gamma_q": torch.ones(shape)}
    assert port_of(given).block is not None
    with pytest.raises(InputError) as raised:
        port_of(given | {"gamma_q": torch.ones(3)})
    assert raised.value.key == "bad_gain_of_port"
