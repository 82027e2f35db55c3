"""Real classes of transformers, saved as they are: q and k are found in every layout where the class itself has them.

Which rows of a matrix are q and which are k the class tells: its attention weights are watched while one entry of what
the projection returns is moved. At the first position a row of k moves the weights of later queries; at the last
position a row of q moves those of the last query.
"""

from pathlib import Path
from typing import Any, Final

import pytest
import torch
from torch import nn

from qkdemo.diagnose.findings.examine import examine_path
from qkdemo.diagnose.weights.projections import parts
from tests.diagnose.watching.timm_models import loaded
from tests.diagnose.weights.classes import (
    CLASSES,
    HEADS,
    WIDTH,
    in_file,
    joined,
    of_heads,
    read,
    read_alone,
    saved,
    transformers,
)


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
