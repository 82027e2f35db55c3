"""What a visitor takes away of a lab's page as figures: every chart, or all of the page, with what made it."""

import re

import pytest

from qkdemo.labs import epsilon
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


@pytest.mark.parametrize("page", ["models", "sphere"])
def test_a_page_without_charts_to_print_offers_none(page: str) -> None:
    app = visit(page, {})
    assert say("takeaway.page_pdf") not in [each.label for each in app.get("download_button")]
