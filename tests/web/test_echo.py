"""A browser that tells an address late: what this session wrote itself is no link; what it did not write is one."""

from streamlit.testing.v1 import AppTest

from tests.web.visit import link_of, visit


def turned(app: AppTest, scale: float) -> AppTest:
    app.select_slider(key="drift.scale").set_value(scale)
    return app.run()


def tells(app: AppTest, **query: str) -> None:
    app.query_params.clear()
    app.query_params.update(query)


def test_a_dial_turned_before_the_address_arrives_ends_where_it_was_put() -> None:
    app = visit("drift")
    turned(app, 9.0)
    tells(app)
    turned(app, 10.0)
    assert link_of(app) == {"scale": "10"}
    tells(app, scale="9")
    turned(app, 11.2)
    assert link_of(app) == {"scale": "11.2"}
    assert app.select_slider(key="drift.scale").value == 11.2


def test_an_address_told_late_is_brought_up_to_date_though_nothing_else_changes() -> None:
    app = turned(visit("drift"), 9.0)
    tells(app)
    app.run()
    assert link_of(app) == {"scale": "9"}


def test_a_link_that_was_not_written_here_is_taken() -> None:
    app = turned(visit("drift"), 9.0)
    tells(app, scale="2")
    app.run()
    assert app.select_slider(key="drift.scale").value == 2


def test_an_address_is_late_no_more_once_a_later_one_was_told() -> None:
    app = turned(turned(visit("drift"), 9.0), 10.0)
    app.run()  # tells what was written last
    tells(app)
    app.run()
    assert app.select_slider(key="drift.scale").value == 8


def test_what_a_button_writes_stays_though_the_dials_are_told_late() -> None:
    app = turned(visit("drift"), 9.0)
    tells(app)
    app.button(key="lecture:switch").click().run()
    assert link_of(app) == {"scale": "9", "lecture": "1"}


def test_an_answer_that_was_opened_stays_open() -> None:
    app = visit("drift", {"track": "beginner", "stop": "growth"})
    before = link_of(app)
    app.button(key="lesson:show").click().run()
    after = link_of(app)
    assert "said" in after
    tells(app, **before)
    turned(app, 2.0)
    assert link_of(app) == after | {"scale": "2"}
