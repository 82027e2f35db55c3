"""Real classes of transformers, saved as they are: q and k are found in every layout where the class itself has them.

Which rows of a matrix are q and which are k the class tells: its attention weights are watched while one entry of what
the projection returns is moved. At the first position a row of k moves the weights of later queries; at the last
position a row of q moves those of the last query.
"""

import json
from pathlib import Path
from typing import Any, Final

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from qkdemo.diagnose.findings.examine import examine_path
from qkdemo.diagnose.weights.checkpoint import open_checkpoint
from qkdemo.diagnose.weights.layers import Result, run
from qkdemo.diagnose.weights.projections import found_in, heads_of, parts, scope
from tests.diagnose.watching.timm_models import loaded

transformers: Any = pytest.importorskip("transformers")

HEADS, WIDTH, POSITIONS = 4, 32, 3
_COMMON: Final[dict[str, Any]] = {
    "vocab_size": 64,
    "hidden_size": WIDTH,
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": HEADS,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 1,
}
_GPT: Final[dict[str, Any]] = {
    "vocab_size": 64,
    "n_positions": 32,
    "n_embd": WIDTH,
    "n_layer": 1,
    "n_head": HEADS,
    "bos_token_id": 1,
    "eos_token_id": 1,
    "attn_pdrop": 0,
    "embd_pdrop": 0,
    "resid_pdrop": 0,
}
_FALCON: Final = _COMMON | {"alibi": False, "bias": False}
_MPT: Final = {"vocab_size": 64, "d_model": WIDTH, "n_layers": 1, "n_heads": HEADS, "max_seq_len": 32}
_GATED: Final[dict[str, Any]] = {
    "num_key_value_heads": 2,
    "head_dim": 16,
    "num_experts": 2,
    "num_experts_per_tok": 1,
    "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 16,
    "layer_types": ["full_attention"],
    "mlp_only_layers": [0],
}
CLASSES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "GPT-2": ("GPT2", _GPT),
    "GPT-NeoX": ("GPTNeoX", _COMMON),
    "Bloom": ("Bloom", {"vocab_size": 64, "hidden_size": WIDTH, "n_layer": 1, "n_head": HEADS}),
    "Falcon 40B": ("Falcon", _FALCON | {"new_decoder_architecture": True, "num_kv_heads": 2}),
    "Falcon 7B": ("Falcon", _FALCON | {"multi_query": True}),
    "Falcon RW": ("Falcon", _FALCON | {"multi_query": False}),
    "Persimmon": ("Persimmon", _COMMON | {"qk_layernorm": False}),
    "MPT": ("Mpt", _MPT),
    "DBRX": (
        "Dbrx",
        _MPT
        | {
            "attn_config": {"kv_n_heads": 2, "rope_theta": 1e4, "clip_qkv": 99},
            "ffn_config": {"ffn_hidden_size": 8, "moe_top_k": 1},
        },
    ),
    "Phi-3": ("Phi3", _COMMON | {"num_key_value_heads": 2}),
    "CodeGen": ("CodeGen", _GPT | {"rotary_dim": 4}),
    "GPT-BigCode": ("GPTBigCode", _GPT),
    "GPT-BigCode, a key for each query": ("GPTBigCode", _GPT | {"multi_query": False}),
    "ModernBERT": ("ModernBert", _COMMON),
    "DeBERTa": ("Deberta", _COMMON),
    "Qwen3": ("Qwen3", _COMMON | {"num_key_value_heads": 2, "head_dim": 16}),
    "Qwen3-Next": ("Qwen3Next", _COMMON | _GATED),
    "Qwen 3.5": ("Qwen3_5Text", _COMMON | _GATED),
}
_MATRICES: Final = ("c_attn", "query_key_value", "qkv_proj", "Wqkv", "in_proj", "q_proj", "k_proj")


def saved(name: str, folder: Path) -> nn.Module:
    """A tiny model of this class, in a folder too, with weights that no start has made alike."""
    word, config = CLASSES[name]
    torch.manual_seed(0)
    made = getattr(transformers, f"{word}Config")(**config)
    causal = type(made) in transformers.AutoModelForCausalLM._model_mapping
    kind = transformers.AutoModelForCausalLM if causal else transformers.AutoModel
    model: Any = kind.from_config(made, attn_implementation="eager").double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    model.save_pretrained(folder)
    checked: nn.Module = model
    return checked


def read(folder: Path, **changes: Any) -> Result:
    """What is read of it, with some words of its config changed, or left out where they are None."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8")) | changes
    with open_checkpoint(folder) as opened:
        return run(opened, {name: value for name, value in config.items() if value is not None})


def moved(model: nn.Module, module: nn.Module, position: int) -> Tensor:
    """[rows, heads, queries] whether moving a row of what the module returns at a position moves attention weights."""
    rows = module(torch.zeros(1, 1, WIDTH, dtype=torch.float64)).shape[-1]
    ids = torch.arange(POSITIONS).expand(rows + 1, -1) + 3

    def move(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        output = output.clone()
        output[torch.arange(rows), position, torch.arange(rows)] += 0.5  # the last sequence stays
        return output

    handle = module.register_forward_hook(move)
    with torch.no_grad():
        weights = model(input_ids=ids, output_attentions=True).attentions[0]
    handle.remove()
    return (weights[:-1] - weights[-1:]).abs().amax(-1) > 1e-12


def of_heads(model: nn.Module) -> tuple[list[Tensor], list[Tensor]]:
    """W_q and W_k of every query head, by what moves its attention."""
    found: dict[str, list[Tensor]] = {"q": [], "k": []}
    for name, module in model.named_modules():
        if name.rpartition(".")[2] not in _MATRICES:
            continue
        weight: Any = module.weight
        weight = weight.T if type(module).__name__ == "Conv1D" else weight
        is_k = moved(model, module, 0)[:, :, 1:].any(-1)
        is_q = moved(model, module, POSITIONS - 1)[:, :, -1] & ~is_k
        for side, rows in (("q", is_q), ("k", is_k)):
            if rows.any():
                found[side] += [weight[rows[:, head]].detach() for head in range(HEADS)]
    return found["q"], found["k"]


@pytest.mark.parametrize("name", CLASSES)
def test_q_and_k_are_read_where_the_class_has_them(name: str, tmp_path: Path) -> None:
    model = saved(name, tmp_path)
    (layer,) = read(tmp_path).layers
    q, k = of_heads(model)
    assert [len(x) for x in (*q, *k)] == [layer.d_head] * 2 * HEADS
    assert (layer.heads, layer.guessed) == (HEADS, False)
    wanted = [float(torch.linalg.matrix_norm(a.mT @ b, 2)) for a, b in zip(q, k, strict=True)]
    assert layer.spectral.tolist() == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("name", ["Falcon 40B", "Phi-3", "CodeGen", "GPT-BigCode", "Qwen3-Next"])
def test_a_layout_of_an_unknown_architecture_is_not_guessed(name: str, tmp_path: Path) -> None:
    saved(name, tmp_path)
    unknown = read(tmp_path, model_type="unheard_of")
    assert (unknown.layers, len(unknown.unread)) == ((), 1)
    (tmp_path / "config.json").unlink()
    if name != "Qwen3-Next":  # whose gate every known class lays out alike, and whose gains tell the head width
        said = {finding.key: finding.sentence for finding in examine_path(tmp_path).findings}
        assert "since its layout is not known here: 1. They were not measured." in said["unread"]
        assert "rows of q or k, if it has any" in said["unread"]  # of GC ViT's some hold k and v alone
    else:
        assert (read_alone(tmp_path).layers[0].heads, read_alone(tmp_path).unread) == (HEADS, ())


def read_alone(folder: Path, config: dict[str, Any] | None = None) -> Result:
    with open_checkpoint(folder) as opened:
        return run(opened, config)


def in_file(folder: Path, tensors: dict[str, Tensor]) -> Path:
    whole = {name: x.clone().contiguous() for name, x in tensors.items()}
    safetensors.torch.save_file(whole, folder / "model.safetensors")
    return folder


def joined(layout: str, q: Tensor, k: Tensor) -> Tensor:
    """W_q [4 · 8, width] and W_k in one matrix with values of 0, as the authors' own code takes it apart."""
    groups = len(k) // 8
    if layout == "blocks":  # torch.split(…, [q, k, v]), or unflatten(-1, (3, hidden))
        return torch.cat([q, k, torch.zeros_like(k)])
    by_group = q.reshape(groups, -1, 8, q.shape[1]), k.reshape(groups, 1, 8, q.shape[1])  # "(h gs d)"
    return torch.cat([*by_group, torch.zeros_like(by_group[1])], 1).reshape(-1, q.shape[1])


PUBLISHED: Final[dict[str, tuple[str, str, int, dict[str, Any]]]] = {  # of classes that transformers does not have
    "InternLM2": ("attention.wqkv", "groups", 2, {"model_type": "internlm2", "num_key_value_heads": 2}),
    "Phi-3-small": ("self_attn.query_key_value", "groups", 2, {"model_type": "phi3small", "num_key_value_heads": 2}),
    "Falcon 40B, first code": (
        "self_attention.query_key_value",
        "groups",
        2,
        {"model_type": "RefinedWeb", "n_head_kv": 2},
    ),
    "ChatGLM": ("attention.query_key_value", "groups", 4, {"model_type": "chatglm"}),
    "ChatGLM2": (
        "self_attention.query_key_value",
        "blocks",
        2,
        {"model_type": "chatglm", "multi_query_attention": True, "multi_query_group_num": 2},
    ),
    "Baichuan": ("self_attn.W_pack", "blocks", 4, {"model_type": "baichuan"}),
    "Qwen": ("attn.c_attn", "blocks", 4, {"model_type": "qwen"}),
    "timm": ("attn.qkv", "blocks", 4, {}),
    "NeoBERT": ("qkv", "groups", 4, {"model_type": "neobert", "vocab_size": 64}),
    "InternViT": ("attn.qkv", "blocks", 4, {"model_type": "intern_vit_6b"}),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_layouts_of_published_code_are_read(name: str, tmp_path: Path) -> None:
    word, layout, kv_heads, config = PUBLISHED[name]
    dice = torch.Generator().manual_seed(0)
    q, k = (torch.randn(8 * heads, WIDTH, generator=dice, dtype=torch.float64) for heads in (HEADS, kv_heads))
    alone = in_file(tmp_path, {"l.0.q_proj.weight": q, "l.0.k_proj.weight": k})
    wanted = read_alone(alone, {"num_attention_heads": HEADS, "head_dim": 8}).layers[0].spectral.tolist()
    fused = in_file(tmp_path, {f"l.0.{word}.weight": joined(layout, q, k)})
    (layer,) = read_alone(fused, config | {"num_attention_heads": HEADS}).layers
    assert layer.spectral.tolist() == pytest.approx(wanted, rel=1e-9)


_EVA: Final = "transformer.vision.transformer.layers.0.attention"  # of GLM-4V, whose images have blocks


@pytest.mark.parametrize(
    ("layer", "config"),
    [
        (_EVA, {"model_type": "chatglm", "vision_config": {"num_heads": HEADS}}),
        (_EVA, {"vision_config": {"num_heads": HEADS}}),
        (_EVA, {"num_attention_heads": HEADS}),
        ("audio_tower.layers.0.attention", {"model_type": "unheard_of", "audio_config": {"num_heads": HEADS}}),
    ],
)
def test_the_layout_of_a_part_whose_kind_is_not_named_is_not_guessed(
    layer: str, config: dict[str, Any], tmp_path: Path
) -> None:
    found = read_alone(in_file(tmp_path, {f"{layer}.query_key_value.weight": torch.randn(96, WIDTH)}), config)
    assert (found.layers, found.unread) == ((), (layer,))


@pytest.mark.parametrize(
    ("layer", "config"),
    [
        ("model.transformer_encoder.0", {"num_attention_heads": HEADS}),  # NeoBERT's, whose rows lie by head
        ("transformer_encoder.0", {}),
        ("model.layers.0.attn", {"num_attention_heads": HEADS, "vocab_size": 64, "model_type": "unheard_of"}),
    ],
)
def test_a_fused_matrix_of_an_unknown_text_is_not_read_as_blocks(
    layer: str, config: dict[str, Any], tmp_path: Path
) -> None:
    found = read_alone(in_file(tmp_path, {f"{layer}.qkv.weight": torch.randn(96, WIDTH)}), config)
    assert (found.layers, found.unread) == ((), (layer,))


def test_the_layout_of_a_text_is_read_where_nothing_names_a_kind(tmp_path: Path) -> None:
    folder = in_file(tmp_path, {"language_model.h.0.attn.query_key_value.weight": torch.randn(96, WIDTH)})
    (layer,) = read_alone(folder, {"text_config": {"num_attention_heads": HEADS}}).layers
    assert (layer.heads, layer.guessed) == (HEADS, False)


def test_projections_of_something_else_are_no_attention(tmp_path: Path) -> None:
    """A state-space layer's in_proj; k and v of GPT-2's cross attention; W_q and W_k of a layer that convolves them."""
    square = torch.randn(96, WIDTH, generator=torch.Generator().manual_seed(0))
    mixer = {"l.0.mixer.in_proj.weight": square, "l.0.crossattention.c_attn.weight": square.T[:, :64]}
    plain = {f"l.1.self_attn.{side}_proj.weight": torch.eye(WIDTH) for side in "qk"}
    convolved = {name.replace("l.1", "l.2"): x for name, x in plain.items()} | {
        "l.2.self_attn.q_conv1d.weight": torch.ones(WIDTH, 1, 4)
    }
    found = read_alone(in_file(tmp_path, mixer | plain | convolved), {"num_attention_heads": 4, "model_type": "jamba"})
    assert [layer.name for layer in found.layers] == ["l.1.self_attn"]
    assert (found.convolved, found.unread) == (("l.2.self_attn",), ())


def test_a_tower_has_the_heads_of_its_own_config(tmp_path: Path) -> None:
    text = {f"model.layers.0.self_attn.{side}_proj.weight": torch.eye(32) for side in "qk"}
    tower = {
        "model.vision_tower.layers.0.self_attn.q_proj.weight": torch.eye(32),
        "model.vision_tower.layers.0.self_attn.k_proj.weight": torch.eye(32),
        "visual.blocks.0.attn.qkv.weight": torch.cat([torch.eye(32)] * 3),
    }
    config: dict[str, Any] = {"text_config": {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}}
    folder = in_file(tmp_path, text | tower)
    for vision, heads, guessed in (({"num_heads": 8}, 8, False), (None, 1, True)):
        layers = {layer.name: layer for layer in read_alone(folder, config | {"vision_config": vision}).layers}
        assert layers["model.layers.0.self_attn"].d_head == 16
        for name in ("model.vision_tower.layers.0.self_attn", "visual.blocks.0.attn"):
            assert (layers[name].heads, layers[name].guessed) == (heads, guessed), name


TOWERS: Final = {  # of authors' own classes, whose config has no part for the images: CLIP and SigLIP have 16 heads
    "llava_mistral": "model.vision_tower.vision_tower.vision_model.encoder.layers.0.self_attn",
    "phi3_v": "model.vision_embed_tokens.img_processor.vision_model.encoder.layers.0.self_attn",
    "minicpmv": "vpm.blocks.0.self_attn",
}


@pytest.mark.parametrize(
    ("part", "layer"),
    [
        ("vision", "vision_tower.vision_model.encoder.layers.0.self_attn"),
        ("vision", "model.vision_tower.vision_tower.vision_model.encoder.layers.0.self_attn"),
        ("audio", "audio_tower.audio_encoder.layers.0.self_attn"),
    ],
)
def test_a_tower_within_its_part_has_the_heads_of_the_part_though_it_names_a_vocabulary(part: str, layer: str) -> None:
    """As published for LLaVA 1.5, whose vision_config has the vocabulary of the texts that CLIP was trained with."""
    of_text = {"model_type": "llama", "vocab_size": 64, "num_attention_heads": 8}
    of_part = {"model_type": f"clip_{part}_model", "vocab_size": 64, "num_attention_heads": 4}
    config = {"model_type": "llava", "text_config": of_text, f"{part}_config": of_part}
    assert heads_of(scope(config, layer)) == (4, 4)
    assert heads_of(scope(config, "language_model.model.layers.0.self_attn")) == (8, 8)
    inside = "language_model.vision_tower.layers.0.self_attn"  # no part is about it
    assert heads_of(scope({"model_type": "llava", "text_config": of_text}, inside)) == (0, 0)


@pytest.mark.parametrize("kind", TOWERS)
def test_a_tower_beside_a_text_has_not_the_heads_of_the_text(kind: str, tmp_path: Path) -> None:
    names = (TOWERS[kind], "model.layers.0.self_attn")
    folder = in_file(tmp_path, {f"{name}.{side}_proj.weight": torch.eye(64) for name in names for side in "qk"})
    config = {"model_type": kind, "vocab_size": 32000, "num_attention_heads": 32}
    layers = {layer.name: (layer.heads, layer.guessed) for layer in read_alone(folder, config).layers}
    assert layers == {names[0]: (1, True), names[1]: (32, False)}


ALONE: Final = {  # of transformers: models of images or sound that are whole, some with a vocabulary
    "CLIPVisionModel": ("vision_model.encoder.layers.0.self_attn", "num_attention_heads"),
    "ViTForImageClassification": ("vit.encoder.layer.0.attention.attention", "num_attention_heads"),
    "WhisperForConditionalGeneration": ("model.encoder.layers.0.self_attn", "encoder_attention_heads"),
    "Data2VecAudioForCTC": ("data2vec_audio.encoder.layers.0.attention", "num_attention_heads"),
    "SeamlessM4TModel": ("speech_encoder.layers.0.self_attn", "speech_encoder_attention_heads"),
}


@pytest.mark.parametrize("name", ALONE)
def test_a_model_of_images_or_sound_has_the_heads_of_its_config(name: str) -> None:
    layer, heads = ALONE[name]
    config = getattr(transformers, name).config_class().to_dict()
    assert heads_of(scope(config, layer))[0] == config[heads] > 0


OWN: Final = {  # of classes with more parts than one: a layer, and the heads that their config names for it, or 0
    "GraniteSpeechModel": ("projector.qformer.encoder.layer.0.attention.attention", 12),
    "Idefics2Model": ("connector.perceiver_resampler.layers.0.self_attn", 16),
    "SamModel": ("mask_decoder.transformer.layers.0.cross_attn_token_to_image", 8),
    "VideoMAEForPreTraining": ("decoder.decoder_layers.0.attention.attention", 6),
    "VJEPA2Model": ("predictor.layer.0.attention", 12),
    "BartModel": ("decoder.layers.0.encoder_attn", 16),
    "AriaModel": ("multi_modal_projector.cross_attn", 0),
    "Sam2HieraDetModel": ("blocks.3.attn", 0),
    "MaskFormerModel": ("pixel_level_module.encoder.model.encoder.layers.3.blocks.0.attention.self", 32),
    "Florence2Model": ("vision_tower.blocks.2.8.spatial_block.window_attn", 16),
    "SwinModel": ("encoder.layers.2.blocks.5.attention", 12),
    "PvtModel": ("encoder.block.2.1.attention.self", 5),
    "SegformerModel": ("stages.3.blocks.1.attention", 8),
    "HieraModel": ("encoder.stages.1.layers.2.attn", 2),
    "ClapAudioModel": ("audio_encoder.layers.1.blocks.1.attention.self", 8),
    "T5Model": ("decoder.block.0.layer.1.EncDecAttention", 8),
    "ProphetNetModel": ("decoder.layers.0.self_attn", 16),
}


@pytest.mark.parametrize("name", OWN)
def test_no_layer_is_read_with_the_heads_of_another_part(name: str) -> None:
    kind = getattr(transformers, name)
    config = kind.config_class()
    with torch.device("meta"):
        model = kind(config)
    layers = found_in(model.state_dict())
    assert not any("channel" in layer for layer in layers)  # Florence-2's logits between channels
    read = {layer: heads_of(scope(config.to_dict(), layer))[0] for layer in layers}
    assert read[OWN[name][0]] == OWN[name][1]
    for layer, heads in read.items():
        module = model.get_submodule(layer)
        words = ("num_heads", "num_attention_heads", "n_heads", "num_attn_heads")
        own = next((x for word in words if (x := getattr(module, word, 0))), 0)
        assert heads in (0, own) or not own, layer


@pytest.mark.parametrize(
    ("listed", "depths", "heads"),
    [([4, 8], [2, 2], (4, 8)), ([4, 8], None, (1, 1)), ([4, 8], [2], (1, 1)), ([4, 8], [2, 1], (4, 1))],
)
def test_heads_of_a_stage_are_read_only_where_depths_confirm_the_stage(
    listed: list[int], depths: Any, heads: tuple[int, int], tmp_path: Path
) -> None:
    """The second layer is block 1 of stage 1, and of blocks that are counted through no stage is known."""
    names = ("layers.0.blocks.0.attn", "layers.1.blocks.1.attn", "blocks.1.attn")
    folder = in_file(tmp_path, {f"{name}.qkv.weight": torch.randn(96, WIDTH) for name in names})
    layers = {each.name: each.heads for each in read_alone(folder, {"num_heads": listed, "depths": depths}).layers}
    assert layers == {**dict(zip(names, heads, strict=False)), "blocks.1.attn": 1}


RESAMPLERS: Final = {  # beside a text whose config has no part for them
    "idefics": "model.perceiver_resampler.blocks.0.0",
    "minicpmv": "resampler.attn",
    "qwen": "transformer.visual.attn_pool.attn",
    "mplug_owl2": "model.visual_abstractor.encoder.layers.0.crossattention.attention",
    "flamingo": "perceiver.layers.0.0",
    "unheard_of": "Qformer.bert.encoder.layer.0.attention.self",
}


@pytest.mark.parametrize("kind", RESAMPLERS)
def test_what_stands_between_images_and_text_has_not_the_heads_of_the_text(kind: str, tmp_path: Path) -> None:
    text = {f"model.layers.0.self_attn.{side}_proj.weight": torch.eye(64) for side in "qk"}
    folder = in_file(tmp_path, text | {f"{RESAMPLERS[kind]}.in_proj_weight": torch.randn(192, 64)})
    config = {"model_type": kind, "vocab_size": 32000, "num_attention_heads": 32}
    layers = {layer.name: (layer.heads, layer.guessed) for layer in read_alone(folder, config).layers}
    assert layers == {RESAMPLERS[kind]: (1, True), "model.layers.0.self_attn": (32, False)}


@pytest.mark.parametrize(("groups", "kv_heads"), [(2, 2), (None, 4)])
def test_a_matrix_of_megatron_core_is_read_by_its_groups(groups: Any, kv_heads: int, tmp_path: Path) -> None:
    dice = torch.Generator().manual_seed(0)
    q, k = (torch.randn(8 * heads, WIDTH, generator=dice, dtype=torch.float64) for heads in (HEADS, kv_heads))
    layer = "decoder.layers.0.self_attention"
    fused = {f"{layer}.linear_qkv.weight": joined("groups", q, k), f"{layer}.linear_proj.weight": torch.eye(32)}
    config = {"num_attention_heads": HEADS, "num_query_groups": groups}
    (found,) = read_alone(in_file(tmp_path, fused), config).layers
    own = HEADS // kv_heads
    wanted = [float(torch.linalg.matrix_norm(q[8 * h :][:8].T @ k[8 * (h // own) :][:8], 2)) for h in range(HEADS)]
    assert found.spectral.tolist() == pytest.approx(wanted, rel=1e-9)
    assert read_alone(tmp_path, {}).unread == (layer,)  # without heads it cannot be taken apart
    gated = {**fused, f"{layer}.linear_proj.weight": torch.eye(16)}
    assert read_alone(in_file(tmp_path, gated), config).unread == (layer,)


def test_logits_of_t5_are_bounded_without_a_scale(tmp_path: Path) -> None:
    """Its class multiplies q and k alone: the largest of many logits comes near what is said, and not beyond."""
    torch.manual_seed(0)
    config = transformers.T5Config(num_layers=1, d_model=4, d_kv=16, num_heads=2, vocab_size=64, d_ff=8)
    model = transformers.T5EncoderModel._from_config(config, attn_implementation="eager").double().eval()
    attend: Any = model.encoder.block[0].layer[0].SelfAttention
    with torch.no_grad():
        for each in (attend.q, attend.k):
            each.weight.normal_()
        attend.relative_attention_bias.weight.zero_()
        x = nn.functional.normalize(torch.randn(1, 600, 4, dtype=torch.float64), dim=-1)
        weights = next(
            each
            for each in attend(x, output_attentions=True)
            if each is not None
            and each.dim() == 4
            and each.shape[2:] == (600, 600)
            and each.sum(-1).allclose(torch.ones(()).double())
        )
    model.save_pretrained(tmp_path)
    report = examine_path(tmp_path)
    (said,) = (finding for finding in report.findings if finding.key == "spectral_scaled")
    spread = (weights.log().amax((-1, -2)) - weights.log().amin((-1, -2))).max()  # of logits below ±bound
    bound = max(row["spectral_norm"] for row in report.tables["layers"])
    assert float(said.values["logit"]) == pytest.approx(bound, rel=1e-3)  # type: ignore[arg-type]
    assert 1.2 * bound < spread < 2 * bound
    assert "spectral" not in {finding.key for finding in report.findings}


def test_cross_attention_of_sana_has_heads_of_its_own(tmp_path: Path) -> None:
    """Of diffusers: attn1 is linear, attn2 has 3 heads of 16."""
    tensors = {f"transformer_blocks.0.attn{at}.to_{side}.weight": torch.eye(48) for side in "qk" for at in (1, 2)}
    tensors["transformer_blocks.0.ff.conv_depth.weight"] = torch.ones(8, 1, 3, 3)
    config = {"num_attention_heads": 6, "num_cross_attention_heads": 3, "cross_attention_head_dim": 16}
    found = read_alone(in_file(tmp_path, tensors), config | {"attention_head_dim": 8})
    assert [(layer.heads, layer.d_head, layer.guessed) for layer in found.layers] == [(3, 16, False)]
    assert found.unlike == ("transformer_blocks.0.attn1",)


def test_groups_of_groupvit_are_assigned_by_one_head(tmp_path: Path) -> None:
    config = transformers.GroupViTConfig()
    with torch.device("meta"):
        names = found_in(transformers.GroupViTModel(config).state_dict())
    assigning = [layer for layer in names if layer.endswith("downsample.assign")]
    assert {heads_of(scope(config.to_dict(), layer))[0] for layer in assigning} == {1}
    assert heads_of(scope(config.to_dict(), "vision_model.encoder.stages.0.layers.0.self_attn"))[0] == 6
    assert heads_of(scope(config.to_dict(), f"{assigning[0]}.pre_assign_attn.attn"))[0] == 6


def test_heads_of_a_part_that_is_not_named_in_a_layer_are_not_taken(tmp_path: Path) -> None:
    """BLIP-2's: the text has 32 heads, the Q-Former 12; of a projector nothing is named."""
    names = (
        "qformer.encoder.layer.0.attention.attention",
        "language_model.model.decoder.layers.0.self_attn",
        "proj.attn",
    )
    tensors = {f"{name}.{side}_proj.weight": torch.eye(96) for name in names for side in "qk"}
    config = {"text_config": {"num_attention_heads": 32}, "qformer_config": {"num_attention_heads": 12}}
    layers = read_alone(in_file(tmp_path, tensors), config).layers
    assert {layer.name: (layer.heads, layer.guessed) for layer in layers} == dict(
        zip(names, ((12, False), (32, False), (1, True)), strict=True)
    )


@pytest.mark.parametrize("name", ["tiny_vit_5m_224", "efficientformer_l1"])
def test_rows_that_lie_by_head_in_timms_classes_are_not_read_as_blocks(name: str, tmp_path: Path) -> None:
    model: Any = loaded().create_model(name)
    named = {key: x for key, x in model.state_dict().items() if ".qkv." in key or key.endswith("attention_biases")}
    assert any(key.endswith(".qkv.weight") for key in named)
    found = read_alone(in_file(tmp_path, named), {})
    assert found.layers == ()
    assert len(found.unread) == sum(key.endswith(".qkv.weight") for key in named)


@pytest.mark.parametrize("window", ["block", "grid"])
def test_a_matrix_of_maxvit_is_not_read(window: str) -> None:
    """In some of timm's classes its rows lie head by head, in others all of q first."""
    name = f"stages.0.blocks.0.attn_{window}.attn.qkv.weight"
    assert parts(name, torch.ones(192, 64), {"num_attention_heads": 2}) is None
    assert parts("blocks.0.attn.qkv.weight", torch.ones(192, 64), {"num_attention_heads": 2}) is not None


@pytest.mark.parametrize(("heads", "kv_heads"), [(8, 4), (8, 8), (6, 3)])
def test_a_matrix_of_q_alone_is_not_read_as_q_k_and_v(heads: int, kv_heads: int, tmp_path: Path) -> None:
    """The last layers of Phi-4-mini-flash use keys of an earlier layer, and call W_q as others call all three."""
    width = 12 * heads
    rows = {1: (heads + 2 * kv_heads) * 12, 3: heads * 12}
    tensors = {f"model.layers.{at}.attn.Wqkv.weight": torch.randn(n, width) for at, n in rows.items()}
    tensors |= {f"model.layers.{at}.attn.out_proj.weight": torch.randn(width, width) for at in rows}
    config = {"model_type": "phi4flash", "num_attention_heads": heads, "num_key_value_heads": kv_heads}
    found = read_alone(in_file(tmp_path, tensors), config)
    assert [(layer.name, layer.d_head) for layer in found.layers] == [("model.layers.1.attn", 12)]
    assert found.unread == ("model.layers.3.attn",)


def packed(rows: int, columns: int, form: str) -> dict[str, Tensor]:
    """An output projection as a quantiser stores it, without what stands before its name."""
    if form == "nvfp4":
        scale = torch.ones(rows, columns // 16).to(torch.float8_e4m3fn)
        return {"weight": torch.zeros(rows, columns // 2, dtype=torch.uint8), "weight_scale": scale}
    if form == "mxfp4":
        scale = torch.full((rows, columns // 32), 127, dtype=torch.uint8)
        return {"weight": torch.zeros(rows, columns // 2, dtype=torch.uint8), "weight_scale": scale}
    if form == "bnb":
        return {"weight": torch.zeros(rows * columns // 2, 1, dtype=torch.uint8)}
    dtype = torch.int8 if form == "int8" else torch.float8_e4m3fn
    return {"weight": torch.zeros(rows, columns).to(dtype), "weight_scale": torch.ones(rows, 1)}


FORMS: Final = ("nvfp4", "mxfp4", "bnb", "int8", "float8")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["llama", "qwen3", "", "qwen3_next", "phi3"])
def test_heads_are_read_beside_an_output_projection_of_a_quantiser(kind: str, form: str, tmp_path: Path) -> None:
    """As ModelOpt has them where it leaves q, k and v: what is packed has fewer columns than heads give."""
    layer, d_head, heads, kv_heads = "model.layers.0.self_attn", 16, 8, 2
    gate, width = (2 if kind == "qwen3_next" else 1), 64
    q, k = torch.randn(heads, gate, d_head, width), torch.randn(kv_heads, d_head, width)
    rows = {"q": q.flatten(0, 2), "k": k.flatten(0, 1), "v": k.flatten(0, 1)}
    if kind == "phi3":
        tensors = {f"{layer}.qkv_proj.weight": torch.cat([rows[side] for side in "qkv"])}
    else:
        tensors = {f"{layer}.{side}_proj.weight": weight for side, weight in rows.items()}
        tensors |= {f"{layer}.{side}_norm.weight": torch.ones(d_head) for side in "qk" if kind != "llama"}
    tensors |= {f"{layer}.o_proj.{word}": x for word, x in packed(width, heads * d_head, form).items()}
    named = {"num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": d_head}
    found = read_alone(in_file(tmp_path, tensors), {"model_type": kind} | named if kind else None)
    assert found.unread == ()
    (own,) = found.layers
    assert (own.heads, own.kv_heads, own.d_head, own.guessed) == (heads, kv_heads, d_head, False)
    pairs = [q[at, 0].double().T @ k[at // (heads // kv_heads)].double() for at in range(heads)]
    assert own.spectral.tolist() == pytest.approx([float(torch.linalg.matrix_norm(x, 2)) for x in pairs])


@pytest.mark.parametrize("fused", [True, False])
def test_a_weight_with_adapters_of_peft_is_read_and_they_are_named(fused: bool, tmp_path: Path) -> None:
    """As Phi-4-multimodal is published: what stands in the checkpoint is not merged."""
    layer = "model.layers.0.self_attn"
    q, k = torch.randn(64, 64), torch.randn(16, 64)
    words = {"qkv_proj": torch.cat([q, k, k])} if fused else {"q_proj": q, "k_proj": k}
    base = {f"{layer}.{word}.base_layer.weight": weight for word, weight in words.items()}
    adapters = {f"{layer}.{word}.lora_{side}.speech.weight": torch.ones(8, 8) for word in words for side in "AB"}
    other = {f"{layer}.o_proj.base_layer.weight": torch.eye(64), f"{layer}.o_proj.lora_A.speech.weight": torch.eye(8)}
    config = {"model_type": "phi4mm", "num_attention_heads": 4, "num_key_value_heads": 1}
    alone = read_alone(in_file(tmp_path, base | other), config)
    assert (alone.unread, alone.keyless, alone.second) == ((), (), {})
    found = read_alone(in_file(tmp_path, base | other | adapters), config)
    assert {*found.second[layer]} == {f"{word}.lora_{side}" for word in words for side in "AB"}
    word = next(iter(words))
    for name in ("ia3_l.default", "oft_R.default.weight", "hada_w1_a.default", "lora_magnitude_vector.default.weight"):
        other_kind = {f"{layer}.{word}.{name}": torch.ones(4)}
        (second,) = read_alone(in_file(tmp_path, base | other | other_kind), config).second[layer]
        assert second == f"{word}.{name.split('.')[0]}"
    pairs = [head.double().T @ k.double() for head in q.reshape(4, 16, 64)]
    wanted = [float(torch.linalg.matrix_norm(x, 2)) for x in pairs]
    assert all(result.layers[0].spectral.tolist() == pytest.approx(wanted) for result in (alone, found))
