"""The scale of q · k that is told of a checkpoint is that of its class in transformers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
import transformers
from torch import Tensor, nn
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from qkdemo.diagnose.findings.examine import examine_path
from qkdemo.diagnose.weights.beside import second
from qkdemo.diagnose.weights.projections import found_in, scope
from qkdemo.diagnose.weights.scale import scale_of

SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "vocab_size": 64,
}
OF_GEMMA = {"vocab_size_per_layer_input": 64, "hidden_size_per_layer_input": 8, "num_kv_shared_layers": 0}
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "qwen3": ("Qwen3Config", "Qwen3Model", SMALL),
    "gemma2": ("Gemma2Config", "Gemma2Model", SMALL | {"query_pre_attn_scalar": 224}),
    "gemma3": ("Gemma3TextConfig", "Gemma3TextModel", SMALL | {"query_pre_attn_scalar": 168}),
    "gemma3_usual": ("Gemma3TextConfig", "Gemma3TextModel", SMALL | {"query_pre_attn_scalar": 16}),
    "gemma3n": ("Gemma3nTextConfig", "Gemma3nTextModel", SMALL | OF_GEMMA | {"activation_sparsity_pattern": None}),
    "gemma4": ("Gemma4TextConfig", "Gemma4TextModel", SMALL | OF_GEMMA | {"global_head_dim": 16}),
    "granite": ("GraniteConfig", "GraniteModel", SMALL | {"attention_multiplier": 0.015625}),
    "gpt2": ("GPT2Config", "GPT2Model", {"n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 64}),
    "gpt2_bare": (
        "GPT2Config",
        "GPT2Model",
        {"n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 64, "scale_attn_weights": False},
    ),
    "gpt2_by_layer": (
        "GPT2Config",
        "GPT2Model",
        {"n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 64, "scale_attn_by_inverse_layer_idx": True},
    ),
    "t5": (
        "T5Config",
        "T5EncoderModel",
        {"num_layers": 2, "d_model": 32, "d_kv": 16, "num_heads": 2, "vocab_size": 64},
    ),
}
SEEN: list[tuple[float, float]] = []  # of each call: the scale that it was given, and the largest |logit|


def recorded(module: nn.Module, q: Tensor, k: Tensor, v: Tensor, mask: Any, **given: Any) -> tuple[Tensor, None]:
    """Attention of transformers' interface, uniform: what comes out does not matter here."""
    scale = given.get("scaling") or q.shape[-1] ** -0.5
    k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    SEEN.append((scale, float((q @ k.mT).abs().max() * scale)))
    return torch.zeros(q.shape[0], q.shape[2], q.shape[1], v.shape[-1], dtype=q.dtype), None


@pytest.fixture(autouse=True)
def _nothing_seen() -> Iterator[None]:
    transformers.AttentionInterface.register("recorded", recorded)
    SEEN.clear()
    yield
    SEEN.clear()


@pytest.mark.parametrize(
    ("name", "by_config"),
    [*((name, True) for name in MODELS), *((name, False) for name in ("qwen3", "gemma3n", "gemma4", "t5"))],
)  # no names tell the scale of the others
def test_the_scale_of_a_layer_is_that_of_its_class(*, name: str, by_config: bool, tmp_path: Path) -> None:
    kind, model_kind, values = MODELS[name]
    torch.manual_seed(0)
    config = getattr(transformers, kind)(**values)
    model = getattr(transformers, model_kind)._from_config(config, attn_implementation="recorded").eval()
    with torch.no_grad():
        model(input_ids=torch.arange(24)[None])
    model.save_pretrained(tmp_path)
    if not by_config:
        (tmp_path / "config.json").unlink()
    report = examine_path(tmp_path)
    rows = report.tables["layers"]
    assert len(rows) == len(SEEN) == 2
    assert [row["scale"] for row in rows] == pytest.approx([scale for scale, _ in SEEN])
    for row, (_, logit) in zip(rows, SEEN, strict=True):
        if row["gains"]:
            assert logit <= row[f"bound_{row['gains']}"] * (1 + 1e-5)


KINDS = {  # model type → how its attention calls the scale
    "pix2struct_text_model": "scaling",
    "zamba2": "scaling",
    "inkling_text": "scaling",
    "embedding_gemma2_text": "scaling",
    "gemma4_unified_text": "scaling",
    "dia": "scaling",
    "granitemoe": "scaling",
    "mpt": "softmax_scale",
    "siglip_vision_model": "scale",
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_scale_that_is_told_by_a_model_type_is_that_of_its_class(kind: str) -> None:
    """Of models of their usual size, none of whose weights is formed."""
    config = CONFIG_MAPPING[kind]()
    with torch.device("meta"):
        made = transformers.Pix2StructTextModel if kind.startswith("pix2") else transformers.AutoModel
        model = made._from_config(config) if kind.startswith("pix2") else made.from_config(config)
    names, told = set(model.state_dict()), json.loads(config.to_json_string(use_diff=False))
    found = 0
    for layer in found_in(names, kind):
        module = model.get_submodule(layer)
        widths = [getattr(module, name, None) for name in ("head_dim", "attention_head_dim", "key_value_proj_dim")]
        if (scale := getattr(module, KINDS[kind], None)) is not None:
            width = next(filter(None, widths))
            assert scale_of(layer, names, scope(told, layer), width).of(width) == pytest.approx(scale), layer
            found += 1
    assert found


def test_a_scale_that_is_learned_for_each_channel_is_said_to_be_left_out() -> None:
    """TimesFM's, beside W_q."""
    assert second(["q_proj.weight", "scaling", "k_proj.weight"]) == ["scaling"]


def test_a_multiplier_of_k_is_one_of_the_scale() -> None:
    """Falcon-H1's."""
    config = {"model_type": "falcon_h1", "key_multiplier": 0.5}
    assert scale_of("model.layers.0.self_attn", (), config, 64).base == pytest.approx(0.0625)


@pytest.mark.parametrize(
    ("config", "scale"),
    [
        ({"model_type": "phi3small", "mup_use_scaling": True, "mup_attn_multiplier": 2.0}, 2 / 128),
        ({"model_type": "phi3small"}, 1 / 128),  # both by default
        ({"model_type": "phi3small", "mup_use_scaling": False, "mup_attn_multiplier": 2.0}, None),
        ({"model_type": "btlm", "mup_scale_qk_dot_by_d": True}, 1 / 128),
        ({"model_type": "btlm", "mup_scale_qk_dot_by_d": False}, None),
        ({"model_type": "jais", "scale_qk_dot_by_d": True}, 1 / 128),
        ({"model_type": "jais", "scale_qk_dot_by_d": True, "scale_attn_weights": False}, 1.0),
    ],
)
def test_a_scale_of_mup_is_divided_by_d(config: dict[str, Any], scale: float | None) -> None:
    """As the code of Phi-3-small, BTLM and JAIS has it."""
    base = scale_of("transformer.h.0.attn", (), config, 128).base
    assert base == (None if scale is None else pytest.approx(scale))


def test_images_of_pix2struct_are_read_by_their_part_of_the_config(tmp_path: Path) -> None:
    parts = {"text_config": {"num_heads": 4}, "vision_config": {"num_attention_heads": 3, "hidden_size": 24}}
    config = transformers.Pix2StructConfig(
        text_config=parts["text_config"] | {"hidden_size": 32, "d_kv": 8, "d_ff": 32, "num_layers": 1, "vocab_size": 8},
        vision_config=parts["vision_config"]
        | {"patch_embed_hidden_size": 24, "d_ff": 32, "d_kv": 8, "num_hidden_layers": 1, "seq_len": 16},
    )
    transformers.Pix2StructForConditionalGeneration(config).save_pretrained(tmp_path)
    report = examine_path(tmp_path)
    rows = {row["layer"]: (row["heads"], row["d_head"], row["scale"]) for row in report.tables["layers"]}
    assert rows.pop("encoder.encoder.layer.0.attention") == (3, 8, 1.0)
    assert len(rows) == 2
    assert set(rows.values()) == {(4, 8, 1.0)}
    assert "heads_guessed" not in {finding.key for finding in report.findings}


def test_images_of_gemma_4_are_read(tmp_path: Path) -> None:
    """Their projections are linear maps between two clamps, and a norm stands after them."""
    kind = transformers.Gemma4VisionConfig
    config = kind(hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, head_dim=16)
    if (config.num_key_value_heads or 2) != 2:
        config.num_key_value_heads = 2
    for clamped in (False, True):
        config.use_clipped_linears = clamped
        transformers.Gemma4VisionModel(config).save_pretrained(tmp_path)
        report = examine_path(tmp_path)
        assert [(row["heads"], row["d_head"], row["scale_is"]) for row in report.tables["layers"]] == [
            (2, 16, "told")
        ] * 2
        assert {finding.key for finding in report.findings} == {"gains_gamma"}
    tensors = safetensors.torch.load_file(tmp_path / "model.safetensors")
    bare = {name: x for name, x in tensors.items() if "q_norm" not in name and "k_norm" not in name}
    safetensors.torch.save_file(bare, tmp_path / "model.safetensors")
    assert {finding.key for finding in examine_path(tmp_path).findings} == {"unlike"}


def test_a_scale_of_a_quantiser_is_no_further_norm(tmp_path: Path) -> None:
    """As vLLM writes it, beside k_scale: one number for all of q."""
    tensors = {f"l.0.self_attn.{side}_proj.weight": torch.eye(16) for side in "qk"}
    for size in (1, 8):
        scales = {f"l.0.self_attn.{side}_scale": torch.ones(size) for side in "qk"}
        safetensors.torch.save_file(tensors | scales, tmp_path / "model.safetensors")
        said = {finding.key for finding in examine_path(tmp_path / "model.safetensors").findings}
        assert ("second" in said) == (size == 8)


@pytest.mark.parametrize("several", [False, True])
def test_scales_of_several_layers_are_each_ones_own(several: bool, tmp_path: Path) -> None:
    """As in GPT-2 with a scale by layer, here with gains."""
    tensors = {
        f"h.{at}.attn.{name}": x
        for at in range(2 if several else 1)
        for side in "qk"
        for name, x in ((f"{side}_proj.weight", torch.eye(16)), (f"{side}_norm.weight", torch.ones(4)))
    }
    safetensors.torch.save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(
        json.dumps({"scale_attn_by_inverse_layer_idx": True, "query_pre_attn_scalar": 0.25})
    )
    (gains,) = (each.values for each in examine_path(tmp_path).findings if each.key == "gains_gamma")
    assert str(gains["scale"]).startswith("1, 2 (one of these" if several else "2 (told")


def test_exaone_without_a_config_is_not_taken_for_gpt_neo() -> None:
    """Both call it attn.attention; GPT-Neo does not scale."""
    layer, names = "transformer.h.0.attn.attention", {"transformer.h.0.mlp.c_fc_0.weight"}
    assert scale_of(layer, names, {}, 64).base is None
    assert scale_of(layer, {"transformer.h.0.mlp.c_fc.weight"}, {}, 64).base == 1


def test_layers_that_use_the_keys_of_another_are_not_measured(tmp_path: Path) -> None:
    """As Gemma 3n: files hold a W_k there that nothing uses."""
    names = [f"model.layers.{at}.self_attn.{side}_proj.weight" for at in range(4) for side in "qk"]
    safetensors.torch.save_file({name: torch.eye(16) for name in names}, tmp_path / "model.safetensors")
    told = {"model_type": "gemma3n_text", "num_hidden_layers": 4, "num_kv_shared_layers": 2}
    (tmp_path / "config.json").write_text(json.dumps(told | {"num_attention_heads": 2}))
    report = examine_path(tmp_path)
    assert [row["layer"] for row in report.tables["layers"]] == [f"model.layers.{at}.self_attn" for at in (0, 1)]
    (unlike,) = (each.values for each in report.findings if each.key == "unlike")
    assert (unlike["count"], unlike["layer"]) == (2, "model.layers.2.self_attn")


@pytest.mark.parametrize("beside", ["weight_zero_point", "pre_quant_scale"])
def test_codes_of_8_bits_that_are_more_than_these_times_a_scale_are_not_measured(beside: str, tmp_path: Path) -> None:
    tensors: dict[str, Tensor] = {}
    for side, rows in (("q", 32), ("k", 16)):
        stem = f"model.layers.0.self_attn.{side}_proj."
        tensors[stem + "weight"] = torch.randint(-128, 128, (rows, 32), dtype=torch.int8)
        tensors[stem + "weight_scale"] = torch.full((rows, 1), 0.01)
        if beside != "pre_quant_scale" or side == "q":
            tensors[stem + beside] = torch.ones(32 if beside == "pre_quant_scale" else rows)
    plain = {name: x for name, x in tensors.items() if not name.endswith(beside)}
    for made, key in ((plain, "spectral"), (tensors, "packed")):
        path = tmp_path / f"{key}.safetensors"
        safetensors.torch.save_file(made, path)
        keys = {each.key for each in examine_path(path).findings}
        assert key in keys
        assert ("spectral" in keys) == (key == "spectral")
