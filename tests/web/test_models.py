"""The models page: a search that the link keeps, and a pair of models to open."""

from qkdemo.facts.models import MODELS
from qkdemo.web.pages import PAGES
from tests.web.visit import complaints, link_of, visit


def test_a_link_restores_the_search_with_the_filters() -> None:
    app = visit("models", {"place": "full_width", "find": "olmo"})
    assert not app.exception
    assert not complaints(app)
    assert app.text_input[0].value == "olmo"
    assert link_of(app) == {"place": "full_width", "find": "olmo"}
    assert app.title[0].value.startswith("QK norm is not one formula: these")


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
    said = " ".join(markdown.value for markdown in app.markdown)
    assert "OLMo 3 and OLMo 2 are the same function" in said


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
