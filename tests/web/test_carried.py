"""From page to page: a dial of the same name and meaning keeps its value, unless a link or a preset says otherwise."""

from streamlit.testing.v1 import AppTest

from qkdemo.dials import Value
from qkdemo.web.pages import PAGES
from tests.web.visit import link_of, standing, visit


def go_to(app: AppTest, page: str, **query: str) -> AppTest:
    """By the menu, whose links have no query, or by a link that has one."""
    app.query_params.clear()
    app.query_params.update(query)
    app.switch_page(str(PAGES[page].script))
    return app.run()


def turned(app: AppTest, key: str, value: Value) -> AppTest:
    app.select_slider(key=key).set_value(value)
    return app.run()


def test_the_number_of_keys_goes_from_drift_to_formats_and_back() -> None:
    app = go_to(turned(visit("drift"), "drift.n_keys", 32), "formats")
    assert link_of(app) == {"n_keys": "32"}
    app.session_state["formats:more"] = True
    app = go_to(turned(app.run(), "formats.n_keys", 8), "drift")
    assert link_of(app) == {"n_keys": "8"}


def test_a_value_beyond_a_pages_range_becomes_the_nearest_there_and_is_still_known_elsewhere() -> None:
    app = go_to(turned(visit("drift"), "drift.n_keys", 256), "formats")
    assert link_of(app) == {"n_keys": "32"}
    assert link_of(go_to(app, "drift")) == {"n_keys": "256"}


def test_a_word_that_a_page_does_not_know_leaves_its_own() -> None:
    app = visit("drift")
    app.selectbox(key="drift.variant").set_value("softcap")
    app = go_to(app.run(), "formats")
    assert link_of(app) == {}


def test_what_nobody_touched_stays_the_pages_own_default() -> None:
    app = go_to(visit("drift"), "formats")
    assert app.select_slider(key="formats.scale").value == 400


def test_a_links_value_wins_and_the_rest_of_its_state_is_the_labs_own() -> None:
    app = go_to(turned(visit("drift"), "drift.n_keys", 32), "formats", gain="20")
    assert link_of(app) == {"gain": "20"}


def test_a_preset_is_the_labs_own_state() -> None:
    app = go_to(turned(visit("drift"), "drift.n_keys", 32), "formats", preset="try_400")
    assert link_of(app) == {}


def test_a_runs_seed_is_not_that_of_a_draw() -> None:
    app = go_to(visit("drift", {"seed": "7"}), "formats")
    assert link_of(app) == {"seed": "7"}
    assert link_of(go_to(app, "training")) == {}


def test_a_tracks_stop_takes_nothing_along_and_gives_nothing_away() -> None:
    app = visit("drift", {"track": "beginner", "stop": "overflow"})
    assert standing(app, "drift").as_dict()["format"] != "float64"
    assert link_of(go_to(app, "placement")) == {}
    app = go_to(turned(visit("drift"), "drift.n_keys", 32), "drift", track="beginner", stop="growth")
    assert standing(app, "drift").as_dict()["n_keys"] == 16
