"""Tiny models of real classes, made in a moment, with weights large enough that attention has something to say."""

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

IDS: Final = (torch.arange(24).reshape(2, 12) * 7) % 60 + 2
_SMALL: Final[dict[str, Any]] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 1,
}


def _qwen3() -> nn.Module:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    return Qwen3ForCausalLM(Qwen3Config(**_SMALL, head_dim=8))


def _gemma3() -> nn.Module:
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    return Gemma3ForCausalLM(Gemma3TextConfig(**_SMALL, head_dim=8, sliding_window=4))


def _olmo2() -> nn.Module:
    from transformers import Olmo2Config, Olmo2ForCausalLM

    return Olmo2ForCausalLM(Olmo2Config(**_SMALL))


def _llama4() -> nn.Module:
    from transformers.models.llama4.configuration_llama4 import Llama4TextConfig
    from transformers.models.llama4.modeling_llama4 import Llama4ForCausalLM

    more = {"head_dim": 8, "intermediate_size_mlp": 48, "num_local_experts": 2, "use_qk_norm": True}
    return Llama4ForCausalLM(Llama4TextConfig(**_SMALL, **more))


def _gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    none = {"attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0, "bos_token_id": 1, "eos_token_id": 1}
    return GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=4, **none))


def _deepseek_v3() -> nn.Module:
    from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

    latent = {"q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8}
    experts = {"n_routed_experts": 4, "moe_intermediate_size": 16, "n_group": 2, "topk_group": 1}
    more = {"num_key_value_heads": 4, "num_experts_per_tok": 2, "first_k_dense_replace": 2}
    return DeepseekV3ForCausalLM(DeepseekV3Config(**(_SMALL | latent | experts | more)))


LANGUAGE_MODELS: Final[dict[str, Callable[[], nn.Module]]] = {
    "Qwen3": _qwen3,
    "Gemma 3": _gemma3,
    "OLMo 2": _olmo2,
    "Llama 4": _llama4,
    "GPT-2": _gpt2,
    "DeepSeek V3": _deepseek_v3,
}
WITHOUT_NORM: Final = ("GPT-2", "DeepSeek V3")


def language_model(name: str, implementation: str, dtype: torch.dtype = torch.float32) -> Any:
    """The model, its gains and weights drawn anew, so that no head is even and no gain is 1."""
    torch.manual_seed(0)
    model: Any = LANGUAGE_MODELS[name]()
    model.set_attn_implementation(implementation)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4).add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return model.to(dtype).eval()


class VisionAttention(nn.Module):
    """As timm's vision transformers write it: one projection, optional norms, the fused product."""

    def __init__(self, width: int = 16, heads: int = 2, *, norm: bool = False) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.q_norm = nn.LayerNorm(width // heads) if norm else nn.Identity()
        self.k_norm = nn.LayerNorm(width // heads) if norm else nn.Identity()
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, positions, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, positions, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        x = functional.scaled_dot_product_attention(self.q_norm(q), self.k_norm(k), v)
        return self.proj(x.transpose(1, 2).reshape(batch, positions, width))
