"""Models of more parts than one: towers of images and sound, and what stands between, each with its own heads."""

from pathlib import Path
from typing import Any, Final

import pytest
import torch

from qkdemo.diagnose.weights.projections import found_in, heads_of, scope
from tests.diagnose.weights.classes import WIDTH, in_file, read_alone, transformers


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
