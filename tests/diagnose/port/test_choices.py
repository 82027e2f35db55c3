"""In what a port is said to differ: in nothing that one side does not have, or that its logits leave open."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from qkdemo.attention.pipeline import Pipeline, trace
from qkdemo.diagnose.findings.of_port import of_port
from qkdemo.diagnose.port import port_of, run
from qkdemo.messages import say
from qkdemo.notation import written
from tests.diagnose.port.ported import BARE, OTHER, REFERENCE, arrays, in_16_bits, of_size, said_of

PLAIN = BARE.but(norm="none")


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("one", "other", "differing"),
    [
        (PLAIN.but(layout="interleaved", rotated="quarter"), PLAIN.but(order="none"), ["order"]),
        (REFERENCE.but(layout="interleaved", rotated="half"), REFERENCE.but(order="none"), ["order"]),
        (REFERENCE.but(place="full_width"), PLAIN, ["norm", "gain"]),
        (REFERENCE.but(place="full_width"), REFERENCE.but(norm="none"), ["norm"]),  # and a gain that is kept
        (REFERENCE.but(stored="one_plus"), PLAIN, ["norm", "gain"]),
        (REFERENCE.but(order="rotary_norm", layout="interleaved"), PLAIN, ["layout", "norm", "gain"]),
    ],
)
def test_a_choice_that_one_side_lacks_is_not_said_to_differ(
    *, one: Pipeline, other: Pipeline, differing: list[str], swapped: bool
) -> None:
    mine, reference = (one, other) if swapped else (other, one)
    found = run(port_of(arrays(mine, reference)))
    assert found.reference is not None
    assert sorted(found.differing) == sorted(differing)
    assert len(of_port(found, "x").tables["choices"]) == len(differing)


@pytest.mark.parametrize("scales", [(10, 1), (10, 0.25), (1, 10), (0.25, 10)])
@pytest.mark.parametrize("gained", [False, True])
def test_a_norm_that_logits_do_not_tell_is_not_said_to_differ(*, scales: tuple[float, float], gained: bool) -> None:
    """L2 with 10, as in x-transformers, is RMSNorm with 10/d, too; beside it L2 with 1, and with 1/√d."""
    unit = Pipeline(norm="l2", scale="one", gain="channel" if gained else "none")
    given = arrays(unit, unit)
    if not gained:
        given = {name: x for name, x in given.items() if not name.startswith("gamma")}
    given |= {name: given[name] * scale for name, scale in zip(("reference", "mine"), scales, strict=True)}
    found = run(port_of(given))
    assert found.differing == ["scale"]
    report = of_port(found, "x")
    assert [row["choice"] for row in report.tables["choices"]] == ["scale"]
    (named,) = (each.sentence for each in report.findings if each.key == "port_reference")
    assert "norm: L2" in named
    assert ("scale: 40 times 1/√d" in named) is (scales[0] == 10)  # √d is 4


@pytest.mark.parametrize(
    ("mine", "linked"),
    [({"order": "rotary_norm"}, True), ({"gain": "none"}, False), ({"key_gain": "of_q"}, False)],
)
def test_the_lab_is_linked_only_where_both_pipelines_are_known(*, mine: dict[str, Any], linked: bool) -> None:
    (found,) = (
        each for each in of_port(run(port_of(arrays(REFERENCE.but(**mine)))), "x").findings if each.key == "port"
    )
    assert (found.look is not None) is linked
    if found.look:
        dials = found.look[1]
        assert {name for name in mine if dials[f"left_{name}"] != dials[f"right_{name}"]} == {*mine}


def test_a_port_that_differs_by_a_factor_near_one_is_not_linked_to_the_reference_beside_itself() -> None:
    given = arrays(REFERENCE)
    given["mine"] = given["mine"] * 1.0001
    assert all(each.look is None for each in of_port(run(port_of(given)), "x").findings)


def test_no_epsilon_is_blamed_where_the_reference_has_no_norm() -> None:
    block = of_size(1.0)
    right = 1.0001 * trace(PLAIN, block).logits
    assert "times 1/√d" not in said_of(block, right, right)["port_reference"][0]
    assert "ε" not in said_of(block, right, right)["port_reference"][0]
    other = trace(OTHER, block).logits
    assert "an ε of 1·10⁻⁵" in said_of(block, other, other)["port_reference"][0]


def test_a_ratio_of_the_first_queries_is_not_said_of_all() -> None:
    block = of_size(1.0, 100)
    right = trace(BARE, block).logits
    mine = 8 * right
    mine[1, 70] *= 1.3
    said = said_of(block, mine, right)["port"][0]
    assert "Over queries 0 to 47 of 100, counted from 0, and keys 0 to 47, the port’s logits are 8 times" in said
    assert "Over all" not in said


def drawn(heads: int, width: int, size: float) -> dict[str, Tensor]:
    torch.manual_seed(0)
    return {side: (size * torch.randn(heads, 48, width)).bfloat16() for side in "qk"}


@pytest.mark.parametrize("normed", [True, False])
@pytest.mark.parametrize("width", [64, 128])
def test_a_wrong_turn_in_16_bits_is_not_said_to_be_other_gains(*, normed: bool, width: int) -> None:
    """As nanochat turns; neither side has a gain."""
    given = drawn(4, width, 1)
    sides = {name: in_16_bits(**given, turn=turn, normed=normed) for name, turn in (("mine", 1), ("reference", -1))}
    found = run(port_of(given | sides))
    assert found.differing == ["layout"]
    (told,) = (each.sentence for each in of_port(found, "x").findings if each.key == "port")
    assert "gain" not in told


def test_a_softcap_that_is_forgotten_in_16_bits_is_named_where_it_tells() -> None:
    """As Gemma 2 has it. Where logits are small either may be so, and that is said if a softcap was brought."""
    large, small = drawn(2, 256, 2.4), drawn(2, 256, 1)

    def told(
        given: dict[str, Tensor], mine: float, reference: float, **more: Tensor
    ) -> tuple[list[str], dict[str, str]]:
        sides = {name: in_16_bits(**given, cap=cap) for name, cap in (("mine", mine), ("reference", reference))}
        found = run(port_of(given | sides | more))
        return found.differing, {each.key: each.sentence for each in of_port(found, "x").findings}

    brought = {"softcap": torch.tensor(50.0)}
    for given, more in ((large, brought), (large, {})):
        differing, said = told(given, 0, 50, **more)
        assert differing == ["cap"]
        assert "softcap: 50 · tanh(logit / 50)" in said["port_reference"]
        assert "The pattern says softcap" in said["port"]
        assert "port_ratio_row" not in said
    assert "softcap: none (or another: these logits do not tell)" in told(small, 0, 50, **brought)[1]["port_reference"]
    assert "softcap" not in told(small, 0, 0)[1]["port_reference"]


def with_epsilon(
    kind: torch.dtype, epsilon: float, *, normed: bool = True, scale: float = 1.0, size: float = 1.0
) -> dict[str, Tensor]:
    """Arrays whose port has another ε, or another scale, every step rounded to a format.

    Beside a norm all lengths are alike.
    """
    rng = torch.Generator().manual_seed(0)
    q, k = (torch.randn(heads, 32, 64, generator=rng) for heads in (4, 4))
    lengths = torch.linspace(0.5, 2, 32)[:, None] if not normed else 1.0
    q, k = ((lengths * x * torch.rsqrt(x.square().mean(-1, keepdim=True))).to(kind) for x in (q, k))

    def logits(epsilon: float, scale: float) -> Tensor:
        sides = [
            (x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + epsilon)).to(kind) for x in (q, k)
        ]
        sides = sides if normed else [q, k]
        return (sides[0] @ sides[1].mT * (size * scale / 8)).to(kind)

    return {"q": q, "k": k, "reference": logits(1e-6, 1.0), "mine": logits(epsilon, scale)}


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("epsilon", [2.0**-7, 2.0**-5, 0.2])
@pytest.mark.parametrize("size", [1.0, 3.0])  # of logits: where larger, a softcap of 50 is nearly a factor, too
def test_another_epsilon_is_not_said_to_be_another_scale(*, kind: torch.dtype, epsilon: float, size: float) -> None:
    given = with_epsilon(kind, epsilon, size=size)
    found = run(port_of(given))
    assert found.known.epsilon == pytest.approx(epsilon, rel=0.5 if kind == torch.bfloat16 else 0.05)
    report = of_port(found, "x")
    told = f"another scale does that, or an ε of {written(found.known.epsilon or 0, 2)} in the norm."
    assert told in report.findings[0].sentence
    assert "says scale" not in report.findings[0].sentence
    if size == 1 or epsilon > 0.02:  # than rounding leaves of a scale
        assert report.findings[0].sentence.endswith("differs in: scale (or ε of the norm).")
        assert [row["choice"] for row in report.tables["choices"]] == ["scale (or ε of the norm)"]
    alone = of_port(run(port_of({name: given[name] for name in ("mine", "reference")})), "x").findings[0]
    assert "Another scale may do that, or another ε, where there is a norm." in alone.sentence
    assert "ε of both norms" in alone.advice


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0])
def test_another_epsilon_is_found_where_lengths_are_uneven(epsilon: float) -> None:
    """Then no scale does the same."""
    block = of_size(1.0)
    made = trace(BARE, block)
    given = {"q": made.q_projected, "k": made.k_projected, "reference": made.logits}
    found = run(port_of(given | {"mine": trace(BARE.but(epsilon=epsilon), block).logits}))
    assert found.known.epsilon == pytest.approx(epsilon, rel=1e-3)
    assert found.differing == []
    (said,) = (each.sentence for each in of_port(found, "x").findings if each.key == "port")
    assert say("cause.epsilon", epsilon=written(epsilon, 2)) in said


@pytest.mark.parametrize(
    ("normed", "scale"), [(False, 0.98), (True, 3.0), (True, 1.001), (True, math.sqrt(168 / 128)), (True, 0.98)]
)
@pytest.mark.parametrize("uneven", [False, True])
def test_no_epsilon_is_blamed_that_does_not_do_it(*, normed: bool, scale: float, uneven: bool) -> None:
    """Without a norm, for a factor above 1, as where 1/√d stands for the scale of Gemma 3 27B, or uneven lengths."""
    given = with_epsilon(torch.float32, 1e-6, normed=normed, scale=scale)
    if uneven:
        given |= arrays(REFERENCE)
        given["mine"] = scale * given["reference"]
    elif scale == 0.98 and normed:  # this one does it, where all lengths are alike
        return
    report = of_port(run(port_of(given)), "x")
    assert "ε" not in report.findings[0].sentence
    assert "ε" not in str(report.tables)
    assert "ε" not in " ".join(each.sentence for each in report.findings)


def test_scales_of_their_own_that_differ_are_named_with_their_numbers() -> None:
    """As those of Gemma 2 27B and Gemma 3 27B, beside a wrong layout."""
    given = arrays(REFERENCE.but(layout="interleaved"))
    given["mine"] = given["mine"] * 0.5
    given["reference"] = given["reference"] * 0.7
    found = run(port_of(given))
    assert found.differing == ["layout", "scale"]
    rows = {row["choice"]: row for row in of_port(found, "x").tables["choices"]}
    assert (rows["scale"]["reference"], rows["scale"]["mine"]) == ("0.7 times 1/√d", "0.5 times 1/√d")
    given["mine"] = given["mine"] * 1.4
    assert run(port_of(given)).differing == ["layout"]


def test_a_norm_that_both_have_is_not_said_to_differ() -> None:
    """L2 with √d is RMSNorm with 1/√d; beside L2 with 1 and another layout both are L2."""
    wide = REFERENCE.but(norm="l2", scale="root")
    assert run(port_of(arrays(wide.but(scale="one", layout="interleaved"), wide))).differing == ["layout", "scale"]


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size", [60.0, 150.0, 600.0])
def test_a_reference_at_the_ends_of_its_softcap_is_known(*, kind: torch.dtype, size: float) -> None:
    """There logits are 50 exactly; the others tell it."""
    block = of_size(1.0)
    plain = PLAIN.but(cap="softcap")
    block = replace(block, x=block.x * (size / float(trace(PLAIN, block).logits.abs().max())) ** 0.5)
    made = trace(plain, block)
    given = {"q": made.q_projected, "k": made.k_projected, "reference": made.logits, "mine": made.logits}
    given = {name: x.to(kind if name in ("reference", "mine") else torch.float32) for name, x in given.items()}
    found = run(port_of(given | {"softcap": torch.tensor(50.0)}))
    assert found.reference is not None
    assert (found.reference.cap, found.reference.scale, found.reference.norm) == ("softcap", "inverse_root", "none")
