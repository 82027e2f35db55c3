"""Cases that people met in public code and that a file of theirs would show: the value, or the sentence, that is right.

The other numeric cases have their tests where the arithmetic lies, number by number in `floats/test_reported_numbers`
and `attention/test_reported_numbers`. Overflow, merging steps, masks and casts: `floats`, `labs/formats`. Epsilon and
zero vectors: `labs/epsilon`, `attention/test_norms`. Scales, caps, axes, temperatures:
`attention/test_contract_cases`, `attention/test_variants`. Order and placement: `labs/rope`, `labs/placement`.
Repeated norms: `labs/cache`. Spikes and divergences: `diagnose/curves`. Files that are cut, foreign, pickled or too
large: `diagnose/readers/test_files`.
"""

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from qkdemo.diagnose.drift import opened
from qkdemo.diagnose.findings.examine import examine, examine_path
from qkdemo.diagnose.findings.finding import Report
from qkdemo.diagnose.readers.inputs import InputError
from qkdemo.diagnose.tensors import pair_of, run
from qkdemo.diagnose.watching.heads import Call, measure
from qkdemo.diagnose.weights.checkpoint import open_checkpoint
from qkdemo.diagnose.weights.layer import Layer
from qkdemo.diagnose.weights.layers import run as run_checkpoint


def tensors(**arrays: Any) -> Report:
    out = io.BytesIO()
    np.savez(out, allow_pickle=False, **{name: np.asarray(x) for name, x in arrays.items()})
    return examine(out.getvalue(), "pair.npz")


def said(report: Report) -> dict[str, str]:
    return {finding.key: finding.sentence for finding in report.findings}


def row(report: Report, table: str, **where: Any) -> dict[str, Any]:
    (found,) = (row for row in report.tables[table] if all(row[name] == value for name, value in where.items()))
    return found


def test_scores_that_overflow_before_they_are_scaled_are_told_though_the_logits_fit() -> None:
    """d = 128, 24² · 128 = 73728 > 65504: the largest logit, 6517, would fit."""
    q, k = np.full((1, 128), 24, np.float16), np.stack([np.full(128, 24), np.full(128, 23)]).astype(np.float16)
    report = tensors(q=q, k=k)
    assert row(report, "formats", format="float16")["scores_lost"] == 2
    assert row(report, "formats", format="bfloat16")["scores_lost"] == 0
    assert abs(report.tables["heads"][0]["max_logit"]) == pytest.approx(6516.696, rel=1e-5)
    assert report.tables["heads"][0]["entropy"] == pytest.approx(0, abs=1e-12)
    assert "2 of 2 scores are beyond" in said(report)["format"]


def from_log(**columns: Any) -> Report:
    rows = (dict(zip(columns, numbers, strict=True)) for numbers in zip(*columns.values(), strict=True))
    lines = [json.dumps({"step": step} | row) for step, row in enumerate(rows)]
    return examine("\n".join(lines).encode(), "log.jsonl")


def test_large_logits_are_never_called_calm() -> None:
    """Logits of 300 that fell again, in a log without a loss; and of 900 in 45 of the 100 steps of a stuck run."""
    alone = from_log(max_logit=[300.0] * 50 + [10.0] * 50)
    (found,) = (finding for finding in alone.findings if finding.key == "logits_alone")
    assert found.level == "watch"
    assert "no sign of trouble" not in found.sentence
    noise = np.random.default_rng(0).standard_normal(100)
    logits = [900.0 if at % 2 and at < 90 else 90.0 for at in range(100)]
    stuck = said(from_log(loss=(3 + 0.05 * noise).tolist(), max_logit=logits))["stuck_late"]
    assert "no more than half" in stuck


def test_queries_that_see_no_key_are_counted_and_left_out_of_every_mean() -> None:
    rng = np.random.default_rng(0)
    q = rng.standard_normal((1, 4, 8))
    mask = np.ones((1, 4, 4), bool)
    whole = tensors(q=q, k=q, mask=mask).tables["heads"][0]["entropy"]
    mask[0, 1] = False
    report = tensors(q=q, k=q, mask=mask)
    assert "sequence: 1." in said(report)["no_key"]
    assert report.tables["heads"][0]["entropy"] == pytest.approx(whole, rel=0.5)
    assert math.isfinite(report.tables["heads"][0]["softmax_slope"])


def test_exact_zeros_are_no_sign_of_diffuse_attention() -> None:
    report = tensors(q=np.zeros((2, 5, 8)), k=np.ones((2, 5, 8)))
    assert "is 0: 2 of 2" in said(report)["zeros"]
    assert not report.healthy


def test_one_key_decides_nothing() -> None:
    report = tensors(q=np.array([[100.0, -7.0]]), k=np.array([[5.0, 3.0]]))
    assert "nothing can be told" in said(report)["one_key"]
    assert "one_hot" not in said(report)


def test_keys_beyond_e4m3_are_told_before_they_are_cast() -> None:
    k = np.ones((1, 3, 4))
    k[0, 1, 0] = 600
    report = tensors(q=np.ones((1, 3, 4)) / 100, k=k)
    assert "8.3 % of the entries of keys" in said(report)["key_cache"]
    assert report.tables["heads"][0]["beyond_e4m3"] == pytest.approx(1 / 12)
    assert "key_cache" not in said(tensors(q=k / 100, k=np.minimum(k, 11.3)))


def test_a_query_head_reads_the_key_head_of_its_group() -> None:
    """Heads 0 and 1 read key head 0, heads 2 and 3 key head 1; three heads cannot share two."""
    q, k = np.ones((4, 1, 1)), np.array([[[1.0]], [[10.0]]])
    found = {row["head"]: row["max_logit"] for row in tensors(q=q, k=k).tables["heads"]}
    assert found == {0: 1, 1: 1, 2: 10, 3: 10}
    with pytest.raises(InputError, match="3 query heads cannot share 2 key heads"):
        tensors(q=q[:3], k=k)


@pytest.mark.parametrize(("scale", "logit"), [(None, 8.0), (512**-0.5, 2.828427), (0.12, 7.68)])
def test_the_scale_is_an_input(scale: float | None, logit: float) -> None:
    given = {} if scale is None else {"scale": scale}
    report = tensors(q=np.ones((1, 64)), k=np.ones((1, 64)), **given)
    assert report.tables["heads"][0]["max_logit"] == pytest.approx(logit, rel=1e-6)


def test_the_entropy_of_a_row_with_hidden_keys_is_finite_and_never_below_zero() -> None:
    one = torch.ones(1, 1, 1, 1)
    for logits, entropy in (([0.0, -math.inf], math.nan), ([0.0, 0.0, -math.inf], math.log(2)), ([6e4, -6e4], 0.0)):
        k = torch.tensor([max(x, -1e30) for x in logits]).reshape(1, 1, -1, 1)
        visible = torch.tensor([math.isfinite(x) for x in logits]).reshape(1, 1, 1, -1)
        found = float(measure(Call(q=one, k=k, scale=1.0, visible=visible))["entropy"])
        assert found == pytest.approx(entropy, abs=1e-6, nan_ok=True)
        assert str(found) != "-0.0"


def test_entropy_is_given_with_the_sink_and_without() -> None:
    """Two keys of logit 0 behind a sink of logit 2: 0.6656 nats with it (here over three keys), ln 2 without."""
    q, k = torch.ones(1, 1, 1, 1), torch.tensor([2.0, 0.0, 0.0]).reshape(1, 1, 3, 1)
    found = measure(Call(q=q, k=k, scale=1.0))
    p = 0.106507
    assert float(found["first_key"]) == pytest.approx(0.786986, rel=1e-5)
    assert float(found["entropy"]) == pytest.approx(-(2 * p * math.log(p) + 0.786986 * math.log(0.786986)), rel=1e-4)
    assert float(found["entropy_without_first"]) == pytest.approx(math.log(2), rel=1e-6)


# ---- checkpoints


def layer(gains: int, gain: float = 1.0, heads: int = 32, d_head: int = 128) -> Layer:
    both = torch.full((gains,), gain, dtype=torch.float64)
    return Layer("a", heads, heads, d_head, torch.ones(heads), both, both, "gamma", "F32")


def test_the_number_of_gains_tells_where_the_norm_stands_and_with_it_the_bound() -> None:
    assert layer(128).place == "per_head"
    assert layer(128).bound("gamma") == pytest.approx(11.31371, rel=1e-6)
    assert layer(32 * 128).place == "full_width"
    assert layer(32 * 128).bound("gamma") == pytest.approx(362.0387, rel=1e-6)
    assert layer(100).bound("gamma") is None


def test_a_stored_gain_near_zero_is_an_offset_from_one_and_both_readings_are_given(tmp_path: Path) -> None:
    """Read as γ, 0.05 would leave logits 125 times as small."""
    weights = {f"l.0.self_attn.{side}_proj.weight": torch.eye(8) for side in "qk"}
    gains = {f"l.0.self_attn.{side}_norm.weight": torch.tensor([0.05, -0.1, 0.05, -0.1]) for side in "qk"}
    safetensors.torch.save_file(weights | gains, tmp_path / "model.safetensors")
    with open_checkpoint(tmp_path / "model.safetensors") as opened:
        (found,) = run_checkpoint(opened).layers
    assert found.reading == "one_plus_gamma"
    assert found.bound("one_plus_gamma") == pytest.approx(2 * 1.05**2)
    assert found.bound("gamma") == pytest.approx(2 * 0.1**2)
    sentences = said(examine_path(tmp_path / "model.safetensors"))
    assert "read as γ − 1, since their mean is nearer to 0 than to 1" in sentences["gains_one_plus_gamma"]
    assert "Read as γ it would be 0.02" in sentences["gains_one_plus_gamma"]


def test_a_config_that_promises_a_norm_without_gains_is_told_and_no_gain_is_not_taken_for_one(tmp_path: Path) -> None:
    weights = {f"l.0.self_attn.{side}_proj.weight": torch.eye(8) for side in "qk"}
    safetensors.torch.save_file(weights, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text('{"use_qk_norm": true, "num_attention_heads": 2}', encoding="utf-8")
    report = examine_path(tmp_path)
    assert "promised" in said(report)
    assert report.tables["layers"][0]["bound_gamma"] is None


def test_an_index_that_is_not_there_gets_its_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be opened: No such file"):
        examine_path(tmp_path / "model.safetensors.index.json")


def test_a_missing_shard_is_named_and_the_index_alone_is_refused(tmp_path: Path) -> None:
    names = {f"l.{at}.self_attn.{side}_proj.weight": f"{at}.safetensors" for at in (0, 1) for side in "qk"}
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": names}), encoding="utf-8")
    with pytest.raises(InputError, match=r"its shards \(2\) are not beside it"):
        examine_path(index)
    there = {name: torch.eye(8) for name, file in names.items() if file == "0.safetensors"}
    safetensors.torch.save_file(there, tmp_path / "0.safetensors")
    assert "1.safetensors" in said(examine_path(index))["shards"]
    index.write_text(json.dumps({"weight_map": {"a": "../../other/model.safetensors"}}), encoding="utf-8")
    with pytest.raises(InputError, match="Only shards in the same folder"):
        examine_path(index)


def test_an_ambiguous_layout_is_asked_about_and_both_readings_differ() -> None:
    rng = np.random.default_rng(0)
    q, k = (torch.from_numpy(rng.standard_normal((1, 8, 8, 64))) for _ in "qk")
    report = tensors(q=q.numpy(), k=k.numpy())
    assert "axes" in said(report)
    one, other = (run(pair_of({"q": q, "k": k}, swapped=swapped)).heads[0]["max_logit"] for swapped in (False, True))
    assert one != other


def test_finite_tensors_with_moderate_logits_clear_attention_of_a_nan_elsewhere() -> None:
    rng = np.random.default_rng(0)
    q = rng.standard_normal((2, 9, 16)).astype(np.float16)
    assert "no sign of trouble" in said(tensors(q=q, k=q))["calm"]


@pytest.mark.parametrize(
    ("scale", "name"),
    [
        (torch.tensor(0.5), "weight_scale"),
        (torch.rand(32, generator=torch.Generator().manual_seed(1)), "weight_scale"),
        (torch.rand(32, 1, generator=torch.Generator().manual_seed(1)), "weight_scale"),
        (torch.rand(1, 2, generator=torch.Generator().manual_seed(1)), "weight_scale_inv"),  # blocks of 128 × 128
    ],
)
def test_weights_of_8_bits_are_read_with_the_scale_beside_them(tmp_path: Path, scale: torch.Tensor, name: str) -> None:
    drawn = torch.randn(2, 32, 160, generator=torch.Generator().manual_seed(0)).to(torch.float8_e4m3fn)
    factor = scale
    if scale.dim() == 1:
        factor = scale[:, None]
    elif scale.shape == (1, 2):
        factor = torch.cat([scale[:, :1].expand(1, 128), scale[:, 1:].expand(1, 32)], 1)
    stem = "l.0.self_attn."
    narrow = {f"{stem}{side}_proj.weight": x for side, x in zip("qk", drawn, strict=True)}
    scales = {f"{stem}{side}_proj.{name}": scale.clone() for side in "qk"}
    wide = {key: x.double() * factor.double() for key, x in narrow.items()}
    found = []
    for at, tensors_ in enumerate((narrow | scales, wide, narrow)):
        safetensors.torch.save_file(tensors_, tmp_path / f"{at}.safetensors")
        found.append(examine_path(tmp_path / f"{at}.safetensors"))
    right, bare = found[1].tables["layers"][0]["spectral_norm"], found[2]
    assert found[0].tables["layers"][0]["spectral_norm"] == pytest.approx(right, rel=1e-9)
    assert "weights_unscaled" not in said(found[0])
    assert "weights are is not known here. The first is l.0.self_attn." in said(bare)["weights_unscaled"]
    assert bare.tables["layers"][0]["spectral_norm"] is None
    assert "spectral" not in said(bare)


@pytest.mark.parametrize("kind", [torch.uint8, getattr(torch, "float8_e8m0fnu", torch.uint8)])
def test_a_scale_of_exponents_is_read_as_powers_of_two_for_blocks_of_32(tmp_path: Path, kind: torch.dtype) -> None:
    """MXFP8: transformers 5.24 stores E8M0 as bytes, newer files by its name."""
    stem, generator = "l.0.self_attn.", torch.Generator().manual_seed(0)
    names = [f"{stem}{side}_proj.weight" for side in "qk"]
    narrow = {name: torch.randn(16, 160, generator=generator).to(torch.float8_e4m3fn) for name in names}
    exponents = {name: torch.randint(115, 130, (16, 5), generator=generator, dtype=torch.uint8) for name in names}
    factors = {name: 2.0 ** (x.double() - 127).repeat_interleave(32, 1) for name, x in exponents.items()}
    scales = {f"{name}_scale_inv": x.view(kind) for name, x in exponents.items()}
    safetensors.torch.save_file(narrow | scales, tmp_path / "a.safetensors")
    safetensors.torch.save_file({x: narrow[x].double() * factors[x] for x in names}, tmp_path / "b.safetensors")
    read, right = (examine_path(tmp_path / f"{at}.safetensors").tables["layers"][0]["spectral_norm"] for at in "ab")
    assert read == pytest.approx(right, rel=1e-9)
    codes = {name: torch.ones(16, 160, dtype=torch.int8) for name in names}  # two numbers of 4 bits in each
    safetensors.torch.save_file(codes | scales, tmp_path / "c.safetensors")
    assert "no scale beside it that is read here" in said(examine_path(tmp_path / "c.safetensors"))["weights_unscaled"]


def test_a_scale_of_exponents_beside_q_and_k_is_a_power_of_two() -> None:
    q = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(0))
    narrow = {"q": q.to(torch.float8_e4m3fn), "k": q.to(torch.float8_e4m3fn)}
    scales = {"q_scale": torch.tensor([128], dtype=torch.uint8), "k_scale": torch.tensor([129], dtype=torch.uint8)}
    found = [
        examine(safetensors.torch.save(arrays), "pair.safetensors").tables["heads"][0]["max_logit"]
        for arrays in (narrow | scales, {name: x.double() for name, x in narrow.items()})
    ]
    assert found[0] == pytest.approx(8 * found[1], rel=1e-6)


def test_a_scale_that_does_not_fit_is_none_and_codes_of_a_quantiser_are_not_multiplied(tmp_path: Path) -> None:
    names = [f"l.0.self_attn.{side}_proj.weight" for side in "qk"]
    for scale in (torch.ones(5), torch.ones(3, 2), torch.ones(2, 2, 2)):
        narrow = {name: torch.ones(8, 8).to(torch.float8_e5m2) for name in names}
        safetensors.torch.save_file(
            narrow | {f"{name}_scale": scale.clone() for name in names}, tmp_path / "a.safetensors"
        )
        assert "weights_unscaled" in said(examine_path(tmp_path / "a.safetensors"))
    safetensors.torch.save_file(
        {name: torch.ones(32, 1, dtype=torch.uint8) for name in names}, tmp_path / "b.safetensors"
    )
    report = examine_path(tmp_path / "b.safetensors")
    assert "They were not measured. The first is l.0.self_attn." in said(report)["packed"]
    assert not report.tables["layers"]


def test_q_and_k_of_8_bits_are_read_with_their_scales_or_it_is_said_that_there_are_none() -> None:
    q, k = (torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(at)).to(torch.float8_e4m3fn) for at in (0, 1))
    scales = {"layers.0.q_scale": torch.tensor([0.5]), "layers.0.k_scale": torch.tensor(4.0)}
    named = {"layers.0.q": q, "layers.0.k": k}
    with_them, without = (
        examine(safetensors.torch.save(arrays), "pair.safetensors") for arrays in (named | scales, named)
    )
    assert "tensors_unscaled" not in said(with_them)
    bare = examine(safetensors.torch.save({name: x.double() for name, x in named.items()}), "pair.safetensors")
    logits = [report.tables["heads"][0]["max_logit"] for report in (with_them, bare)]
    assert logits[0] == pytest.approx(2 * logits[1], rel=1e-6)
    assert said(without).keys() == {"tensors_read", "tensors_unscaled"}  # no size, no entropy, no loss of a format
    assert not without.tables
    assert (
        "with no scale beside them that is read here (named as the array, with _scale or _scale_inv after it): q, k."
        in said(without)["tensors_unscaled"]
    )
    unfit = examine(safetensors.torch.save(named | scales | {"layers.0.q_scale": torch.ones(5)}), "pair.safetensors")
    assert (
        "with no scale beside it that is read here (named as the array, with _scale or _scale_inv after it): q."
        in said(unfit)["tensors_unscaled"]
    )


@pytest.mark.parametrize("kind", [torch.float8_e4m3fn, torch.int8])
def test_a_scale_per_head_position_or_channel_is_applied_where_its_shape_tells_which(kind: torch.dtype) -> None:
    made = torch.Generator().manual_seed(0)
    q = torch.randn(1, 4, 32, 64, generator=made)
    k = (20 * torch.randn(1, 4, 32, 64, generator=made)).to(kind)
    full = torch.rand(1, 4, 32, 64, generator=made) + 0.5
    of_heads, of_tokens, of_channels = full[:, :, :1, :1], full[..., :1], full[:, :1, :1]
    for scale, factor in (
        (of_heads, of_heads),
        (of_heads.flatten(), of_heads),
        (of_heads[..., 0, 0], of_heads),
        (of_tokens, of_tokens),
        (of_tokens[..., 0], of_tokens),
        (of_channels.flatten(), of_channels),
    ):
        pair = pair_of({"q": q, "k": k, "k_scale": scale})
        assert not pair.unscaled
        assert torch.equal(pair.k.double(), k.double() * factor.double())
    for unread in (torch.ones(8), torch.ones(1, 4, 2, 1)):  # of other heads; of blocks of 16 positions
        assert pair_of({"q": q, "k": k, "k_scale": unread}).unscaled == ("k",)
    either = {"q": q[..., :32, :32], "k": k[..., :32, :32], "k_scale": torch.ones(32)}
    assert pair_of(either).unscaled == ("k",)


@pytest.mark.parametrize("kind", [torch.float8_e4m3fn, torch.float8_e5m2, torch.int8, torch.uint8])
def test_of_8_bits_without_a_scale_nothing_is_said_that_depends_on_it(kind: torch.dtype) -> None:
    """Their logits as numbers are 100 and far more, attention of them is one-hot, and float16 loses some scores."""
    q = torch.full((2, 6, 8), 100.0)
    q[0, 3] = 0
    arrays = {"q": q.to(kind), "k": q.to(kind)}
    found = examine(safetensors.torch.save(arrays), "pair.safetensors")
    assert said(found).keys() == {"tensors_read", "tensors_unscaled"}
    assert found.pair is not None
    with pytest.raises(InputError, match="they have 8 bits and no scale that is read here"):
        opened(found.pair)
    of_q = examine(safetensors.torch.save({"q": q.to(kind), "k": 1000 * q}), "pair.safetensors")
    assert said(of_q).keys() == {"tensors_read", "tensors_unscaled", "key_cache"}  # the keys are as they are


@pytest.mark.parametrize("kind", [torch.int8, torch.uint8])
def test_whole_numbers_of_8_bits_are_said_to_be_read_as_they_are(kind: torch.dtype) -> None:
    arrays = {"q": torch.ones(2, 6, 8).to(kind), "k": torch.ones(2, 6, 8)}
    word = str(kind).removeprefix("torch.")
    for scales in ({}, {"q_scale": torch.ones(1)}):
        told = said(examine(safetensors.torch.save(arrays | scales), "pair.safetensors"))
        read = kind is torch.int8 and bool(scales)
        assert ("tensors_unscaled" in told) is not read
        assert read or told["tensors_unscaled"].endswith(
            f"Read as the whole numbers that they are, not as bytes of an 8-bit float format, and of uint8 without any "
            f"scale: q ({word})."
        )
    narrow = {name: x.to(torch.float8_e4m3fn) for name, x in arrays.items()}
    assert "whole numbers" not in said(examine(safetensors.torch.save(narrow), "pair.safetensors"))["tensors_unscaled"]


@pytest.mark.parametrize("kind", [torch.int8, torch.uint8])
def test_bytes_of_8_bit_floats_are_refused_where_a_name_or_the_header_tells(kind: torch.dtype) -> None:
    """NumPy has no such format: people save q.view(torch.uint8)."""
    x = torch.ones(2, 6, 8).to(torch.float8_e4m3fn).view(kind)
    word = str(kind).removeprefix("torch.")
    for names in (("q_e4m3", "k_e4m3"), ("fp8.q", "fp8.k"), ("float8/q", "float8/k")):
        with pytest.raises(InputError, match="bytes of an 8-bit float format") as error:
            pair_of(dict.fromkeys(names, x))
        assert str(error.value).startswith(f"{names[0]} holds {word}.")
    arrays = {"q": x, "k": x.clone(), "k_scale": torch.ones(1, dtype=torch.uint8)}
    for header in ({"q": "float8_e4m3fn"}, {"q.dtype": "torch.float8_e5m2"}):
        with pytest.raises(InputError, match=f"q holds {word}"):
            examine(safetensors.torch.save(arrays, header), "pair.safetensors")
    for header in ({"format": "pt"}, {"quant": "fp8"}, {"k_scale": "float8_e8m0fnu"}):
        assert examine(safetensors.torch.save(arrays, header), "pair.safetensors").kind == "tensors"
    assert pair_of({"buf8.q": x, "buf8.k": x}).unscaled == ("q", "k")


def test_of_two_arrays_the_one_that_is_named_is_not_taken_for_the_other() -> None:
    q, k = (np.full((2, 3), x) for x in (5.0, 7.0))
    for given in ({"k": k, "other": q}, {"other": k, "q": q}, {"q": q, "other": k}, {"a": q, "b": k}):
        pair = pair_of({name: torch.tensor(x) for name, x in given.items()})
        assert (float(pair.q.max()), float(pair.k.max())) == (5, 7), given


def test_a_column_that_is_not_there_is_told_beside_those_that_are() -> None:
    for count, sentence in (
        (3, "these are read: c00, c01, c02."),
        (31, "Beside the steps 32 are read; the first of them, sorted by name, are: c00"),
    ):
        rows = [{"step": s, "loss": 1.0 / (1 + s), **{f"c{at:02}": 1.0 for at in range(count)}} for s in range(9)]
        lines = "\n".join(map(json.dumps, rows)).encode()
        with pytest.raises(InputError) as error:
            examine(lines, "x.jsonl", columns={"loss": "los"})
        assert sentence.replace("c02.", "c02, loss.") in str(error.value)


def test_several_arrays_of_logits_in_one_file_are_told_from_none() -> None:
    x = np.ones((2, 3, 3))
    for names, sentence in (
        (
            ("logits", "scores", "v"),
            "In the file for mine, more than one array could be the logits: logits, scores. Leave",
        ),
        (("a", "b"), "In the file for mine, no array is named as logits: a, b. Name the array logits or mine"),
    ):
        mine, reference = io.BytesIO(), io.BytesIO()
        np.savez(mine, **dict.fromkeys(names, x))
        np.savez(reference, logits=x)
        with pytest.raises(InputError, match=sentence):
            examine(mine.getvalue(), "mine.npz", reference=(reference.getvalue(), "reference.npz"))
