"""In what a port is said to differ: in nothing that one side does not have, or that its logits leave open."""

from typing import Any

import pytest

from qkdemo.attention.pipeline import Pipeline, trace
from qkdemo.diagnose.findings.of_port import of_port
from qkdemo.diagnose.port import port_of, run
from tests.diagnose.port.ported import BARE, OTHER, REFERENCE, arrays, of_size, said_of

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
    assert "another ε" in said_of(block, other, other)["port_reference"][0]


def test_a_ratio_of_the_first_queries_is_not_said_of_all() -> None:
    block = of_size(1.0, 100)
    right = trace(BARE, block).logits
    mine = 8 * right
    mine[1, 70] *= 1.3
    said = said_of(block, mine, right)["port"][0]
    assert "Over the first 48 of 100 queries, and as many keys, the port’s logits are 8 times the reference’s." in said
    assert "Over all" not in said
