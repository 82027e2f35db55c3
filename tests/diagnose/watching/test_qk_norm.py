"""Whether QK norm is really on: real classes, and every way in which it has been shipped broken."""

import importlib
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from qkdemo import assert_qk_norm
from qkdemo.diagnose.watching.qk_norm import norm_names, qk_norm_of
from qkdemo.diagnose.weights import gains
from tests.diagnose.watching.models import (
    _SMALL,
    IDS,
    LANGUAGE_MODELS,
    WITHOUT_NORM,
    VisionAttention,
    language_model,
)

transformers: Any = pytest.importorskip("transformers")

X = torch.randn(2, 6, 16, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_real_classes_are_told_apart(name: str) -> None:
    model = language_model(name, "sdpa")
    if name in WITHOUT_NORM:
        with pytest.raises(AssertionError, match=r"not seen to be on in 2 of 2 attention layers"):
            assert_qk_norm(model)
    else:
        assert [each.state for each in assert_qk_norm(model, input_ids=IDS)] == ["on", "on"]


class Broken(VisionAttention):
    """A vision transformer's attention with norms, and one fault."""

    def __init__(self, fault: str) -> None:
        super().__init__(norm=True)
        self.fault = fault
        with torch.no_grad():
            self.q_norm.weight.uniform_(0.5, 2)
            self.k_norm.weight.uniform_(0.5, 2)

    def forward(self, x: Tensor) -> Tensor:
        batch, positions, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, positions, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        if self.fault != "never called":
            normed = self.q_norm(q), self.k_norm(k)
            if self.fault == "called twice":
                normed = self.q_norm(normed[0]), self.k_norm(normed[1])
            if self.fault != "not used":
                q, k = normed
        x = functional.scaled_dot_product_attention(q, k, v)
        return self.proj(x.transpose(1, 2).reshape(batch, positions, width))


@pytest.mark.parametrize("fault", ["never called", "called twice", "not used"])
def test_each_fault_that_was_shipped_is_found(fault: str) -> None:
    model = nn.Sequential(VisionAttention(norm=True), Broken(fault))
    states = [each.state for each in qk_norm_of(model, X)]
    assert states == ["on", fault]
    with pytest.raises(AssertionError, match=r"not on in 1 of 2 attention layers\.\n  1: .*_norm"):
        assert_qk_norm(model, X)


def test_a_norm_on_one_side_only_is_found() -> None:
    model = Broken("")
    del model.k_norm
    model.k_norm_gone = nn.Identity()
    model.forward = (
        lambda x: functional.scaled_dot_product_attention(  # type: ignore[method-assign]
            model.q_norm(x[:, None, :, :8]), x[:, None, :, :8], x[:, None]
        )
    )
    assert [each.state for each in qk_norm_of(model, X)] == ["one side only"]


def test_a_norm_without_a_module_is_seen_by_its_lengths() -> None:
    class Functional(VisionAttention):
        def forward(self, x: Tensor) -> Tensor:
            q = functional.rms_norm(x[:, None], (16,))
            return functional.scaled_dot_product_attention(q, q, x[:, None])

    model = Functional()
    del model.q_norm, model.k_norm
    assert [each.state for each in assert_qk_norm(model, X)] == ["on"]


class OneHead(nn.Module):
    """Attention of one head, with rotary positions or without, and a norm without gain or none."""

    def __init__(self, *, norm: bool, rotary: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.q, self.k = (nn.Linear(16, 16, bias=False) for _ in "qk")
        self.norm, self.rotary = norm, rotary

    def forward(self, x: Tensor) -> Tensor:
        q, k = (side(x)[:, None] for side in (self.q, self.k))
        if self.norm:
            q, k = functional.rms_norm(q, (16,)), functional.rms_norm(k, (16,))
        if self.rotary:
            angles = torch.arange(x.shape[1])[:, None] * torch.logspace(0, -2, 8)
            turn = torch.polar(torch.ones_like(angles), angles)
            q, k = (
                torch.view_as_real(torch.view_as_complex(s.reshape(*s.shape[:-1], 8, 2)) * turn).flatten(-2)
                for s in (q, k)
            )
        return functional.scaled_dot_product_attention(q, k, x[:, None])


@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize(
    "same", [X[:1, :1], torch.ones(2, 8, 16), torch.ones(2, 8, 16) * torch.tensor([1.0, -1] * 4)[:, None]]
)
def test_equal_lengths_of_equal_inputs_show_no_norm(rotary: bool, same: Tensor) -> None:
    for norm in (False, True):
        model = OneHead(norm=norm, rotary=rotary)
        with pytest.raises(AssertionError, match=r"is not seen to be on in 1 of 1 .*\n.* try a batch of different"):
            assert_qk_norm(model, same)
        assert [each.state for each in qk_norm_of(model, X)] == ["on" if norm else "off"]


def test_a_norm_before_the_projection_is_none_of_q_and_k() -> None:
    """As BLT's cross attention has it; OLMo 2's is as wide, and stands after the projection."""
    config = transformers.BltConfig().encoder_config
    config.hidden_size, config.num_attention_heads, config.num_key_value_heads = 32, 4, 4
    config._attn_implementation = "sdpa"
    module = importlib.import_module("transformers.models.blt.modeling_blt")
    torch.manual_seed(0)
    attend = module.BltCrossAttention(config, 0, 32).eval()
    states = torch.randn(2, 6, 32)
    found = qk_norm_of(attend, states, cross_attention_states=states.flip(1))
    assert [each.state for each in found] == ["not used"]


def test_one_token_shows_no_norm_of_a_language_model_without_gains() -> None:
    model = language_model("Llama 4", "sdpa")
    assert {each.state for each in qk_norm_of(model, input_ids=IDS[:1, :1])} == {"on"}  # its norm is a module
    plain = language_model("GPT-2", "sdpa")
    assert "on" not in {each.state for each in qk_norm_of(plain, input_ids=IDS[:1, :1])}


def test_gains_of_a_new_model_are_pointed_at() -> None:
    fresh, trained = VisionAttention(norm=True), Broken("")
    assert [each.fresh for each in qk_norm_of(fresh, X)] == [True]
    assert [each.fresh for each in qk_norm_of(trained, X)] == [False]


def test_what_the_config_asks_for_and_the_model_lacks_is_said() -> None:
    model = language_model("GPT-2", "sdpa")
    model.config.use_qk_norm = True
    with pytest.raises(AssertionError, match="the config says use_qk_norm, but lengths of q run from"):
        assert_qk_norm(model)


@pytest.mark.parametrize(
    ("name", "side"),
    [("q_norm", "q"), ("k_layernorm", "k"), ("norm_q", "q"), ("query_norm", "q"), ("qk_norm", "qk"), ("q_ln", "q")],
)
def test_norms_are_known_by_the_names_of_the_wild(name: str, side: str) -> None:
    module = nn.Module()
    module.add_module(name, nn.LayerNorm(4))
    assert norm_names(module) == {name: side}
    setattr(module, name, nn.Identity())
    assert norm_names(module) == {}


@pytest.mark.parametrize("name", ["q_proj", "q_a_layernorm", "kv_a_layernorm", "norm", "input_layernorm", "v_norm"])
def test_other_modules_are_no_norm_of_q_or_k(name: str) -> None:
    module = nn.Module()
    module.add_module(name, nn.LayerNorm(4))
    assert norm_names(module) == {}


def test_a_batch_that_is_a_mapping_is_taken_apart_where_its_keys_are_parameters() -> None:
    ids = torch.arange(8)[None]
    assert {each.state for each in assert_qk_norm(language_model("Qwen3", "sdpa"), {"input_ids": ids})} == {"on"}

    class OfABatch(nn.Module):
        """Takes the mapping itself."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = language_model("Qwen3", "sdpa")

        def forward(self, batch: dict[str, torch.Tensor]) -> object:
            return self.inner(**batch)

    assert {each.state for each in assert_qk_norm(OfABatch(), {"input_ids": ids})} == {"on"}


def test_a_model_that_cannot_be_tried_or_has_no_attention_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="Give a batch to try it with"):
        assert_qk_norm(VisionAttention())
    with pytest.raises(ValueError, match="No attention call was seen"):
        assert_qk_norm(nn.Linear(16, 16), X)


def test_deepseek_v4s_norms_are_known_by_their_names() -> None:
    module = importlib.import_module("transformers.models.deepseek_v4.modeling_deepseek_v4")
    small = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 16}
    small |= {"q_lora_rank": 16, "o_groups": 2, "o_lora_rank": 8, "moe_intermediate_size": 16, "n_routed_experts": 4}
    small |= {"num_experts_per_tok": 2, "n_shared_experts": 1, "hc_mult": 2, "layer_types": ["sliding_attention"] * 2}
    torch.manual_seed(0)
    model = module.DeepseekV4ForCausalLM(transformers.DeepseekV4Config(**small)).eval()
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.kv_norm.weight.uniform_(0.5, 2)
    found = qk_norm_of(model, input_ids=IDS)
    assert [(each.state, each.words) for each in found] == [("on", "q_b_norm and kv_norm called once each.")] * 2


def test_where_one_side_alone_has_one_length_the_other_is_not_told() -> None:
    class Half(VisionAttention):
        def forward(self, x: Tensor) -> Tensor:
            return functional.scaled_dot_product_attention(
                functional.rms_norm(x[:, None], (16,)), x[:, None], x[:, None]
            )

    model = Half()
    del model.q_norm, model.k_norm
    (found,) = qk_norm_of(model, X)
    assert found.state == "cannot tell"
    assert "all vectors of q have one length, those of k have not" in found.words


def test_layers_of_llama_4_without_rotary_positions_have_no_norm_by_design() -> None:
    from transformers.models.llama4.configuration_llama4 import Llama4TextConfig  # noqa: PLC0415
    from transformers.models.llama4.modeling_llama4 import Llama4ForCausalLM  # noqa: PLC0415

    more = {"head_dim": 8, "intermediate_size_mlp": 48, "num_local_experts": 2}
    for asked, states in ((True, ["on", "none by design"]), (False, ["off", "off"])):
        torch.manual_seed(0)
        model = Llama4ForCausalLM(Llama4TextConfig(**_SMALL, **more, use_qk_norm=asked, no_rope_layers=[1, 0])).eval()
        assert [each.state for each in qk_norm_of(model, input_ids=IDS)] == states
    with pytest.raises(AssertionError, match="not seen to be on in 2 of 2"):
        assert_qk_norm(model, input_ids=IDS)


@pytest.mark.parametrize(
    "name", ["q_norm", "q_rms_norm", "q_rmsnorm", "q_layernorm", "q_layer_norm", "rms_norm_q", "ln_q"]
)
def test_a_norm_is_known_by_what_people_call_it(name: str) -> None:
    module = nn.Module()
    module.add_module(name, nn.RMSNorm(8))
    module.add_module("q_a_layernorm", nn.RMSNorm(8))  # of a latent
    assert norm_names(module) == {name: "q"}
    weights = {f"l.{name}.weight", "l.q_a_layernorm.weight"}
    assert [each for each in weights if gains._GAIN.fullmatch(each)] == [f"l.{name}.weight"]
