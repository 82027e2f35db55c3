"""What an attention layer multiplies q · k by, where its config, its architecture or its names say that it is not 1/√d.

* `scale_of(layer, names, config, d_head)`: that number; None for 1/√d, which is taken where nothing else is told. YaRN
  and LongRoPE multiply cos and sin, and so q · k at every two positions, by a number: that is counted in it.

Numbers are those of transformers 5.24, and of the code that the authors of Phi-3-small, BTLM and JAIS published.
"""

import math
import re
from collections.abc import Collection, Mapping
from typing import Any, Final

_ONE: Final = frozenset(  # model types that do not scale q · k, or have its scale in their weights
    {"gemma3n_text", "gemma4_text", "gemma4_vision", "gemma4_unified_text", "diffusion_gemma_text"}
    | {"embedding_gemma2_text", "gpt_neo", "pix2struct_text_model", "pix2struct_vision_model"}
    | {"dia_encoder", "dia_decoder"}
)
_POWERS: Final[Mapping[str, tuple[float, float]]] = {  # model type → (a, p) of the scale (a · d)^p
    "inkling_text": (1, -1),
    "zamba": (0.5, -0.5),
    "zamba2": (0.5, -0.5),
}
_LONG: Final = ("longrope", "su")  # Phi-3's; as its first files call it
_BEFORE: Final = "original_max_position_embeddings"
_OF_T5: Final = re.compile(r"(.*\.)?((Local|TransientGlobal)?SelfAttention|EncDecAttention)")  # LongT5's, too
_OF_GPT_NEO: Final = re.compile(r"(.*\.)?h\.\d+\.attn\.attention")  # EXAONE's, too, whose MLP has other names
_OF_GEMMA: Final = ("layer_scalar", "laurel.linear_left.weight")  # beside the attention of Gemma 4, and of Gemma 3n


def scale_of(layer: str, names: Collection[str], config: Mapping[str, Any], d_head: int) -> float | None:
    """What q · k is multiplied by, if it is told and other than 1/√d. `names`: of all tensors; `config`: the layer's.

    >>> scale_of("layers.0.self_attn", (), {"model_type": "gemma3_text", "query_pre_attn_scalar": 256}, 128)
    0.0625
    >>> scale_of("h.0.attn.attention", {"h.0.mlp.c_fc.weight"}, {}, 64)
    1.0
    >>> scale_of("layers.0.self_attn", (), {"model_type": "qwen3"}, 64)
    """
    scale = _told(layer, names, config, d_head)
    if times := _times(layer, config):
        scale = times * (d_head**-0.5 if scale is None else scale)
    return None if scale is None or math.isclose(scale * math.sqrt(d_head), 1, rel_tol=1e-6) else scale


def _told(layer: str, names: Collection[str], config: Mapping[str, Any], d_head: int) -> float | None:
    kind, of_mpt = config.get("model_type") or "", config.get("attn_config")
    block = layer.rpartition(".")[0]
    if _OF_T5.fullmatch(layer) or kind in _ONE or config.get("scale_attn_weights") is False:  # GPT-2's
        return 1.0
    of_neo = _OF_GPT_NEO.fullmatch(layer) and f"{layer.removesuffix('attn.attention')}mlp.c_fc.weight" in names
    if not kind and (of_neo or any(f"{block}.{each}" in names for each in _OF_GEMMA)):
        return 1.0
    if of_kind := _POWERS.get(kind) or _of_mup(config):
        times, power = of_kind
        return float((times * d_head) ** power)
    if scalar := _positive(config.get("query_pre_attn_scalar")):
        return float(scalar**-0.5)
    own = of_mpt.get("softmax_scale") if isinstance(of_mpt, Mapping) else None
    return _positive(config.get("attention_multiplier")) or _positive(own)  # of Granite; of MPT


def _of_mup(config: Mapping[str, Any]) -> tuple[float, float] | None:
    """As in `_POWERS`, where a config asks for a scale of 1/d."""
    if config.get("mup_scale_qk_dot_by_d") is True or config.get("scale_qk_dot_by_d") is True:  # of BTLM; of JAIS
        return 1, -1
    if config.get("model_type") == "phi3small" and config.get("mup_use_scaling", True):
        return 1 / (_positive(config.get("mup_attn_multiplier")) or 1), -1
    return None


def _times(layer: str, config: Mapping[str, Any]) -> float | None:
    """What the scale is multiplied by: k of Falcon-H1; cos and sin of YaRN or LongRoPE; a falling share in GPT-2."""
    at = re.search(r"h\.(\d+)\.", layer)
    if config.get("scale_attn_by_inverse_layer_idx") is True and at:
        return 1 / (int(at[1]) + 1)
    times = (_positive(config.get("key_multiplier")) or 1) * _of_rotation(config) ** 2
    return None if times == 1 else times


def _of_rotation(config: Mapping[str, Any]) -> float:
    """What YaRN or LongRoPE multiplies cos and sin by, if all of a head is rotated.

    Eq. 22 of Peng et al. 2023, 2309.00071; section 4.2 of Ding et al. 2024, 2402.13753, as transformers has it.
    """
    told = next((x for name in ("rope_parameters", "rope_scaling") if isinstance(x := config.get(name), Mapping)), {})
    kind, part = told.get("rope_type") or told.get("type"), told.get("partial_rotary_factor")
    if kind not in ("yarn", *_LONG) or (part or config.get("partial_rotary_factor") or 1) != 1:
        return 1.0
    if own := _positive(told.get("attention_factor")):
        return own
    first = _positive(told.get(_BEFORE)) or _positive(config.get(_BEFORE))
    reached = _positive(config.get("max_position_embeddings"))
    factor = _positive(told.get("factor")) or (reached / first if reached and first else 1.0)
    if factor <= 1:
        return 1.0
    if kind in _LONG:
        return math.sqrt(1 + math.log(factor) / math.log(first)) if first and first > 1 else 1.0
    of, by = (_positive(told.get(name)) for name in ("mscale", "mscale_all_dim"))
    each = (of, by) if of and by else (1.0, 0.0)
    above, below = (0.1 * times * math.log(factor) + 1 for times in each)
    return above / below


def _positive(number: object) -> float | None:
    return float(number) if type(number) in (int, float) and 0 < number < math.inf else None  # type: ignore[operator, arg-type]
