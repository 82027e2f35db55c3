"""What a visitor takes away of a lab's page as figures: every chart, or all of the page, with what made it."""

import io
import json
import re
import subprocess
import sys
from datetime import date

import pytest
from pyarrow import parquet

import qkdemo
from qkdemo.labs import epsilon
from qkdemo.labs.caption import citation, origin
from qkdemo.labs.registry import LABS
from qkdemo.messages import say
from qkdemo.web.lab import takeaway
from tests.web.visit import visit

LINK = "https://example.org/epsilon?size=0.001"


def offer() -> takeaway.Takeaway:
    lab, settings = LABS["epsilon"], epsilon.Settings(size=0.001)
    return takeaway.Takeaway(
        lab="epsilon",
        settings=settings,
        tables=dict,
        programs=dict,
        noise={},
        figures=lambda: lab.figures(lab.run(settings)),
    )


def words(svg: bytes) -> str:
    """Its text, as one line."""
    return " ".join(re.sub(r"<[^>]*>", " ", svg.decode()).split())


def test_a_figure_holds_its_title_its_axes_and_what_it_takes_to_make_it_again() -> None:
    made = offer()
    assert made.figures is not None
    _, view = made.figures()[0]
    for at, panel in enumerate(view["panels"]):
        said = words(takeaway._drawn(made, "svg", at, LINK))
        for expected in (panel["title"], "size=0.001", "seed=0", "torch", LINK):
            assert " ".join(expected.split()) in said, expected
        if panel["kind"] == "curves":
            assert view["dial"]["label"] in said


def test_the_page_holds_all_of_it_on_one_sheet() -> None:
    made = offer()
    assert made.figures is not None
    _, view = made.figures()[0]
    said = words(takeaway._drawn(made, "svg", None, LINK))
    for panel in view["panels"]:
        assert " ".join(panel["title"].split()) in said
    assert takeaway._drawn(made, "pdf", None, LINK).startswith(b"%PDF")


def test_a_page_offers_its_figures_and_its_pdf() -> None:
    app = visit("epsilon", {})
    assert say("takeaway.page_pdf") in [each.label for each in app.get("download_button")]
    app.segmented_control(key="epsilon:takeaway").set_value(say("takeaway.figures")).run()
    assert not app.exception
    choices = app.selectbox(key="epsilon:figure").options
    assert choices[0] == say("takeaway.figures_all")
    assert len(choices) == 5
    kinds = [each.label for each in app.get("download_button")]
    assert kinds[1:] == [say(f"takeaway.{kind}") for kind in ("svg", "png", "pdf")]


def test_the_program_of_placement_is_said_to_print_its_two_pipelines_and_no_table_of_mistakes() -> None:
    app = visit("placement", {"preset": "all_mistakes"})
    app.segmented_control(key="placement:takeaway").set_value(say("takeaway.code")).run()
    program = next(code.value for code in app.code if code.language == "python")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(json.loads(done.stdout)) == {"relative_score_error", "largest_weight_difference"}
    told = next(each.value for each in app.markdown if each.value.startswith("A standalone program"))
    assert "how far apart their logits and their attention weights are" in told
    assert "The table of all mistakes is no part of it." in told


@pytest.mark.parametrize("page", ["models", "sphere"])
def test_a_page_without_charts_to_print_offers_none(page: str) -> None:
    app = visit(page, {})
    assert say("takeaway.page_pdf") not in [each.label for each in app.get("download_button")]


def test_numbers_say_how_they_were_made() -> None:
    """JSON beside them, Parquet in its metadata; the settings are all that is needed to make them again."""
    settings, rows = epsilon.Settings(size=0.001), [{"x": 1.5}, {"x": float("inf")}]
    made = origin("epsilon", settings.as_dict(), LINK)
    assert set(made["made_with"]) == {"qkdemo", "torch", "numpy"}
    assert made["made_with"]["qkdemo"] == qkdemo.__version__
    read = json.loads(takeaway.json_of(rows, made))
    assert read == {**made, "rows": [{"x": 1.5}, {"x": "inf"}]}
    assert epsilon.Settings(**read["settings"]) == settings
    table = parquet.read_table(io.BytesIO(takeaway.parquet_of(rows, made)))
    assert json.loads(table.schema.metadata[b"qkdemo"]) == made
    assert table.to_pylist() == rows


def test_a_page_can_be_cited_in_its_state() -> None:
    line, entry = citation("epsilon", epsilon.Settings(size=0.001), LINK, date(2026, 12, 1))
    for expected in (qkdemo.__version__, "size=0.001", LINK, "2026-12-01"):
        assert expected in line
    assert entry.startswith("@misc{qkdemo-epsilon,\n")
    assert rf"howpublished = {{\url{{{LINK}}}}}" in entry
    assert entry.count("{") == entry.count("}")
    assert not re.search(r"(?<!\\)_", entry.replace(LINK, ""))  # LaTeX takes a bare one for an index
    app = visit("epsilon", {"size": "0.001"})
    app.segmented_control(key="epsilon:takeaway").set_value(say("takeaway.link")).run()
    assert not app.exception
    assert any("@misc{qkdemo-epsilon" in code.value and "size=0.001" in code.value for code in app.code)
