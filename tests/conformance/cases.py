"""How each class of the table is built small, and in what its configuration, its call and its numbers differ.

* `CASES`: id of a row → a function that runs its class.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch

from tests.conformance import unusual
from tests.conformance.real import HEADS, LESS_ONE, PLAIN, WIDTH, Case, attention

SCALAR: Final = 40  # a query_pre_attn_scalar that is no power of the head width
_CONSTANT: Final[dict[str, Any]] = {
    "query_pre_attn_scalar": SCALAR,
    "prepare": lambda module: {"learned_scale": SCALAR**-0.5},
}


def _capped(module: Any) -> dict[str, Any]:
    return {"learned_scale": SCALAR**-0.5, "softcap": module.attn_logit_softcapping}


def _silent_sinks(module: Any) -> dict[str, Any]:
    """gpt-oss adds a learned logit to every softmax: here one so low that it takes no weight."""
    module.sinks.data.fill_(-1e4)
    return {}


def _gated(module: Any) -> dict[str, Any]:
    """Qwen3-Next projects to query and gate at once, head by head."""
    return {"w_q": module.q_proj.weight.detach().unflatten(0, (HEADS, 2, WIDTH))[:, 0].flatten(0, 1)}


def _fused(module: Any) -> dict[str, Any]:
    """Persimmon has one projection for q, k and v, head by head."""
    weight, bias = (x.detach().unflatten(0, (HEADS, 3, WIDTH)) for x in module.query_key_value.parameters())
    parts = {f"w_{side}": weight[:, at].flatten(0, 1) for at, side in enumerate("qkv")}
    return parts | {f"b_{side}": bias[:, at].flatten() for at, side in enumerate("qkv")}


def _timesfm(module: Any) -> dict[str, Any]:
    """A learned factor per channel follows on q, softplus / ln 2: it multiplies the gain."""
    module.scaling.data = torch.linspace(-1, 1, WIDTH)
    factor = 1.442695041 * torch.nn.functional.softplus(module.scaling.detach())
    return {"gain_q": (module.q_norm.weight.detach() * factor).expand(HEADS, WIDTH)}


def _dory(module: Any) -> dict[str, Any]:
    """(√d · sqk / start)² on q alone, after rotary, times 1/√d: that is √d times the square of a gain that starts
    at 1. Its epsilon is added to the sum of squares."""
    gain = torch.linspace(0.5, 1.5, HEADS * WIDTH)
    module.sqk.data = gain * module.config.initializer_range
    return {"gain_q": gain.square().view(HEADS, WIDTH)}


def _muse(module: Any) -> dict[str, Any]:
    return {"learned_scale": module.qk_scale_factor * module.scaling}


CASES: Final[dict[str, Callable[..., Case]]] = {
    f"{name}-transformers": partial(attention, f"{name}-transformers", **more)
    for name, more in {
        "olmo-2": {},
        "olmo-3": {"layer": 3, "layer_type": "full_attention"},
        "olmoe": {},
        "flexolmo": {},
        "qwen3-dense": {},
        "qwen3-moe": {},
        "qwen3-next": {"gain": LESS_ONE, "prepare": _gated},
        "qwen2-qwen2-5": {},
        "gemma-1": {},
        "gemma-2": {"layer": 1, "spread": 4, "query_pre_attn_scalar": SCALAR, "prepare": _capped},
        "gemma-3": {
            "config": "Gemma3TextConfig",
            "layer": 5,
            "layer_type": "full_attention",
            "gain": LESS_ONE,
            **_CONSTANT,
        },
        "gemma-3n-text": {
            "config": "Gemma3nTextConfig",
            "rotary": "Gemma3nRotaryEmbedding",
            "num_kv_shared_layers": 0,
            "layer_type": "sliding_attention",
        },
        "gemma-4-text": {
            "config": "Gemma4TextConfig",
            "rotary": "Gemma4TextRotaryEmbedding",
            "layer_type": "sliding_attention",
            "call": {"shared_kv_states": {}},
        },
        "cohere-command-r-aya": {"use_qk_norm": True},
        "cohere2-command-r7b-a": {},
        "chameleon": {},
        "stablelm-2-12b": {"qk_layernorm": True},
        "persimmon": {"prepare": _fused},
        "phi-1-1-5-2": {"qk_layernorm": True},
        "llama-4-text": {"config": "Llama4TextConfig"},
        "glm-4-dense-0414": {},
        "glm-4-5-moe": {"use_qk_norm": True},
        "minimax-01-text": {},
        "minimax-m2": {},
        "hunyuan-v1-dense": {},
        "smollm3": {},
        "gpt-oss": {**PLAIN, "prepare": _silent_sinks},
        "nanochat-hf-port": {},
        "timesfm-2-5": {"prepare": _timesfm},
        "esm-c": {"num_key_value_heads": HEADS},
        "lfm2": {},
        "apertus": PLAIN,
        "exaone-4": {},
        "dots-1": {},
        "step-3-7": {
            "config": "Step3p7TextConfig",
            "layer_type": "full_attention",
            "gain": LESS_ONE,
            "gating": "per-head",
        },
        "muse-spark": {
            "config": "MuseSparkTextConfig",
            "rotary": "MuseSparkTextRotaryEmbedding",
            "prepare": _muse,
        },
        "dory-ngpt-style": {"layer_type": "sliding_attention", "prepare": _dory},
    }.items()
} | {
    "idefics-1-decoder-transformers": unusual.idefics_decoder,
    "idefics-1-perceiver-transformers": unusual.idefics_perceiver,
    "llama-3-2-vision-cross-attention-mllama-transformers": unusual.mllama,
    "swin-v2-transformers": unusual.swin_v2,
    "internvl-vision-transformers": partial(
        unusual.picture, "internvl-vision-transformers", "InternVLVisionConfig", use_qk_norm=True
    ),
    "janus-vision-transformers": partial(
        unusual.picture, "janus-vision-transformers", "JanusVisionConfig", use_qk_norm=True, heads=1
    ),
    "inkling-transformers": unusual.inkling,
    "zaya-transformers": unusual.zaya,
    "videoprism-transformers": unusual.videoprism,
    "blt-cross-attention-transformers": unusual.blt,
    "sapiens-2-transformers": unusual.sapiens_2,
}
