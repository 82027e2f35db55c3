"""A port’s logits beside its reference’s: the choice that was read wrongly is named, and no more than is known."""

from typing import Any

import pytest
import torch

from qkdemo.attention.pipeline import trace
from qkdemo.diagnose.findings.examine import examine
from qkdemo.diagnose.findings.of_port import of_port
from qkdemo.diagnose.port import port_of, run
from tests.diagnose.port.ported import BARE, MISREAD, REFERENCE, arrays, file_of, of_size, said_of


@pytest.mark.parametrize("kind", [torch.float64, torch.float32])
@pytest.mark.parametrize("cause", MISREAD)
def test_the_choice_that_was_read_wrongly_is_named(cause: str, kind: torch.dtype) -> None:
    found = run(port_of(arrays(REFERENCE.but(**MISREAD[cause]), kind=kind)))
    assert found.verdict is not None
    assert found.verdict.cause == cause


@pytest.mark.parametrize("reference", [{"norm": "l2", "scale": "one"}, {"order": "rotary_norm"}, {"norm": "none"}])
def test_the_reference_is_recognised_by_its_logits(reference: dict[str, Any]) -> None:
    right = REFERENCE.but(**reference)
    found = run(port_of(arrays(right, right)))
    assert found.verdict is not None
    assert found.verdict.cause == "same"
    assert found.reference is not None
    assert {name: getattr(found.reference, name) for name in reference} == reference


def test_two_choices_at_once_are_told_by_the_pipeline_that_the_port_is() -> None:
    found = run(port_of(arrays(REFERENCE.but(norm="layernorm", order="rotary_norm", layout="interleaved"))))
    assert found.verdict is not None
    assert found.verdict.cause == "unknown"
    assert found.differing == ["norm", "order", "layout"]


def test_the_advice_names_no_more_choices_than_the_finding() -> None:
    """Two choices of another known pipeline, more than is known of any, and too few tokens to tell."""

    def advice(given: dict[str, torch.Tensor]) -> str:
        (found,) = (finding for finding in of_port(run(port_of(given)), "port").findings if finding.key == "port")
        return found.advice

    two = arrays(REFERENCE.but(norm="layernorm", order="rotary_norm"))
    assert advice(two).startswith("Change what is named there, and compare again.")
    given = arrays(REFERENCE)
    noise = torch.randn(given["mine"].shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert advice(given | {"mine": given["mine"] * (1 + noise.abs())}).startswith("Save what both have after each step")
    given = arrays(REFERENCE.but(norm="layernorm", order="rotary_norm", layout="interleaved", cap="softcap"))
    few = {
        name: x[..., :2, :2] if name in ("mine", "reference") else x[..., :2, :]
        for name, x in given.items()
        if x.dim() > 1
    }
    few |= {name: x for name, x in given.items() if x.dim() == 1}
    few["mine"] = few["mine"] + 0.1
    assert advice(few).startswith("Bring both logits of more positions")


def test_q_and_k_are_asked_for_only_where_they_are_missing() -> None:
    given = arrays(REFERENCE)
    noise = torch.randn(given["mine"].shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    given |= {"mine": given["mine"] * (1 + noise.abs()), "reference": given["reference"] * (1 + noise.flip(0).abs())}
    logits = {name: given[name] for name in ("mine", "reference")}
    for brought, asked in ((given, False), (logits, True)):
        findings = of_port(run(port_of(brought)), "port").findings
        assert "port_pattern" in [finding.key for finding in findings]
        assert any("Save q and k" in finding.advice for finding in findings) is asked
        assert not any("Bring q and k" in finding.advice for finding in findings)


def test_an_unknown_theta_is_said_and_a_given_one_is_used() -> None:
    block = torch.arange(24, dtype=torch.float64)
    given = arrays(REFERENCE) | {"positions": block * 3}
    assert run(port_of(given)).reference is None
    assert run(port_of(arrays(REFERENCE) | {"positions": block})).reference is not None


def test_from_logits_alone_a_factor_is_told_and_what_is_needed_for_more() -> None:
    given = arrays(REFERENCE.but(scale="one"))
    alone = {name: given[name] for name in ("mine", "reference")}
    said = {finding.key: finding.sentence for finding in examine(file_of(alone), "port.npz").findings}
    assert "every logit of the port is 4 times" in said["port_ratio"]
    assert "With a head width of 16 that is √d" in said["port_ratio"]
    assert "port_needs" in said
    other = arrays(REFERENCE.but(norm="none"))
    alone = {name: other[name] for name in ("mine", "reference")}
    assert "port_pattern" in {finding.key for finding in examine(file_of(alone), "port.npz").findings}


def test_of_a_reference_without_a_norm_no_place_of_it_is_told() -> None:
    right = REFERENCE.but(norm="none", gain="none")
    found = {finding.key: finding for finding in of_port(run(port_of(arrays(right, right))), "port").findings}
    sentence = found["port_reference"].sentence
    assert "norm: none" in sentence
    assert "place of the norm" not in sentence
    assert "norm, then rotary" not in sentence
    assert "order of norm and rotary: rotary, no norm" in sentence
    unturned = of_port(run(port_of(arrays(right.but(order="none"), right))), "port").tables["choices"]
    assert [row["reference"] for row in unturned if "order" in row["choice"]] == ["rotary, no norm"]


def test_a_ratio_is_read_with_the_head_width_that_is_known() -> None:
    """8 is √64, as where 1/√d is missing; with a width of 16 that is known it is no such thing."""
    given = arrays(REFERENCE, REFERENCE)
    logits = {"mine": 8 * given["reference"], "reference": given["reference"]}
    alone = of_port(run(port_of(logits)), "port").findings[0].sentence
    assert "With a head width of 64 that is √d" in alone
    unknown = {"q": torch.randn(4, 24, 16), "k": torch.randn(2, 24, 16)}  # not those of these logits
    known = {finding.key: finding.sentence for finding in of_port(run(port_of(logits | unknown)), "port").findings}
    assert "port_unknown_reference" in known
    assert "head width" not in known["port_ratio"]


@pytest.mark.parametrize("head", range(4))
def test_one_head_that_is_wrong_does_not_make_the_gains_of_all_wrong(head: int) -> None:
    found = arrays(REFERENCE)
    found["mine"][head] *= 2
    result = run(port_of(found))
    assert result.verdict is not None
    assert result.verdict.cause == "unknown"
    found = arrays(REFERENCE)
    found["mine"] = found["mine"][[0, 1, 3, 2]]
    result = run(port_of(found))
    assert result.verdict is not None
    assert result.verdict.cause == "unknown"


@pytest.mark.parametrize("heads", [[1], [0, 1], [1, 3]])
@pytest.mark.parametrize("cause", [*MISREAD][3:])
def test_what_one_head_is_fitted_by_is_said_only_where_all_are_wrong(cause: str, heads: list[int]) -> None:
    found, wrong = arrays(REFERENCE), arrays(REFERENCE.but(**MISREAD[cause]))["mine"]
    found["mine"][heads] = wrong[heads]  # 1 and 2 read other keys when tiled
    verdict = run(port_of(found)).verdict
    assert verdict is not None
    assert verdict.cause == "unknown"


def test_other_gains_are_said_only_where_some_fit_every_head() -> None:
    """The head that is looked at is fitted by its own gains; the last two are of nothing."""
    found, without = arrays(REFERENCE), arrays(REFERENCE.but(gain="none"))["mine"]
    found["mine"][:] = without
    verdict = run(port_of(found)).verdict
    assert verdict is not None
    assert verdict.cause == "gain"
    found["mine"][-2:] = torch.randn(without[-2:].shape, generator=torch.Generator().manual_seed(0))
    verdict = run(port_of(found)).verdict
    assert verdict is not None
    assert verdict.cause == "unknown"


@pytest.mark.parametrize(
    ("choice", "named"),
    [
        ({"cap": "softcap"}, "; softcap: softcap"),
        ({"stored": "one_plus"}, "; how the gain is stored: 1 + γ"),
        ({}, "scale: 1/√d."),
    ],
)
def test_of_the_references_pipeline_what_is_unusual_is_named(choice: dict[str, Any], named: str) -> None:
    reference = REFERENCE.but(**choice)
    said = {
        each.key: each.sentence
        for each in of_port(run(port_of(arrays(reference.but(scale="one"), reference))), "x").findings
    }
    assert named in said["port_reference"]


def test_a_scale_that_is_applied_twice_is_no_other_norm() -> None:
    """RMSNorm with 1/d is L2 with 1: both are that port, and one of them is one change from the reference."""
    block = of_size(1.0)
    right = trace(BARE, block).logits
    sentence = said_of(block, right / 8, right)["port"][0]
    assert "1/√d applied twice does that" in sentence
    assert "differs in: scale." in sentence
