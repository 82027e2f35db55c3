"""The placement page begins with a model and the code that reads it: what is chosen is what the pipelines become."""

import pytest
from streamlit.testing.v1 import AppTest

from qkdemo.attention.pipeline import CHOICES
from qkdemo.facts.models import MODELS
from qkdemo.labs.placement import PRESETS, Settings, pipeline_of
from qkdemo.labs.placement.mistakes import MISTAKES
from qkdemo.labs.placement.words import caught, contract
from qkdemo.web.lab.parts.contracts import _fitting, _is
from tests.web.visit import standing, visit

READ = [model for model in MODELS if model.pipeline]


def chosen(app: AppTest, side: str, option: str) -> AppTest:
    return app.selectbox(key=f"placement:{side}").set_value(option).run()


def pair(app: AppTest) -> list[object]:
    state = standing(app, "placement")
    assert isinstance(state, Settings)
    return [pipeline_of(state, side) for side in ("left", "right")]


def test_the_code_stays_the_same_code_when_another_model_is_chosen_and_has_its_mistake_still() -> None:
    gemma = next(model for model in READ if model.stored == "one_plus" and model.norm == "rms")
    app = chosen(visit("placement"), "right", "same")
    app = chosen(app, "left", gemma.id)
    assert pair(app) == [gemma.pipeline] * 2
    assert "None: both sides agree" in app.main.markdown[3].value
    app = chosen(app, "right", "layernorm_for_rms")
    assert gemma.pipeline is not None
    assert pair(app) == [gemma.pipeline, gemma.pipeline.but(norm="layernorm")]
    assert app.selectbox(key="placement:left").value == gemma.id
    assert app.selectbox(key="placement:right").value == "layernorm_for_rms"


def test_another_models_code_reads_the_weights() -> None:
    one, other = READ[0], next(model for model in READ if model.norm == "layernorm")
    app = chosen(chosen(visit("placement"), "right", other.id), "left", one.id)
    assert pair(app) == [one.pipeline, other.pipeline]
    assert app.selectbox(key="placement:right").value == other.id


@pytest.mark.parametrize("model", READ, ids=lambda model: model.id)
def test_a_models_dials_are_found_to_be_that_model(model: object) -> None:
    state = Settings().but(**model.choices("left"), **model.choices("right"))  # type: ignore[attr-defined]
    assert model.id in _fitting(state, "left")  # type: ignore[attr-defined]
    assert _fitting(state, "right")[0] == "same"
    assert contract(pipeline_of(state, "left")).endswith(".")


@pytest.mark.parametrize("name", MISTAKES)
def test_a_known_mistake_is_found_to_be_that_one_alone(name: str) -> None:
    sides = [pipeline_of(PRESETS[name], side) for side in ("left", "right")]
    assert [other for other in MISTAKES if _is(other, *sides)] == [name]


def test_a_mistake_is_offered_only_for_weights_with_which_its_name_is_true() -> None:
    """L2 with 1/√d kept needs a 1/√d, LayerNorm for RMSNorm an RMSNorm: a model may have neither."""
    gemma = next(model for model in READ if model.model == "Gemma 4 (text)")  # its scale is 1
    app = chosen(chosen(visit("placement"), "right", "l2_scale_kept"), "left", gemma.id)
    assert pair(app) == [gemma.pipeline] * 2
    offered = app.selectbox(key="placement:right").options
    assert not [option for option in offered if "L2 with 1/√d kept" in option or "scale 1 for 1/√d" in option]
    assert [option for option in offered if "LayerNorm for RMSNorm" in option]
    port = Settings().but(**gemma.choices("left"), **gemma.choices("right")).but(right_norm="l2")
    assert _fitting(port, "right") == []


def test_the_code_that_forgets_the_one_reads_the_weights_of_a_model_that_needs_it() -> None:
    gemma = next(model for model in READ if model.stored == "one_plus" and model.norm == "rms")
    assert gemma.pipeline is not None
    app = chosen(chosen(visit("placement"), "left", gemma.id), "right", "one_plus_as_gamma")
    assert pair(app) == [gemma.pipeline, gemma.pipeline.but(stored="gamma")]
    assert app.selectbox(key="placement:right").value == "one_plus_as_gamma"


def test_dials_that_are_no_model_say_so() -> None:
    app = visit("placement", {"left_place": "weights", "left_norm": "l2"})
    assert app.selectbox(key="placement:left").value is None


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (PRESETS["rotary_first"], "None with fresh weights"),
        (PRESETS["rotary_first"].but(gains="unit"), "None with fresh weights"),
        (PRESETS["gamma_as_one_plus"], "Already one with fresh weights"),
        (PRESETS["values_too"], "None of the logits: they agree"),
        (PRESETS["rotary_first"].but(right_on="qkv"), "One of the output does, already with these weights"),
        (Settings(right_order="norm_rotary"), "None: both sides agree"),
        (Settings(right_order="norm_rotary", right_stored="gamma", format="float16"), "None: both sides agree"),
    ],
)
def test_the_test_that_would_find_it_is_named(state: Settings, says: str) -> None:
    assert says in caught(state)
    assert "ith these dials" in caught(state)  # other dials may hide what these show


def test_a_contract_names_every_choice_once() -> None:
    state = Settings(left_norm="rms", left_stored="one_plus", left_order="rotary_norm", left_scale="one")
    assert contract(pipeline_of(state, "left")) == (
        "RMSNorm, per head; a gain per channel, stored as 1 + γ; rotary positions before it; logits times 1."
    )
    assert "no norm" in contract(pipeline_of(state.but(left_norm="none"), "left"))
    neither = state.but(left_norm="none", left_order="none")
    gain = "a gain per channel, stored as 1 + γ"  # it acts without a norm, too
    assert contract(pipeline_of(neither, "left")) == f"no norm on q and k; {gain}; no rotary positions; logits times 1."
    assert set(CHOICES) >= {"norm", "place", "gain", "stored", "order", "scale", "cap"}
