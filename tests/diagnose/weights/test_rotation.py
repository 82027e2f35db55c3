"""What YaRN and LongRoPE multiply q · k by in a layer is what its class in transformers does."""

import json
import math
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import pytest
import torch
import transformers
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from qkdemo.diagnose.findings.examine import examine_path
from qkdemo.diagnose.findings.finding import Report
from qkdemo.diagnose.weights.rotation import _BY_LENGTH, _EVERYWHERE, turn_of
from qkdemo.diagnose.weights.scale import scale_of

SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "vocab_size": 64,
    "pad_token_id": 0,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
KINDS = ["sliding_attention"] * 3 + ["full_attention"]
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 8.0, "original_max_position_embeddings": 64}
LONG = {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0] * 8, "long_factor": [2.0] * 8}
PLAIN = {"rope_type": "default", "rope_theta": 1e4}
SEEN: dict[int, float] = {}  # layer → its largest |logit|


def recorded(module: nn.Module, q: Tensor, k: Tensor, v: Tensor, mask: Any, **given: Any) -> tuple[Tensor, None]:
    """Attention of transformers' interface from which nothing comes, so that all layers have the same inputs."""
    k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    SEEN[len(SEEN)] = float((q.double() @ k.double().mT).abs().max() * given["scaling"])
    return torch.zeros(q.shape[0], q.shape[2], q.shape[1], v.shape[-1], dtype=q.dtype), None


def logits(kind: str, config: Any, position: int = 0) -> list[float]:
    """The largest |logit| of each layer of a model with the weights of a seed, which sees one token."""
    transformers.AttentionInterface.register("recorded", recorded)
    SEEN.clear()
    torch.manual_seed(0)
    model = getattr(transformers, kind)._from_config(config, attn_implementation="recorded").eval()
    with torch.no_grad():
        model(input_ids=torch.tensor([[5]]), position_ids=torch.tensor([[position]]))
    return list(SEEN.values())


def factors(kind: str, values: Mapping[str, Any], plain: Mapping[str, Any] | None = None) -> list[float]:
    """What a rotation multiplies the logit of each layer by: beside that of a model whose rotation is plain."""
    make = getattr(transformers, f"{kind}Config")
    given = {**SMALL, **values, "rope_scaling": None, "rope_parameters": plain or PLAIN}
    usual = make(**deepcopy(given))  # a config changes what it is given
    ours = logits(f"{kind}Model", make(**deepcopy({**SMALL, **values})))
    return [one / other for one, other in zip(ours, logits(f"{kind}Model", usual), strict=True)]


def told(model_type: str, values: Mapping[str, Any]) -> list[tuple[float, bool]]:
    config = {"model_type": model_type, **SMALL, **values}
    turns = [turn_of(f"model.layers.{at}.self_attn", config) for at in range(4)]
    return [(turn.times, turn.known) for turn in turns]


NESTED = {"full_attention": YARN, "sliding_attention": PLAIN}
BOTH = {"full_attention": PLAIN, "sliding_attention": dict(PLAIN)}  # a copy has two, too: a class changes one
LENGTHS = {"max_position_embeddings": 512, "original_max_position_embeddings": 64}
MSCALES = {"short_mscale": 1.25, "long_mscale": 1.25, "original_max_position_embeddings": 64}
IN_SOME: dict[str, tuple[str, str, dict[str, Any], dict[str, Any] | None]] = {
    "olmo3": ("olmo3", "Olmo3", {"layer_types": KINDS, "rope_parameters": NESTED}, BOTH),
    "gemma3": ("gemma3_text", "Gemma3Text", {"layer_types": KINDS, "rope_parameters": NESTED}, BOTH),
    "cohere2": ("cohere2", "Cohere2", {"layer_types": KINDS, "sliding_window": 8, "rope_parameters": YARN}, None),
    "exaone4": ("exaone4", "Exaone4", {"layer_types": KINDS, "sliding_window": 8, "rope_parameters": YARN}, None),
    "smollm3": ("smollm3", "SmolLM3", {"no_rope_layers": [1, 1, 0, 1], "rope_parameters": YARN}, None),
    "smollm3 by default": ("smollm3", "SmolLM3", {"rope_parameters": YARN}, None),
    "phimoe": ("phimoe", "Phimoe", {"num_local_experts": 2, **LENGTHS, "rope_parameters": LONG | MSCALES}, None),
}


@pytest.mark.parametrize("name", IN_SOME)
def test_a_rotation_that_multiplies_acts_in_the_layers_in_which_it_does(name: str) -> None:
    model_type, kind, values, plain = IN_SOME[name]
    right = factors(kind, values, plain)
    assert max(right) > 1.4
    assert [times for times, _ in told(model_type, values)] == pytest.approx(right, rel=1e-4)
    assert all(known for _, known in told(model_type, values))
    if "rope_parameters" in values and plain is None:  # as older files have it
        older = {("rope_scaling" if key == "rope_parameters" else key): value for key, value in values.items()}
        assert told(model_type, older) == told(model_type, values)


def test_olmo_3_as_published_gives_it_to_layers_that_see_all() -> None:
    values = {"layer_types": KINDS, "rope_scaling": YARN}
    right = factors("Olmo3", values, BOTH)  # which makes two parts of it
    assert told("olmo3", values) == [(pytest.approx(factor, rel=1e-4), True) for factor in right]
    del values["layer_types"]  # then it is not known where it acts
    assert told("olmo3", values) == [(pytest.approx(max(right), rel=1e-4), False)] * 4


TWICE: Final[dict[str, tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]]] = {  # class, sizes, and both names
    "qwen3": ("Qwen3", {}, PLAIN, YARN),
    "llama": ("Llama", {}, PLAIN, YARN),
    "llama the other way": ("Llama", {}, YARN, PLAIN),
    "exaone4": ("Exaone4", {"layer_types": KINDS, "sliding_window": 8}, PLAIN, YARN),
    "olmo3": ("Olmo3", {"layer_types": KINDS}, BOTH, YARN),
    "olmo3 the other way": ("Olmo3", {"layer_types": KINDS}, NESTED, {"factor": 16.0}),
    "gemma3_text": ("Gemma3Text", {"layer_types": KINDS}, BOTH, YARN),
}


@pytest.mark.parametrize("name", TWICE)
def test_of_two_rotations_in_one_config_that_which_acts_is_told(name: str) -> None:
    """transformers 5 saves rope_parameters, and a README may say that rope_scaling is to be added."""
    kind, sizes, saved_as, added = TWICE[name]
    values = {**sizes, "rope_parameters": saved_as, "rope_scaling": added}
    right = factors(kind, values, BOTH if "layer_types" in sizes and kind != "Exaone4" else None)
    ours = told(name.split(maxsplit=1)[0], values)
    assert ours == [(pytest.approx(factor, rel=1e-4), True) for factor in right]
    assert max(right) > 1.4 or name == "llama the other way"


@pytest.mark.parametrize("names", [("rope_parameters", "rope_scaling"), ("rope_scaling", "rope_parameters")])
def test_of_two_rotations_of_an_unknown_class_the_largest_is_taken(names: tuple[str, str]) -> None:
    values = dict(zip(names, (PLAIN, YARN | {"attention_factor": 2.0}), strict=True))
    assert told("unheard_of", values) == [(4.0, False)] * 4


@pytest.mark.parametrize("kind", sorted(_EVERYWHERE - {*_BY_LENGTH, "phi3", "qwen2_vl", "qwen2_5_vl"}))
def test_model_types_of_one_rotation_have_it_in_every_layer(kind: str) -> None:
    make = CONFIG_MAPPING[kind]
    own = make().to_dict()
    sizes = {"moe_intermediate_size": 16, "num_experts": 2, "num_local_experts": 2, "num_experts_per_tok": 1}
    values = {name: value for name, value in (SMALL | sizes).items() if name in own}
    parts = {"mrope_section": [2, 3, 3]} if kind.endswith("vl_text") else {}
    models = [make(**values | {"rope_parameters": rope | parts}) for rope in (YARN, PLAIN)]
    kinds = [type(transformers.AutoModel.from_config(models[0])).__name__] * 2
    one, other = (logits(*each) for each in zip(kinds, models, strict=True))
    right = [factor / usual for factor, usual in zip(one, other, strict=True)]
    assert len(right) == 4
    assert told(kind, {"rope_parameters": YARN}) == [(pytest.approx(factor, rel=1e-4), True) for factor in right]


@pytest.mark.parametrize(
    ("layer", "config", "times"),
    [
        ("model.layers.0.self_attn", {"model_type": "unheard_of", "rope_scaling": YARN | {"attention_factor": 2.0}}, 4),
        ("model.layers.0.self_attn", {"rope_scaling": YARN | {"attention_factor": 0.5}}, 1),
        ("model.layers.0.cross_attn", {"model_type": "llama", "rope_scaling": YARN | {"attention_factor": 2.0}}, 4),
        (
            "model.layers.0.self_attn",
            {"model_type": "llama", "partial_rotary_factor": 0.5, "rope_scaling": YARN | {"attention_factor": 2.0}},
            4,
        ),
        ("model.layers.0.self_attn", {"model_type": "olmo3", "rope_parameters": NESTED}, None),
        (
            "model.layers.0.self_attn",
            {"model_type": "phimoe", "rope_scaling": LONG | {"short_mscale": 1.0, "long_mscale": 1.5}},
            2.25,
        ),
        (
            "model.layers.0.self_attn",
            {"model_type": "phi3small", "rope_scaling": {"type": "su", "short_mscale": 1.0, "long_mscale": 1.5}},
            2.25,
        ),
    ],
)
def test_where_it_is_not_known_whether_it_acts_the_largest_is_taken(
    layer: str, config: dict[str, Any], times: float | None
) -> None:
    turn = turn_of(layer, config)
    assert not turn.known
    assert turn.times == pytest.approx((0.1 * torch.tensor(8.0).log().item() + 1) ** 2 if times is None else times)


def keys(report: Report) -> set[str]:
    return {finding.key for finding in report.findings}


def saved(tmp_path: Path, kind: str, values: Mapping[str, Any]) -> tuple[Report, list[float]]:
    """What is said of a model whose queries and keys are as long and as alike as they can be, and its logits."""
    transformers.AttentionInterface.register("recorded", recorded)
    config = getattr(transformers, f"{kind}Config")(**deepcopy(SMALL | values))
    torch.manual_seed(0)
    model = getattr(transformers, f"{kind}Model")._from_config(config, attn_implementation="recorded").eval()
    with torch.no_grad():
        for layer in model.layers:
            q, k = layer.self_attn.q_proj.weight, layer.self_attn.k_proj.weight
            row = 50 * torch.randn(q.shape[1])
            q.zero_(), k.zero_()
            q[0], k[0] = row, row
        SEEN.clear()
        model(input_ids=torch.arange(24)[None])
    model.save_pretrained(tmp_path)
    return examine_path(tmp_path), list(SEEN.values())


@pytest.mark.parametrize("name", ["olmo3", "qwen3_next"])
def test_no_logit_exceeds_the_bound_where_a_rotation_multiplies(name: str, tmp_path: Path) -> None:
    """Of Qwen3-Next a quarter of each head is rotated."""
    experts = {"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 16}
    quarter = {**YARN, "partial_rotary_factor": 0.25}
    of_next = {"layer_types": ["full_attention"] * 4, "shared_expert_intermediate_size": 16, "rope_parameters": quarter}
    cases = {"olmo3": ("Olmo3", IN_SOME["olmo3"][2]), "qwen3_next": ("Qwen3Next", experts | of_next)}
    report, seen = saved(tmp_path, *cases[name])
    rows = report.tables["layers"]
    bounds = [row[f"bound_{row['gains']}"] for row in rows]
    assert len(bounds) == len(seen) == 4
    assert all(logit <= bound * (1 + 1e-5) for logit, bound in zip(seen, bounds, strict=True))
    assert all(logit > 0.99 * bound for logit, bound in zip(seen, bounds, strict=True))
    is_told = ["supposed"] * 3 + ["told"] if name == "olmo3" else ["at_most"] * 4
    assert [row["scale_is"] for row in rows] == is_told


def test_of_a_part_of_each_head_the_factor_is_said_to_be_left_out(tmp_path: Path) -> None:
    """Without gains: parts of W_qᵀ W_k of which one is multiplied may no longer cancel."""
    rope = {**YARN, "partial_rotary_factor": 0.5}
    for part, key in ((True, "turn_left_out"), (False, "spectral_turned")):
        values = SMALL | {"rope_parameters": dict(rope if part else YARN), "partial_rotary_factor": 0.5 if part else 1}
        config = transformers.Qwen2Config(**{**values, "partial_rotary_factor": 1})
        transformers.Qwen2Model(config).save_pretrained(tmp_path)
        (tmp_path / "config.json").write_text(json.dumps(values | {"model_type": "qwen2"}))
        report = examine_path(tmp_path)
        assert key in keys(report)
        assert ("spectral" in keys(report)) == part
        (plain,) = (each for each in report.findings if each.key in ("spectral", "spectral_turned"))
        row = report.tables["layers"][0]
        whole = 0.25 * (0.1 * torch.tensor(8.0).log().item() + 1) ** 2
        assert row["scale"] == pytest.approx(0.25 if part else whole)  # a larger part of q · k can grow by that
        assert row["scale_is"] == ("turn_left_out" if part else "told")
        assert float(str(plain.values["scale"])) == pytest.approx(row["scale"], rel=1e-3)


GROWING: dict[str, tuple[dict[str, Any], list[bool]]] = {
    "ministral3": ({"rope_parameters": YARN | {"llama_4_scaling_beta": 0.1}}, [True] * 4),
    "llama4_text": ({"attn_temperature_tuning": True, "no_rope_layers": [1, 1, 0, 1]}, [False, False, True, False]),
    "llama4_text by default": ({}, [False, False, False, True]),
    "llama4_text without": ({"attn_temperature_tuning": False}, [False] * 4),
    "inkling_text": (
        {"log_scaling_n_floor": 4, "layer_types": ["hybrid_sliding"] * 3 + ["hybrid"]},
        [False] * 3 + [True],
    ),
    "beam": ({"layer_types": KINDS, "rope_parameters": {**BOTH, "full_attention": None}}, [False] * 3 + [True]),
    "qwen": ({"use_logn_attn": True}, [True] * 4),
    "grok 2": ({"attn_temperature_len": 1024}, [True] * 4),
    "grok 2 without": ({"attn_temperature_len": -1}, [False] * 4),
    "qwen without": ({"use_logn_attn": False}, [False] * 4),
}


@pytest.mark.parametrize("name", GROWING)
def test_a_scale_that_grows_with_the_position_is_not_told(name: str) -> None:
    values, right = GROWING[name]
    config = {"model_type": name.split(maxsplit=1)[0], **values}
    known = [scale_of(f"model.layers.{at}.self_attn", (), config, 16).known for at in range(4)]
    assert [each == "grows" for each in known] == right


def test_the_scale_of_ministral_3_grows_and_that_is_said(tmp_path: Path) -> None:
    config = transformers.Ministral3Config(**SMALL)
    early, late = (logits("Ministral3Model", config, position) for position in (0, 262143))
    assert late[0] > 1.2 * early[0]
    transformers.Ministral3Model(config).save_pretrained(tmp_path)
    (grows,) = (each.values for each in examine_path(tmp_path).findings if each.key == "scale_grows")
    assert grows["count"] == 4


WORDS: dict[str, dict[str, Any]] = {
    "its paper's": {"factor": 4.0},
    "gpt-oss": {"factor": 32.0, "truncate": False},
    "named": {"factor": 8.0, "attention_factor": 1.25},
    "DeepSeek's words": {"factor": 40.0, "mscale": 1.0, "mscale_all_dim": 0.5},
    "no longer": {"factor": 1.0},
}


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("scaling", ["rope_parameters", "rope_scaling"])
def test_what_yarn_multiplies_cos_and_sin_by_is_in_the_scale(words: str, scaling: str) -> None:
    rope = {"rope_type": "yarn", "rope_theta": 1e4, "original_max_position_embeddings": 64} | WORDS[words]
    config = transformers.Qwen3Config(**SMALL | {"max_position_embeddings": 256, "rope_parameters": dict(rope)})
    rotary = transformers.models.qwen3.modeling_qwen3.Qwen3RotaryEmbedding(config)
    cos, sin = rotary(torch.zeros(1, 9, 16), torch.arange(9)[None])
    larger = float((cos**2 + sin**2).mean())  # of both together
    scale = scale_of("layers.0.self_attn", (), {"model_type": "qwen3", scaling: rope}, 16)
    assert scale.of(16) * 4 == pytest.approx(larger)
    assert scale.known == ("supposed" if words == "no longer" else "told")


@pytest.mark.parametrize("inside", [True, False])
def test_what_longrope_multiplies_cos_and_sin_by_is_in_the_scale(inside: bool) -> None:
    """As in Phi-3 mini 128k, whose config holds both lengths and no factor; one inside the rotation gives way."""
    lengths = {"original_max_position_embeddings": 64, "max_position_embeddings": 2048}
    rope = LONG | ({"original_max_position_embeddings": 16} if inside else {})
    config = transformers.Phi3Config(**SMALL | lengths | {"rope_parameters": dict(rope)})
    rotary = transformers.models.phi3.modeling_phi3.Phi3RotaryEmbedding(config)
    cos, sin = rotary(torch.zeros(1, 9, 16), torch.arange(9)[None])
    larger = float((cos**2 + sin**2).mean())
    for kind in ("longrope", "su"):
        of_file = {name: value for name, value in rope.items() if name != "rope_type"} | {"type": kind}
        config_of_file = {"model_type": "phi3", "rope_scaling": of_file} | lengths
        assert scale_of("layers.0.self_attn", (), config_of_file, 16).of(16) == pytest.approx(larger / 4)
    assert larger > 1.5


@pytest.mark.parametrize("kind", ["phi3", "phi4_multimodal"])
def test_where_the_config_of_phi_3_is_silent_its_first_length_is_that_of_its_class(kind: str) -> None:
    rope = LONG | {"original_max_position_embeddings": 16}  # which gives way
    lengths = {"max_position_embeddings": 131072}
    made = CONFIG_MAPPING[kind](**SMALL | lengths | {"rope_parameters": dict(rope)})
    _, factor = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS["longrope"](made, "cpu")
    turn = turn_of("model.layers.0.self_attn", {"model_type": kind, "rope_parameters": rope} | lengths)
    assert turn.times == pytest.approx(factor**2)
    assert factor > 1.1


@pytest.mark.parametrize("gains", [True, False])
def test_a_scale_that_is_the_most_is_not_rounded_down(gains: bool, tmp_path: Path) -> None:
    layer = "midlayer.self_attn"
    tensors = {f"{layer}.{side}_proj.weight": torch.eye(16) for side in "qk"}
    tensors |= {f"{layer}.{side}_norm.weight": torch.ones(16) for side in "qk"} if gains else {}
    save_file(tensors, tmp_path / "model.safetensors")
    for factor in (2.0, 4.0, 5.0, 8.0, 40.0):
        config = {"model_type": "llama", "num_attention_heads": 1, "rope_scaling": YARN | {"factor": factor}}
        (tmp_path / "config.json").write_text(json.dumps(config))
        key = "gains_gamma" if gains else "spectral_at_most"
        (values,) = (each.values for each in examine_path(tmp_path).findings if each.key == key)
        most = 0.25 * (0.1 * math.log(factor) + 1) ** 2
        assert most <= float(str(values["scale"]).split()[0]) < most * 1.001
        if gains:
            assert most <= float(str(values["formula"]).split(" · ")[1]) < most * 1.001
