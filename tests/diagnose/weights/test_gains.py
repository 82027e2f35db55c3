"""Gains of real classes: those of every row of the table of models are found, and bound what their norm bounds."""

import contextlib
import importlib
import inspect
import json
import math
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from qkdemo.diagnose.findings.examine import examine_path
from qkdemo.diagnose.weights import gains
from qkdemo.diagnose.weights.checkpoint import open_checkpoint
from qkdemo.diagnose.weights.layer import Layer
from qkdemo.diagnose.weights.layers import run
from qkdemo.facts.models import MODELS, Model
from tests.diagnose.watching.models import _SMALL, language_model

transformers: Any = pytest.importorskip("transformers")

WITH_GAINS: Final = {  # of q and of k, in a module of their own
    row.id: row
    for row in MODELS
    if row.repo == "huggingface/transformers" and row.qk_norm == "yes" and row.key_gain == "own"
}
SIZED: Final[dict[str, dict[str, Any]]] = {  # of classes that take sizes of their own
    "idefics-1-decoder-transformers": {
        "hidden_size": 32,
        "num_heads": 4,
        "qk_layer_norms": True,
        "config": transformers.IdeficsConfig(),
    },
    "idefics-1-perceiver-transformers": {"embed_dim": 32, "n_heads": 4, "head_dim": 8, "qk_layer_norms": True},
}


def configs(module: Any) -> Iterator[Any]:
    """A config of each class beside a modelling file, with its norm of q and k asked for."""
    package = importlib.import_module(module.__package__)
    for each in pkgutil.iter_modules(package.__path__):
        if not each.name.startswith("configuration_"):
            continue
        for name, kind in vars(importlib.import_module(f"{package.__name__}.{each.name}")).items():
            if inspect.isclass(kind) and name.endswith("Config") and kind.__module__.endswith(each.name):
                with contextlib.suppress(Exception):  # one that needs another config
                    config: Any = kind(**({"head_dim": 128} if "hunyuan" in each.name else {}))
                    for flag in ("use_qk_norm", "qk_layernorm"):
                        if hasattr(config, flag):
                            setattr(config, flag, True)
                    yield config


def attention(row: Model) -> nn.Module:
    """The row's class, with the sizes of its default config, and no memory."""
    module = importlib.import_module(row.path.removeprefix("src/").removesuffix(".py").replace("/", "."))
    kind = getattr(module, row.symbol)
    with torch.device("meta"):
        if row.id in SIZED:
            return kind(**SIZED[row.id])  # type: ignore[no-any-return]
        for config in configs(module):
            for given in ((config, 0), (config,)):
                with contextlib.suppress(Exception):  # the config of another part
                    return kind(*given)  # type: ignore[no-any-return]
    raise AssertionError(row.symbol)


@pytest.mark.parametrize("name", WITH_GAINS)
def test_gains_of_every_row_are_found_where_its_norm_stands(name: str, tmp_path: Path) -> None:
    row = WITH_GAINS[name]
    named = {f"l.{key}": torch.ones(x.shape) for key, x in attention(row).state_dict().items() if x.numel() < 1 << 15}
    safetensors.torch.save_file(named, tmp_path / "model.safetensors")
    with open_checkpoint(tmp_path / "model.safetensors") as opened:
        found = gains.gains_of(opened)["l"]
    assert found.keys() == {"q", "k"}
    shapes = {name: tuple(x.shape) for name, x in attention(row).state_dict().items()}
    rows = [shapes.get(f"{side}_proj.weight", (0,))[0] for side in "qk"]
    if row.gain == "head_channel" and row.place == "per_head" and "janus" not in name:  # which has one of full width
        assert [x.dim() for x in found.values()] == [2, 2]
    elif row.place == "full_width":
        assert [len(found[side]) for side in "qk"] == rows
    elif row.place == "per_head" and all(rows) and "janus" not in name:
        assert all(n % len(found[side]) == 0 and len(found[side]) < n for n, side in zip(rows, "qk", strict=True))


def layer_of(model: Any, folder: Path, *, config: bool = True) -> Layer:
    """The first layer that is read of a model, with gains that are not all alike."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.copy_(1 + 0.1 * torch.randn(parameter.shape, generator=generator))
    model.save_pretrained(folder)
    text = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    with open_checkpoint(folder) as opened:
        return run(opened, text if config else None).layers[0]


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("word", ["StableLm", "Cohere"])
def test_a_norm_with_gains_of_each_head_is_bounded_head_by_head(word: str, named: bool, tmp_path: Path) -> None:
    flag = {"StableLm": "qk_layernorm", "Cohere": "use_qk_norm"}[word]
    config = getattr(transformers, f"{word}Config")(**_SMALL, **{flag: True})
    model = getattr(transformers, f"{word}ForCausalLM")(config)
    layer = layer_of(model, tmp_path, config=named)
    norms: Any = model.model.layers[0].self_attn
    q, k = (
        torch.stack([norm.weight for norm in side.norms]) if word == "StableLm" else side.weight
        for side in ((norms.q_layernorm, norms.k_layernorm) if word == "StableLm" else (norms.q_norm, norms.k_norm))
    )
    assert (layer.heads, layer.kv_heads, layer.d_head, layer.place) == (4, 2, 8, "per_head")
    most = max(float((q[head] * k[head // 2]).detach().abs().max()) for head in range(4))
    assert layer.bound("gamma") == pytest.approx(math.sqrt(8) * most, rel=1e-6)
    said = {finding.key: finding.sentence for finding in examine_path(tmp_path).findings}
    assert "promised" not in said
    assert "that is √8 · max|γq γk|." in said["gains_gamma"]


def test_a_norm_that_adds_a_bias_is_bounded_by_no_gain(tmp_path: Path) -> None:
    model = transformers.PhiForCausalLM(transformers.PhiConfig(**_SMALL, qk_layernorm=True))
    model.save_pretrained(tmp_path)  # a new one has biases of 0
    said = {finding.key: finding.sentence for finding in examine_path(tmp_path).findings}
    assert "gains_gamma" in said
    for each in model.model.layers:
        each.self_attn.k_layernorm.bias.data[:] = 3.0
    model.save_pretrained(tmp_path)
    report = examine_path(tmp_path)
    assert {finding.key for finding in report.findings} == {"gains_biased"}
    assert [row["bound_gamma"] for row in report.tables["layers"]] == [None, None]


def test_gains_of_a_head_that_are_missing_leave_no_bound() -> None:
    class Part:
        names = ("l.q_layernorm.norms.0.weight", "l.q_layernorm.norms.2.weight")

        def read(self, _: str) -> Tensor:
            return torch.ones(8)

    assert gains.gains_of(Part())["l"]["q"].numel() == 0  # type: ignore[arg-type]


def test_a_norm_before_the_projection_bounds_no_logit(tmp_path: Path) -> None:
    """BLT's: where its gains are 1 a |logit| is as large as W_q and W_k make it."""
    config = transformers.BltConfig()
    for part in (config.encoder_config, config.decoder_config):
        for name, value in {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 4}.items():
            setattr(part, name, value)
    module = importlib.import_module("transformers.models.blt.modeling_blt")
    attend = module.BltCrossAttention(config.encoder_config, 0, 32)
    named = {f"model.cross_attn_layers.0.{name}": x for name, x in attend.state_dict().items()}
    safetensors.torch.save_file(named, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "blt"}), encoding="utf-8")
    said = {finding.key: finding.sentence for finding in examine_path(tmp_path).findings}
    assert "before W_q and W_k: 1. Such a norm bounds what enters them, and no logit." in said["gains_before"]
    assert not any(key.startswith(("gains_gamma", "gains_one")) for key in said)
    assert "spectral" in said
    (tmp_path / "config.json").write_text(json.dumps({"num_attention_heads": 4}), encoding="utf-8")
    unknown = {finding.key: finding.sentence for finding in examine_path(tmp_path).findings}
    assert "uses them after the projection" in unknown["gains_gamma"]


def test_a_norm_without_gain_that_the_architecture_is_known_for_is_no_finding(tmp_path: Path) -> None:
    language_model("Llama 4", "sdpa").save_pretrained(tmp_path)
    levels = {finding.key: finding.level for finding in examine_path(tmp_path).findings}
    assert levels == {"promised_without": "good"}  # all layers have rotary positions
    other = json.loads((tmp_path / "config.json").read_text(encoding="utf-8")) | {"model_type": "unheard_of"}
    (tmp_path / "config.json").write_text(json.dumps(other), encoding="utf-8")
    levels = {finding.key: finding.level for finding in examine_path(tmp_path).findings}
    assert levels["promised"] == "watch"
    (tmp_path / "config.json").write_text(json.dumps(other | {"model_type": "llama4_text", "use_qk_norm": False}))
    assert {finding.key for finding in examine_path(tmp_path).findings} == {"spectral"}
    nanochat = transformers.NanoChatConfig(**_SMALL)
    transformers.NanoChatForCausalLM(nanochat).save_pretrained(tmp_path)
    levels = {finding.key: finding.level for finding in examine_path(tmp_path).findings}
    assert levels == {"normed_otherwise": "good"}


@pytest.mark.parametrize("named", [True, False])
def test_layers_of_llama_4_without_rotary_positions_have_no_norm(named: bool, tmp_path: Path) -> None:
    """As the class has it, the fourth and the eighth of eight; by the list, or by default where that is empty."""
    config = transformers.Llama4TextConfig(**_SMALL | {"num_hidden_layers": 8}, use_qk_norm=True)
    with torch.device("meta"):
        model = transformers.Llama4ForCausalLM(config)
    normed = [at for at, layer in enumerate(model.model.layers) if hasattr(layer.self_attn, "qk_norm")]
    assert normed == [0, 1, 2, 4, 5, 6]
    told = config.to_dict() if named else config.to_dict() | {"no_rope_layers": []}
    stem = "model.layers.{}.self_attn"
    assert [at for at in range(8) if gains.normed_by_rope(told, stem.format(at))] == normed
    tensors = {f"{stem.format(at)}.{side}_proj.weight": (1 + at) * torch.eye(32) for at in range(8) for side in "qk"}
    safetensors.torch.save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(told, default=str), encoding="utf-8")
    told = {finding.key: finding for finding in examine_path(tmp_path).findings}
    assert told["promised_without"].values["count"] == 6
    assert told["spectral"].values["layer"] == stem.format(7)


def test_layers_of_a_width_of_their_own_are_read_by_their_gains(tmp_path: Path) -> None:
    """Gemma 4's layers of full attention have heads of `global_head_dim`; head_dim is that of the others."""
    config = transformers.Gemma4TextConfig(
        **_SMALL | {"num_key_value_heads": 2},
        head_dim=8,
        global_head_dim=16,
        num_global_key_value_heads=1,
        layer_types=["sliding_attention", "full_attention"],
        num_kv_shared_layers=0,
        hidden_size_per_layer_input=8,
        vocab_size_per_layer_input=64,
    )
    layer_of(transformers.Gemma4ForCausalLM(config), tmp_path)
    report = examine_path(tmp_path)
    assert "gains_differ" not in {finding.key for finding in report.findings}
    assert [(row["heads"], row["d_head"], row["norm"]) for row in report.tables["layers"]] == [
        (4, 8, "per_head"),
        (4, 16, "per_head"),
    ]


@pytest.mark.parametrize("gain", [0.05, 0.9])
@pytest.mark.parametrize(
    ("kind", "reading"), [("gemma3_text", "one_plus_gamma"), ("qwen3_5_moe_text", "one_plus_gamma"), ("qwen3", "gamma")]
)
def test_how_gains_are_stored_is_told_by_the_architecture_where_it_is_known(
    kind: str, reading: str, gain: float, tmp_path: Path
) -> None:
    named = {f"l.0.self_attn.{side}_proj.weight": torch.eye(8) for side in "qk"}
    named |= {f"l.0.self_attn.{side}_norm.weight": torch.full((4,), gain) for side in "qk"}
    safetensors.torch.save_file(named, tmp_path / "model.safetensors", metadata={"format": "pt"})
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}), encoding="utf-8")
    said = {finding.key: finding.sentence for finding in examine_path(tmp_path).findings}
    assert "as this architecture stores them" in said[f"gains_{reading}"]
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "unheard_of"}), encoding="utf-8")
    guess = "gamma" if gain > 0.5 else "one_plus_gamma"
    said = {finding.key: finding.sentence for finding in examine_path(tmp_path).findings}
    assert "since their mean is nearer to" in said[f"gains_{guess}"]


def gained(folder: Path, kind: str, gain: float, **given: Any) -> dict[str, str]:
    """What is said of one layer with these gains."""
    named = {f"l.0.self_attn.{side}_proj.weight": torch.eye(8) for side in "qk"}
    named |= {f"l.0.self_attn.{side}_norm.weight": torch.full((4,), gain) for side in "qk"} | given.get("beside", {})
    safetensors.torch.save_file(named, folder / "model.safetensors", metadata=given.get("metadata"))
    (folder / "config.json").write_text(json.dumps({"model_type": kind}), encoding="utf-8")
    return {finding.key: finding.sentence for finding in examine_path(folder).findings}


MLX: Final[dict[str, dict[str, Any]]] = {
    "metadata": {"metadata": {"format": "mlx"}},
    "convolution": {"beside": {"l.1.linear_attn.conv1d.weight": torch.ones(8, 4, 1)}},  # [channels, width, 1]
}


@pytest.mark.parametrize("kind", ["qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "step3p5"])
@pytest.mark.parametrize("told", MLX)
def test_mlx_stores_gamma_itself_for_classes_that_store_it_less_one(kind: str, told: str, tmp_path: Path) -> None:
    """Its conversion adds 1: what is 1.25 there would give 2 · 2.25² if 1 were added once more."""
    said = gained(tmp_path, kind, 1.25, **MLX[told])
    assert "since their mean is nearer to 1 than to 0" in said["gains_gamma"]
    assert "exceeds 3.125:" in said["gains_gamma"]
    assert "gains_unclear" in gained(tmp_path, kind, 0.1, **MLX[told])


@pytest.mark.parametrize("metadata", [None, {"format": "mlx"}, {"format": "pt"}])
def test_mlx_stores_gains_of_gemma_3_as_its_class_does(metadata: Any, tmp_path: Path) -> None:
    """Its norm adds 1 where it is used."""
    for gain in (0.1, 0.9):
        said = gained(tmp_path, "gemma3_text", gain, metadata=metadata)
        assert "as this architecture stores them" in said["gains_one_plus_gamma"]


def test_gains_that_speak_against_their_class_leave_it_open_which_they_are(tmp_path: Path) -> None:
    """Of a class for which other programs store γ: a file that transformers wrote is its own; of another it is open."""
    assert "gains_unclear" in gained(tmp_path, "qwen3_next", 1.25)
    said = gained(tmp_path, "qwen3_next", 1.25, metadata={"format": "pt"})
    assert "as this architecture stores them" in said["gains_one_plus_gamma"]


def test_what_a_class_is_said_to_store_is_what_its_norm_makes_of_it() -> None:
    classes = {"gemma3": "Gemma3", "qwen3_next": "Qwen3Next", "qwen3_5": "Qwen3_5", "qwen3_5_moe": "Qwen3_5Moe"}
    classes |= {"t5gemma2": "T5Gemma2", "qwen3": "Qwen3", "gemma4": "Gemma4", "glm4_moe": "Glm4Moe"}
    classes |= {"qwen4_exp": "Qwen4ExpText", "minimax_m3_vl": "MiniMaxM3VL", "step3p7": "Step3p7"}
    for place, word in classes.items():
        module = importlib.import_module(f"transformers.models.{place}.modeling_{place}")
        norm = getattr(module, f"{word}RMSNorm")(8)
        torch.nn.init.zeros_(norm.weight)
        with torch.no_grad():
            made = norm(torch.ones(1, 8))
        assert gains.stored_by(place) == ("one_plus_gamma" if bool(made.any()) else "gamma"), word
    assert {gains.stored_by(f"t5gemma2_{part}") for part in ("text", "encoder", "decoder")} == {"one_plus_gamma"}


def test_a_bound_is_rounded_away_from_what_it_bounds(tmp_path: Path) -> None:
    named = {f"l.0.self_attn.{side}_proj.weight": 1.11113 * torch.eye(8) for side in "qk"}
    safetensors.torch.save_file(named, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"head_dim": 4}), encoding="utf-8")
    said = {finding.key: finding.sentence for finding in examine_path(tmp_path).findings}
    assert "a |logit| of at most 0.6174 there" in said["spectral"]  # 1.11113² / 2 = 0.617305
    named = {f"l.0.self_attn.{side}_proj.weight": torch.eye(8) for side in "qk"}
    named |= {f"l.0.self_attn.{side}_norm.weight": torch.full((4,), 1.11113) for side in "qk"}
    safetensors.torch.save_file(named, tmp_path / "model.safetensors")
    said = {finding.key: finding.sentence for finding in examine_path(tmp_path).findings}
    assert "exceeds 2.47:" in said["gains_gamma"]  # 2 · 1.11113² = 2.46922


@pytest.mark.parametrize("word", ["neomme/NeoMME", "muse_glimmer/MuseGlimmerText", "swin2sr/Swin2SRSelf"])
def test_classes_that_norm_in_every_layer_without_a_gain_that_is_read_are_known(word: str) -> None:
    """Their attention modules have no parameter of a norm, and their model_type is one of those named."""
    folder, start = word.split("/")
    module = importlib.import_module(f"transformers.models.{folder}.modeling_{folder}")
    attend = inspect.getsource(getattr(module, f"{start}Attention"))
    assert "with_scale=False" in attend or "nn.functional.normalize" in attend
    kinds = importlib.import_module(f"transformers.models.{folder}.configuration_{folder}")
    assert {getattr(x, "model_type", "") for x in vars(kinds).values()} & gains.NORMED


def test_gains_of_flux_are_found_beside_their_projection() -> None:
    """FLUX.1 calls them `norm.query_norm.scale`, inside the module that holds the projection."""
    for name in ("query", "key"):
        match = gains._GAIN.fullmatch(f"double_blocks.0.img_attn.norm.{name}_norm.scale")
        assert match is not None
        assert (match["layer"], match["side"]) == ("double_blocks.0.img_attn", name)
