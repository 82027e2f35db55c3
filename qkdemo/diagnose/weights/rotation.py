"""What YaRN and LongRoPE multiply q · k of a layer by: they multiply cos and sin, and so q · k, by a number.

* `turn_of(layer, config)`: that number, and whether it surely acts in this layer, and on all of each head;
* `rotates(config, at)`: whether a layer has rotary positions, as Llama 4 and SmolLM3 list them;
* `kind_of(layer, config)`: what `layer_types` calls a layer; `rope_of(config)`: what a config says of rotary positions.

Classes are those of transformers 5.24, and the code that the authors of Phi-3-small published.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

_LONG: Final = ("longrope", "su")  # Phi-3's; as its first files call it
_BEFORE: Final = "original_max_position_embeddings"
NAMES: Final = ("rope_parameters", "rope_scaling")  # as transformers 5 saves it; as older files have it
_NO_ROPE: Final = 4  # every fourth layer of Llama 4 and SmolLM3, unless a config says otherwise
_IN_STACK: Final = re.compile(r"(?:.*\.)?layers\.(\d+)\.(?:self_attn|attn)")
_EVERYWHERE: Final = frozenset(  # model types that rotate all of each head in each layer, with one kind of rotation
    {"apertus", "arcee", "bitnet", "cohere", "cwm", "ernie4_5", "ernie4_5_moe", "exaone", "falcon_h1", "flex_olmo"}
    | {"gemma", "gemma2", "gpt_oss", "granite", "granitemoe", "granitemoeshared", "helium", "hyperclovax", "internlm3"}
    | {"llama", "mistral", "olmo", "olmo2", "olmoe", "phi3", "phi3small", "phimoe", "qwen2", "qwen2_moe", "qwen3"}
    | {"qwen3_moe", "qwen3_vl_text", "qwen3_vl_moe_text", "seed_oss", "solar_open", "starcoder2", "vaultgemma"}
    | {"qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"}
)
_IN_FULL: Final = frozenset({"olmo3", "gemma3_text"})  # whose classes give what rope_scaling holds to full_attention
_IN_SLIDING: Final = frozenset({"cohere2", "exaone4", "exaone_moe", "flint"})  # others have no rotary positions
_LISTED: Final = frozenset({"smollm3"})  # in no_rope_layers
_BY_KIND: Final = frozenset({*_IN_FULL, "embedding_gemma2_text", "mellum", "modernbert", "modernbert-decoder"})
_MERGED: Final = frozenset({*_IN_FULL, "gemma3n_text", "t5gemma2_text", "t5gemma2_decoder"})  # with rope_parameters
_MERGED_ALL: Final = frozenset({"modernbert", "modernbert-decoder"})  # likewise, in both kinds of layers
_WHOLE: Final = _EVERYWHERE | _IN_FULL | _IN_SLIDING | _LISTED | _BY_KIND
_FIRST: Final = dict.fromkeys(("phi3", "phi3_v", "phi4_multimodal", "phi4mm"), 4096)  # of a config that is silent
_BY_LENGTH: Final = ("phimoe", "phi3small")  # with a factor for short texts, and one for long ones


class Turn(NamedTuple):
    """What a rotation multiplies q · k by, beside turning; if not `known`, at most, and not `whole` if in part."""

    times: float = 1.0
    known: bool = True  # it acts in this layer
    whole: bool = True  # if it acts, then on all of a head


def turn_of(layer: str, config: Mapping[str, Any]) -> Turn:
    """What q · k of a layer is multiplied by at equal positions. `config`: the layer's.

    >>> yarn = {"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.5}
    >>> turn_of("layers.0.self_attn", {"model_type": "qwen3", "rope_scaling": yarn})
    Turn(times=2.25, known=True, whole=True)
    >>> turn_of("layers.0.self_attn", {"rope_scaling": yarn})
    Turn(times=2.25, known=False, whole=False)
    """
    rope, kind = rope_of(config), config.get("model_type") or ""
    if kind not in _WHOLE | _MERGED and all(config.get(name) for name in NAMES):  # its class reads one of them
        return max(turn_of(layer, {**config, name: None}) for name in NAMES)
    nested = {name: each or {} for name, each in rope.items() if each is None or isinstance(each, Mapping)}
    nested = nested if any(nested.values()) else {}
    of_layer = nested.get(kind_of(layer, config) or "")
    each_of = [of_layer] if of_layer is not None else list(nested.values()) or [rope]
    times = {factor**2 for each in each_of for factor in _factors(each, config, nested=bool(nested))}
    acts = of_layer is not None if nested else _acts(layer, config)
    if times <= {1.0} or (acts is False and kind in _WHOLE and not nested):
        return Turn()
    whole = kind in _WHOLE and all((each.get("partial_rotary_factor") or 1) == 1 for each in (config, *each_of))
    if whole and acts and len(times) == 1 and (not nested or kind in _BY_KIND):
        return Turn(times.pop())
    return Turn(max(1.0, *times), known=False, whole=whole)


def rope_of(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a config says of rotary positions, of all layers or by their kinds; empty where it says nothing.

    Where it has both names transformers 5 takes rope_scaling, or puts it into the kind of layers that it is for.

    >>> rope_of({"rope_parameters": {"rope_type": "default"}, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}})
    {'rope_type': 'yarn', 'factor': 4.0}
    """
    new, old = (told if isinstance(told := config.get(name), Mapping) else {} for name in NAMES)
    kind = config.get("model_type")
    if not old:
        return new
    if kind in _MERGED | _MERGED_ALL and any(isinstance(each, Mapping) for each in new.values()):
        gets = ("full_attention", "sliding_attention")[: 1 + (kind in _MERGED_ALL)]
        return {**new, **{name: {**each, **old} for name in gets if isinstance(each := new.get(name) or {}, Mapping)}}
    return old


def kind_of(layer: str, config: Mapping[str, Any]) -> str | None:
    """What a config's `layer_types` calls a layer; None where it does not tell."""
    at, kinds = _index(layer), config.get("layer_types")
    told = kinds[at] if isinstance(kinds, list) and at is not None and at < len(kinds) else None
    return told if isinstance(told, str) else None


def rotates(config: Mapping[str, Any], at: int) -> bool:
    """Whether layer `at` has rotary positions: a 1 in `no_rope_layers`, in spite of its name."""
    listed, every = config.get("no_rope_layers"), config.get("no_rope_layer_interval")
    if isinstance(listed, list) and at < len(listed):
        return bool(listed[at])
    return (at + 1) % (every if isinstance(every, int) and every > 0 else _NO_ROPE) != 0


def positive(number: object) -> float | None:
    """A finite number above 0; None for anything else."""
    return float(number) if type(number) in (int, float) and 0 < number < math.inf else None  # type: ignore[operator, arg-type]


def _index(layer: str) -> int | None:
    """Where a layer stands in a stack of layers that attend to themselves."""
    match = _IN_STACK.fullmatch(layer)
    return None if match is None or "cross" in layer or "encoder" in layer else int(match[1])


def _acts(layer: str, config: Mapping[str, Any]) -> bool | None:
    """Whether what a config says of all layers acts in this one; None where that is not known."""
    kind, at, told = config.get("model_type"), _index(layer), kind_of(layer, config)
    if kind in _EVERYWHERE and at is not None:
        return True
    if kind in _LISTED and at is not None:
        return rotates(config, at)
    if kind in _IN_FULL and told and not config.get("rope_parameters"):
        return told == "full_attention"
    if kind in _IN_SLIDING and told and config.get("sliding_window"):
        return told == "sliding_attention"
    return None


def _factors(told: Mapping[str, Any], config: Mapping[str, Any], *, nested: bool) -> Iterator[float]:
    """What cos and sin may be multiplied by. `told`: what the config says of the rotation."""
    kind, of_config = told.get("rope_type") or told.get("type") or "default", config.get("model_type")
    each = [positive(told.get(f"{word}_mscale")) for word in ("short", "long")]
    if all(each) and (kind in _LONG or (of_config == "phimoe" and kind != "default")):
        yield from filter(None, each)
        if of_config in _BY_LENGTH:
            return
    yield _factor(kind, told, config, nested=nested)


def _factor(kind: str, told: Mapping[str, Any], config: Mapping[str, Any], *, nested: bool) -> float:
    """Eq. 22 of Peng et al. 2023, 2309.00071; section 4.2 of Ding et al. 2024, 2402.13753, as transformers has it."""
    if kind not in ("yarn", *_LONG):
        return 1.0
    if own := positive(told.get("attention_factor")):
        return own
    reached = positive(config.get("max_position_embeddings"))
    of_class = _FIRST.get(config.get("model_type") or "")
    lengths = (None if nested else positive(config.get(_BEFORE, of_class)), positive(told.get(_BEFORE)), reached)
    first = next(filter(None, lengths), None)
    factor = positive(told.get("factor")) or (reached / first if reached and first else 1.0)
    if factor <= 1:
        return 1.0
    if kind in _LONG:
        return math.sqrt(1 + math.log(factor) / math.log(first)) if first and first > 1 else 1.0
    of, by = (positive(told.get(name)) for name in ("mscale", "mscale_all_dim"))
    above, below = (0.1 * times * math.log(factor) + 1 for times in ((of, by) if of and by else (1.0, 0.0)))
    return above / below
