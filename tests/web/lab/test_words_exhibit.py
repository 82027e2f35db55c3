"""The words' page: a sentence is built word by word, taken back, and goes along in the link."""

from qkdemo.labs.words import RUNS, Settings
from tests.web.visit import complaints, link_of, standing, visit


def press(app, label: str):  # type: ignore[no-untyped-def]
    return next(button for button in app.button if button.label.startswith(label)).click().run()


def test_words_are_added_taken_back_and_begun_again() -> None:
    app = visit("words", {"sentence": "Ana has the"})
    app.pills(key="words:pills").set_value("red").run()
    assert link_of(app)["sentence"] == "Ana has the red"
    app.pills(key="words:pills").set_value("red").run()  # the same word once more
    assert link_of(app)["sentence"] == "Ana has the red red"
    press(app, "Take back")
    assert link_of(app)["sentence"] == "Ana has the red"
    press(app, "Start again")
    assert link_of(app)["sentence"] == "Ana has the red"  # until there is a first word
    app.pills(key="words:pills").set_value("Tom").run()
    assert link_of(app)["sentence"] == "Tom"
    assert not app.exception


def test_the_model_goes_on_with_its_own_next_word() -> None:
    app = visit("words", {"sentence": "the box near the hats"})
    press(app, "Add “is”")
    assert link_of(app)["sentence"] == "the box near the hats is"


def test_a_word_that_is_not_known_gets_one_sentence_with_the_nearest_and_the_page_stays() -> None:
    app = visit("words")
    app.text_input(key="words.sentence").set_value("Ana has the red hatt").run()
    (said,) = complaints(app)
    assert "'hatt'" in said
    assert "“hat”" in said
    assert standing(app, "words") == Settings()
    app.text_input(key="words.sentence").set_value("Ana has the red box").run()
    assert not complaints(app)
    assert link_of(app)["sentence"] == "Ana has the red box"


def test_a_full_sentence_takes_no_more_words() -> None:
    app = visit("words", {"sentence": " ".join(["."] * 32)})
    assert app.pills(key="words:pills").disabled
    assert not app.exception


def test_training_it_live_has_the_settings_of_the_recorded_models() -> None:
    assert RUNS["norm"].to_texts()["task"] == "words"
    app = visit("training", RUNS["norm"].to_texts())
    assert not complaints(app)
    assert standing(app, "training").as_dict().items() >= RUNS["norm"].as_dict().items()
