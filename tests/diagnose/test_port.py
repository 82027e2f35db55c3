"""A port's logits beside its reference's: the choice that was read wrongly is named, in every number format."""

import io
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from qkdemo.attention.blocks import Block, BlockRecipe, draw_block
from qkdemo.attention.pipeline import Pipeline, trace
from qkdemo.diagnose.findings.examine import examine
from qkdemo.diagnose.findings.of_port import of_port
from qkdemo.diagnose.port import port_of, run
from qkdemo.diagnose.readers.inputs import InputError

BLOCK = draw_block(BlockRecipe(n_heads=4, n_kv_heads=2, d_head=16, d_model=32, n_keys=24, causal=True))
HIDDEN = ~torch.ones(24, 24, dtype=torch.bool).tril()
REFERENCE = Pipeline()
MISREAD: dict[str, dict[str, Any]] = {
    "scale_one": {"scale": "one"},
    "norm_skipped": {"norm": "none"},
    "full_width": {"place": "full_width"},
    "layernorm": {"norm": "layernorm"},
    "rotary_first": {"order": "rotary_norm"},
    "layout": {"layout": "interleaved"},
    "direction": {"layout": "half_split_swapped"},
    "rotated_half": {"rotated": "half"},
    "tiled": {"grouping": "tile"},
    "q_gain_on_k": {"key_gain": "of_q"},
    "gamma_as_one_plus": {"stored": "one_plus"},
}


def arrays(
    mine: Pipeline, reference: Pipeline = REFERENCE, kind: torch.dtype = torch.float64
) -> dict[str, torch.Tensor]:
    """What whoever ports a model saves: logits with the mask in them, and q and k as the projections leave them."""
    right, wrong = trace(reference, BLOCK), trace(mine, BLOCK)
    found = {"q": right.q_projected, "k": right.k_projected}
    found |= {"gamma_q": BLOCK.gain_q[0], "gamma_k": BLOCK.gain_k[0]}
    for name, made in (("reference", right), ("mine", wrong)):
        found[name] = made.logits.masked_fill(HIDDEN, -math.inf).to(kind)
    return found


@pytest.mark.parametrize("kind", [torch.float64, torch.float32])
@pytest.mark.parametrize("cause", MISREAD)
def test_the_choice_that_was_read_wrongly_is_named(cause: str, kind: torch.dtype) -> None:
    found = run(port_of(arrays(REFERENCE.but(**MISREAD[cause]), kind=kind)))
    assert found.verdict is not None
    assert found.verdict.cause == cause


@pytest.mark.parametrize("cause", ["scale_one", "norm_skipped", "rotary_first", "layout"])
def test_sixteen_bits_are_enough_for_the_common_ones(cause: str) -> None:
    found = run(port_of(arrays(REFERENCE.but(**MISREAD[cause]), kind=torch.bfloat16)))
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


def file_of(given: dict[str, torch.Tensor]) -> bytes:
    out = io.BytesIO()
    np.savez(out, allow_pickle=False, **{name: x.float().numpy() for name, x in given.items()})
    return out.getvalue()


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


def test_two_files_are_read_together() -> None:
    given = arrays(REFERENCE.but(order="rotary_norm"))
    mine = file_of(
        {"logits": given["mine"]} | {name: x for name, x in given.items() if name not in ("mine", "reference")}
    )
    reference = file_of({"scores": given["reference"]})
    report = examine(mine, "mine.npz", reference=(reference, "reference.npz"))
    assert report.kind == "port"
    assert "with rotary before the norm some gains fit the logits" in report.findings[0].sentence
    assert report.findings[0].look is not None
    assert report.findings[0].look[1]["right_order"] == "rotary_norm"


def test_pasted_arrays_are_read_as_json() -> None:
    given = {name: x.tolist() for name, x in arrays(REFERENCE.but(scale="one")).items() if name in "qk"}
    assert examine(json.dumps(given).encode(), "pasted").kind == "tensors"
    with pytest.raises(InputError, match="rows of numbers of equal length"):
        examine(b'{"q": [[1, 2], [3]], "k": [[1, 2]]}', "pasted")


def test_masks_that_differ_and_numbers_that_are_lost_are_said_first() -> None:
    given = arrays(REFERENCE)
    given["mine"] = given["mine"].clone()
    given["mine"][0, 5, 2] = math.nan
    given["mine"][1, 6, 3] = -math.inf
    logits = {name: given[name] for name in ("mine", "reference")}
    for brought in (given, logits):
        found = examine(file_of(brought), "port.npz").findings
        assert {"port_lost", "port_mask"} <= {finding.key for finding in found}
        assert not any("NaN" in finding.sentence for finding in found)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"mine": torch.zeros(4, 24, 23)}, "need the same shape"),
        ({"mine": torch.zeros(3)}, "needs \\[queries, keys\\]"),
        ({"q": torch.zeros(3, 24, 16)}, "k may have fewer heads"),
        ({"q": torch.zeros(3)}, "q has the shape \\[3\\]; it needs \\[positions, d_head\\]"),
        ({"k": torch.zeros(4, 0, 16)}, "k is empty"),
        ({"gamma_q": torch.zeros(3)}, "one number for each of the 16"),
    ],
)
def test_what_does_not_fit_gets_a_sentence(changes: dict[str, torch.Tensor], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        port_of(arrays(REFERENCE) | changes)


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


def test_one_row_that_differs_is_found_in_many_that_do_not() -> None:
    exact = torch.randn(8, 48, 48, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    mine = exact.clone()
    mine[3, 17] *= 1.1
    report = of_port(run(port_of({"mine": mine.bfloat16(), "reference": exact.bfloat16()})), "port")
    (found,) = (finding for finding in report.findings if finding.level == "bad")
    assert found.key == "port_row"
    assert "those of query 17 in head 3 differ by 1" in found.sentence


def test_of_a_reference_without_a_norm_no_place_of_it_is_told() -> None:
    right = REFERENCE.but(norm="none", gain="none")
    found = {finding.key: finding for finding in of_port(run(port_of(arrays(right, right))), "port").findings}
    sentence = found["port_reference"].sentence
    assert "norm: none" in sentence
    assert "place of the norm" not in sentence
    assert "norm, then rotary" not in sentence
    assert "order of norm and rotary: rotary, no norm" in sentence


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
    alone = examine(file_of({"mine": logits[:1], "reference": logits[:1]}), "port.npz")
    assert [finding.key for finding in alone.findings] == ["port_same"]
    block = draw_block(BlockRecipe(n_heads=2, n_kv_heads=2, d_head=8, n_keys=64))
    right = trace(REFERENCE, block)
    given = {"q": right.q_projected, "k": right.k_projected, "mine": right.logits, "reference": right.logits}
    long = examine(file_of(given), "port.npz")
    assert any(
        "told from the first 48 of 64 queries, and from as many keys" in finding.sentence for finding in long.findings
    )


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


def test_what_a_mask_of_minus_ten_thousand_is_added_to_is_hidden() -> None:
    """As BERT's: half the keys are padding; of the others the port's logits are all wrong."""
    logits = [torch.randn(4, 24, 24, generator=torch.Generator().manual_seed(at)) for at in (0, 1)]
    padding = torch.where(torch.arange(24) < 12, 0.0, -10000.0)
    for kind in (torch.float32, torch.bfloat16):
        mine, reference = ((x + padding).to(kind) for x in logits)
        said = {
            each.key: each.sentence
            for each in of_port(run(port_of({"mine": mine, "reference": reference})), "x").findings
        }
        assert said.keys() == {"port_pattern", "port_needs"}
        error = (logits[0] - logits[1])[..., :12].norm() / logits[1][..., :12].norm()
        assert f"by {round(float(error), 1):.0%}".replace("%", " %") in said["port_pattern"]


@pytest.mark.parametrize("mask", [None, -math.inf, -1e9, torch.finfo(torch.float32).min])
def test_large_logits_below_zero_are_no_masked_ones(mask: float | None) -> None:
    """A port without 1/√d: its logits run from about −40 000 to 40 000, those of the reference from −5000 to 5000."""
    reference = 1300 * torch.randn(4, 24, 24, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    mine = 8 * reference
    assert mine.min() < -2 * 9000
    if mask is not None:
        reference, mine = (x.masked_fill(torch.ones(24, 24).triu(1).bool(), mask) for x in (reference, mine))
    made = port_of({"mine": mine, "reference": reference})
    seen = 24 * 24 if mask is None else 24 * 25 // 2
    assert (int(made.visible.sum()), made.masked_otherwise) == (seen, 0)
    said = {each.key: each.sentence for each in of_port(run(made), "x").findings}
    assert "every logit of the port is 8 times" in said["port_ratio"]


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


SEQUENCE = torch.ones(40, 40, dtype=torch.bool).triu(1)


def of_size(size: float, rows: int = 40) -> Block:
    """A block of 64 channels a head, whose q has entries of about that size."""
    block = draw_block(BlockRecipe(n_heads=2, n_kv_heads=2, d_head=64, d_model=32, n_keys=rows))
    return replace(block, x=block.x * size / trace(BARE, block).q_projected.square().mean().sqrt())


def said_of(block: Block, mine: torch.Tensor, reference: torch.Tensor) -> dict[str, tuple[str, str]]:
    """By key, the sentence and the advice on both logits beside q and k, in float32."""
    made = trace(BARE, block)
    given = {"q": made.q_projected, "k": made.k_projected, "mine": mine, "reference": reference}
    found = of_port(run(port_of({name: x.float() for name, x in given.items()})), "x").findings
    return {finding.key: (finding.sentence, finding.advice) for finding in found}


BARE = Pipeline(gain="none")
OTHER = BARE.but(epsilon=1e-5)


@pytest.mark.parametrize("size", [0.6, 0.8, 1.0])
def test_a_reference_with_another_epsilon_is_said_with_its_scale_and_the_factor(size: float) -> None:
    """ε of 1e-5 for 1e-6 leaves 1 − 9e-6/size² of every logit, and that is no scale g."""
    block = of_size(size)
    right = trace(OTHER, block).logits
    named = said_of(block, right, right)["port_reference"][0]
    factor = re.search(r"scale: 1/√d, but for a factor (0\.9999\d*), as another ε or a rounded scale may leave", named)
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
    for mine, reference, ratio in ((other, right, "0.9999"), (right, other, "1.0000")):
        sentence, advice = said_of(block, mine, reference)["port"]
        assert f"Every logit is {ratio}" in sentence
        assert "a rounded scale does that, or another ε" in sentence
        assert "differs in" not in sentence
        assert "Compare ε of both norms" in advice
    report = of_port(run(port_of({"mine": 1.0001 * right, "reference": right})), "x").findings
    (alone,) = (each for each in report if each.key == "port_ratio")
    assert "A rounded scale may do that, or another ε" in alone.sentence
    assert "Compare ε of both norms" in alone.advice


def test_a_scale_that_is_applied_twice_is_no_other_norm() -> None:
    """RMSNorm with 1/d is L2 with 1: both are that port, and one of them is one change from the reference."""
    block = of_size(1.0)
    right = trace(BARE, block).logits
    sentence = said_of(block, right / 8, right)["port"][0]
    assert "1/√d applied twice does that" in sentence
    assert "differs in: scale." in sentence


def test_scores_that_overflow_are_not_taken_for_another_mask() -> None:
    """q · k in fp16 before the scale is −∞ from −65 520 on; the mask of both is the same."""
    raw = 83_600 * torch.linspace(-1, 0.7, 40).repeat(2, 40, 1)
    mine, reference = (x.masked_fill(SEQUENCE, -math.inf) for x in ((raw.half() / 128**0.5).float(), raw / 128**0.5))
    found = {each.key: each for each in of_port(run(port_of({"mine": mine, "reference": reference})), "x").findings}
    lost = int(((raw < -65_520) & ~SEQUENCE).sum())
    assert found["port_mask"].sentence.endswith(f": {lost}. The masks differ, or scores overflowed to −∞.")
    assert "−∞ or a mask’s number in one of the two, and a logit in the other" in found["port_mask"].sentence
    assert "the number format in which q · k is formed" in found["port_mask"].advice


@pytest.mark.parametrize(("queries", "keys"), [(1, 40), (8, 40), (16, 77)])
def test_q_and_k_of_other_counts_are_refused_by_a_sentence_that_says_so(queries: int, keys: int) -> None:
    """A decode step, the last chunk of a prompt, and cross attention."""
    logits = {name: torch.zeros(8, queries, keys) for name in ("mine", "reference")}
    with pytest.raises(InputError, match="only logits of as many queries as keys are read") as error:
        port_of(logits | {"q": torch.ones(8, queries, 64), "k": torch.ones(2, keys, 64)})
    assert "do not fit" not in str(error.value)
    assert port_of(logits).block is None
    with pytest.raises(InputError, match="do not fit"):
        port_of(logits | {"q": torch.ones(8, queries, 64), "k": torch.ones(2, keys + 1, 64)})


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


def test_of_an_unknown_reference_another_epsilon_is_asked_for() -> None:
    block = of_size(0.1)
    right = trace(BARE.but(epsilon=1e-2), block).logits
    sentence, advice = said_of(block, right, right)["port_unknown_reference"]
    assert "ε of RMSNorm other than 10⁻⁶" in sentence
    assert "once with 10⁻⁶" in advice
