"""Weights that are packed by a quantiser or stand beside adapters: heads are read where the file tells them."""

from pathlib import Path
from typing import Final

import pytest
import torch
from torch import Tensor

from tests.diagnose.weights.classes import in_file, read_alone


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
