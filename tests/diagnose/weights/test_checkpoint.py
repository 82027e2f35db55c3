"""A checkpoint's weights: spectral norms against the full product, gains in both readings, shards and their faults."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from qkdemo.diagnose.findings.examine import examine, examine_path
from qkdemo.diagnose.readers.inputs import InputError
from qkdemo.diagnose.weights.checkpoint import open_checkpoint
from qkdemo.diagnose.weights.layer import spectral_norms
from qkdemo.diagnose.weights.layers import run
from tests.diagnose.watching.models import language_model

CONFIG = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}


def weights(seed: int = 0, heads: int = 4, kv_heads: int = 2, width: int = 24) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {
        "model.layers.0.self_attn.q_proj.weight": torch.randn(heads * 8, width, generator=generator),
        "model.layers.0.self_attn.k_proj.weight": torch.randn(kv_heads * 8, width, generator=generator),
    }


def saved(folder: Path, tensors: dict[str, torch.Tensor], name: str = "model.safetensors") -> Path:
    safetensors.torch.save_file({key: x.clone().contiguous() for key, x in tensors.items()}, folder / name)
    return folder / name


def found(path: Path, config: Any = None) -> Any:
    with open_checkpoint(path) as checkpoint:
        return run(checkpoint, config)


@pytest.mark.parametrize("width", [24, 5])
def test_spectral_norms_are_those_of_the_full_product(width: int) -> None:
    torch.manual_seed(0)
    q, k = torch.randn(4, 8, width, dtype=torch.float64), torch.randn(2, 8, width, dtype=torch.float64)
    wanted = [torch.linalg.matrix_norm(q[h].T @ k[h // 2], 2).item() for h in range(4)]
    assert spectral_norms(q, k).tolist() == pytest.approx(wanted, rel=1e-10)


def test_no_input_of_length_one_goes_beyond_the_spectral_norm(tmp_path: Path) -> None:
    tensors = weights()
    (layer,) = found(saved(tmp_path, tensors), CONFIG).layers
    q, k = (x.double() for x in tensors.values())
    x = torch.nn.functional.normalize(torch.randn(2, 500, 24, dtype=torch.float64), dim=-1)
    for head in range(4):
        a, b = x[0] @ q[head * 8 : head * 8 + 8].T, x[1] @ k[head // 2 * 8 : head // 2 * 8 + 8].T
        assert (a @ b.T).abs().max() <= layer.spectral[head] * (1 + 1e-9)


def test_heads_and_widths_come_from_the_config_or_from_the_gains(tmp_path: Path) -> None:
    norm = {f"model.layers.0.self_attn.{side}_norm.weight": torch.ones(8) for side in "qk"}
    path = saved(tmp_path, weights() | norm)
    for config in (CONFIG, None):
        (layer,) = found(path, config).layers
        assert (layer.heads, layer.kv_heads, layer.d_head) == (4, 2, 8)
        assert layer.bound("gamma") == pytest.approx(math.sqrt(8))


@pytest.mark.parametrize(
    ("gain", "reading", "bound"), [(1.3, "gamma", 1.3**2), (0.1, "one_plus_gamma", 1.1**2), (0.5, "unclear", 0.25)]
)
def test_gains_are_read_both_ways_with_the_evidence(tmp_path: Path, gain: float, reading: str, bound: float) -> None:
    norm = {f"model.layers.0.self_attn.{side}_norm.weight": torch.full((8,), gain) for side in "qk"}
    (layer,) = found(saved(tmp_path, weights() | norm), CONFIG).layers
    assert layer.reading == reading
    assert layer.bound(reading) == pytest.approx(math.sqrt(8) * bound, rel=1e-6)


def test_fused_projections_are_taken_apart(tmp_path: Path) -> None:
    q, k = weights(kv_heads=4).values()
    v = torch.zeros_like(q)
    split = found(saved(tmp_path, weights(kv_heads=4)), {"num_attention_heads": 4}).layers[0].spectral.tolist()
    neox = torch.stack([x.reshape(4, 8, 24) for x in (q, k, v)], 1).reshape(96, 24)
    fused = {
        "h.0.attn.c_attn.weight": torch.cat([q, k, v]).T,
        "h.0.attn.qkv_proj.weight": torch.cat([q, k, v]),
        "h.0.attention.query_key_value.weight": neox,
    }
    for name, tensor in fused.items():
        config = {"num_attention_heads": 4} | ({"model_type": "phi3"} if "qkv_proj" in name else {})
        (layer,) = found(saved(tmp_path, {name: tensor}), config).layers
        assert layer.spectral.tolist() == pytest.approx(split, rel=1e-6), name


@pytest.mark.parametrize("name", ["Qwen3", "GPT-2", "OLMo 2", "Gemma 3"])
def test_real_classes_are_read_and_layers_stand_in_order(name: str, tmp_path: Path) -> None:
    model = language_model(name, "sdpa")
    result = found(saved(tmp_path, dict(model.state_dict())), model.config.to_dict())
    assert len(result.layers) == 2
    assert [".0." in result.layers[0].name, ".1." in result.layers[1].name] == [True, True]
    assert (name == "GPT-2") == bool(result.unnormed)


def test_latent_attention_is_named(tmp_path: Path) -> None:
    model = language_model("DeepSeek V3", "sdpa")
    assert len(found(saved(tmp_path, dict(model.state_dict())), model.config.to_dict()).latent) == 2


def test_a_norm_that_the_config_promises_and_no_tensor_has_is_said(tmp_path: Path) -> None:
    assert found(saved(tmp_path, weights()), CONFIG | {"use_qk_norm": True}).promised
    assert not found(saved(tmp_path, weights()), CONFIG).promised


def test_of_a_folder_without_an_index_every_file_is_read(tmp_path: Path) -> None:
    """A folder of shards whose index was left behind; of a copy the tensors of model.safetensors count."""
    for layer in range(3):
        weights = {f"layers.{layer}.self_attn.{side}_proj.weight": torch.eye(8) for side in "qk"}
        safetensors.torch.save_file(weights, tmp_path / f"model-0000{layer + 1}-of-00003.safetensors")
    with open_checkpoint(tmp_path) as opened:
        assert [layer.name for layer in run(opened).layers] == [f"layers.{layer}.self_attn" for layer in range(3)]
    whole = {f"layers.1.self_attn.{side}_proj.weight": 2 * torch.eye(8) for side in "qk"}
    safetensors.torch.save_file(whole, tmp_path / "model.safetensors")
    with open_checkpoint(tmp_path) as opened:
        assert [float(layer.spectral.max()) for layer in run(opened).layers] == pytest.approx([1, 4, 1])


def test_shards_are_read_by_their_index_and_what_is_missing_is_named(tmp_path: Path) -> None:
    second = {name.replace("layers.0", "layers.1"): x for name, x in weights(1).items()}
    saved(tmp_path, weights(), "model-00001-of-00002.safetensors")
    homes = dict.fromkeys(weights(), "model-00001-of-00002.safetensors")
    homes |= dict.fromkeys(second, "model-00002-of-00002.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": homes}), encoding="utf-8")
    part = found(tmp_path, CONFIG)
    assert part.missing == ("model-00002-of-00002.safetensors",)
    assert len(part.layers) == 1
    index.write_text(json.dumps({"weight_map": dict.fromkeys(second, "2.safetensors") | {"a": "1.safetensors"}}))
    saved(tmp_path, {"a": torch.ones(2)}, "1.safetensors")
    with pytest.raises(InputError, match=r"shards that were read \(tensors: 1\)\. .* not read: 2.safetensors"):
        found(index)
    index.write_text(json.dumps({"weight_map": homes}), encoding="utf-8")
    saved(tmp_path, second, "model-00002-of-00002.safetensors")
    assert len(found(index, CONFIG).layers) == 2


def in_two_shards(folder: Path) -> Path:
    """Two layers with gains; the second file holds the gains of the second layer."""
    tensors = weights() | {name.replace("layers.0", "layers.1"): x for name, x in weights(1).items()}
    gains = {f"model.layers.{at}.self_attn.{side}_norm.weight": torch.ones(8) for at in range(2) for side in "qk"}
    first, second = (f"model-0000{at}-of-00002.safetensors" for at in (1, 2))
    homes = {name: second if name in gains and ".1." in name else first for name in tensors | gains}
    for file in (first, second):
        saved(folder, {name: x for name, x in (tensors | gains).items() if homes[name] == file}, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": homes}), encoding="utf-8")
    return folder / first


def test_a_layer_of_which_a_missing_shard_holds_the_gains_is_not_taken_as_one_without(tmp_path: Path) -> None:
    """Neither where the folder is read without that shard, nor where the other is given alone."""
    first = in_two_shards(tmp_path)
    assert "shards" not in said(tmp_path)
    assert [layer.name[13] for layer in found(first).layers] == ["0"]
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    for path in (tmp_path, first):
        told = said(path)
        assert told.keys() == {"shards", "gains_gamma"}
        assert told["shards"].startswith("These shards were not read: model-00002-of-00002.safetensors.")
        assert "No attention layer of which they hold a part was measured." in told["shards"]


def test_a_shard_without_its_index_is_said_to_be_one(tmp_path: Path) -> None:
    """From a shell and on the page: where the gains of a layer lie is not known then."""
    first = in_two_shards(tmp_path)
    (tmp_path / "model.safetensors.index.json").unlink()
    (tmp_path / "model-00002-of-00002.safetensors").rename(tmp_path / "elsewhere")
    uploaded = {finding.key: finding.sentence for finding in examine(first.read_bytes(), first.name).findings}
    for told in (said(tmp_path), said(first), uploaded):
        assert "these shards are missing: model-00002-of-00002.safetensors" in told["shards_by_name"]
    alone = saved(tmp_path, weights(), "model-00001-of-00001.safetensors")
    assert not {"shards", "shards_by_name"} & said(alone).keys()


@pytest.mark.parametrize(
    "names", [("q_proj.weight", "k_proj.weight"), ("in_proj_weight",), ("q_proj_weight", "k_proj_weight")]
)
@pytest.mark.parametrize("prefix", ["", "attn."])
def test_one_module_of_attention_is_read_without_a_prefix_too(
    names: tuple[str, ...], prefix: str, tmp_path: Path
) -> None:
    tensors = {prefix + name: torch.eye(16).repeat(3 if len(names) == 1 else 1, 1) for name in names}
    tensors |= {f"{prefix}{side}_norm.weight": torch.ones(4) for side in "qk"}
    path = saved(tmp_path, tensors)
    (layer,) = found(path).layers
    assert (layer.heads, layer.d_head, layer.bound("gamma")) == (4, 4, 2)
    assert f"in {prefix[:-1] or 'the module'} that is √4" in said(path)["gains_gamma"]
    assert examine_path(path).tables["layers"][0]["layer"] == (prefix[:-1] or "the module")


@pytest.mark.parametrize(
    ("index", "sentence"),
    [
        ({"weight_map": {"a": "../../other/model.safetensors"}}, "is no file beside it"),
        ({"weight_map": {"a": "/etc/passwd"}}, "is no file beside it"),
        ({"weight_map": {"a": "C:model.safetensors"}}, "is no file beside it"),
        ({"weight_map": {"a": "..\\\\model.safetensors"}}, "is no file beside it"),
        ({"weight_map": {"a": "model 1.safetensors"}}, "its shards (1) are not beside it"),
        ({"weight_map": {"a": "one.safetensors"}}, "its shards (1) are not beside it"),
        ({"weights": {}}, "is no index of shards"),
        ([1], "is no index of shards"),
        ({"weight_map": {"a": 5}}, "is no index of shards"),
    ],
)
def test_a_wrong_index_gets_its_sentence(tmp_path: Path, index: Any, sentence: str) -> None:
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(InputError) as error:
        open_checkpoint(path)
    assert sentence in str(error.value)


@pytest.mark.parametrize("d_head", [-2, 0, True, "8", 1e9, 10**30])
def test_a_head_width_that_is_none_is_not_believed(tmp_path: Path, d_head: Any) -> None:
    (layer,) = found(saved(tmp_path, weights()), CONFIG | {"head_dim": d_head}).layers
    assert (layer.heads, layer.kv_heads, layer.d_head) == (4, 2, 8)


def test_layers_that_cannot_be_measured_are_named(tmp_path: Path) -> None:
    """Heads that do not share keys evenly, gains without an entry, weights that are 0 throughout."""
    stem = "model.layers.0.self_attn."
    uneven = {f"{stem}q_proj.weight": torch.ones(6, 4), f"{stem}k_proj.weight": torch.ones(4, 4)}
    assert "The first is model.layers.0.self_attn." in said(saved(tmp_path, uneven))["unshared"]
    no_gains = weights() | {f"{stem}q_norm.weight": torch.ones(0)}
    assert found(saved(tmp_path, no_gains), CONFIG).layers[0].place == ""
    dead = said(saved(tmp_path, {name: torch.zeros_like(x) for name, x in weights().items()}))
    assert "attention is uniform" in dead["weights_zero"]
    (zero,) = (each for each in examine_path(tmp_path / "model.safetensors").findings if each.key == "weights_zero")
    assert "where both are 0, and no bias is added, neither gets any" in zero.advice
    assert not {"spectral", "query_zero"} & dead.keys()


@pytest.mark.parametrize(
    "word",
    ["{}.qweight", "{}.weight_packed", "{}.weight._data", "{}.W_q"],  # GPTQ and AWQ, compressed-tensors, quanto, HQQ
)
@pytest.mark.parametrize("beside", [True, False])
def test_layers_of_codes_are_named_beside_what_is_measured(word: str, beside: bool, tmp_path: Path) -> None:
    codes = {
        f"model.layers.{at}.self_attn.{word.format(f'{side}_proj')}": torch.ones(4, 32, dtype=torch.int32)
        for at in (0, 1)
        for side in "qk"
    }
    if word == "{}.qweight":
        codes["model.layers.2.attn.qkv_proj.qweight"] = torch.ones(4, 32, dtype=torch.int32)
    tower = {f"vision_tower.layers.0.self_attn.{side}_proj.weight": torch.eye(8) for side in "qk"}
    result = found(saved(tmp_path, codes | (tower if beside else {})))
    names = [f"model.layers.{at}.self_attn" for at in (0, 1)]
    assert list(result.packed) == [*names, *(["model.layers.2.attn"] if word == "{}.qweight" else [])]
    assert [layer.name for layer in result.layers] == (["vision_tower.layers.0.self_attn"] if beside else [])
    assert f"{len(result.packed)}. They were not measured" in said(tmp_path / "model.safetensors")["packed"]


def test_layers_without_keys_of_their_own_are_named(tmp_path: Path) -> None:
    """As the last layers of Gemma 4, or where keys and values come from one matrix; not those with latent keys."""
    tensors = weights() | {
        "model.layers.2.self_attn.q_proj.weight": torch.eye(32),
        "model.layers.10.self_attn.q_proj.qweight": torch.eye(32),
        "model.layers.3.self_attn.q_proj.weight": torch.eye(32),
        "model.layers.3.self_attn.kv_b_proj.weight": torch.eye(32),
    }
    result = found(saved(tmp_path, tensors), CONFIG)
    assert result.keyless == ("model.layers.2.self_attn", "model.layers.10.self_attn")
    told = said(tmp_path / "model.safetensors")
    assert "no W_k beside it that is known here: 2." in told["keyless"]
    assert "The first is model.layers.2.self_attn." in told["keyless"]
    assert "The first is model.layers.3.self_attn." in told["latent"]
    (tmp_path / "model.safetensors").rename(tmp_path / "model-000001-of-000002.safetensors")
    told = said(tmp_path / "model-000001-of-000002.safetensors")  # a W_k may be in the other
    assert "keyless" not in told
    assert "model-000002-of-000002.safetensors" in told["shards_by_name"]


def test_weights_without_their_scale_are_said_to_be_of_unknown_size_and_gains_still_bound(tmp_path: Path) -> None:
    stem = "model.layers.0.self_attn."
    narrow = {name: x.to(torch.float8_e4m3fn) for name, x in weights().items()}
    gains = {f"{stem}{side}_norm.weight": torch.ones(8) for side in "qk"}
    told = said(saved(tmp_path, narrow | gains))
    assert "no |logit| of these layers exceeds" in told["gains_gamma"]
    assert "logits" not in told["weights_unscaled"]


@pytest.mark.parametrize(("side", "key", "level"), [("q", "query_zero", "watch"), ("k", "weights_zero", "bad")])
def test_a_query_that_starts_at_zero_is_no_illness(side: str, key: str, level: str, tmp_path: Path) -> None:
    """As μP recommends it: W_q is 0, W_k is not. A W_k of 0 is nobody's recommendation."""
    tensors = {name: x * (f"{side}_proj" not in name) for name, x in weights().items()}
    findings = {each.key: each for each in examine_path(saved(tmp_path, tensors)).findings}
    assert findings[key].level == level
    assert not {"query_zero", "weights_zero", "spectral"} & findings.keys() - {key}
    if side == "q":
        assert "A new model may be so: μP recommends it." in findings[key].sentence
        assert "If this model has been trained, look whether W_q gets gradients." in findings[key].advice


@pytest.mark.parametrize("text", [b"{", b"[1]", b"\xff\xfe", None])
def test_a_config_that_cannot_be_read_is_said(text: bytes | None, tmp_path: Path) -> None:
    """Beside the file it is left out, and asked for it is refused; without one nothing is said."""
    path, config = saved(tmp_path, weights()), tmp_path / "config.json"
    assert "config_unread" not in said(path)
    config.write_bytes(text) if text else config.mkdir()
    assert "config.json, and it cannot be read as a config. It was not used" in said(path)["config_unread"]
    with pytest.raises(InputError, match=r"config\.json is no config\.json that can be read"):
        examine_path(path, config)
    (config.unlink if text else config.rmdir)()
    config.write_text(json.dumps(CONFIG), encoding="utf-8")
    assert "config_unread" not in said(path)


def test_gains_over_all_heads_leave_the_heads_to_the_config_and_without_one_a_guess_is_said(tmp_path: Path) -> None:
    """As OLMo 2 has them: q's gains are as many as q's rows, and the config says no head_dim."""
    stem = "model.layers.0.self_attn."
    whole = {f"{stem}q_norm.weight": torch.full((32,), 1.5), f"{stem}k_norm.weight": torch.full((16,), 1.5)}
    path = saved(tmp_path, weights() | whole)
    config = {name: value for name, value in CONFIG.items() if name != "head_dim"}
    (layer,) = found(path, config).layers
    assert (layer.heads, layer.kv_heads, layer.d_head, layer.place) == (4, 2, 8, "full_width")
    assert layer.bound("gamma") == pytest.approx(math.sqrt(4 * 2 * 8) * 1.5**2)
    assert not layer.guessed
    scalar = {f"{stem}{side}_norm.weight": torch.full((1,), 2.0) for side in "qk"}
    (layer,) = found(saved(tmp_path, weights() | scalar), config).layers
    assert (layer.d_head, layer.place) == (8, "")
    guess = said(saved(tmp_path, weights()))["heads_guessed"]
    assert "model.layers.0.self_attn is read as 2 heads of width 16" in guess


def test_where_heads_could_not_be_read_it_is_not_said_that_nothing_names_them(tmp_path: Path) -> None:
    """Swin's config names them, as a list with a number for each stage."""
    norm = {f"model.layers.0.self_attn.{side}_norm.weight": torch.ones(rows) for side, rows in (("q", 32), ("k", 16))}
    path = saved(tmp_path, weights() | norm)
    (tmp_path / "config.json").write_text('{"model_type": "swin", "num_heads": [4, 8]}', encoding="utf-8")
    told = {finding.key: finding for finding in examine_path(path).findings}
    assert "no number of heads that fits their shapes could be read: 1." in told["heads_guessed"].sentence
    assert "whose heads could not be read: 1." in told["gains_unheaded"].sentence
    for key in ("heads_guessed", "gains_unheaded"):
        assert told[key].advice.startswith("If the model’s own config.json is not beside the file, put it there")
        assert "as one whole number under num_attention_heads" in told[key].advice


def test_heads_of_several_models_in_one_file_are_named_as_the_advice_has_it(tmp_path: Path) -> None:
    """As in the files that Mistral and the authors of Stable Diffusion publish: without a config.json."""
    main, tower = "layers.0.attention", "vision_encoder.transformer.layers.0.attention"
    weight = torch.randn(64, 64)
    path = saved(tmp_path, {f"{layer}.w{side}.weight": weight for layer in (main, tower) for side in "qk"})
    (guess,) = (finding for finding in examine_path(path).findings if finding.key == "heads_guessed")
    assert "name the heads of each within text_config and vision_config instead" in guess.advice
    config = {f"{name}_config": {"num_attention_heads": heads} for name, heads in (("text", 8), ("vision", 4))}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    report = examine_path(path)
    assert {row["layer"]: row["heads"] for row in report.tables["layers"]} == {main: 8, tower: 4}
    assert "heads_guessed" not in {finding.key for finding in report.findings}


def test_attention_heads_are_a_name_of_heads(tmp_path: Path) -> None:
    """As in XGLM's config."""
    (layer,) = found(saved(tmp_path, weights(kv_heads=4)), {"model_type": "xglm", "attention_heads": 4}).layers
    assert (layer.heads, layer.d_head, layer.guessed) == (4, 8, False)


def test_of_gains_over_all_heads_no_bound_is_formed_while_heads_are_a_guess(tmp_path: Path) -> None:
    """OLMo 2 without its config: 4 heads of 8 leave √2 times as much as 2 heads of 16, and one of 32 even less."""
    stem = "model.layers.0.self_attn."
    for keys in (32, 16):
        tensors = {f"{stem}{side}_proj.weight": torch.randn(rows, 32) for side, rows in (("q", 32), ("k", keys))}
        tensors |= {f"{stem}{side}_norm.weight": torch.ones(rows) for side, rows in (("q", 32), ("k", keys))}
        path = saved(tmp_path, tensors)
        assert {"heads_guessed", "gains_unheaded"} == said(path).keys()
        (layer,) = found(path).layers
        assert layer.bound("gamma") is None
        assert found(path, {"num_attention_heads": 4}).layers[0].bound("gamma") is not None


def test_a_weight_that_is_no_number_is_lost_however_narrow_a_head_is(tmp_path: Path) -> None:
    tensors = {f"l.0.attn.{side}_proj.weight": torch.randn(4, 16) for side in "qk"}
    tensors["l.0.attn.q_proj.weight"][1, 0] = torch.nan
    (layer,) = found(saved(tmp_path, tensors), {"num_attention_heads": 4}).layers
    assert layer.spectral.isfinite().tolist() == [True, False, True, True]


@pytest.mark.parametrize("heads", [2, 5])
def test_heads_that_do_not_fit_the_rows_of_k_are_a_guess(tmp_path: Path, heads: int) -> None:
    """24 rows of q make 2 heads of 12, and 8 of k none of these: they are read as heads of 8."""
    tensors = {"l.0.attn.q_proj.weight": torch.randn(24, 32), "l.0.attn.k_proj.weight": torch.randn(8, 32)}
    (layer,) = found(saved(tmp_path, tensors), {"num_attention_heads": heads}).layers
    assert (layer.heads, layer.kv_heads, layer.d_head, layer.guessed) == (3, 1, 8, True)
    q, k = tensors.values()
    norms = [torch.linalg.matrix_norm(part.T @ k, 2) for part in q.split(8)]
    assert layer.spectral.float().tolist() == pytest.approx([float(norm) for norm in norms], rel=1e-4)


@pytest.mark.parametrize(("stored", "most"), [(2.302585, "10"), (9.0, "100")])
def test_a_logit_scale_of_each_head_bounds_logits(tmp_path: Path, stored: float, most: str) -> None:
    """As Swin V2 has it: a logarithm, clamped at that of 100; with W_q and W_k of any size."""
    stem = "layers.0.blocks.0.attn."
    tensors = {f"{stem}qkv.weight": 100 * torch.randn(96, 32), f"{stem}logit_scale": torch.full((4, 1, 1), 1.0)}
    tensors[f"{stem}logit_scale"][2] = stored
    path = saved(tmp_path, tensors)
    told = said(path)
    assert (
        f"exceeds {most}, before a bias of positions is added. That is the bound of layers.0.blocks.0.attn"
        in told["cosine"]
    )
    assert told.keys() == {"cosine"}
    assert (found(path).layers[0].heads, found(path, {"model_type": "swinv2"}).normed) == (4, ())


def test_a_bound_is_written_with_the_head_width_of_its_own_layer(tmp_path: Path) -> None:
    sizes = {0: 8, 1: 16}
    tensors = {f"l.{at}.attn.{side}_proj.weight": torch.eye(32) for at in sizes for side in "qk"}
    tensors |= {f"l.{at}.attn.{side}_norm.weight": torch.ones(d) for at, d in sizes.items() for side in "qk"}
    sentence = said(saved(tmp_path, tensors))["gains_gamma"]
    assert "without rotary positions or positional bias, no |logit| of these layers exceeds 4: in " in sentence
    assert "that is √16 · max|γq γk|." in sentence


def said(path: Path) -> dict[str, str]:
    return {finding.key: finding.sentence for finding in examine_path(path).findings}


def test_a_file_without_attention_or_a_folder_without_files_gets_its_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        open_checkpoint(tmp_path)
    assert "holds no .safetensors file and no index of .safetensors shards" in str(error.value)
    with pytest.raises(InputError) as error:
        found(saved(tmp_path, {"mlp.weight": torch.zeros(2, 2)}))
    assert "Among its tensors (1) no query projection and key projection" in str(error.value)
    with pytest.raises(InputError) as error:
        open_checkpoint(tmp_path / "gone.safetensors")
    assert "cannot be opened" in str(error.value)


@pytest.mark.parametrize(
    "names",
    [
        ("q_proj.lora_A.weight", "q_proj.lora_B.weight"),  # an adapter
        ("q_proj.qweight", "v_proj.qweight"),
    ],
)
def test_two_weights_are_no_q_and_k(names: tuple[str, str]) -> None:
    """Nothing is said of logits of what is no query and no key; two arrays of other names are q and k."""
    with pytest.raises(InputError) as error:
        examine(safetensors.torch.save({f"layers.0.{name}": torch.ones(4, 4) for name in names}), "x.safetensors")
    assert error.value.key == "no_attention"
    arrays = {"a": torch.ones(4, 4), "b": torch.ones(4, 4)}
    named = {"layers.0.q": torch.ones(4, 4), "layers.0.k": torch.ones(4, 4), "layers.0.q_norm.weight": torch.ones(4)}
    for pair in (arrays, named):
        assert examine(safetensors.torch.save(pair), "x.safetensors").kind == "tensors"
