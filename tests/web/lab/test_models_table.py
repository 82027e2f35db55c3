"""The models page: a search that the link keeps, and a pair of models to open."""

import pytest

from qkdemo.facts.models import MODELS
from qkdemo.web.pages import PAGES
from tests.web.visit import complaints, link_of, visit


def test_a_link_restores_the_search_with_the_filters() -> None:
    app = visit("models", {"place": "full_width", "find": "olmo"})
    assert not app.exception
    assert not complaints(app)
    assert app.text_input[0].value == "olmo"
    assert link_of(app) == {"place": "full_width", "find": "olmo"}
    assert app.title[0].value.startswith("QK norm is not one formula: of these")


def test_what_is_typed_is_found_and_kept_in_the_link() -> None:
    app = visit("models")
    app.text_input[0].set_value("gemma 2").run()
    assert link_of(app) == {"find": "gemma 2"}
    app.selectbox(key="models.family").set_value("gemma").run()
    assert link_of(app) == {"family": "gemma", "find": "gemma 2"}
    app.text_input[0].set_value("").run()
    assert link_of(app) == {"family": "gemma"}


def test_a_search_without_a_hit_says_so_and_breaks_nothing() -> None:
    app = visit("models", {"find": "<script>" * 40})
    assert not app.exception
    assert app.title[0].value == f"Of {len(MODELS)} implementations not one passes."


def test_two_models_are_compared_in_words() -> None:
    app = visit("models")
    app.selectbox(key="models:left").set_value("olmo-3-transformers").run()
    assert link_of(app)["right"] == "olmo-2-transformers"  # the other stays what it was
    said = " ".join(markdown.value for markdown in app.markdown)
    assert "OLMo 3 and OLMo 2 agree in every choice" in said


def test_a_pair_opens_in_the_placement_lab_without_a_word_of_complaint() -> None:
    if "placement" not in PAGES:
        return
    for model in MODELS:
        words = {**model.choices("left"), **model.choices("right")}
        if words:
            break
    app = visit("placement", words)
    assert not app.exception
    assert not complaints(app)


def test_the_pair_stays_in_the_link_and_a_link_brings_it_back() -> None:
    app = visit("models", {"norm": "rms"})
    app.selectbox(key="models:left").set_value("olmo-3-transformers").run()
    app.selectbox(key="models:right").set_value("qwen3-moe-transformers").run()
    link = link_of(app)
    assert link == {"norm": "rms", "left": "olmo-3-transformers", "right": "qwen3-moe-transformers"}
    again = visit("models", link)
    assert not complaints(again)
    assert [again.selectbox(key=f"models:{side}").value for side in ("left", "right")] == list(link.values())[1:]
    assert any(text.value.startswith("OLMo 3 and Qwen3-MoE differ in:") for text in again.markdown)
    again.selectbox(key="models.norm").set_value("any").run()  # a filter does not lose it
    assert link_of(again) == {name: link[name] for name in ("left", "right")}


def test_going_back_in_the_browser_brings_the_pair_before_back() -> None:
    app = visit("models", {"left": "olmo-3-transformers"})
    app.selectbox(key="models:left").set_value("qwen3-moe-transformers").run()
    app.query_params["left"] = "olmo-3-transformers"
    app.run()
    assert app.selectbox(key="models:left").value == "olmo-3-transformers"


def test_the_pair_is_still_there_when_a_visitor_returns_from_another_page() -> None:
    app = visit("models", {"left": "olmo-3-transformers", "find": "olmo"})
    app.query_params.clear()
    app.switch_page(str(PAGES["drift"].script)).run()
    app.query_params.clear()
    app.switch_page(str(PAGES["models"].script)).run()
    assert link_of(app) == {"left": "olmo-3-transformers", "find": "olmo"}
    assert app.selectbox(key="models:left").value == "olmo-3-transformers"


@pytest.mark.parametrize("pair", [{"left": "no such model"}, {"left": "deepseek-v3-mla-transformers", "right": "<b>"}])
def test_a_model_that_cannot_be_compared_is_replaced_and_that_is_said(pair: dict[str, str]) -> None:
    app = visit("models", pair)
    assert not app.exception
    assert len(complaints(app)) == 1
    assert app.selectbox(key="models:left").value != app.selectbox(key="models:right").value


def test_the_models_that_do_exactly_this_are_named_from_any_state_of_the_placement_lab() -> None:
    olmo = next(model for model in MODELS if model.id == "olmo-2-transformers")
    app = visit("placement", {**olmo.choices("left"), "right_cap": "softcap", "right_gain": "scalar"})
    said = " ".join(markdown.value for markdown in app.markdown)
    assert "Left: the same function as the choices of OLMo 2" in said
    assert (
        "Right: nothing in the table whose every choice is known gives just this function; one of the closest is"
        in said
    )
