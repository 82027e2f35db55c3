"""Pages that train open with what came with the app: a finished picture, its mark, and a way to train it here."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from qkdemo.labs.learning_rates import lab as rates
from qkdemo.labs.training import lab as training
from qkdemo.labs.training.view import live_view, recorded_exhibit
from qkdemo.messages import say
from qkdemo.runs.kept.record import cut
from qkdemo.runs.kept.shipped import shipped
from qkdemo.runs.kept.store import Store
from qkdemo.runs.workers.live import Live
from qkdemo.runs.workers.pool import Pool
from qkdemo.tracks.catalogue import TRACKS, is_trained, text
from qkdemo.tracks.progress import Said, with_said, written_progress
from qkdemo.tracks.stop import Stop
from qkdemo.web.read_off import with_marks
from qkdemo.web.track import evidence
from qkdemo.web.training import stream
from qkdemo.web.training.shown import on_pick, trained_here
from tests.shipped import plans
from tests.web.visit import visit

PLAN = training.plan_of(training.Settings())
STOPS = [
    pytest.param(track, at, stop, id=f"{track}-{stop.name}")
    for track, stops in TRACKS.items()
    for at, stop in enumerate(stops)
    if is_trained(stop)
]


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    """A server with an empty store, whose workers never begin."""
    monkeypatch.setattr("qkdemo.runs.workers.process.WorkerProcess.start", lambda self: None)
    for name in ("shown", "rates_runs"):
        monkeypatch.setattr(f"qkdemo.web.training.{name}.here", lambda: "")  # an AppTest has no address
    pool = Pool(Store(f"sqlite:///{tmp_path}/runs.sqlite"))
    monkeypatch.setattr(stream, "_pool", pool)
    yield pool
    pool.close()


def ordered(pool: Pool) -> list[Live]:
    """The runs that somebody wants trained."""
    return [*pool._shop.line, *(worker.live for worker in pool._shop.workers if worker.live is not None)]


def words(app: AppTest) -> str:
    assert not app.exception
    return "\n".join(markdown.value for markdown in app.markdown)


def the_shown(app: AppTest) -> tuple[training.Settings, bool]:
    """The run on the training page's screen, and whether it came with the app."""
    return app.session_state["training:shown"], app.session_state["training:shipped"]


# ---- opening a page


@pytest.mark.parametrize("page", ["training", "sensitivity"])
def test_opening_a_page_trains_nothing_and_shows_it_finished_and_marked(page: str, pool: Pool) -> None:
    app = visit(page)
    said = words(app)
    app.run()
    assert ordered(pool) == []
    assert not pool._recall.lives
    assert "came with the app" in said
    if page == "sensitivity":
        assert re.search(r"54 runs, came with the app, recorded \d{4}-\d\d-\d\d \d\d:\d\d UTC, engine", said)
        assert "Of 27 runs with RMSNorm" in said  # all that a finished sweep says
        assert "LR sensitivity" in said
    else:
        assert "RMSNorm, after 300 steps" in said
        assert "Train it live here" in said


@pytest.mark.parametrize("name", training.PRESETS)
def test_a_named_state_of_the_training_page_is_shown_finished_too(name: str, pool: Pool) -> None:
    state = training.PRESETS[name]
    app = visit("training", state.to_texts())
    words(app)
    here = training.plan_of(state) in plans()
    assert here or name in ("text", "words")
    assert the_shown(app) == (state, here)
    assert (ordered(pool) == []) == here


def test_a_link_to_another_state_starts_its_run_as_ever(pool: Pool) -> None:
    visit("training", {"seed": "3"})
    assert [live.plan for live in ordered(pool)] == [training.plan_of(training.Settings(seed=3))]


def test_a_link_to_another_sweep_starts_it_as_ever(pool: Pool) -> None:
    visit("sensitivity", {"n_rates": "3", "n_seeds": "1", "steps": "20"})
    assert len(ordered(pool)) == 1


# ---- training it here


def test_the_button_trains_the_sweep_here_and_the_recorded_one_can_be_shown_again(pool: Pool) -> None:
    app = visit("sensitivity")
    app.button(key="sensitivity.start").click().run()
    (live,) = ordered(pool)
    assert live.plan in rates.plans_of(rates.Settings())
    assert say("rates.status.done", done=0, count=9, runs=54) in app.get("progress")[0].proto.text
    app.button(key="sensitivity.stop").click().run()
    assert live.state == "stopped"
    app.button(key="sensitivity.shipped").click().run()
    assert "54 runs, came with the app" in words(app)


def test_the_button_trains_the_run_here_while_others_see_it_finished(pool: Pool) -> None:
    app = visit("training")
    app.session_state["training:go"] = True  # what the exhibit's button does
    app.run()
    (live,) = ordered(pool)
    assert live.plan == PLAN
    assert the_shown(app)[1] is False
    pool.stop(live, live.owner)
    app.run()
    assert the_shown(app)[1] is False  # whoever began it sees how far it came
    assert the_shown(visit("training"))[1] is True


def test_the_exhibits_button_asks_for_it(monkeypatch: pytest.MonkeyPatch, pool: Pool) -> None:
    held: dict[str, Any] = {"training:shown": training.Settings(), "training:shipped": True}
    monkeypatch.setattr("qkdemo.web.training.shown.st.session_state", held)
    on_pick({"command": "train"})
    assert held["training:go"] is True


def test_what_was_trained_here_to_its_end_goes_before_what_came_along(pool: Pool) -> None:
    came = pool.shipped(PLAN)
    assert came is not None
    assert came.shipped
    assert trained_here(came)
    mine = Live(PLAN, owner="a", generation=9, chunks=[came.chunk], state="finished", recorded=1.0)
    pool._recall.remember(mine)
    assert the_shown(visit("training"))[1] is False
    mine.chunks, mine.state = [cut(came.chunk, 20)], "stopped"
    assert the_shown(visit("training"))[1] is True


def test_the_stream_of_what_came_along_is_its_own(pool: Pool) -> None:
    mine = Live(PLAN, owner="a", generation=9, chunks=[cut(pool.shipped_named(PLAN.name).chunk, 20)], state="stopped")  # type: ignore[union-attr]
    pool._recall.remember(mine)
    came = pool.shipped(PLAN)
    assert came is not None
    assert stream.address_of(came, (0, 0)) == f"{stream.address_of(mine, (0, 0))}&shipped=1"
    client = TestClient(Starlette(routes=stream.routes()))
    small = f"/live/{'0' * 24}?layer=0&head=0&shipped=1"
    assert client.get(small).status_code == 404
    assert client.head(f"/{stream.address_of(came, (0, 0))}").status_code == 200
    rows = stream.rows_between(came, (1, 1), 0, PLAN.steps)
    assert rows.mapped == list(came.chunk.mapped)
    assert len(rows.maps["norm.heat"]) == len(rows.mapped) == 39


# ---- the tracks


@pytest.mark.parametrize(("track", "at", "stop"), STOPS)
def test_a_trained_stop_has_its_answer_at_once(track: str, at: int, stop: Stop, pool: Pool) -> None:
    stops = TRACKS[track]
    nothing = tuple(Said() for _ in stops)
    said = written_progress(with_said(nothing, at, Said(shown=True)), stops)
    app = visit("training", {"track": track, "stop": stop.name, "said": said})
    found = evidence.evidence_now(stop)
    assert found is not None
    assert not app.info
    assert words(app).count(text(track, stop, "explain", found.numbers)[:20]) <= 1
    assert ordered(pool) == []


@pytest.mark.parametrize(("track", "at", "stop"), STOPS)
def test_its_numbers_are_drawn_once_the_run_is_there_and_none_before(track: str, at: int, stop: Stop) -> None:
    plan = training.plan_of(stop.state)
    record, found = shipped().record(plan), evidence.evidence_now(stop)
    assert record is not None
    assert found is not None
    view = live_view(stop.state, plan, {"columns": []}, "")
    table, _ = recorded_exhibit(training.Result(stop.state, plan, record.chunk.curves))
    everywhere = (-float("inf"), float("inf"))
    names = ("points", "levels", "marks")

    def drawn(rows: Any) -> int:
        panels = with_marks(rows, view, (track, stop), found, everywhere)["panels"]
        return sum(len(panel.get(name, ())) for panel in panels for name in names)

    before = sum(len(panel.get(name, ())) for panel in view["panels"] for name in names)
    assert drawn(table.select(["step"])) == before
    assert drawn(table) > before
