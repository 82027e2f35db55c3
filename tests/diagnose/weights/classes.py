"""Small models of transformers' classes, saved, and where their q and k are: by the models themselves."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from qkdemo.diagnose.weights.checkpoint import open_checkpoint
from qkdemo.diagnose.weights.layers import Result, run

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
