"""What an attention layer multiplies q · k by, where its config, its architecture or its names say that it is not 1/√d.

* `scale_of(layer, names, config, d_head)`: a `Scale`; `USUAL`: that with 1/√d, which is taken where nothing is told.

Numbers are those of transformers 5.24, and of the code that the authors of Phi-3-small, BTLM, JAIS and Qwen published.
"""

import math
import re
from collections.abc import Collection, Mapping
from typing import Any, Final, Literal, NamedTuple

from qkdemo.diagnose.weights.rotation import NAMES, Turn, kind_of, positive, rope_of, rotates, turn_of

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
_OF_T5: Final = re.compile(r"(.*\.)?((Local|TransientGlobal)?SelfAttention|EncDecAttention)")  # LongT5's, too
_OF_GPT_NEO: Final = re.compile(r"(.*\.)?h\.\d+\.attn\.attention")  # EXAONE's, too, whose MLP has other names
_OF_GEMMA: Final = ("layer_scalar", "laurel.linear_left.weight")  # beside the attention of Gemma 4, and of Gemma 3n


_WITH_BETA: Final = ("ministral3", "mistral4")  # whose classes let q grow where their configs are silent
_WITH_FLOOR: Final = ("inkling2_text", "inkling2_loop_text")  # likewise


class Scale(NamedTuple):
    """What q · k of a layer is multiplied by."""

    base: float | None = None  # None: 1/√d, as nothing else is told
    turn: Turn = Turn()  # what rotary positions multiply q · k by, beside turning
    grows: bool = False  # with the position of the query: a further factor, which is left out

    def of(self, d_head: int) -> float:
        """The number, with what rotary positions multiply by, at most."""
        return (1 / math.sqrt(d_head) if self.base is None else self.base) * self.turn.times

    @property
    def turned(self) -> bool:
        """Whether rotary positions may multiply q · k by a number."""
        return self.turn != Turn()

    @property
    def known(self) -> Literal["supposed", "told", "at_most", "grows"]:
        """How it is known."""
        if self.grows:
            return "grows"
        if not self.turn.known:
            return "at_most"
        return "supposed" if self.base is None and not self.turned else "told"

    @property
    def unturned(self) -> "Scale":
        """The same without what rotary positions multiply by."""
        return self._replace(turn=Turn())


USUAL: Final = Scale()


def scale_of(layer: str, names: Collection[str], config: Mapping[str, Any], d_head: int) -> Scale:
    """What q · k is multiplied by. `names`: of all tensors; `config`: the layer's.

    >>> scale_of("layers.0.self_attn", (), {"model_type": "gemma3_text", "query_pre_attn_scalar": 256}, 128).base
    0.0625
    >>> scale_of("h.0.attn.attention", {"h.0.mlp.c_fc.weight"}, {}, 64).base
    1.0
    >>> scale_of("layers.0.self_attn", (), {"model_type": "qwen3"}, 64).known
    'supposed'
    """
    base = _told(layer, names, config, d_head)
    if times := _times(layer, config):
        base = times * (d_head**-0.5 if base is None else base)
    usual = base is None or math.isclose(base * math.sqrt(d_head), 1, rel_tol=1e-6)
    return Scale(None if usual else base, turn_of(layer, config), _grows(layer, config))


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
    if scalar := positive(config.get("query_pre_attn_scalar")):
        return float(scalar**-0.5)
    own = of_mpt.get("softmax_scale") if isinstance(of_mpt, Mapping) else None
    return positive(config.get("attention_multiplier")) or positive(own)  # of Granite; of MPT


def _of_mup(config: Mapping[str, Any]) -> tuple[float, float] | None:
    """As in `_POWERS`, where a config asks for a scale of 1/d."""
    if config.get("mup_scale_qk_dot_by_d") is True or config.get("scale_qk_dot_by_d") is True:  # of BTLM; of JAIS
        return 1, -1
    if config.get("model_type") == "phi3small" and config.get("mup_use_scaling", True):
        return 1 / (positive(config.get("mup_attn_multiplier")) or 1), -1
    return None


def _times(layer: str, config: Mapping[str, Any]) -> float | None:
    """What the scale is multiplied by: k of Falcon-H1; a falling share in GPT-2."""
    at = re.search(r"h\.(\d+)\.", layer)
    if config.get("scale_attn_by_inverse_layer_idx") is True and at:
        return 1 / (int(at[1]) + 1)
    return positive(config.get("key_multiplier"))


def _grows(layer: str, config: Mapping[str, Any]) -> bool:
    """Whether q of a layer is multiplied by a number that grows with its position; so, too, where only that is open.

    Of Ministral 3; of Llama 4, in layers without rotary positions; of Inkling, in layers that see all; of Beam, whose
    configs name no rotation of such layers; of the first Qwen; of Grok 2.
    """
    kind, rope, of_layer = config.get("model_type"), rope_of(config), kind_of(layer, config)
    either = [each for name in NAMES if isinstance(each := config.get(name), Mapping)]
    told = [*either, *(each for whole in either for each in whole.values() if isinstance(each, Mapping))]
    if any(positive(each.get("llama_4_scaling_beta")) for each in told) or (not rope and kind in _WITH_BETA):
        return True
    if config.get("attn_temperature_tuning", kind == "llama4_text"):
        at = re.search(r"layers\.(\d+)\.", layer)
        return not at or kind not in ("llama4", "llama4_text") or not rotates(config, int(at[1]))
    if positive(config.get("log_scaling_n_floor")) or ("log_scaling_n_floor" not in config and kind in _WITH_FLOOR):
        return of_layer is None or "sliding" not in of_layer
    if kind == "beam":
        return of_layer is None or not rope.get(of_layer)
    return config.get("use_logn_attn") is True or bool(positive(config.get("attn_temperature_len")))
