"""A port’s logits beside its reference’s: the choice that was read wrongly is named, and no more than is known."""

import re
from typing import Any

import pytest
import torch

from qkdemo.attention.blocks import BlockRecipe, draw_block
from qkdemo.attention.pipeline import trace
from qkdemo.diagnose.findings.examine import examine
from qkdemo.diagnose.findings.of_port import of_port
from qkdemo.diagnose.port import port_of, run
from qkdemo.messages import say
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
    assert advice(given | {"mine": given["mine"] * (1 + noise.abs())}).startswith(say("finding.act.unknown"))
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


UNTOLD = " (or another: these logits do not tell)"


@pytest.mark.parametrize(
    ("norm", "untold"),
    [("rms", {"order of norm and rotary"}), ("l2", {"order of norm and rotary"}), ("layernorm", set())],
)
def test_an_order_that_logits_do_not_tell_is_said_not_to_be_told(norm: Any, untold: set[str]) -> None:
    """Without gains a rotation changes no length: RMSNorm and L2 do not mind whether it comes first."""
    block = of_size(1.0)
    for order in ("norm_rotary", "rotary_norm"):
        made = BARE.but(norm=norm, order=order)
        named = said_of(block, trace(made, block).logits, trace(made, block).logits)["port_reference"][0]
        assert {
            part.split(":")[0].strip() for part in named.split("pipeline: ")[1].split(";") if UNTOLD in part
        } == untold
    told = of_port(run(port_of(arrays(REFERENCE, REFERENCE))), "x").findings  # with gains that differ by channel
    assert not any(UNTOLD in finding.sentence for finding in told)


def test_with_one_head_the_place_of_the_norm_is_not_told() -> None:
    block = draw_block(BlockRecipe(n_heads=1, n_kv_heads=1, d_head=16, d_model=32, n_keys=24))
    right = trace(BARE, block).logits
    assert f"place of the norm: per head{UNTOLD}" in said_of(block, right, right)["port_reference"][0]


@pytest.mark.parametrize("order", ["norm_rotary", "rotary_norm"])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_port_does_not_differ_in_an_order_that_one_side_leaves_open(*, order: Any, swapped: bool) -> None:
    """LayerNorm minds the order, RMSNorm without gains does not: they differ in the norm alone."""
    block = of_size(1.0)
    sides = [trace(BARE.but(norm=norm, order=order), block) for norm in ("rms", "layernorm")]
    mine, reference = reversed(sides) if swapped else sides
    given = {"q": mine.q_projected, "k": mine.k_projected, "mine": mine.logits, "reference": reference.logits}
    found = run(port_of(given))
    assert found.differing == ["norm"]
    assert [row["choice"] for row in of_port(found, "x").tables["choices"]] == ["norm"]


@pytest.mark.parametrize("norm", ["none", "rms", "l2"])
def test_a_scale_of_its_own_is_said_by_its_number(norm: Any) -> None:
    """0.7 stands in no pipeline by name: it is no g, which a pipeline without a norm does not have."""
    block = of_size(1.0)
    right = trace(BARE.but(norm=norm, scale="one"), block).logits
    given = said_of(block, 0.37 * right, 0.7 * right)
    named = given["port_reference"][0]
    if norm == "none":
        assert "norm: none;" in named
        assert "scale: 5.6 times 1/√d." in named
    else:  # RMSNorm is √d times as long on each side as L2
        assert f"norm: RMSNorm{UNTOLD};" in named
        assert f"scale: {'5.6' if norm == 'rms' else '0.0875'} times 1/√d" in named
    usual = trace(BARE.but(norm=norm), block).logits
    made = trace(BARE, block)
    other = {"q": made.q_projected, "k": made.k_projected, "mine": 0.7 * right, "reference": usual}
    report = of_port(run(port_of(other)), "x")
    texts = [each.sentence for each in report.findings] + [
        text for row in report.tables.get("choices", ()) for text in row.values()
    ]
    assert not any(re.search(r"\bg\b", text) for text in texts)


@pytest.mark.parametrize(("stored", "word"), [("gamma", "γ"), ("one_plus", "1 + γ")])
def test_it_is_said_how_gains_of_the_reference_are_read(stored: Any, word: str) -> None:
    right = REFERENCE.but(stored=stored)
    found = {each.key: each.sentence for each in of_port(run(port_of(arrays(right, right))), "x").findings}
    assert f"; how the gain is stored: {word};" in found["port_reference"]
    block = of_size(1.0)
    bare = trace(BARE, block).logits
    assert "gain" not in said_of(block, bare, bare)["port_reference"][0]


def test_a_bias_is_asked_for_where_no_pipeline_fits_and_is_not_taken_away() -> None:
    given = arrays(REFERENCE, REFERENCE)
    away = -(torch.arange(24)[:, None] - torch.arange(24)).abs().double() / 2
    given |= {name: given[name] + away for name in ("mine", "reference")}
    found = {each.key: each for each in of_port(run(port_of(given | {"alibi": away})), "x").findings}
    assert (
        "Is a bias of positions added, as ALiBi’s, or has the norm a bias of its own?"
        in found["port_unknown_reference"].sentence
    )
    assert "If it is one of positions, save both logits before it is added." in found["port_unknown_reference"].advice


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
        ({"cap": "softcap"}, "; softcap: 50 · tanh(logit / 50)"),
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


@pytest.mark.parametrize("order", ["norm_rotary", "none"])
def test_of_a_cause_that_stays_open_rotary_is_looked_at_first_where_there_is_one(order: str) -> None:
    given = arrays(REFERENCE.but(order=order), REFERENCE.but(order=order))
    noise = torch.randn(given["mine"].shape, generator=torch.Generator().manual_seed(0)).abs()
    report = of_port(run(port_of(given | {"mine": given["mine"] * (1 + noise)})), "x")
    (found,) = (each for each in report.findings if each.key == "port")
    assert found.values["act"] == say(f"finding.act.unknown{'_unturned' if order == 'none' else ''}")


@pytest.mark.parametrize("norm", ["rms", "l2"])
def test_a_mean_that_was_kept_is_said_of_every_norm_that_keeps_it(norm: str) -> None:
    found = run(port_of(arrays(REFERENCE.but(norm=norm), REFERENCE.but(norm="layernorm"))))
    assert found.verdict is not None
    assert found.verdict.cause == "rms"
    assert found.mine is not None
    assert found.mine.norm == norm
    (said,) = (each.sentence for each in of_port(found, "x").findings if each.key == "port")
    assert "RMSNorm or L2" in said
