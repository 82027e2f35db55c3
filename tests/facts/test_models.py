"""The table of models: complete, spelt in known words, and found by what it says."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
import torch

from qkdemo.attention.blocks import Block, BlockRecipe, draw_block
from qkdemo.attention.pipeline import CASTS, CHOICES, Pipeline, trace
from qkdemo.cli.command import main
from qkdemo.dials import declarations
from qkdemo.facts.cells import cell
from qkdemo.facts.models import (
    COMPARED,
    MODELS,
    VERIFIED,
    alike,
    differing,
    filtered,
    same_function,
    search,
)
from qkdemo.facts.nearest import closest, in_words
from qkdemo.labs import placement
from qkdemo.labs.models import PRESETS, Settings, corrections, explain, run, snippet
from qkdemo.labs.models import lab as models
from qkdemo.messages import has
from qkdemo.tracks.catalogue import TRACKS, evidence, text
from tests.conformance.cases import CASES
from tests.strategies import ends


def of(id: str):  # type: ignore[no-untyped-def]
    return next(model for model in MODELS if model.id == id)


def test_a_hundred_implementations_are_there_each_once() -> None:
    assert len(MODELS) >= 100
    assert len({model.id for model in MODELS}) == len(MODELS)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.id)
def test_every_row_has_a_source_and_speaks_in_known_words(model) -> None:  # type: ignore[no-untyped-def]
    assert re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/blob/[\w.]+/[\w./-]+#L\d+", model.link)
    assert model.symbol
    assert model.verified in VERIFIED
    for dial in declarations(Settings):
        if dial.name in models.COLUMNS:
            assert getattr(model, models.COLUMNS[dial.name]) in dial.words, dial.name
    for column in ("norm", "place", "gain", "stored", "order", "scale", "kind", "verified", "family"):
        assert has(f"choice.{column}.{getattr(model, column)}"), column


def test_only_rows_with_a_test_in_this_project_are_called_conformance_tested() -> None:
    assert {model.id for model in filtered(verified="conformance")} == set(CASES)


def test_errors_that_are_often_told_are_not_repeated() -> None:
    gemma, qwen, cohere = (of(f"{name}-transformers") for name in ("gemma-2", "qwen2-qwen2-5", "cohere-command-r-aya"))
    assert (gemma.norm, gemma.softcap, gemma.output_softcap) == ("none", 50, 30)
    assert qwen.norm == "none"
    assert (cohere.norm, cohere.default_on) == ("layernorm", False)
    assert of("olmo-2-transformers").place == "full_width"
    assert (of("llama-4-text-transformers").norm, of("llama-4-text-transformers").gain) == ("rms", "none")
    assert of("deepseek-v3-mla-transformers").place == "latent"
    assert of("grok-1-grok-1").softcap == 30
    assert len(corrections()) == 6


def test_a_row_says_nothing_of_what_it_does_not_have() -> None:
    """A norm that is not there is not on, a gain that is not there has no cast, and no rotary is in no cache."""
    for model in MODELS:
        assert not (model.norm == "none" and model.default_on), model.id
        assert not (model.gain == "none" and model.cast in CHOICES["cast"]), model.id
        rotated = "rotated" in cell("cache", model.cache).replace("rotated if at all", "")
        assert not (model.order == "no_rotary" and rotated), model.id


def test_a_norm_that_the_code_leaves_out_unless_told_is_not_on_by_default() -> None:
    """As their arguments and configurations have it: use_qk_norm, q_norm, qk_norm, mha_sup, use_nGPT."""
    told = ("gemma-3-official-jax-gemma", "gemma-3n-official-jax-gemma", "gemma-official-pytorch-gemma-pytorch")
    told += ("henry-et-al-qknorm-original-qknorm", "ngpt-ngpt", "sd3-5-mmdit-sd3-5")
    told += ("torchtune-qwen3attention-torchtune", "torchtune-multiheadattention-torchtune")
    assert {of(name).default_on for name in told} == {False}


def test_what_a_configuration_decides_is_called_configurable() -> None:
    """L2 of diffusers has a floor, its others an epsilon inside the root; MaxText stores γ − 1 for Qwen3-Next alone."""
    assert {of(name).rule for name in ("diffusers-attention-diffusers", "gpt-neox-gpt-neox")} == {"configurable"}
    core, legacy = of("olmo-core-attention-olmo-core"), of("olmo-legacy-trainer-olmo")
    assert (core.bias, core.rule, core.cast) == ("configurable",) * 3
    assert (legacy.gain, legacy.bias, legacy.cast) == ("configurable",) * 3
    assert of("torchtune-multiheadattention-torchtune").bias == "configurable"
    assert (of("maxtext-attention-maxtext").norm, of("maxtext-attention-maxtext").stored) == ("rms", "configurable")
    lm, neox = of("open-lm-open-lm"), of("gpt-neox-gpt-neox")  # no_wb_layer_norm; non_parametric_layernorm, scalenorm
    assert (lm.gain, neox.gain, neox.place) == ("configurable",) * 3
    assert of("megatron-core-qk-layernorm-megatron-lm").stored == "configurable"  # layernorm_zero_centered_gamma
    assert of("sd3-5-mmdit-sd3-5").cast == "configurable"  # LayerNorm of torch, or RMSNorm in the model's format
    for name in ("timm-attention-pytorch-image-models", "torchtune-multiheadattention-torchtune"):
        assert (of(name).gain, of(name).stored, of(name).rule) == ("configurable",) * 3
    for name in ("gemma-3n-official-jax-gemma", "torchtitan-gqa-torchtitan"):  # qk_norm_with_scale; elementwise_affine
        assert of(name).gain == "configurable"
    arguments = ("timm-attention-pytorch-image-models", "mlx-lm-minimax-mlx-lm", "torchtitan-gqa-torchtitan")
    arguments += ("olmo-core-attention-olmo-core",)  # 1e-5 in its classes, 1e-6 in presets
    assert {of(name).epsilon for name in arguments} == {None}


def test_the_scale_of_a_library_is_what_it_does_unless_an_argument_says_otherwise() -> None:
    """query_pre_attn_scalar is None by default: head_dim**-0.5 in torchtune, no factor in MaxText."""
    scales = [of(name).scale for name in ("torchtune-gemma2attention-torchtune", "maxtext-attention-maxtext")]
    assert scales == ["inverse_root", "one"]


def test_grok_1_is_released_with_one_over_the_root_of_its_width() -> None:
    """attn_output_multiplier=0.08838834764831845 beside key_size=128 in its run.py."""
    assert pytest.approx(128**-0.5) == 0.08838834764831845
    assert of("grok-1-grok-1").scale == "inverse_root"


def test_norms_of_torch_round_once_at_their_end_and_no_row_calls_them_all_in_one_format() -> None:
    """nanochat and modded-nanogpt call rms_norm without a gain; Meta's Chameleon holds a LayerNorm in bfloat16."""
    rng = torch.Generator().manual_seed(0)
    x, gain, bias = (torch.randn(shape, generator=rng).bfloat16() for shape in ((256, 64), (64,), (64,)))
    rms = torch.nn.functional.rms_norm(x, (64,))
    wide, narrow = (each * torch.rsqrt(each.square().mean(-1, keepdim=True) + 1.2e-7) for each in (x.float(), x))
    assert torch.equal(rms, wide.bfloat16())
    assert (rms != narrow).float().mean() > 0.1
    assert {of(name).cast for name in ("nanochat-nanochat", "modded-nanogpt-modded-nanogpt")} == {"none"}
    layer = torch.nn.functional.layer_norm(x, (64,), gain, bias).float()
    normed, store = torch.nn.functional.layer_norm(x.float(), (64,)), lambda y: y.bfloat16().float()
    equal = {
        word: (cast(normed, gain.float(), bias.float(), store) == layer).float().mean() for word, cast in CASTS.items()
    }
    assert equal["gain_first"] > 0.99
    assert equal["cast_first"] < 0.9
    assert of("chameleon-meta-chameleon").cast == "gain_first"


def test_where_a_checkpoint_holds_a_gain_times_a_constant_the_note_says_so() -> None:
    """sqk · init_value / init_scaling: a stored 1/√d_model is a gain of 1."""
    for name in ("ngpt-ngpt", "ngpt-in-olmo-core-olmo-core", "dory-ngpt-style-transformers"):
        assert re.search("checkpoint holds .* times", of(name).note), name


def test_idefics_turns_nothing_where_it_normalises_and_caches_nothing_there() -> None:
    row = of("idefics-1-decoder-transformers")
    assert (row.order, row.layout, row.rotated, row.cache) == ("no_rotary", "none", "none", "none")


def test_another_model_of_a_family_is_not_the_same_again() -> None:
    assert of("llama-cpp-hunyuan-moe-llama-cpp").kind == "model"


def test_the_same_again_differs_from_its_model_only_where_its_note_says_so() -> None:
    """Official Gemma 3 has a constant scale in JAX as elsewhere: 1/√168 in 27B."""
    again = {
        "gemma-3-official-jax-gemma": "gemma-3-transformers",
        "gemma-official-pytorch-gemma-pytorch": "gemma-3-transformers",
        "chameleon-meta-chameleon": "chameleon-transformers",
        "llama-4-meta-llama-models": "llama-4-text-transformers",
        "llama-cpp-llama-4-llama-cpp": "llama-4-text-transformers",
        "llama-3-2-vision-meta-llama-models": "llama-3-2-vision-cross-attention-mllama-transformers",
        "mlx-lm-hunyuan-mlx-lm": "hunyuan-v1-dense-transformers",
        "mlx-lm-cohere-mlx-lm": "cohere-command-r-aya-transformers",
        "vllm-command-r-vllm": "cohere-command-r-aya-transformers",
        "mlx-lm-minimax-mlx-lm": "minimax-m2-transformers",
        "vllm-minimax-m2-vllm": "minimax-m2-transformers",
        "vllm-olmo2-vllm": "olmo-2-transformers",
        "sglang-olmo2-old-snapshot-sglang": "olmo-2-transformers",
        "llama-cpp-olmo2-llama-cpp": "olmo-2-transformers",
        "swin-v2-microsoft-swin-transformer": "swin-v2-transformers",
        "timm-swin-v2-pytorch-image-models": "swin-v2-transformers",
        "nanochat-hf-port-transformers": "nanochat-nanochat",
    }
    parts = {"idefics-1-perceiver-transformers", "gemma-3n-official-jax-gemma"}  # another part; no pipeline
    assert {model.id for model in filtered(kind="port")} == again.keys() | parts
    told = {"chameleon-meta-chameleon": ["gain"], "nanochat-hf-port-transformers": ["scale"]}
    for port, model in again.items():
        one, other = of(port), of(model)
        assert differing(one.pipeline, other.pipeline, one.unread | other.unread) == told.get(port, []), port


def test_search_finds_words_in_any_column_and_all_of_them() -> None:
    assert {model.family for model in search("olmo")} >= {"olmo"}
    assert [model.id for model in search("GROK ATTN")] == []
    assert [model.id for model in search("GROK attention")] == ["grok-1-grok-1"]
    assert search("no such model anywhere") == []
    assert len(search("")) == len(MODELS)


def test_deepseek_v4_normalises_q_and_k_and_is_no_pipeline_of_the_placement_lab() -> None:
    """Its rotation of the last channels is none of the lab's: the row opens no side, and stands for no other row."""
    row = of("deepseek-v4-transformers")
    assert (row.qk_norm, row.place, row.key_gain, row.layout) == ("yes", "per_head", "k_alone", "interleaved")
    assert row.rotated == "last_eighth"
    assert row.pipeline is None
    assert row.choices("left") == {}
    assert not any("does not have" in sentence for sentence in corrections())


def test_a_model_does_exactly_what_its_own_row_says() -> None:
    for model in MODELS:
        if model.pipeline is not None:
            assert model in alike(model.pipeline)
            assert differing(model.pipeline, closest(model.pipeline)[0].pipeline) == []


def test_qwen_3_is_not_alone_and_olmo_2_differs_from_it_in_width_and_gain() -> None:
    qwen, olmo = of("qwen3-dense-transformers").pipeline, of("olmo-2-transformers").pipeline
    assert qwen == Pipeline()
    assert {"Qwen3-MoE", "LFM2"} <= {model.model for model in alike(qwen)}
    assert of("flux-1-flux") not in alike(qwen)
    assert differing(of("flux-1-flux").pipeline, qwen) == ["layout"]
    assert differing(qwen, olmo) == ["place", "gain"]


def test_the_logit_of_zaya_is_eight_times_the_cosine_at_width_64_and_not_an_eighth() -> None:
    """Unit vectors times √d on both sides, and 1/√d; a port that keeps L2 with 1/√d alone gives 0.125 · cos."""
    q = torch.randn(1, 64, generator=torch.Generator().manual_seed(0)).double()
    block = Block(
        x=q,
        w_q=torch.eye(64).double(),
        w_k=torch.eye(64).double(),
        w_v=torch.eye(64).double(),
        gain_q=torch.ones(1, 64),
        gain_k=torch.ones(1, 64),
        positions=torch.zeros(1).double(),
    )
    zaya = of("zaya-transformers")
    assert trace(zaya.pipeline, block).logits.item() == pytest.approx(8.000)
    assert trace(Pipeline(norm="l2"), block).logits.item() == pytest.approx(0.125)
    kept = placement.PRESETS["l2_scale_kept"]
    right = next(sentence for sentence in placement.explain(placement.run(kept)) if sentence.startswith("Right:"))
    assert "ZAYA" not in right
    assert zaya in alike(Pipeline(norm="l2", gain="head", key_gain="k_alone", scale="root", rotated="half"))


def test_dory_is_ngpt_with_both_gains_in_one() -> None:
    dory, ngpt = of("dory-ngpt-style-transformers"), of("ngpt-ngpt")
    assert (dory.order, ngpt.order) == ("rotary_norm", "rotary_norm")
    assert differing(dory.pipeline, ngpt.pipeline) == ["key_gain"]


def test_unit_vectors_times_the_root_of_the_width_are_what_rms_makes() -> None:
    unit = Pipeline(norm="l2", scale="root", order="rotary_norm", epsilon=0.0)
    assert differing(unit, unit.but(norm="rms", scale="inverse_root")) == []
    assert differing(unit, unit.but(scale="inverse_root")) == ["scale"]
    assert differing(unit, unit.but(norm="rms")) == ["norm"]
    block = draw_block(BlockRecipe(d_model=16, d_head=8, n_keys=5))
    scores = [trace(one, block).logits for one in (unit, unit.but(norm="rms", scale="inverse_root", rule="absent"))]
    torch.testing.assert_close(*scores)


def test_what_was_carried_over_with_its_gain_is_the_other_layout() -> None:
    moved = Pipeline(layout="interleaved", conversion="weights_and_gain", rotated="half")
    assert differing(moved, Pipeline(rotated="half")) == []
    assert differing(moved.but(conversion="weights"), Pipeline(rotated="half")) == ["layout", "conversion"]
    assert differing(moved.but(conversion="weights", gain="none"), Pipeline(rotated="half", gain="none")) == []


def test_what_a_row_does_not_say_tells_it_from_no_other_and_the_sentence_says_so() -> None:
    torchtune, qwen = of("torchtune-qwen3attention-torchtune"), of("qwen3-dense-transformers")
    assert (torchtune.unread, qwen.unread) == ({"layout", "rotated"}, frozenset())
    turned_otherwise = Pipeline(layout="interleaved")
    assert torchtune in alike(turned_otherwise)
    assert qwen not in alike(turned_otherwise)
    assert in_words(turned_otherwise).endswith(
        "torchtune Qwen3Attention (read in the source, not run; which channels turn was not read), "
        "casts and epsilon aside."
    )
    words = in_words(Pipeline())
    assert words.startswith("the same function as the choices of Qwen3 (dense), Qwen3-MoE")
    assert words.index("torchtune Qwen3Attention") > words.index("Sapiens 2; and ")
    assert in_words(Pipeline(order="none")).endswith(
        "Vision (Meta) (read in the source, not run), casts and epsilon aside."
    )


def test_a_cap_and_a_scale_of_their_own_are_said() -> None:
    words = in_words(of("gemma-2-transformers").pipeline)
    assert "The scale g is each model’s own number." in words
    assert "The cap is each model’s own number." in words


def test_without_a_gain_the_order_is_no_difference_and_with_one_it_is() -> None:
    llama = of("llama-4-text-transformers").pipeline
    assert of("megatron-core-qk-l2-norm-megatron-lm") in alike(llama)
    assert differing(Pipeline(), Pipeline(order="rotary_norm")) == ["order"]
    assert differing(
        Pipeline(norm="layernorm", gain="none"), Pipeline(norm="layernorm", gain="none").but(order="rotary_norm")
    ) == ["order"]


def test_who_makes_just_these_choices_is_named_though_no_norm_is_there() -> None:
    """Grok-1 turns keys before it caches them, and caps; nanodo and big_vision add learned positions: nothing turns."""
    bare = Pipeline(norm="none", gain="none")
    assert {model.model for model in alike(bare.but(cap="softcap"))} == {"Grok-1"}
    assert {model.model for model in alike(bare.but(order="none"))} == {"nanodo", "big_vision ViT"}
    assert "nothing in the table whose every choice is known gives just this function" in in_words(
        bare.but(order="none", scale="one")
    )


def test_what_the_names_in_a_checkpoint_tell_is_whether_there_is_a_norm() -> None:
    """sd3_infer.py: qk_norm is "rms" where ln_k.weight is there, else None."""
    assert "tell whether there is a norm; it is RMSNorm then" in of("sd3-5-mmdit-sd3-5").note


def test_a_pipeline_that_nobody_has_gets_its_nearest_model_and_the_difference() -> None:
    model, names = closest(Pipeline(place="full_width", norm="layernorm", gain="none"))
    assert (model.model, names) == ("ESM-C", ["gain"])


def test_a_row_opens_one_side_of_the_placement_lab() -> None:
    choices = of("olmo-2-transformers").choices("right")
    assert choices["right_place"] == "full_width"
    assert set(choices) == {f"right_{name}" for name in CHOICES}
    assert of("gpt-neox-gpt-neox").choices("left") == {}


def test_same_function_keeps_what_is_compared_within_known_words() -> None:
    for model in MODELS:
        if model.pipeline is not None:
            assert all(getattr(same_function(model.pipeline), name) in CHOICES[name] for name in COMPARED)


def test_families_of_the_filter_are_those_of_the_table() -> None:
    assert set(get_args(models.FamilyWord)) - {"any"} == {model.family for model in MODELS}


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_finds_rows_and_describes_them(name: str) -> None:
    result = run(PRESETS[name])
    assert result.models
    assert all(sentence and "{" not in sentence for sentence in explain(result))


@pytest.mark.parametrize("name", PRESETS)
def test_the_snippet_finds_the_same_rows_with_python_alone_in_any_folder(name: str, tmp_path: Path) -> None:
    program = [sys.executable, "-I", "-S", "-X", "utf8", "-c", snippet(PRESETS[name])]
    said = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=True).stdout
    found = [model.model for model in run(PRESETS[name]).models]
    assert json.loads(said) == {"found": len(found), "models": found}


def test_the_snippet_knows_every_filter(capsys: pytest.CaptureFixture[str]) -> None:
    for name, settings in ends(Settings):
        exec(snippet(settings), {})
        found = json.loads(capsys.readouterr().out)["models"]
        assert found == [model.model for model in run(settings).models], name


def test_models_are_counted_once_where_the_app_counts_models() -> None:
    whole = filtered(kind="model")
    names = [model.model.split("(")[0].strip().lower() for model in whole]
    assert len(set(names)) == len(names)
    again = [model.model for model in filtered(kind="port")]
    assert {"vLLM OLMo2", "llama.cpp OLMo2", "SGLang OLMo2 (old snapshot)", "mlx-lm MiniMax"} <= set(again)
    assert len(whole) + len(again) + len(filtered(kind="library")) + len(filtered(kind="kernel")) == len(MODELS)
    _, kinds, why, *_ = explain(run(Settings()))
    assert f"model {len(whole)};" in kinds
    assert "each model once" in why
    claim = next(stop for stop in TRACKS["claims"] if stop.name == "every_model")
    told = text("claims", claim, "explain", evidence(claim).numbers)
    assert f"The table has {len(MODELS)} implementations. {len(whole)} of them are models" in told


def test_norms_on_latents_and_before_projections_are_no_qk_norm() -> None:
    without = {model.id for model in filtered(kind="model", qk_norm="no")}
    assert {
        "deepseek-v3-mla-transformers",
        "deepseek-v3-2-indexer-transformers",
        "blt-cross-attention-transformers",
    } <= without
    assert {model.id for model in filtered(kind="model", norm="none")} < without
    assert {model.id for model in run(Settings(normed="no", kind="model")).models} == without


def test_filters_narrow_and_may_leave_nothing() -> None:
    assert run(Settings(norm="l2", place="latent")).models == ()
    assert explain(run(Settings(norm="l2", place="latent"))) == ["Of 103 implementations not one passes."]
    capped = run(Settings(capped="yes")).models
    assert {model.softcap for model in capped} == {30, 50}
    assert len(capped) + len(run(Settings(capped="no")).models) == len(MODELS)


def test_the_command_prints_the_rows_that_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--family", "swin", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["norm"] for row in rows] == ["l2", "l2", "l2"]
