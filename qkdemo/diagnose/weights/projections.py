"""W_q and W_k among a checkpoint's tensors: what they are called, and how a matrix that holds both is laid out.

* `found_in(names)`: layer → side → tensor: q and k, or the one that holds q, k and v; of a module alone "" → …;
  `keyless(names)`: layers with a W_q alone;
* `scope(config, layer)`: the part of a config.json that is about a layer; `heads_of(config)`: its heads;
* `parts(name, weight, config)`: the rows of q and of k in a matrix that holds q, k and v, if its layout is known;
* `plainly(name)`: a tensor's name without what PEFT adds to it.

A layout is read off an architecture's class (transformers 5.24, or the code that its authors published), by the
config's model_type. Without one it is read only where every known class with a tensor of that name has the same.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, TypeAlias

from torch import Tensor

_OF_T5: Final = r"(?:(?<=SelfAttention\.)|(?<=EncDecAttention\.))"
_SPLIT: Final = {
    "q": re.compile(
        rf"(?:(?P<layer>.*)\.)?(?:(?:q_proj(?:\.linear)?|wq|query|q_lin|to_q|Wq|query_proj|{_OF_T5}q)\.weight|q_proj_weight)"
    ),
    "k": re.compile(
        rf"(?:(?P<layer>.*)\.)?(?:(?:k_proj(?:\.linear)?|wk|key|k_lin|to_k|Wk|key_proj|{_OF_T5}k)\.weight|k_proj_weight)"
    ),
}
_FUSED: Final = re.compile(
    r"(?:(?P<layer>.*)(?<!crossattention)\.)?"
    r"(?:(?:qkv_proj|qkv|Wqkv|query_key_value|c_attn|W_pack|in_proj|wqkv|linear_qkv|in_proj_qkvz?)\.weight|in_proj_weight)"
)
_BETWEEN_CHANNELS: Final = re.compile(r"(.*[._])?(xca|channel_(attn|block))([._].*)?")  # DaViT, as in Florence-2; XCiT
_TOWER: Final = r"({})(_(tower|model|encoder|backbone|embed|processor|tokenizer|transformer)\w*)?(?=\.|$)"
_CALLED: Final = {  # how layers call a part of the config, where that is not its own name
    "vision": _TOWER.format("vision|visual|vit|vpm|image|img|video"),
    "audio": _TOWER.format("audio|apm|speech"),
    "backbone": "backbone|pixel_level_module",
    **dict.fromkeys(("text", "llm", "language"), "language|text|llm"),
}
_IMAGES_TO_TEXT: Final = frozenset({"pix2struct"})  # whose encoder is the part of images, and not called so
_RESAMPLER: Final = re.compile(
    r"resampler|perceiver|abstractor|q_?former|attn_?pool|projector|connector", re.IGNORECASE
)
_STAGE: Final = re.compile(r"(?:^|\.)(\d+)\.(?:blocks\.|layers\.)?(\d+)\.")  # and the block in it
_OF_TEXT: Final = ("text", "llm", "language")
_MAIN: Final = re.compile(r"\.?((base_model|backbone_model|module|model|transformer|decoder)\.)*(layers?|h|blocks)\.\d")
_OWN_HEADS: Final = re.compile(  # as decoder_attention_heads, and ProphetNet's num_decoder_attention_heads
    r"(?:num_(?=encoder_|decoder_))?(?!n_|num_)(\w+?)_(num_|n_)?(attention_)?heads"
)
_HEADS: Final = ("num_attention_heads", "n_head", "num_heads", "n_heads", "attention_heads")
_KV_HEADS: Final = ("num_key_value_heads", "n_kv_heads", "num_kv_heads", "n_head_kv", "kv_n_heads", "num_query_groups")
_MULTI_QUERY: Final = ("falcon", "RefinedWebModel", "gpt_bigcode")  # whose code has one key head unless told otherwise

Parts: TypeAlias = Callable[[Tensor, int, int, int], tuple[Tensor, Tensor]]


def found_in(names: Iterable[str], model_type: str = "") -> dict[str, dict[str, str]]:
    """Layer → q, k or fused → tensor."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        plain = plainly(name)
        if _BETWEEN_CHANNELS.fullmatch(plain):
            continue
        for side, pattern in _SPLIT.items():
            if match := pattern.fullmatch(plain):
                found.setdefault(match["layer"] or "", {})[side] = name
        match = _FUSED.fullmatch(plain)
        if match and (not plain.endswith("in_proj.weight") or model_type in _BY_ARCHITECTURE["in_proj"]):
            found.setdefault(match["layer"] or "", {})["fused"] = name
    return {layer: tensors for layer, tensors in found.items() if {"q", "k"} <= tensors.keys() or "fused" in tensors}


def plainly(name: str) -> str:
    """A tensor's name without what PEFT adds to that of a weight beside which it has adapters.

    >>> plainly("l.0.q_proj.base_layer.weight")
    'l.0.q_proj.weight'
    """
    return name.removesuffix(".base_layer.weight") + ".weight" if name.endswith(".base_layer.weight") else name


def keyless(names: Collection[str]) -> list[str]:
    """Layers with a W_q, and neither a W_k nor a matrix that holds both.

    >>> keyless(["l.0.q_proj.weight", "l.1.q_proj.weight", "l.1.k_proj.weight"])
    ['l.0']
    """
    queries, keys = (
        [match["layer"] or "" for name in names if (match := _SPLIT[side].fullmatch(plainly(name)))] for side in "qk"
    )
    found = {*keys, *found_in(names)}
    return [layer for layer in queries if layer not in found]


def scope(config: Mapping[str, Any], layer: str = "") -> Mapping[str, Any]:
    """The part of a config that is about a layer; without a layer that of the text, or all of it.

    A part is about layers that are named as it is. Where there are parts, nothing is said of a layer that is named as
    none of them, unless it is one of the main stack, or the config has heads for it: those of one part are not those
    of another. Nor is anything said of a tower of images or sound, or of what stands between it and the text, where the
    config of the text has no part for it.
    """
    parts = _parts_of(config)
    inner = next((parts[name] for name in _OF_TEXT if name in parts), None)
    if not layer:
        return config if inner is None else inner
    if "vision" in parts and config.get("model_type") in _IMAGES_TO_TEXT and layer.startswith("encoder."):
        return scope(parts["vision"], layer.removeprefix("encoder"))
    named = {name: _CALLED.get(name, name) for name in (*parts, "vision", "audio")}
    called = [(match, name) for name, words in named.items() if (match := _named(words, layer))]
    if parts and called:
        match, name = min(called, key=lambda each: (each[0].start(), -each[0].end(), each[1]))
        return scope(_sensed(parts[name], name), layer[match.end() :] or ".") if name in parts else {}
    main = bool(_MAIN.match(layer))
    own = _with_own_heads(inner if main and inner is not None else config, layer)
    tower = any(not layer[: match.start()].endswith("_") for match, _ in called)  # data2vec_audio names a whole model
    between = _RESAMPLER.search(layer) is not None and not layer.startswith(".")  # which is inside a part already
    foreign = bool(parts) or ("vocab_size" in config and (tower or between))
    return {} if foreign and not main and own is config else _of_stage(own, layer)


def _parts_of(config: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The parts of a config that are configs of models.

    One without a model_type, in a config that has one, is named after both: it has no layout of a known class.
    """
    whole = config.get("model_type")
    return {
        (name := key.removesuffix("_config")): {**part, "model_type": part.get("model_type") or f"{whole}_{name}"}
        if whole
        else part
        for key, part in config.items()
        if isinstance(part, Mapping)
        and not key.startswith("att")
        and ("model_type" in part or any(str(name).endswith("_heads") for name in part))
    }


def _sensed(part: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A part; that of images or sound without the vocabulary of its pair, as in LLaVA: what it holds is its own tower.

    >>> _sensed({"num_heads": 2, "vocab_size": 32}, "vision"), _sensed({"num_heads": 2, "vocab_size": 32}, "text")
    ({'num_heads': 2}, {'num_heads': 2, 'vocab_size': 32})
    """
    if not any(_named(_CALLED[sense], name) for sense in ("vision", "audio")):
        return part
    return {key: value for key, value in part.items() if key != "vocab_size"}


def _named(words: str, layer: str) -> re.Match[str] | None:
    return re.search(rf"(?:^|(?<=[._]))(?:{words})", layer, re.IGNORECASE)


def _with_own_heads(config: Mapping[str, Any], layer: str) -> Mapping[str, Any]:
    """A config with the heads of the part that a layer is in, where it names them: decoder_attention_heads."""
    if layer.endswith(".downsample.assign"):  # GroupViT's, in which the whole width is one head
        return {**config, "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": None}
    if layer.endswith(".attn2") and "num_cross_attention_heads" in config:  # Sana of diffusers
        heads, d_head = config["num_cross_attention_heads"], config.get("cross_attention_head_dim")
        return {**config, "num_attention_heads": heads, "num_key_value_heads": None, "head_dim": d_head}
    own = [
        (called.start(), match[1], config[key])
        for key in config
        if (match := _OWN_HEADS.fullmatch(key)) and (called := _named(rf"{match[1]}(?=.*\.\d)", layer))
    ]
    if not own:
        return config
    _, stem, heads = min(own, key=lambda each: each[:2])
    kv_heads = config.get(f"{stem}_num_key_value_heads", config.get("num_key_value_heads"))
    head_dim = config.get(f"{stem}_head_dim")
    return {**config, "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": head_dim}


def _of_stage(config: Mapping[str, Any], layer: str) -> Mapping[str, Any]:
    """A config that lists heads by stage, as Swin's, with those of a layer whose name has its stage and block.

    >>> listed = {"num_heads": [3, 6], "depths": [2, 2]}
    >>> _of_stage(listed, "layers.1.blocks.0.attn")["num_heads"], _of_stage(listed, "blocks.1.attn")["num_heads"]
    (6, [3, 6])
    """
    word = next((name for name in _HEADS if isinstance(config.get(name), list | tuple)), "")
    heads, depths, match = config.get(word, ()), config.get("depths"), _STAGE.search(layer)
    if not match or not isinstance(depths, list | tuple) or len(depths) != len(heads):
        return config
    stage, block = map(int, match.groups())
    own = stage < len(heads) and isinstance(depths[stage], int) and block < depths[stage]
    return {**config, word: heads[stage]} if own else config


def heads_of(config: Mapping[str, Any]) -> tuple[int, int]:
    """Query heads and key heads; 0 and 0 where the config does not name them as whole numbers."""
    kind = config.get("model_type")
    heads = next((config[name] for name in _HEADS if name in config), 0)
    inner = config.get("attn_config")  # of MPT and DBRX
    named = {**inner, **config} if isinstance(inner, Mapping) else config
    kv_heads = next((named[name] for name in _KV_HEADS if named.get(name) is not None), heads)
    if kind in _MULTI_QUERY and not config.get("new_decoder_architecture"):
        kv_heads = 1 if config.get("multi_query", True) else heads
    if kind == "chatglm":
        kv_heads = config.get("multi_query_group_num", 1) if config.get("multi_query_attention") else heads
    whole = all(isinstance(x, int) and not isinstance(x, bool) and x > 0 for x in (heads, kv_heads))
    of_each = any(name.endswith("heads_per_stage") for name in config)  # Hiera's: the number above is the first stage's
    return (heads, kv_heads) if whole and not of_each else (0, 0)


# ---- layouts of a matrix with q, k and v


def _blocks(weight: Tensor, heads: int, kv_heads: int, d_head: int) -> tuple[Tensor, Tensor]:
    """All of q, then all of k, then all of v."""
    return weight[: heads * d_head], weight[heads * d_head : (heads + kv_heads) * d_head]


def _groups(weight: Tensor, heads: int, kv_heads: int, d_head: int) -> tuple[Tensor, Tensor]:
    """For each key head its query heads, its key and its value."""
    grouped = weight.reshape(kv_heads, heads // kv_heads + 2, d_head, -1)
    return grouped[:, :-2].flatten(0, 2), grouped[:, -2].flatten(0, 1)


def _quarters(weight: Tensor, heads: int, kv_heads: int, d_head: int) -> tuple[Tensor, Tensor]:
    """Four parts, as four processors held them, each with some heads of q, then of v, then of k."""
    parted = weight.reshape(4, 3, heads * d_head // 4, -1)
    return parted[:, 0].flatten(0, 1), parted[:, 2].flatten(0, 1)


_BY_ARCHITECTURE: Final[Mapping[str, Mapping[str, Parts]]] = {
    "query_key_value": {
        **dict.fromkeys(("gpt_neox", "gpt_neox_japanese", "bloom", "persimmon", "fuyu"), _groups),
        **dict.fromkeys(("falcon", "RefinedWeb", "RefinedWebModel", "phi3small"), _groups),
    },
    "c_attn": {
        **dict.fromkeys(("gpt2", "imagegpt", "decision_transformer", "openai-gpt", "qwen"), _blocks),
        "gpt_bigcode": _groups,
    },
    "qkv_proj": {
        **dict.fromkeys(("phi3", "phi3_v", "phi4_multimodal", "phi4mm"), _blocks),
        "codegen": _quarters,
    },
    "wqkv": {"internlm2": _groups},
    "qkv": {"neobert": _groups},
    "in_proj": {"deberta": _groups},  # under this name most other classes have a projection of something else
}
_ALIKE: Final[Mapping[str, Parts]] = {  # the same in every class that is known here
    **dict.fromkeys(("qkv", "Wqkv", "W_pack", "in_proj_weight"), _blocks),
    "linear_qkv": _groups,  # of Megatron core
}


_OF_NEOBERT: Final = re.compile(r"(^|\.)transformer_encoder\.\d+\.qkv\.")
_OF_MAXVIT: Final = re.compile(r"\.attn_(block|grid)\.attn\.")  # of timm: by head in some of its classes


def _layout(name: str, config: Mapping[str, Any], heads: int, kv_heads: int, *, transposed: bool) -> Parts | None:
    kind = config.get("model_type", "")
    word = "in_proj_weight" if name.endswith("in_proj_weight") else name.split(".")[-2]
    known = _BY_ARCHITECTURE.get(word, {})
    if word == "query_key_value" and kind == "chatglm":
        return _blocks if config.get("multi_query_attention") else _groups
    if kind in known:
        return known[kind]
    if word == "query_key_value" and not kind:  # every known text with a key for each query has them so
        tower = _named(_CALLED["vision"], name)  # EVA2-CLIP, as in GLM-4V, has blocks
        return _groups if heads and heads == kv_heads and not tower else None
    if word == "c_attn" and not kind:  # a Conv1D is GPT-2's
        return _blocks if transposed else None
    if word == "qkv" and (_OF_NEOBERT.search(name) or (kind and "vocab_size" in config)):  # images alone have it alike
        return None
    return None if _OF_MAXVIT.search(name) else _ALIKE.get(word)


def parts(
    name: str, weight: Tensor, config: Mapping[str, Any], width_of_v: int | None = None
) -> tuple[Tensor, Tensor] | None:
    """W_q and W_k, [heads · d_head, width] each; None if the layout is not known, or does not fit the heads.

    `width_of_v`: columns of the output projection. Where no heads are named the matrix has q, k and v if its rows are
    three times as many, or three times its own columns: of GC ViT's some hold k and v alone.
    """
    if weight.dim() != 2:
        return None
    name = plainly(name)
    transposed = name.endswith("c_attn.weight") and weight.shape[1] > weight.shape[0]  # Conv1D stores its transpose
    weight = weight.T if transposed else weight
    heads, kv_heads = heads_of(config)
    layout = _layout(name, config, heads, kv_heads, transposed=transposed)
    rows = weight.shape[0]
    told = heads == kv_heads if heads else rows in (3 * weight.shape[1], 3 * (width_of_v or 0))
    if layout is _blocks and told and rows % 3 == 0 and width_of_v in (None, rows // 3):
        return _blocks(weight, 1, 1, rows // 3)
    if layout is None or not heads or heads % kv_heads or rows % (heads + 2 * kv_heads):
        return None
    if layout is _quarters and (heads % 4 or heads != kv_heads):
        return None
    if layout is not _quarters and width_of_v not in (None, rows // (heads + 2 * kv_heads) * heads):
        return None  # there is a gate, too; or q alone, as in the last layers of Phi-4-mini-flash
    return layout(weight, heads, kv_heads, rows // (heads + 2 * kv_heads))
