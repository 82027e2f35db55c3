"""What else stands in a layer of attention: further paths of q and k, and what makes q·k of a head no logit."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
import safetensors.torch
import torch

from qkdemo.diagnose.findings.examine import examine_path
from qkdemo.diagnose.weights import beside
from qkdemo.diagnose.weights.projections import found_in
from tests.diagnose.watching.timm_models import loaded

transformers: Any = pytest.importorskip("transformers")


COMMON: Final = (
    *("LlamaModel", "GPT2Model", "BertModel", "ViTModel", "Qwen3Model", "Gemma3TextModel", "WhisperModel"),
    *("BartModel", "GPTNeoXModel", "CLIPModel", "DistilBertModel", "Phi3Model", "Olmo2Model", "StableLmModel"),
    *("Idefics2Model", "SamModel", "Swinv2Model"),
)


def said(folder: Path, tensors: dict[str, torch.Tensor]) -> dict[str, Any]:
    """The findings of a checkpoint with these tensors."""
    whole = {name: x.clone().contiguous() for name, x in tensors.items()}
    safetensors.torch.save_file(whole, folder / "model.safetensors")
    return {finding.key: finding for finding in examine_path(folder).findings}


def split(layer: str, words: str = "to_{}.weight") -> dict[str, torch.Tensor]:
    return {f"{layer}.{words.format(side)}": torch.eye(8) for side in "qk"}


@pytest.mark.parametrize(
    ("words", "further"),
    [
        ("to_{}.weight", ["add_q_proj", "add_k_proj", "norm_added_q", "norm_added_k"]),  # SD 3 and FLUX of diffusers
        ("to_{}.weight", ["to_k_ip"]),
        ("{}_proj.weight", ["q_proj_moe_gen", "q_norm_moe_gen"]),
        ("{}_proj.weight", ["relative_k_proj"]),
        ("{}_proj.weight", ["linear_pos"]),
        ("to_{}.weight", ["q_rms_norm_t", "k_rms_norm_t"]),  # HiDream's
    ],
)
def test_a_further_path_of_q_or_k_is_said(words: str, further: list[str], tmp_path: Path) -> None:
    tensors = split("l.0.attn", words)
    assert not {"second", "joined"} & said(tmp_path, tensors).keys()
    found = said(tmp_path, tensors | {f"l.0.attn.{word}.weight": torch.ones(8, 8) for word in further})["second"]
    assert found.level == "watch"
    assert set(str(found.values["names"]).split(", ")) == set(further)
    assert f"beside the first ({found.values['names']}): 1." in found.sentence


def inner_of(kind: str) -> dict[str, list[str]]:
    """Further paths of a class with its default sizes, by layer."""
    made = getattr(transformers, kind)
    with torch.device("meta"):
        model = made(made.config_class())
    names = list(model.state_dict())
    layers = found_in(names, model.config.model_type)
    assert layers
    assert not any(beside.joined(layer, layers) for layer in layers)
    inner = {layer: beside.inside(names, layer) for layer in layers}
    assert not any(map(beside.convolved, inner.values()))
    shapes = {name: tuple(x.shape) for name, x in model.state_dict().items()}
    for layer, own in inner.items():
        sized = {name: shapes[f"{layer}.{name}"] for name in own}
        assert not beside.unlike(layer, sized, names, fused="q" not in layers[layer])
    return {layer: words for layer, own in inner.items() if (words := beside.second(own))}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("LongformerModel", {"query_global", "key_global"}),
        ("LEDModel", {"query_global", "key_global"}),
        ("LukeModel", {"w2e_query", "e2w_query", "e2e_query"}),
        ("LiltModel", {"layout_query", "layout_key"}),
        ("DebertaModel", {"pos_proj", "pos_q_proj"}),
        ("ParakeetEncoder", {"relative_k_proj"}),
        ("Gemma3nAudioEncoder", {"pos_proj", "per_dim_scale"}),
        ("AriaModel", {"multihead_attn"}),
        ("Zamba2Model", {"linear_q_adapter_list", "linear_k_adapter_list"}),
    ],
)
def test_a_further_path_of_a_real_class_is_found(kind: str, words: set[str]) -> None:
    if kind == "DebertaModel":  # whose default has no attention to positions
        config = transformers.DebertaConfig(relative_attention=True, pos_att_type=["c2p", "p2c"])
        with torch.device("meta"):
            names = list(transformers.DebertaModel(config).state_dict())
        inner = beside.inside(names, "encoder.layer.0.attention.self")
        assert set(beside.second(inner)) == words
    elif kind == "Zamba2Model":  # whose default has no adapters
        config = transformers.Zamba2Config(use_shared_attention_adapter=True)
        with torch.device("meta"):
            names = list(transformers.Zamba2Model(config).state_dict())
        assert {word for layer in found_in(names) for word in beside.second(beside.inside(names, layer))} == words
    else:
        assert {word for each in inner_of(kind).values() for word in each} == words


@pytest.mark.parametrize(
    "kind",
    COMMON,
)
def test_a_common_class_has_no_further_path(kind: str) -> None:
    assert inner_of(kind) == {}


@pytest.mark.parametrize(
    ("one", "other"),
    [("double_blocks.0.img_attn", "double_blocks.0.txt_attn"), ("j.0.x_block.attn", "j.0.context_block.attn")],
)
def test_two_streams_that_attend_together_are_said(one: str, other: str, tmp_path: Path) -> None:
    fused = torch.cat([torch.eye(8)] * 3)
    assert "joined" not in said(tmp_path, {f"{one}.qkv.weight": fused, "l.1.attn.qkv.weight": fused})
    found = said(tmp_path, {f"{one}.qkv.weight": fused, f"{other}.qkv.weight": fused})["joined"]
    assert (found.level, found.values["count"]) == ("watch", 2)


@pytest.mark.parametrize(
    ("name", "key", "count", "measured"),
    [
        ("xcit_nano_12_p16_224", "unlike", 12, 0),
        ("davit_tiny", "unlike", 6, 6),
        ("coat_lite_tiny", "unlike", 8, 0),
        ("cait_xxs24_224", "unlike", 24, 0),
        ("mvitv2_tiny", "convolved", 10, 0),
        ("hiera_tiny_224", "unlike", 3, 9),  # where it takes the largest q of several positions
        ("gcvit_tiny", "unread", 14, 17),
        ("swinv2_cr_tiny_224", "cosine", 12, 12),
    ],
)
def test_what_is_no_logit_in_timms_classes_is_not_measured_as_one(
    name: str, key: str, count: int, measured: int, tmp_path: Path
) -> None:
    state = loaded().create_model(name).state_dict()
    found = said(tmp_path, {key: x for key, x in state.items() if "att" in key or ".cpe" in key or ".proj." in key})
    assert found[key].values["count"] == count
    assert len(examine_path(tmp_path).tables["layers"]) == measured
    assert not {"unlike", "convolved", "unread", "cosine"} & found.keys() - {key}


@pytest.mark.parametrize(
    ("layer", "words", "beside_it"),
    [
        ("model.layers.0.self_attn", "{}_proj.weight", "A_log"),  # Kimi Linear
        ("model.layers.0.attn", "{}_proj.weight", "gk_proj.0.weight"),  # GLA of fla
        ("model.layers.0.attn", "{}_proj.weight", "g_norm_swish_gate.weight"),  # RetNet of fla
        ("model.layers.0.self_attn", "{}_proj.weight", "time_decay"),  # RWKV made of Qwen
        ("net.blocks.0.f.fn", "to_{}.weight", "fast_attention.projection_matrix"),  # Performer
        ("net.layers.0.0.fn", "to_{}.weight", "proj_k"),  # Linformer
        ("encoder.down_blocks.3.0.attn", "to_{}.weight", "to_qkv_multiscale.0.proj_in.weight"),  # DC-AE
        ("layers.0.self_attn", "qkv_proj.weight", "output_gate.weight"),  # MiniMax-01
        ("layers.0.attention", "query_key_value.weight", "g_norm.weight"),  # Ling linear
        ("transformer_blocks.0.attn1", "to_{}.weight", "../ff.conv_depth.weight"),  # Sana
        ("blocks.0.attn", "qkv.weight", "../mlp.depth_conv.conv.weight"),  # Sana, its authors'
        ("encoder.layer.0.attention.self", "{}_proj.weight", "../../../../rel_embeddings.weight"),  # DeBERTa
    ],
)
def test_attention_without_a_softmax_of_q_and_k_is_not_measured(
    layer: str, words: str, beside_it: str, tmp_path: Path
) -> None:
    place = layer.split(".")
    for _ in range(beside_it.count("../")):
        place.pop()
    mark = ".".join([*place, beside_it.replace("../", "")])
    tensors = {name: torch.randn(24, 8) for name in {f"{layer}.{words.format(side)}" for side in "qk"}}
    assert "unlike" not in said(tmp_path, tensors)
    found = said(tmp_path, tensors | {mark: torch.ones(8, 8)})
    assert (found["unlike"].level, found["unlike"].values["layer"]) == ("watch", layer)
    assert found.keys() == {"unlike"}


@pytest.mark.parametrize(
    ("layer", "config"),
    [
        ("layers.0.linear_attn", {}),
        ("loftr_coarse.layers.0", {}),
        ("retention", {}),
        ("encoder.layers.0.self_attn", {"model_type": "autoformer"}),
        ("model.layers.0.attn", {"model_type": "linear_attn"}),
    ],
)
def test_attention_without_a_softmax_is_told_by_its_name_or_its_config(
    layer: str, config: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert said(tmp_path, split(layer, "{}_proj.weight")).keys() == {"unlike"}
    assert "unlike" not in said(tmp_path, split("model.layers.0.self_attn", "{}_proj.weight")) or config


def skipped(kind: str, **config: Any) -> tuple[set[str], set[str]]:
    """Layers of a class of transformers that are unlike, and the others; without numbers."""
    made = getattr(transformers, kind)
    with torch.device("meta"):
        model = made(made.config_class(**config))
    shapes = {name: tuple(x.shape) for name, x in model.state_dict().items()}
    sides: tuple[set[str], set[str]] = set(), set()
    for layer, own in found_in(shapes, made.config_class.model_type).items():
        inner = {name: shapes[f"{layer}.{name}"] for name in beside.inside(shapes, layer)}
        sides[not beside.unlike(layer, inner, shapes, fused="q" not in own)].add(layer.rpartition(".")[2])
    return sides


@pytest.mark.parametrize(
    ("kind", "config", "unlike", "others"),
    [
        ("Qwen3NextModel", {}, {"linear_attn"}, {"self_attn"}),
        ("OlmoHybridModel", {}, {"linear_attn"}, {"self_attn"}),
        ("MiniMaxModel", {}, {"self_attn"}, {"self_attn"}),
        ("KimiLinearModel", {}, {"self_attn"}, set()),  # its others are latent
        ("DebertaV2Model", {"relative_attention": True}, {"self"}, set()),
        ("DebertaV2Model", {}, set(), {"self"}),
        ("DebertaModel", {"relative_attention": True}, {"self"}, set()),
        ("ProphetNetModel", {}, set(), {"self_attn", "cross_attn"}),
        ("Sam2HieraDetModel", {}, {"attn"}, {"attn"}),
    ],
)
def test_real_classes_without_a_softmax_of_q_and_k_are_told(
    kind: str, config: dict[str, Any], unlike: set[str], others: set[str]
) -> None:
    assert skipped(kind, **config) == (unlike, others)


@pytest.mark.parametrize("shape", [(), (2, 1, 1)])
def test_a_temperature_beside_q_and_k_of_their_own_is_not_taken_for_attention_between_channels(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    assert "unlike" not in said(tmp_path, split("l.0.attn") | {"l.0.attn.temperature": torch.ones(shape)})


def test_a_fused_matrix_without_named_heads_is_read_by_its_columns_or_those_of_its_output(tmp_path: Path) -> None:
    """24 rows of width 12 may be [k, v]; with an output projection of 8 columns they are q, k and v of width 8."""
    fused = {"l.0.attn.qkv.weight": torch.randn(24, 12)}
    assert said(tmp_path, fused)["unread"].values["count"] == 1
    assert "unread" not in said(tmp_path, fused | {"l.0.attn.proj.weight": torch.ones(12, 8)})
