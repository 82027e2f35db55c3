"""What lies beside q and k: a mask, gains, a scale, a softcap; read, or said not to be."""

import re

import pytest
import torch

from qkdemo.diagnose.drift import opened
from qkdemo.diagnose.findings.of_tensors import of_tensors
from qkdemo.diagnose.readers.inputs import InputError
from qkdemo.diagnose.tensors import pair_of, run
from tests.diagnose.tensors.drawn import drawn


def test_mask_gains_and_scale_are_taken_by_name() -> None:
    q, k = drawn(2, 6, 8), drawn(2, 6, 8, seed=1)
    mask = torch.ones(6, 6, dtype=torch.bool).tril()
    more = {"attn_mask": mask, "gamma_q": torch.full((8,), 2.0), "gamma_k": torch.ones(8), "scale": torch.tensor(0.5)}
    pair = pair_of({"layers.0.q": q, "layers.0.k": k, **more})
    assert pair.scale == 0.5
    causal = run(pair_of({"q": q, "k": k}, scale=0.5, causal=True))
    assert run(pair).heads[0]["max_logit"] == causal.heads[0]["max_logit"]
    rms = next(row for row in run(pair).variants if row["variant"] == "rms")
    assert rms["bound"] == pytest.approx(0.5 * 8 * 2)


def test_a_mask_of_ones_and_zeros_hides_what_it_hides_in_any_format() -> None:
    causal = torch.ones(6, 6).tril()
    added = [(1 - causal) * -1e9, (1 - causal) * -1e4, ((1 - causal) * -1e4).bfloat16(), (1 - causal).int() * -10_000]
    for mask in (causal, causal.int(), causal.bool(), causal.bfloat16(), *added):
        pair = pair_of({"q": drawn(2, 6, 8), "k": drawn(2, 6, 8), "mask": mask})
        assert pair.visible is not None
        assert torch.equal(pair.visible[0, 0], causal.bool()), mask.dtype


def test_of_several_masks_the_one_that_is_read_is_said_and_none_of_padding_is() -> None:
    """As nn.MultiheadAttention's key_padding_mask, in which True hides a key; elsewhere True shows it."""
    q, k, causal = drawn(2, 6, 8), drawn(2, 6, 8), torch.ones(6, 6, dtype=torch.bool).tril()
    of_padding, alibi = torch.arange(6) >= 4, -torch.arange(6.0).expand(6, 6)
    for others in ({"key_padding_mask": of_padding}, {"alibi": alibi}, {"alibi": alibi, "padding_mask": of_padding}):
        pair = pair_of({"q": q, "k": k, **others, "attention_mask": causal})
        assert pair.visible is not None
        assert torch.equal(pair.visible[0, 0], causal)
        (found,) = (each for each in of_tensors(run(pair), "x").findings if each.key == "masks_unread")
        assert set(found.values["names"].split(", ")) == set(others)
        assert "none that is named for padding" in found.sentence  # a tokenizer's attention_mask is read
    alone = pair_of({"q": q, "k": k, "key_padding_mask": of_padding})
    assert (alone.visible, alone.unread) == (None, ("key_padding_mask",))
    assert not pair_of({"q": q, "k": k, "attention_mask": causal}).unread


def test_a_mask_that_is_added_to_logits_is_said_to_be_left_out() -> None:
    away = -(torch.arange(6)[:, None] - torch.arange(6)).abs().float()  # as ALiBi's
    hiding = torch.zeros(6, 6).masked_fill(~torch.ones(6, 6, dtype=torch.bool).tril(), -1e9)
    for mask, added in ((away, True), (away + hiding, True), (hiding, False), (torch.ones(6, 6).tril(), False)):
        pair = pair_of({"q": drawn(2, 6, 8), "k": drawn(2, 6, 8), "mask": mask})
        keys = {finding.key for finding in of_tensors(run(pair), "x").findings}
        assert ("mask_added" in keys) is added
        hides = pair.visible is not None and not bool(pair.visible.all())
        assert opened(pair).left_out == ["mask_numbers" if hides else "bias"] * added
    for name in ("attn_bias", "attention_bias", "position_bias", "alibi"):
        assert pair_of({"q": drawn(2, 6, 8), "k": drawn(2, 6, 8), name: away}).biased
    assert not pair_of({"q": drawn(2, 6, 8), "k": drawn(2, 6, 8), "q_proj.bias": away}).biased


def test_a_bias_is_not_said_to_be_a_mask() -> None:
    """ALiBi’s, which hides nothing; with the causal mask in it; and BLOOM’s, which may be whole numbers."""
    away = -(torch.arange(6)[:, None] - torch.arange(6)).abs().float()
    hiding = away.masked_fill(~torch.ones(6, 6, dtype=torch.bool).tril(), -1e9)
    for name, bias, seen in (
        ("alibi", away, "every query is taken to see every key."),
        ("alibi", -away.int(), "every query is taken to see every key."),
        ("attn_bias", hiding, "every query is taken to see every key that the bias attn_bias does not hide."),
    ):
        pair = pair_of({"q": drawn(2, 6, 8), "k": drawn(2, 6, 8, seed=1), name: bias})
        said = {finding.key: finding.sentence for finding in of_tensors(run(pair), "x").findings}
        assert seen in said["tensors_read"]
        assert said["mask_added"].startswith(f"Numbers of the array {name} are added to logits")
        assert not any("the mask" in sentence.lower() for sentence in said.values())


@pytest.mark.parametrize("side", ["q", "k"])
def test_how_gains_are_read_is_said_and_those_that_look_like_one_less_are_asked_about(side: str) -> None:
    """Gemma stores γ − 1, and its RMSNorm multiplies by 1 + that."""
    given = {"q": drawn(2, 6, 8), "k": drawn(2, 6, 8, seed=1)}
    spread = drawn(8, seed=2)
    for gain, asked in (
        (torch.ones(8), False),
        (1 + 0.2 * spread, False),
        (3 + 0.2 * spread, False),
        (torch.zeros(8), True),
        (0.1 * spread, True),
        (torch.tensor([4.0, 4, 4, 4, 4, 4, 4, -0.5]), True),  # as of γ − 1 that have grown
    ):
        report = of_tensors(run(pair_of(given | {f"{side}_gain": gain})), "x")
        found = {each.key: each for each in report.findings}
        assert {"gains_like_less_one" if asked else "gains_read"} == {key for key in found if key.startswith("gains")}
        each = found["gains_like_less_one" if asked else "gains_read"]
        assert f"of {side}, are read as γ itself" in each.sentence
        assert "add 1 to each" in each.sentence + each.advice
        assert each.level == ("watch" if asked else "good")
    both = {"gamma_q": torch.full((8,), -0.5), "gamma_k": torch.ones(8)}
    found = {each.key: each.sentence for each in of_tensors(run(pair_of(given | both)), "x").findings}
    assert "of q, k, are read" in found["gains_like_less_one"]
    assert "their mean is 0.25, and 8 of 16 are 0 or less" in found["gains_like_less_one"]
    assert not any("gain" in each.key for each in of_tensors(run(pair_of(given)), "x").findings)


def test_a_mask_whose_first_axis_could_be_sequences_is_said_to_be_read_otherwise() -> None:
    """Padding as Hugging Face's tokenizers write it, [batch, keys], beside as many sequences as queries."""
    padding = torch.ones(4, 4, dtype=torch.int64)
    padding[1, 2:] = 0
    every = padding[:, None].expand(4, 4, 4)
    for shape, mask, said in (
        ((4, 2, 4, 8), padding, "queries"),
        ((4, 4, 4, 8), every, "heads"),
        ((1, 2, 4, 8), padding, ""),
        ((4, 2, 4, 8), padding[:, None, None], ""),
        ((2, 4, 4, 8), every, ""),
    ):
        pair = pair_of({"q": drawn(*shape), "k": drawn(*shape, seed=1), "attention_mask": mask})
        keys = {finding.key for finding in of_tensors(run(pair), "x").findings if "mask_axes" in finding.key}
        assert keys == ({f"mask_axes_{said}"} if said else set()), shape


def test_a_softcap_that_lies_beside_is_said_not_to_be_applied() -> None:
    given = {"q": drawn(2, 6, 8), "k": drawn(2, 6, 8, seed=1)}
    for name in ("softcap", "attn_logit_softcapping", "logit_cap"):
        found = of_tensors(run(pair_of(given | {name: torch.tensor([50.0])})), "x").findings
        assert f"Not used: {name}" in {each.key: each.sentence for each in found}["softcap_unread"]
    for none in ({}, {"softcap": torch.zeros(1)}):  # FlashAttention's 0 is none
        assert "softcap_unread" not in {each.key for each in of_tensors(run(pair_of(given | none)), "x").findings}


@pytest.mark.parametrize("name", ["scale", "attn.scale", "attn.softmax_scale"])
def test_a_scale_is_read_alone_or_after_what_comes_before_q(name: str) -> None:
    given = {"attn.q": drawn(2, 6, 8), "attn.k": drawn(2, 6, 8, seed=1), name: torch.tensor(3.0)}
    pair = pair_of(given)
    assert (pair.scale, pair.scale_given, pair.scales_unread) == (3.0, True, ())


@pytest.mark.parametrize(
    "name",
    [
        "logit_scale",
        "attn.logit_scale",
        "other_attn.scale",
        "qk_scale",
        "attention_multiplier",
        "query_pre_attn_scalar",
    ],
)
def test_a_scale_that_is_not_read_is_said(name: str) -> None:
    """As Swin v2 has one for each head, and CLIP the logarithm of one."""
    given = {"q": drawn(8, 6, 16), "k": drawn(8, 6, 16, seed=1), name: torch.ones(8, 1, 1)}
    found = {each.key: each.sentence for each in of_tensors(run(pair_of(given)), "x").findings}
    assert found["scale_unread"] == f"Not used: {name}. Logits and attention are those of q · k times 0.25."
    assert "scale_unread" not in {each.key for each in of_tensors(run(pair_of(given, scale=2.0)), "x").findings}


@pytest.mark.parametrize("name", ["q_scale", "k_descale", "q_norm.scale", "rope.scaling", "weight_scale"])
def test_another_scale_than_that_of_the_product_is_passed_over(name: str) -> None:
    pair = pair_of({"q": drawn(2, 6, 8), "k": drawn(2, 6, 8, seed=1), name: torch.ones(2)})
    assert (pair.scale_given, pair.scales_unread) == (False, ())


def test_a_mask_of_batch_and_keys_is_read_as_a_tokenizer_has_it() -> None:
    arrays = {"q": drawn(2, 4, 12, 8), "k": drawn(2, 4, 12, 8, seed=1)}
    mask = torch.ones(2, 12, dtype=torch.int64)
    mask[1, 9:] = 0
    visible = pair_of(arrays | {"attention_mask": mask}).visible
    assert visible is not None
    assert torch.equal(visible, (mask[:, None, None] == 1).expand(2, 4, 12, 12))
    with pytest.raises(InputError, match=re.escape("Save one of [batch, queries, keys] as [batch, 1, queries, keys]")):
        pair_of(arrays | {"mask": torch.ones(2, 12, 12, dtype=torch.bool)})


@pytest.mark.parametrize("name", ["scale", "scaling", "softmax_scale", ""])
def test_what_multiplies_q_and_k_is_said(name: str) -> None:
    """T5 multiplies by 1; without a word its logits would be taken for √d times smaller."""
    given = {"q": drawn(4, 12, 64), "k": drawn(4, 12, 64, seed=1)}
    found = run(pair_of(given | ({name: torch.tensor([1.0])} if name else {})))
    (read,) = (each.sentence for each in of_tensors(found, "x").findings if each.key == "tensors_read")
    assert ("q · k was multiplied by 1." if name else "by 0.125 (1/√d, as no other was read).") in read
    largest = float((given["q"] @ given["k"].mT).abs().max()) * (1 if name else 0.125)
    assert abs(found.heads[0]["max_logit"]) == pytest.approx(largest)
