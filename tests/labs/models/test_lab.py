"""The models lab: filters, families, findings, and two rows beside each other."""

import pytest

from qkdemo.facts.cells import cell
from qkdemo.facts.models import MODELS, Model
from qkdemo.labs.models import PRESETS, Settings, beside, explain, family_rows, finding, run, searched
from qkdemo.labs.models import lab as models


def model(name: str) -> Model:
    return next(model for model in MODELS if model.model == name)


def test_without_a_filter_every_row_passes_and_families_hold_each_once() -> None:
    result = run(Settings())
    assert result.models == MODELS
    grouped = [row["names"] for row in family_rows(result)]
    assert sum(len(found) for found in models.families(result).values()) == len(MODELS)
    assert all(isinstance(names, str) for names in grouped)
    sizes = [len(found) for found in models.families(result).values()]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_lets_something_pass_and_only_what_it_says(name: str) -> None:
    found = run(PRESETS[name]).models
    assert found
    if name == "softcap":
        assert all(model.softcap is not None for model in found)
    if name == "without":
        assert all(model.qk_norm == "no" for model in found)
        assert {model.place for model in found} == {"none", "latent", "input"}


def test_every_word_of_the_table_can_be_filtered_for() -> None:
    for dial, column in models.COLUMNS.items():
        for value in {getattr(model, column) for model in MODELS}:
            found = run(Settings(**{dial: value})).models
            assert found == tuple(model for model in MODELS if getattr(model, column) == value)


def test_every_column_can_be_filtered_by_but_the_name_and_the_note_which_are_searched() -> None:
    filters = {*models.COLUMNS.values(), *models.CAPS.values(), "default_on", "epsilon"}
    assert set(models.SHOWN) - filters == {"model", "note"}


def test_every_epsilon_of_the_table_can_be_filtered_for() -> None:
    assert set(models.EPSILONS.values()) == {one.epsilon for one in MODELS}
    for word, value in models.EPSILONS.items():
        found = run(Settings(epsilon_set=word)).models  # type: ignore[arg-type]
        assert found == tuple(one for one in MODELS if one.epsilon == value)


@pytest.mark.parametrize("cap", models.CAPS)
def test_caps_on_attention_and_on_the_output_are_told_apart(cap: str) -> None:
    capped, uncapped = (run(Settings(**{cap: word})).models for word in ("yes", "no"))
    assert {getattr(one, models.CAPS[cap]) for one in uncapped} == {None}
    assert None not in {getattr(one, models.CAPS[cap]) for one in capped}
    assert len(capped) + len(uncapped) == len(MODELS)


def test_a_search_narrows_what_a_filter_let_pass() -> None:
    result = searched(run(Settings(place="full_width")), "olmo")
    assert {"OLMo 2", "OLMo 3"} <= {model.model for model in result.models}
    assert all(model.place == "full_width" for model in result.models)
    assert finding(searched(result, "no such text")) == f"Of {len(MODELS)} implementations not one passes."


def test_what_stands_in_a_cell_is_found_by_the_search() -> None:
    """“conformance-tested” and “1/√d” stand in the table: of their rows none may be said not to pass."""
    everything = run(Settings())
    for column in set(models.SHOWN) - {"note"}:
        for value in {getattr(one, column) for one in MODELS}:
            found = searched(everything, cell(column, value)).models
            assert {one.id for one in MODELS if getattr(one, column) == value} <= {one.id for one in found}, value
    assert searched(everything, "1e-5").models


def test_the_headline_counts_functions_not_rows() -> None:
    """OLMo 2 and 3 agree in every choice; with Qwen 3 they are two functions."""
    assert finding(models.Result(Settings(), (model("OLMo 3"),))) == "One of 103 implementations passes: OLMo 3."
    both = models.Result(Settings(), (model("OLMo 2"), model("OLMo 3")))
    assert "They agree in every choice" in finding(both)
    three = models.Result(Settings(), (*both.models, model("Qwen3 (dense)")))
    assert "2 different functions" in finding(three)
    squared = models.Result(Settings(), (model("Dory (nGPT-style)"), model("nGPT")))  # its gain on q is that of both
    assert "different functions" not in finding(squared)
    assert "agree in every choice" not in finding(squared)
    scaled = models.Result(Settings(), (model("Gemma 3"), model("Step 3.7")))  # 1/√256 at its default head width
    assert "different functions" not in finding(scaled)


def test_what_has_no_qk_norm_says_nothing_about_its_formulas() -> None:
    """Four implementations have a softcap and no norm; of all, those with a norm are counted alone."""
    for word in ("softcap", "without"):
        assert "QK norm is not one formula" not in finding(run(models.PRESETS[word]))
    whole, normed = (finding(run(settings)) for settings in (Settings(), Settings(normed="yes")))
    assert whole.split(" 83 have it")[1] == normed.split(" 83 have it")[1]


def test_qwen_3_beside_olmo_2() -> None:
    apart, left, right = beside(model("Qwen3 (dense)"), model("OLMo 2"))
    assert apart == "Qwen3 (dense) and OLMo 2 differ in: place of the norm, gain."
    assert "Qwen3-MoE" in left
    assert "OLMo 3" in right
    assert beside(model("OLMo 2"), model("OLMo 3"))[0].startswith(
        "OLMo 2 and OLMo 3 agree in every choice that is compared"
    )


def test_rows_of_which_a_choice_was_not_read_are_not_called_one_function() -> None:
    """Nobody read which channels turn in vLLM’s OLMo 2."""
    pair = model("OLMo 2"), model("vLLM OLMo2")
    assert "that is compared here and was read of both" in beside(*pair)[0]
    assert "agree" not in finding(models.Result(Settings(), pair))


def test_entries_of_a_sentence_are_told_apart_though_their_names_hold_commas() -> None:
    sentences = explain(run(Settings()))[1:]
    order = next(sentence for sentence in sentences if "norm, then rotary" in sentence)
    entries = order.removesuffix(".").split(": ", 1)[1].split("; ")
    assert all(entry.rsplit(" ", 1)[1].isdigit() for entry in entries)
    assert sum(int(entry.rsplit(" ", 1)[1]) for entry in entries) == len(MODELS)
    names = [name for row in family_rows(run(Settings())) for name in str(row["names"]).split("; ")]
    assert sorted(names) == sorted(model.model for model in MODELS)


def test_what_the_table_does_not_compare_makes_no_two_models_one_function() -> None:
    """GPT-OSS has sinks and SmolLM3 layers without rotary: the choices are Qwen 2's, the function is not."""
    for name in ("GPT-OSS", "SmolLM3"):
        said = " ".join(beside(model("Qwen2 / Qwen2.5"), model(name)))
        assert (
            "agree in every choice that is compared here, as far as it acts; epsilon and casts are not. What else"
            in said
        )
        assert "same function" not in said
        assert "xactly" not in said
