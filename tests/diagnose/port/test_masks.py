"""What is read of a port: files, masks, and q and k that do not fit."""

import json
import math

import pytest
import torch

from qkdemo.diagnose.findings.examine import examine
from qkdemo.diagnose.findings.of_port import of_port
from qkdemo.diagnose.port import port_of, run
from qkdemo.diagnose.readers.inputs import InputError
from tests.diagnose.port.ported import REFERENCE, SEQUENCE, arrays, file_of


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


@pytest.mark.parametrize("hides", [-math.inf, -65504.0])
@pytest.mark.parametrize("lost", [math.nan, math.inf])
@pytest.mark.parametrize("pair", [False, True])
def test_what_is_lost_under_an_added_mask_is_no_other_mask(*, hides: float, lost: float, pair: bool) -> None:
    """NaN − 65 504 is NaN, as is ∞ − ∞: the query lost all its keys, also those that both hide."""
    given = arrays(REFERENCE) if pair else {name: arrays(REFERENCE)[name] for name in ("mine", "reference")}
    later = torch.ones(24, 24, dtype=torch.bool).triu(1)
    added = torch.zeros(24, 24).masked_fill(later, hides)
    shown = {name: given[name].masked_fill(later, 0).half() for name in ("mine", "reference")}
    shown["mine"][:, 5] = lost
    heads, _, keys = shown["mine"].shape
    found = {
        each.key: each.values
        for each in of_port(run(port_of(given | {name: x + added.half() for name, x in shown.items()})), "x").findings
    }
    assert "port_mask" not in found
    assert found["port_lost"]["count"] == heads * keys


def test_numbers_that_are_lost_only_where_the_other_hides_are_counted() -> None:
    """∞ of an overflow and −∞ of a mask make NaN, and a softmax of NaN."""
    later = torch.ones(24, 24, dtype=torch.bool).triu(1)
    given = {name: arrays(REFERENCE)[name].masked_fill(later, -math.inf) for name in ("mine", "reference")}
    for side, key in (("mine", "port_lost"), ("reference", "port_lost_reference")):
        broken = given[side].clone()
        broken[:, 2, 7] = math.nan
        found = {each.key: each.values for each in of_port(run(port_of(given | {side: broken})), "x").findings}
        assert found[key]["count"] == len(broken)
        assert ("port_same" in found) is (side == "mine")
        assert "port_mask" not in found


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
