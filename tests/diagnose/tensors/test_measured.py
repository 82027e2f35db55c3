"""What is measured of somebody's q and k: the worst heads, every variant and format, what is not finite."""

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
from qkdemo.diagnose.findings.of_tensors import _grown_by, of_tensors
from qkdemo.diagnose.readers.inputs import InputError
from qkdemo.diagnose.tensors import pair_of, part_of, run
from qkdemo.messages import say
from qkdemo.notation import written
from tests.diagnose.tensors.drawn import drawn


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


def test_a_length_that_leaves_nearly_all_of_the_largest_logit_does_not_explain_it() -> None:
    """55, and 49 without any vector that is longer than usual: 49 alone would be no sign of trouble."""
    found = run(pair_of({"q": drawn(1, 9, 16), "k": drawn(1, 9, 16, seed=1)}))
    row = found.heads[0] | {"grown_by": "length"}
    assert _grown_by(replace(found, heads=[row], at_usual=49.0), 55.0, 4.0) == "at_usual"
    assert _grown_by(replace(found, heads=[row], at_usual=20.0), 55.0, 4.0) == "length"


def test_what_is_not_finite_is_placed_in_its_sequence() -> None:
    q = drawn(2, 4, 6, 8)
    q[1, 2, 3, 0] = math.nan
    found = {f.key: f.sentence for f in of_tensors(run(pair_of({"q": q, "k": drawn(2, 4, 6, 8)})), "x").findings}
    assert "The first is in its head 2, at position 3 of sequence 1." in found["not_finite"]


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
