"""What is said of somebody's q and k: the axes, the worst heads, every variant and format."""

import math
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from qkdemo.attention.measures import attend
from qkdemo.attention.variants import VARIANTS, Parameters, scores
from qkdemo.diagnose import tensors
from qkdemo.diagnose.drift import opened
from qkdemo.diagnose.findings.of_tensors import _grown_by, of_tensors
from qkdemo.diagnose.readers.inputs import InputError
from qkdemo.diagnose.tensors import pair_of, part_of, run
from qkdemo.messages import say
from qkdemo.notation import written


def drawn(*shape: int, seed: int = 0, size: float = 1.0) -> torch.Tensor:
    return size * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("shape", [(6, 8), (3, 6, 8), (2, 3, 6, 8)])
def test_two_to_four_axes_are_read(shape: tuple[int, ...]) -> None:
    pair = pair_of({"q": drawn(*shape), "k": drawn(*shape, seed=1)})
    assert pair.q.dim() == 4
    assert pair.q.shape[-3:] == ((1,) * 3 + shape)[-3:]
    assert pair.scale == 8**-0.5


def test_positions_before_heads_are_recognised_where_only_that_fits() -> None:
    grouped = pair_of({"q": drawn(1, 20, 4, 8), "k": drawn(1, 20, 2, 8)})
    assert (grouped.axes, tuple(grouped.q.shape)) == ("positions", (1, 4, 20, 8))
    assert pair_of({"q": drawn(1, 8, 8, 4), "k": drawn(1, 8, 8, 4)}).axes == "ambiguous"
    one, other = (
        run(pair_of({"q": drawn(1, 8, 8, 4), "k": drawn(1, 8, 8, 4, seed=1)}, swapped=s)) for s in (False, True)
    )
    assert one.heads[0]["max_logit"] != other.heads[0]["max_logit"]


def test_every_variant_is_what_the_drift_lab_finds() -> None:
    q, k = drawn(4, 10, 16, size=3), drawn(4, 10, 16, seed=1)
    result = run(pair_of({"q": q, "k": k}))
    for row in result.variants:
        made = scores(q[None], k[None], VARIANTS[row["variant"]], Parameters(g=4.0))
        measures = attend(made.logits)[1]
        assert row["max_abs_logit"] == pytest.approx(measures.max_abs_logit.item(), rel=1e-9)
        assert row["entropy_fraction"] == pytest.approx(measures.entropy_fraction.item(), rel=1e-9)
        if row["bound"] is not None:
            assert row["max_abs_logit"] <= row["bound"] * (1 + 1e-12)


@pytest.mark.parametrize("scale", [1.0, 1 / 128, -0.5])
def test_a_norm_keeps_the_scale_that_was_given(scale: float) -> None:
    """As of T5 and Granite; l2 and cosine have scales of their own, which are said above the table."""
    q, k = drawn(4, 10, 64, size=3), drawn(4, 10, 64, seed=1)
    result = run(pair_of({"q": q, "k": k}, scale=scale))
    rows = {row["variant"]: row for row in result.variants}

    def cosines(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a / a.norm(dim=-1, keepdim=True)) @ (b / b.norm(dim=-1, keepdim=True)).mT

    centred = cosines(*(x - x.mean(-1, keepdim=True) for x in (q, k)))
    over_all = [x / x.square().mean((0, 2), keepdim=True).sqrt() for x in (q, k)]
    plain = float(cosines(q, k).abs().max())
    expected = {
        "none": abs(scale) * float((q @ k.mT).abs().max()),
        "rms": abs(scale) * 64 * plain,
        "layernorm": abs(scale) * 64 * float(centred.abs().max()),
        "dyt": abs(scale) * float(((0.5 * q).tanh() @ (0.5 * k).tanh().mT).abs().max()),
        "full_width": abs(scale) * float((over_all[0] @ over_all[1].mT).abs().max()),
        "rms_softcap": 50 * math.tanh(abs(scale) * 64 * plain / 50),
        "l2": 8 * plain,
        "cosine": 10 * plain,
    }
    found = {word: rows[word]["max_abs_logit"] for word in expected}
    assert found == pytest.approx(expected, rel=1e-4)  # eps of the norms
    bounds = dict.fromkeys(("rms", "layernorm", "dyt"), abs(scale) * 64) | {"full_width": abs(scale) * 64 * 4}
    bounds |= {"rms_softcap": 50 * math.tanh(abs(scale) * 64 / 50), "l2": 8, "cosine": 10}
    assert {word: rows[word]["bound"] for word in bounds} == pytest.approx(bounds)
    own = {row["variant"]: row["max_abs_logit"] for row in result.growth if row["scale"] == 1}
    assert own == pytest.approx({word: found[word] for word in ("none", "rms")}, rel=0.5)  # of the worst head alone
    assert "l2 with the scale √d, cosine with 10, all others with the scale of q · k" in say("report.table.variants")


def test_a_head_is_worst_by_length_or_by_alignment() -> None:
    q, k = drawn(2, 9, 32), drawn(2, 9, 32, seed=1)
    long = q.clone()
    long[1, 3] *= 40
    aligned = q.clone()
    aligned[1, 3] = k[1, 5] * q[1, 3].norm() / k[1, 5].norm()
    assert [row["grown_by"] for row in run(pair_of({"q": long, "k": k})).heads[:1]] == ["length"]
    assert [row["grown_by"] for row in run(pair_of({"q": aligned, "k": k})).heads[:1]] == ["alignment"]


def test_a_head_that_is_long_throughout_is_not_put_down_to_alignment() -> None:
    """The same q and k twenty times as long: what a norm takes out again is length, however well two vectors agree."""
    q, k = drawn(1, 9, 16), drawn(1, 9, 16, seed=1)
    q[0, 3] = k[0, 5]
    grown = of_tensors(run(pair_of({"q": 20 * q, "k": 20 * k})), "x").findings[0]
    assert grown.key == "large_throughout"
    assert "this logit would be 4." in grown.sentence  # √16, since the cosine is 1
    large_scale = of_tensors(run(pair_of({"q": q, "k": k}, scale=20.0)), "x").findings[0]
    assert "or the scale is large" in large_scale.sentence


def test_one_long_query_among_long_ones_does_not_explain_the_largest_logit() -> None:
    """q and k 50 times as long as usual, one query 2.4 times as long again: without that little is gained."""
    q, k = drawn(1, 16, 64, size=50), drawn(1, 16, 64, seed=1, size=50)
    longest = int((q[0] @ k[0].T).abs().amax(1).argmax())
    q[0, longest] *= 2.4
    said = of_tensors(run(pair_of({"q": q, "k": k})), "x").findings[0]
    assert said.key == "large_at_usual"
    lengths = [x[0].norm(dim=-1) for x in (q, k)]
    cut = [x[0] * (side.median() / side).clamp(max=1)[:, None] for x, side in zip((q, k), lengths, strict=True)]
    rest = float((cut[0] @ cut[1].T).abs().max()) / 8
    assert rest > 5000
    assert said.values["usual"] == written(rest)
    alone = drawn(1, 16, 64, size=1)
    alone[0, longest] *= 80
    assert of_tensors(run(pair_of({"q": alone, "k": k / 50})), "x").findings[0].key == "large_length"


@pytest.mark.parametrize(
    ("q", "k", "ambiguous"),
    [
        ((1, 12, 8, 16), (1, 12, 8, 16), True),  # 12 heads of 8 positions, or 12 positions of 8 heads
        ((12, 8, 16), (12, 8, 16), True),
        ((1, 8, 12, 16), (1, 8, 12, 16), False),
        ((1, 12, 8, 16), (1, 6, 8, 16), False),  # as positions, 6 keys for 12 queries
        ((1, 32, 1, 16), (1, 32, 77, 16), False),  # one query beside a cache
        ((12, 16), (12, 16), False),
    ],
)
def test_axes_are_asked_about_where_both_orders_fit(q: tuple[int, ...], k: tuple[int, ...], ambiguous: bool) -> None:
    arrays = {"q": drawn(*q), "k": drawn(*k, seed=1)}
    said = {finding.key: finding.sentence for finding in of_tensors(run(pair_of(arrays)), "x").findings}
    assert ("axes" in said) is ambiguous
    swapped = of_tensors(run(pair_of(arrays, swapped=True)), "x").findings if ambiguous else ()
    assert "axes" not in {finding.key for finding in swapped}


def test_an_even_share_of_two_keys_is_no_sink() -> None:
    places = torch.arange(64)
    window = (places[:, None] >= places) & (places[:, None] - places < 2)
    for seed in range(20):
        arrays = {"q": drawn(4, 64, 16, seed=seed), "k": drawn(4, 64, 16, seed=100 + seed), "mask": window}
        assert "sink" not in {finding.key for finding in of_tensors(run(pair_of(arrays)), "x").findings}
    k = torch.zeros(4, 64, 16, dtype=torch.float64)
    k[:, ::2, 0] = 30.0  # what every other query sees first
    q = torch.zeros(4, 64, 16, dtype=torch.float64)
    q[:, 1::2, 0], q[:, ::2, 0] = 1.0, -1.0
    found = {f.key: f for f in of_tensors(run(pair_of({"q": q, "k": k, "mask": window})), "x").findings}
    assert found["one_hot_sink" if "one_hot_sink" in found else "sink"].values["count"] == 4


def test_the_largest_logit_of_the_last_sequence_is_found() -> None:
    """A training script is measured on four sequences of a batch; what somebody brings is looked at whole."""
    q, k = torch.ones(2, 9, 1, 3, 4, dtype=torch.float64)
    q[8] = 300
    found = run(pair_of({"q": q, "k": k}))
    assert found.heads[0]["max_logit"] == pytest.approx(300 * 4 / 2)
    assert found.variants[0]["max_abs_logit"] == pytest.approx(300 * 4 / 2)


def test_a_long_key_elsewhere_does_not_explain_the_largest_logit() -> None:
    """Key 0 is a hundred times as long as the others and at a right angle to the query of the largest logit."""
    q, k = torch.zeros(2, 1, 4, 4, dtype=torch.float64)
    q[0, :, 0] = k[0, 1:, 0] = 20
    k[0, 0, 1] = 2000
    found = run(pair_of({"q": q, "k": k}))
    assert found.heads[0]["max_logit"] == pytest.approx(200)
    assert found.heads[0]["grown_by"] == "alignment"


def test_formats_say_what_they_lose() -> None:
    pair = pair_of(
        {"q": torch.full((1, 128), 24.0), "k": torch.stack([torch.full((128,), 24.0), torch.full((128,), 23.0)])}
    )
    rows = {row["format"]: row for row in run(pair).formats}
    assert rows["float16"]["scores_lost"] == 2  # 73728 and 70656
    assert rows["float16"]["rows_undefined"] == 1
    assert rows["bfloat16"]["scores_lost"] == rows["float32"]["scores_lost"] == 0


def test_a_score_of_minus_infinity_leaves_a_softmax_where_another_is_seen() -> None:
    """float16: −90000 of the first key becomes −∞, its weight 0; with a negative scale the logit is +∞."""
    q, k = torch.full((2, 1), 300.0), torch.tensor([[-300.0], [1.0]])

    def undefined(**more: Any) -> float:
        rows = {row["format"]: row for row in run(pair_of({"q": q, "k": k} | more)).formats}
        assert rows["float16"]["scores_lost"] > 0
        return float(rows["float16"]["rows_undefined"])

    assert undefined() == 0
    assert undefined(scale=torch.tensor(-1.0)) == 1
    assert undefined(mask=torch.tensor([[True, False], [True, True]])) == 0.5


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


WRONG: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "none": ({"a": drawn(2, 2)}, {}, "q and k are not both among the arrays: a"),
    "one of them": ({"q": drawn(2, 2), "b": drawn(2, 2), "c": drawn(2, 2)}, {}, "not both among the arrays: q, b, c"),
    "many": ({"a.q": drawn(2, 2), "b.q": drawn(2, 2), "k": drawn(2, 2)}, {}, "More than one array could be q"),
    "one axis": ({"q": drawn(4), "k": drawn(4)}, {}, r"q has the shape \[4\]"),
    "widths": ({"q": drawn(4, 8), "k": drawn(4, 6)}, {}, "same head width"),
    "batches": ({"q": drawn(2, 1, 4, 8), "k": drawn(3, 1, 4, 8)}, {}, "same batch"),
    "heads": ({"q": drawn(4, 5, 8), "k": drawn(3, 7, 8)}, {}, "4 query heads cannot share 3 key heads evenly.$"),
    "positions": ({"q": drawn(8, 10, 4), "k": drawn(3, 10, 4)}, {}, "evenly. If these are positions, swap the axes"),
    "swapped": ({"q": drawn(1, 10, 8, 4), "k": drawn(1, 10, 3, 4)}, {"swapped": True}, "3 key heads evenly.$"),
    "empty": ({"q": drawn(0, 8), "k": drawn(0, 8)}, {}, r"is empty: its shape is \[0, 8\]"),
    "NaN": ({"q": drawn(2, 8) * math.nan, "k": drawn(2, 8)}, {}, "Every number of q is NaN"),
    "mask": ({"q": drawn(4, 8), "k": drawn(4, 8), "mask": torch.ones(3, 3)}, {}, "does not broadcast"),
    "gain": ({"q": drawn(4, 8), "k": drawn(4, 8), "gamma_q": torch.ones(5)}, {}, "each of the 8 channels"),
    "scales": ({"q": drawn(4, 8), "k": drawn(4, 8), "scale": drawn(4)}, {}, r"The scale has the shape \[4\]"),
    "no scale": ({"q": drawn(4, 8), "k": drawn(4, 8), "scale": drawn(0)}, {}, r"The scale has the shape \[0\]"),
    "scale": ({"q": drawn(4, 8), "k": drawn(4, 8)}, {"scale": 0.0}, "finite number other than 0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_arrays_that_do_not_fit_get_a_sentence(name: str) -> None:
    arrays, options, sentence = WRONG[name]
    with pytest.raises(InputError) as error:
        pair_of(arrays, **options)
    assert re.search(sentence, str(error.value)), str(error.value)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_numbers_whose_squares_leave_float32_are_measured(size: float) -> None:
    q, k = drawn(2, 6, 8), drawn(2, 6, 8, seed=1)
    plain = run(pair_of({"q": q.float(), "k": k.float()})).heads[0]
    other = run(pair_of({"q": (size * q).float(), "k": (size * k).float()})).heads[0]
    assert other["max_logit"] == pytest.approx(size * size * plain["max_logit"], rel=1e-5)
    assert other["q_norm_max"] == pytest.approx(size * plain["q_norm_max"], rel=1e-5)


@pytest.mark.parametrize("lost", [math.nan, math.inf])
def test_what_is_not_finite_in_q_is_placed_and_no_format_is_blamed(lost: float) -> None:
    q, k = drawn(2, 6, 8), drawn(2, 6, 8, seed=1)
    q[1, 4] = lost
    report = of_tensors(run(pair_of({"q": q, "k": k})), "pair")
    said = {finding.key: finding.sentence for finding in report.findings}
    assert "Values of q that are not finite: 8 of 96. The first is in its head 1, at position 4." in said["not_finite"]
    assert not {"format", "one_key"} & said.keys()


def test_where_no_key_is_seen_nothing_is_said_of_logits() -> None:
    mask = torch.zeros(6, 6, dtype=torch.bool)
    report = of_tensors(run(pair_of({"q": drawn(6, 8), "k": drawn(6, 8), "mask": mask})), "pair")
    assert {finding.key for finding in report.findings} == {"tensors_read", "no_key"}


def test_zeros_are_measured() -> None:
    result = run(pair_of({"q": torch.zeros(3, 4), "k": torch.zeros(3, 4)}))
    assert result.heads[0]["max_logit"] == 0
    assert result.heads[0]["entropy_fraction"] == pytest.approx(1)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is counted as Linux does")
def test_many_positions_are_examined_in_little_memory() -> None:
    """Scores of 4 heads, 3500 × 3500, in float64: 0.4 GB, and several copies at once if they were formed whole."""
    resource = pytest.importorskip("resource")
    pair = pair_of({name: drawn(4, 3500, 8).float() for name in "qk"})
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (5 << 28), before[1]))
    try:
        found = run(pair)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert found.queries < 3500
    assert found.variants[0]["max_abs_logit"] <= max(abs(row["max_logit"]) for row in found.heads) + 1e-4


def test_a_part_of_a_causal_pair_sees_what_its_queries_saw() -> None:
    pair = pair_of({name: torch.ones(1, 3000, 2) for name in "qk"}, causal=True)
    part = part_of(pair)
    assert part.visible is not None
    assert not part.causal
    seen = part.visible.sum(-1).flatten()
    assert int(seen[0]) == 1
    assert int(seen[-1]) == 3000


def test_a_pair_that_fits_is_its_own_part() -> None:
    pair = pair_of({"q": drawn(2, 6, 8), "k": drawn(2, 6, 8)})
    assert part_of(pair) is pair


def test_a_very_short_head_is_not_taken_for_zeros_and_a_score_of_minus_infinity_has_a_share_of_0() -> None:
    q, k = drawn(2, 8, 16).float(), drawn(2, 8, 16, seed=1).float()
    short = q.clone()
    short[1] *= 1e-25
    assert "zeros" not in [finding.key for finding in of_tensors(run(pair_of({"q": short, "k": k})), "x").findings]
    short[1] = 0
    assert "zeros" in [finding.key for finding in of_tensors(run(pair_of({"q": short, "k": k})), "x").findings]
    k[0, 3, 2] = math.inf
    (lost,) = (row for row in run(pair_of({"q": q, "k": k})).heads if row["head"] == 0)
    assert 0 < lost["undefined_rows"] < 1
    assert 0 < lost["entropy_fraction"] < 1


def test_a_query_whose_earlier_keys_are_all_padding_sees_none() -> None:
    mask = torch.ones(1, 1, 1, 6, dtype=torch.bool)
    mask[..., :2] = False
    arrays = {"q": drawn(3, 6, 8), "k": drawn(3, 6, 8, seed=1), "mask": mask}
    found = {finding.key: finding for finding in of_tensors(run(pair_of(arrays, causal=True)), "x").findings}
    assert found["no_key"].values["count"] == 2 * 3
    assert "no_key" not in [finding.key for finding in of_tensors(run(pair_of(arrays)), "x").findings]


@pytest.mark.parametrize(
    ("kind", "level"), [("bfloat16", "watch"), ("float16", "bad"), ("float32", "watch"), ("float64", "watch")]
)
def test_scores_that_a_narrower_format_than_the_files_own_would_lose_are_no_fault_yet(kind: str, level: str) -> None:
    q = torch.full((1, 6, 4), 200.0).to(getattr(torch, kind))
    found = [each for each in of_tensors(run(pair_of({"q": q, "k": q})), "x").findings if "format" in each.values]
    assert [(each.values["format"], each.level) for each in found] == [("float16", level)]
    assert ("36 of 36 scores would be beyond" in found[0].sentence) is (level == "watch")


def test_a_head_that_rests_on_the_first_key_is_counted_once() -> None:
    """Of four heads one gives all to the first key, one much of it, one all to another key, and one nothing."""
    q, k = torch.zeros(4, 6, 4), torch.zeros(4, 6, 4)
    q[..., 0] = 1
    k[0, 0, 0], k[1, 0, 0], k[2, 3, 0] = 60, 7, 60
    found = {each.key: each for each in of_tensors(run(pair_of({"q": q, "k": k})), "x").findings}
    levels = {key: (found[key].values["count"], found[key].level) for key in ("one_hot", "one_hot_sink", "sink")}
    assert levels == {"one_hot": (1, "bad"), "one_hot_sink": (1, "watch"), "sink": (1, "watch")}


def test_the_shape_that_is_told_is_named_as_it_was_read() -> None:
    """A file of three axes has no batch: what is axis 1 of the four is its axis 0."""
    report = of_tensors(run(pair_of({"q": drawn(8, 8, 4), "k": drawn(8, 8, 4, seed=1)})), "x")
    (sentence,) = (each.sentence for each in report.findings if each.key == "axes")
    assert "Read as [batch, heads, positions, d_head] = [1, 8, 8, 4], q has" in sentence
    assert "xis 1" not in sentence


def test_a_length_that_leaves_nearly_all_of_the_largest_logit_does_not_explain_it() -> None:
    """55, and 49 without any vector that is longer than usual: 49 alone would be no sign of trouble."""
    found = run(pair_of({"q": drawn(1, 9, 16), "k": drawn(1, 9, 16, seed=1)}))
    row = found.heads[0] | {"grown_by": "length"}
    assert _grown_by(replace(found, heads=[row], at_usual=49.0), 55.0, 4.0) == "at_usual"
    assert _grown_by(replace(found, heads=[row], at_usual=20.0), 55.0, 4.0) == "length"


def test_heads_of_more_queries_than_keys_are_not_taken_for_positions_without_a_word() -> None:
    """8 heads, 64 queries, 32 keys of an encoder; or 8 positions, of which 64 heads of q share 32 of k."""
    doubtful = of_tensors(run(pair_of({"q": drawn(1, 8, 64, 16), "k": drawn(1, 8, 32, 16, seed=1)})), "x").findings
    (sentence,) = (each.sentence for each in doubtful if each.key == "axes_supposed")
    assert "q has 64 heads and k 32." in sentence
    usual = of_tensors(run(pair_of({"q": drawn(1, 64, 8, 16), "k": drawn(1, 64, 2, 16, seed=1)})), "x")
    assert "axes_supposed" not in {each.key for each in usual.findings}
    saved = pair_of({"q": drawn(1, 64, 8, 16), "k": drawn(1, 32, 8, 16, seed=1)}, swapped=True)
    assert saved.q.shape[1:3] == (8, 64)  # what the advice leads to


@pytest.mark.parametrize("names", [("k", "v"), ("q", "v"), ("past_k", "past_v"), ("q", "mask")])
def test_values_are_taken_neither_for_q_nor_for_k(names: tuple[str, str]) -> None:
    with pytest.raises(InputError, match="q and k are not both among the arrays"):
        pair_of(dict.fromkeys(names, drawn(2, 6, 8)))


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


def test_what_is_not_finite_is_placed_in_its_sequence() -> None:
    q = drawn(2, 4, 6, 8)
    q[1, 2, 3, 0] = math.nan
    found = {f.key: f.sentence for f in of_tensors(run(pair_of({"q": q, "k": drawn(2, 4, 6, 8)})), "x").findings}
    assert "The first is in its head 2, at position 3 of sequence 1." in found["not_finite"]


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


def test_a_head_wider_than_usual_is_said_to_be_perhaps_all_heads() -> None:
    for shape, said in (
        ((1, 6, 512), True),
        ((6, 512), True),
        ((1, 6, 256), True),
        ((6, 128), False),
        ((1, 1, 6, 512), False),
    ):
        found = of_tensors(run(pair_of({"q": drawn(*shape), "k": drawn(*shape, seed=1)})), "x").findings
        assert ("all_heads" in {finding.key for finding in found}) is said, shape
    shared = of_tensors(run(pair_of({"q": drawn(4, 6, 256), "k": drawn(2, 6, 256, seed=1)})), "x").findings
    assert "all_heads" not in {finding.key for finding in shared}


def test_where_shapes_do_not_tell_heads_from_positions_it_is_said() -> None:
    """A short prompt of a model whose positions come first is as long as heads may be many."""
    for q, k, untold in (
        ((1, 5, 32, 16), (1, 5, 32, 16), True),
        ((1, 5, 32, 16), (1, 5, 40, 16), False),  # a cache of keys: these are positions
        ((1, 8, 32, 16), (1, 2, 32, 16), False),  # shared keys
        ((1, 8, 300, 16), (1, 8, 300, 16), False),  # no model has as many heads
        ((6, 16), (6, 16), False),
    ):
        found = of_tensors(run(pair_of({"q": drawn(*q), "k": drawn(*k, seed=1)})), "x").findings
        (read,) = (each.sentence for each in found if each.key == "tensors_read")
        assert ("do not tell heads from positions" in read) is untold, (q, k)


@pytest.mark.parametrize(
    ("q", "k", "key"),
    [
        ((1, 8, 5, 64), (1, 8, 5, 64), "axes"),
        ((1, 8, 5, 256), (1, 8, 5, 256), "axes"),
        ((1, 8, 1, 64), (1, 8, 1, 64), "axes"),
        ((1, 5, 8, 64), (1, 5, 8, 64), "untold"),
        ((1, 5, 8, 256), (1, 5, 8, 256), "untold"),
        ((1, 1, 8, 64), (1, 1, 8, 64), "untold"),  # one token of 8 heads, or 8 of one
        ((1, 1, 8, 64), (1, 1, 2, 64), "untold"),
        ((1, 5, 8, 64), (1, 5, 2, 64), "axes_supposed"),
        ((1, 8, 5, 64), (1, 2, 5, 64), ""),  # shared keys tell heads
        ((1, 5, 64), (1, 5, 64), ""),  # of three axes the first holds heads or sequences
    ],
)
def test_of_a_few_tokens_it_is_said_how_their_axes_were_read(q: tuple[int, ...], k: tuple[int, ...], key: str) -> None:
    found = {
        each.key: each.sentence
        for each in of_tensors(run(pair_of({"q": drawn(*q), "k": drawn(*k, seed=1)})), "x").findings
    }
    assert ({"axes", "axes_supposed"} & found.keys()) == ({key} - {"untold", ""})
    assert ("do not tell heads from positions" in found["tensors_read"]) is (key == "untold")
    if key == "axes":
        assert f"Read as [batch, heads, positions, d_head] = {list(q)}" in found["axes"]
    assert "all_heads" not in found


def test_advice_on_a_large_logit_holds_of_q_and_k_that_are_normalised_already() -> None:
    """Gains of 8 after RMSNorm: another norm, or other W_q and W_k, would not answer that."""
    q, k = (8 * x / x.square().mean(-1, keepdim=True).sqrt() for x in (drawn(1, 40, 64), drawn(1, 40, 64, seed=1)))
    (found,) = (each for each in of_tensors(run(pair_of({"q": q, "k": k})), "x").findings if "large" in each.key)
    assert found.key == "large_neither"
    for word in ("length", "both", "neither", "throughout", "at_usual"):
        assert (
            "normalised before they were saved, look at the gains of that norm"
            in replace(found, key=f"large_{word}").advice
        )


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


@pytest.mark.parametrize("sequence", [0, 1])
def test_the_part_that_tables_are_taken_from_holds_the_largest_logit(
    monkeypatch: pytest.MonkeyPatch, sequence: int
) -> None:
    """A long query between those that are evenly spread, in any sequence."""
    monkeypatch.setattr(tensors, "_MOST_SCORES", 3 * 40 * 10)
    q, k = drawn(2, 3, 40, 8), drawn(2, 3, 40, 8, seed=1)
    q[sequence, 1, 13] *= 40
    result = run(pair_of({"q": q, "k": k}))
    largest = float((q.double() @ k.double().mT).abs().max()) / math.sqrt(8)
    assert abs(result.heads[0]["max_logit"]) == pytest.approx(largest)
    assert next(row["max_abs_logit"] for row in result.variants if row["variant"] == "none") == pytest.approx(largest)
    (own,) = (row for row in result.growth if (row["scale"], row["variant"]) == (1, "none"))
    assert own["max_abs_logit"] == pytest.approx(largest)
    said = {finding.key: finding.values for finding in of_tensors(result, "x").findings}
    assert (said["part"]["rows"], said["part_grown"]["rows"]) == (10, 29)  # that query is one of the 29 even ones


@pytest.mark.parametrize(
    "names", [("q_proj", "k_proj"), ("query_layer", "key_layer"), ("a.0.q_proj.out", "a.0.k_proj.out"), ("x_q", "x_k")]
)
def test_of_two_arrays_the_one_named_for_queries_is_q_in_any_order(names: tuple[str, str]) -> None:
    """A .safetensors file holds names of one format by the alphabet, where k comes before q."""
    q, k = drawn(2, 6, 8), drawn(2, 6, 8, seed=1)
    arrays = dict(zip(names, (q, k), strict=True))
    for each in (arrays, dict(reversed(arrays.items()))):
        pair = pair_of(each)
        assert torch.equal(pair.q[0], q)
        assert torch.equal(pair.k[0], k)


@pytest.mark.parametrize(
    ("causal", "mask", "seen"),
    [
        (False, False, "every query is taken to see every key."),
        (True, False, "every query is taken to see no later key."),
        (False, True, "every query is taken to see what the mask shows."),
        (True, True, "every query is taken to see what the mask shows, and no later key."),
    ],
)
def test_how_q_was_read_is_always_said(*, causal: bool, mask: bool, seen: str) -> None:
    """As saved before the transpose, and as Megatron has it: neither can be told by its shape."""
    for shape in ((1, 6, 12, 64), (64, 2, 8, 64)):
        arrays = {"q": drawn(*shape), "k": drawn(*shape, seed=1)}
        arrays |= {"mask": torch.ones(shape[2], shape[2], dtype=torch.bool)} if mask else {}
        found = of_tensors(run(pair_of(arrays, causal=causal)), "x").findings
        (read,) = (each for each in found if each.key == "tensors_read")
        assert f"q was read as [batch, heads, positions, d_head] = {list(shape)}; {seen}" in read.sentence
        assert read.level == "good"


def test_of_fewer_queries_than_keys_it_is_said_where_the_last_one_stands() -> None:
    for queries, causal in ((3, True), (8, True), (3, False)):
        pair = pair_of({"q": drawn(2, queries, 16), "k": drawn(2, 8, 16, seed=1)}, causal=causal)
        (read,) = (each for each in of_tensors(run(pair), "x").findings if each.key == "tensors_read")
        assert ("the last query stands with the last key" in read.sentence) is (causal and queries < 8)


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
