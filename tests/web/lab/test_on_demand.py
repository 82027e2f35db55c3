"""Measuring on this machine: only when asked, kept for the dials it was made with, and one at a time."""

from typing import Any

from qkdemo.web.lab import on_demand as clock
from tests.web.visit import visit

QUICK = {"n_keys": "16", "n_heads": "1", "d_head": "16", "d_model": "16", "repeats": "3"}


def said(app: Any) -> str:
    return " ".join(markdown.value for markdown in app.markdown)


def test_nothing_is_measured_until_somebody_asks() -> None:
    app = visit("cost", QUICK)
    assert "Nothing has been measured" in said(app)
    app.button(key="cost:measure").click().run()
    assert not app.exception
    assert "Nothing has been measured" not in said(app)
    assert "Timed 3 times each, in turns, on cpu of this machine" in said(app)


def test_times_belong_to_the_dials_they_were_made_with() -> None:
    app = visit("cost", QUICK)
    app.button(key="cost:measure").click().run()
    app.slider(key="cost.repeats").set_value(4).run()
    assert "Nothing has been measured" in said(app)
    app.slider(key="cost.repeats").set_value(3).run()
    assert "Timed 3 times each" in said(app)


def test_two_do_not_measure_at_once() -> None:
    app = visit("cost", QUICK)
    with clock._one_at_a_time:
        app.button(key="cost:measure").click().run()
        assert "Something else is being computed" in app.info[0].value
        assert "Nothing has been measured" in said(app)
    app.button(key="cost:measure").click().run()
    assert "Timed 3 times each" in said(app)
