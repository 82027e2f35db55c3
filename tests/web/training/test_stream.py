"""The stream of a live run: whole, exact, resumed where it broke off, encoded once, and closed to what is no run."""

import asyncio
import base64
import io
import json
import math
import re
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from pyarrow import csv, parquet
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from qkdemo.labs.training.lab import PRESETS, Fork, Settings, forked_from, forks_of, plan_of, with_forks
from qkdemo.labs.training.seeds_view import seeds_exhibit
from qkdemo.labs.training.view import live_view, pace_of, scalar_names, shown_head, status_words, table_rows
from qkdemo.labs.training.words import counted, definitions, explain, findings, longest_finding
from qkdemo.messages import LANGUAGES, say
from qkdemo.notation import written
from qkdemo.runs.kept.record import after, cut
from qkdemo.runs.kept.store import Store
from qkdemo.runs.plan import MOST_STEPS, Plan, outcomes
from qkdemo.runs.workers.live import Live, Status
from qkdemo.runs.workers.pool import Pool
from qkdemo.training.outcome import course, solved_below
from qkdemo.training.settings import ENGINE
from qkdemo.training.tasks import TASKS
from qkdemo.training.telemetry import CURVES
from qkdemo.web.lab.exhibit import read_pick
from qkdemo.web.lab.takeaway import csv_of, parquet_of
from qkdemo.web.serving.places import Places
from qkdemo.web.serving.visitors import COOKIE, issue, name_in
from qkdemo.web.training import stream as live_module
from qkdemo.web.training.stream import routes, rows_between
from tests.runs.kept.test_store import told, whole
from tests.strategies import settings_of

SMALL: dict[str, Any] = {"n_layers": 1, "n_heads": 1, "d_head": 8, "n_keys": 8, "batch": 2, "steps": 40}
SETTINGS = Settings(**SMALL)
PLAN = plan_of(SETTINGS)


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    """A pool whose worker is never started: what it knows stands in the store."""
    monkeypatch.setattr("qkdemo.runs.workers.process.WorkerProcess.start", lambda self: None)
    store = Store(f"sqlite:///{tmp_path}/runs.sqlite")
    told(PLAN, store, PLAN.steps)
    pool = Pool(store)
    monkeypatch.setattr(live_module, "_pool", pool)
    yield pool
    pool.close()


@pytest.fixture
def client(pool: Pool) -> TestClient:
    return TestClient(Starlette(routes=routes()))


def in_a_loop(work: Coroutine[Any, Any, Any]) -> Any:
    """In a thread of its own: the browser tests leave a loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def first_message(pool: Pool, name: str, seen: int = 0) -> tuple[str, dict[str, Any]]:
    """The id and the data of the message that a browser gets first."""

    async def ask() -> bytes:
        live = pool.live(name)
        assert live is not None
        stream = live_module._Stream(pool, live, (0, 0))
        messages = stream.messages(seen, (0, 0, 0))
        message = await anext(messages)
        await messages.aclose()  # type: ignore[attr-defined]
        return message

    head, data = in_a_loop(ask()).decode().split("\n")[:2]
    return head.removeprefix("id: "), json.loads(data.removeprefix("data: "))


def numbers(rows: dict[str, Any]) -> np.ndarray[Any, Any]:
    return np.frombuffer(base64.b64decode(rows["scalars"]), "<f4").reshape(-1, rows["count"])


def test_a_recorded_run_comes_whole_in_one_message(pool: Pool) -> None:
    identity, told_ = first_message(pool, PLAN.name)
    rows, chunk = told_["rows"], whole(PLAN)
    assert told_["status"]["state"] == "finished"
    assert "40 steps, recorded 20" in told_["status"]["text"]
    assert identity.endswith("-40")
    assert (rows["first"], rows["count"]) == (1, 40)
    columns = dict(zip(scalar_names(PLAN), numbers(rows), strict=True))
    assert np.array_equal(columns["plain.loss"], chunk.curves[:, 0, CURVES.index("loss")])
    assert np.array_equal(columns["norm.max_abs_logit"], chunk.curves[:, 1, CURVES.index("max_abs_logit")])
    assert np.array_equal(columns["step"], np.arange(1, 41))
    codes = np.frombuffer(base64.b64decode(rows["maps"]["norm.heat"]), np.uint8).reshape(40, 36)
    assert np.array_equal(codes, chunk.maps[:, 1, 0, 0])


def test_a_browser_that_comes_back_gets_the_rest_alone(pool: Pool) -> None:
    live = pool.live(PLAN.name)
    assert live is not None
    assert live_module._seen(f"{live.generation}-25", live) == 25
    _, told_ = first_message(pool, PLAN.name, seen=25)
    assert (told_["rows"]["first"], told_["rows"]["count"]) == (26, 15)
    assert told_["rows"]["mapped"] == list(range(26, 41))


@pytest.mark.parametrize("header", ["", "x", "1", "-", "99-5", "0-5", "1-5; drop", "1" * 400 + "-1"])
def test_a_browser_with_another_runs_steps_gets_them_all(pool: Pool, header: str) -> None:
    live = pool.live(PLAN.name)
    assert live is not None
    assert live_module._seen(header, live) == 0


@pytest.mark.parametrize(
    "path",
    [
        "/live/0",
        f"/live/{'0' * 24}",
        f"/live/{PLAN.name.upper()}x",
        f"/live/{PLAN.name}'--",
        "/live/..%2F..%2Fetc",
        f"/live/{PLAN.name}?layer=1",
        f"/live/{PLAN.name}?head=1",
        f"/live/{PLAN.name}?layer=-1",
        f"/live/{PLAN.name}?layer=٣",
        f"/live/{PLAN.name}?head=1e9",
    ],
)
def test_what_is_no_run_is_not_found(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_a_full_house_is_told_so(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "_places", Places(most=0))
    answer = client.get(f"/live/{PLAN.name}")
    assert answer.status_code == 503
    assert answer.text == say("live.watched")
    assert answer.headers["retry-after"] == "10"


def test_who_asks_for_the_headers_alone_gets_them_at_once(client: TestClient) -> None:
    answer = client.head(f"/live/{PLAN.name}")
    assert (answer.status_code, answer.text) == (200, "")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert client.head(f"/live/{'0' * 24}").status_code == 404


def test_a_full_house_says_so_in_the_headers_too(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "_places", Places(most=0))
    assert client.head(f"/live/{PLAN.name}").status_code == 503


def test_a_place_is_given_back_when_a_stream_ends_in_whichever_way(
    pool: Pool, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = Places(most=1)
    monkeypatch.setattr(live_module, "_places", places)
    monkeypatch.setattr(live_module, "_leaving", True)  # or the answer would never end
    for _ in range(3):
        assert client.get(f"/live/{PLAN.name}").status_code == 200

    async def broken() -> AsyncIterator[bytes]:
        yield b"data: "
        raise RuntimeError

    place = places.take("", "")
    assert place is not None
    answer = live_module._Answer(place, broken())

    async def receive() -> Any:
        await asyncio.sleep(60)

    async def send(message: Any) -> None: ...

    with pytest.raises(RuntimeError):
        in_a_loop(answer({"type": "http", "asgi": {"spec_version": "2.4"}}, receive, send))
    assert places.take("", "") is not None


def test_who_watches_is_said_by_the_cookie_that_the_server_gave_and_by_no_link(
    pool: Pool, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QKDEMO_STORE", pool.url)
    watching: list[str] = []
    monkeypatch.setattr(pool, "watch", lambda live, change, who="": watching.append(who) if change > 0 else None)
    monkeypatch.setattr(live_module, "_leaving", True)  # or the answer would never end
    cookie = issue()
    foreign = client.get(f"/live/{PLAN.name}?layer=0&head=0&who={'a' * 32}")
    assert "set-cookie" not in foreign.headers
    client.cookies.set(COOKIE, "b" * 32)
    client.get(f"/live/{PLAN.name}")
    client.cookies.set(COOKIE, cookie)
    client.get(f"/live/{PLAN.name}?who={'a' * 32}")
    assert watching == ["", "", name_in({COOKIE: cookie})]


def test_nobody_but_readers_is_answered(client: TestClient) -> None:
    assert client.post(f"/live/{PLAN.name}").status_code == 405


def test_all_who_watch_share_one_encoder_and_it_ends_with_the_last(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = []
    monkeypatch.setattr(live_module, "_encoded", lambda rows: encoded.append(rows.first))

    async def watch() -> list[bytes]:
        live = pool.live(PLAN.name)
        assert live is not None
        stream = live_module._Stream(pool, live, (0, 0))
        many = [stream.messages(0, (0, 0, 0)) for _ in range(5)]
        caught_up = [await anext(one) for one in many]
        assert live.watchers == 5
        live.version += 1  # news
        later = [await anext(one) for one in many]
        assert len({*later}) == 1
        for one in many:
            await one.aclose()  # type: ignore[attr-defined]
        assert live.watchers == 0
        return caught_up

    assert len(set(in_a_loop(watch()))) == 1
    assert encoded == [1]


def test_a_long_catching_up_leaves_maps_out_but_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "_MOST_MAPS", 10)
    live = Live(PLAN, owner="", generation=1, chunks=[whole(PLAN)])
    rows = rows_between(live, (0, 0), 0, 40)
    assert len(rows.scalars["step"]) == 40
    assert rows.mapped == list(range(1, 41, 4))
    assert len(rows.maps["plain.heat"]) == 10


@pytest.mark.parametrize("seen", [0, 1, 7, 39])
@pytest.mark.parametrize("size", [1, 3, 40])
def test_rows_are_the_same_however_they_were_cut(seen: int, size: int) -> None:
    chunk = whole(PLAN)
    pieces = [cut(after(chunk, at), at + size) for at in range(0, 40, size)]
    one = rows_between(Live(PLAN, owner="", generation=1, chunks=[chunk]), (0, 0), 0, 40)
    late = rows_between(Live(PLAN, owner="", generation=1, chunks=pieces), (0, 0), seen, 40)
    assert late.texts["finding"] == one.texts["finding"][seen:]
    assert late.mapped == one.mapped[seen:]
    for name, values in one.scalars.items():
        assert np.array_equal(late.scalars[name], values[seen:], equal_nan=True)
    for name, codes in one.maps.items():
        assert np.array_equal(late.maps[name], codes[seen:])


# ---- what the numbers say


def curves_of(plain: list[float], twin: list[float], logits: list[float]) -> np.ndarray[Any, Any]:
    curves = np.zeros((len(plain), 2, len(CURVES)), np.float32)
    for row, loss in enumerate((plain, twin)):
        curves[:, row, CURVES.index("loss")] = loss
        curves[:, row, CURVES.index("max_abs_logit")] = logits if row == 0 else 5
    return curves


LEARNS = [2.7] * 30 + [0.05] * 70
LOSES = [2.7] * 30 + [0.05] * 40 + [2.7] * 30
HOT = [5.0] * 50 + [150.0] * 50


def test_the_finding_follows_the_run_step_by_step() -> None:
    said = findings(plan_of(Settings(steps=100)), curves_of(LOSES, LEARNS, HOT), 1)
    assert said[0] == "Neither model has learnt the task yet."
    assert said[30] == "Both models have been below 0.1 nats at least once."
    assert (
        said[50] == "Both models have been below 0.1 nats at least once. "
        "Plain attention’s largest logit was first above 100 at step 51."
    )
    lost = 80  # the first step at which half of the last 20 are at 2.7: their mean passes half of chance
    assert said[lost - 1] == said[50]
    assert said[lost] == (
        "Plain attention learnt the task and forgot it at step 81, "
        "30 steps after its largest logit was first above 100; "
        "the model with RMSNorm has learnt it and not forgotten it."
    )
    back = [2.7] * 20 + [0.05] * 25 + [2.7] * 12 + [0.05] * 43
    said = findings(plan_of(Settings(steps=100)), curves_of(LOSES, back, HOT), 1)
    assert said[lost].endswith("; the model with RMSNorm forgot the task, and was below 0.1 nats again at step 58.")


def forked_curves(plan: Plan, plain: list[float], twin: list[float], beside: list[float]) -> np.ndarray[Any, Any]:
    """Curves of a fork: beside it plain attention goes on as `beside`, and its twin as `twin` does."""
    pair = curves_of(plain, twin, [5.0] * len(plain))
    was = curves_of(beside, twin, [5.0] * len(plain))
    was[: plan.legs[-1].after] = np.nan
    return np.concatenate([pair, was], axis=1)


@pytest.mark.parametrize(
    ("fork", "at", "plain", "beside", "running", "ended"),
    [
        (
            "norm_on",
            100,
            LOSES + [2.7] * 100,
            LOSES + [2.7] * 100,
            (
                "After step 100 plain attention goes on with RMSNorm. "
                "It had forgotten the task and has not learnt it again yet."
            ),
            "It had forgotten the task and has not learnt it again in these 100 steps. The same is true",
        ),
        (
            "qk_rate",
            100,
            LOSES + [2.7] * 10 + [0.05] * 90,
            LOSES + [2.7] * 100,
            "has not learnt it again yet",
            (
                "It had forgotten the task and was below 0.1 nats again at step 111, 11 steps after the fork; "
                "without this fork, it forgot"
            ),
        ),
        (
            "norm_on",
            60,
            LEARNS,
            LOSES,
            "It has not forgotten the task so far. The same is true without this fork",
            "It does not forget the task in these 40 steps; without this fork, it forgot the task at step 81.",
        ),
        (
            "rate",
            100,
            LOSES + [2.7] * 100,
            LOSES + [2.7] * 50 + [0.05] * 50,
            (
                "Plain attention had forgotten the task and has not learnt it again yet; "
                "the model with RMSNorm has not forgotten"
            ),
            "in these 100 steps. Plain attention without this fork: it was below 0.1 nats again at step 151.",
        ),
        (
            "norm_on",
            60,
            LOSES,
            LOSES,
            "has not forgotten the task so far",
            "It forgot the task at step 81, 21 steps after",
        ),
    ],
)
def test_the_headline_of_a_fork_says_what_became_of_it(
    fork: Any, at: int, plain: list[float], beside: list[float], running: str, ended: str
) -> None:
    plan = plan_of(Settings(steps=100, fork=fork, fork_at=at, fork_steps=len(plain) - at if at == 100 else 0))
    assert plan.steps == len(plain)
    curves = forked_curves(plan, plain, LEARNS + [0.05] * (len(plain) - 100), beside)
    said = findings(plan, curves, 1)
    assert "fork" not in said[at - 1]
    assert running in said[at]
    assert ended in said[-1]
    assert max(map(len, said)) <= len(longest_finding(plan)) + 15  # digits
    assert findings(plan, curves[: at + 1], 1) == said[: at + 1]  # not before it is known


@pytest.mark.parametrize(("at", "steps"), [(150, 300), (225, 300), (226, 526), (280, 580), (300, 600)], ids=str)
@pytest.mark.parametrize("fork", ["norm_on", "qk_rate", "rate"])
def test_a_fork_near_the_end_goes_on_for_as_long_as_the_run_had(fork: Any, at: int, steps: int) -> None:
    assert plan_of(Settings(fork=fork, fork_at=at)).steps == steps
    assert plan_of(Settings(steps=3000, fork=fork, fork_at=3000)).steps == MOST_STEPS


def test_no_headline_calls_a_task_learnt_while_the_loss_is_high_again() -> None:
    wavers = [2.7] * 30 + [0.05] + [0.475] * 69  # below the limit for one step, and never half-way to chance
    for plain, twin in ((wavers, wavers), (wavers, [2.7] * 100), ([2.7] * 100, wavers)):
        said = findings(plan_of(Settings(steps=100)), curves_of(plain, twin, [5.0] * 100), 1)[-1]
        assert "been below 0.1 nats at least once" in said
        assert not re.search(r"(has|have|it) learnt", said)
    alone = findings(plan_of(Settings(steps=100, variant="none")), curves_of(wavers, wavers, [5.0] * 100), 1)[-1]
    assert alone == "Plain attention on both sides: its loss was first below 0.1 nats at step 31."
    noisy = findings(plan_of(Settings(task="noisy_copy", steps=100)), curves_of(wavers, wavers, [5.0] * 100), 1)[-1]
    assert f"below {written(solved_below(TASKS['noisy_copy']), 3)} nats" in noisy


def test_a_verdict_never_depends_on_later_steps() -> None:
    plan = plan_of(Settings(steps=100))
    curves = curves_of(LOSES, LEARNS, HOT)
    said = findings(plan, curves, 1)
    for steps in (1, 31, 60, 85):
        assert findings(plan, curves[:steps], 1) == said[:steps]


def test_the_report_names_the_step_that_the_page_names_and_the_earlier_one_at_which_the_rise_began() -> None:
    plan = plan_of(Settings(steps=100))
    curves = curves_of(LOSES, LEARNS, HOT)
    plain, twin = outcomes(plan, curves)
    assert "forgot it at step 81" in findings(plan, curves, 1)[-1]
    assert (plain.diverged_at, plain.lost_at) == (71, 81)
    assert (twin.diverged_at, twin.lost_at) == (None, None)
    for place in ("training.definition.lost", "how.sensitivity"):
        assert "lost_at" in say(place)
        assert "diverged_at" in say(place)
    assert "Forgot: the task was learnt, that mean came below 1.39, and is 1.39 or more again." in definitions(plan)


def test_a_loss_that_is_no_number_is_lost() -> None:
    sides = course(
        TASKS["copy"], np.array([2.7] * 5 + [0.05] * 40 + [math.nan] * 5, np.float32), np.full(50, 5, np.float32)
    )
    assert [side.word for side in sides[-6:]] == ["learnt"] + ["lost"] * 5


def test_a_task_without_a_floor_is_told_in_losses() -> None:
    plan = plan_of(PRESETS["text"])
    said = findings(plan, curves_of([3.0, 2.5], [3.0, 2.25], [5, 5]), 1)
    assert said[1].startswith("Loss: plain attention 2.5 nats, the model with RMSNorm 2.25; chance is ")


def test_many_seeds_are_counted_by_the_stated_definitions() -> None:
    plan = plan_of(Settings(steps=100), seeds=(3, 4))
    pair = curves_of(LOSES, LEARNS, HOT)
    curves = np.concatenate([pair, pair[:, ::-1]], axis=1)  # of the second seed the twin fails
    plain, twin = counted(plan, curves)
    assert plain.startswith(
        "Plain attention failed in 1 of 2 runs (1 solved, 0 partly); 2 of all 2 had learnt the task at some step."
    )
    assert twin.startswith("With RMSNorm 1 of 2 failed (1 solved, 0 partly)")
    table, view = seeds_exhibit(plan, curves)
    assert [panel["title"] for panel in view["panels"]] == ["Seed 3: loss", "Seed 4: loss"]
    assert view["panels"][0]["subtitle"] == "plain: failed; RMSNorm: solved"
    assert table.num_rows == 100


SEEDS_TAB = """
from qkdemo.labs.training.lab import Settings
from qkdemo.web.training.seeds import seeds_tab

seeds_tab(Settings(steps=20, n_layers=1, n_heads=1, d_head=8, n_keys=8, batch=2))
"""


def test_seeds_that_wait_for_a_worker_are_not_dropped_while_their_tab_is_open(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool._shop, "hand_out", lambda: None)  # every worker has something to do
    monkeypatch.setattr("qkdemo.web.training.seeds.visitor", lambda: "a")  # an AppTest has no cookies
    monkeypatch.setattr("qkdemo.web.training.seeds.here", lambda: "")  # and no address
    app = AppTest.from_string(SEEDS_TAB).run()
    app.button(key="training:seeds.start").click().run()
    (live,) = pool._shop.line
    told = live.watched
    app.run()
    assert live.watched > told
    app.button(key="training:seeds.stop").click().run()
    assert live.state == "stopped"


@pytest.mark.parametrize(
    ("forks", "first", "was"),
    [
        ({"fork": "none"}, "plain", []),
        ({"fork": "rate", "fork_at": 10}, "plain", ["plain, not forked", "RMSNorm, not forked"]),
        ({"fork": "norm_on", "fork_at": 10}, "plain, then RMSNorm", ["plain, not forked"]),
        (
            {"fork": "norm_on", "fork_at": 10, "fork_2": "qk_rate", "fork_2_at": 20},
            "plain, then RMSNorm, then slow q, k",
            ["plain, then RMSNorm, without the last fork"],
        ),
    ],
)
def test_lines_and_maps_are_named_by_what_the_first_run_became(forks: Any, first: str, was: list[str]) -> None:
    settings = Settings(**SMALL, **forks)
    panels = live_view(settings, plan_of(settings), {}, "")["panels"]
    assert [line["label"] for line in panels[0]["lines"]] == [first, "RMSNorm", *was]  # type: ignore[typeddict-item]
    heats = [panel["title"] for panel in panels if panel["kind"] == "heat"]
    assert heats == [f"Layer 1, head 1: {first}", "Layer 1, head 1: RMSNorm"]
    seeds = plan_of(settings, (3, 4))
    _, view = seeds_exhibit(seeds, np.full((seeds.steps, 4, len(CURVES)), 9.0, np.float32))
    assert view["panels"][0]["subtitle"] == f"{first}: failed; RMSNorm: failed"


def test_pictures_and_files_of_many_seeds_name_the_runs_that_were_trained(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    forked = Settings(**SMALL, seed=9999, fork="norm_on", fork_at=10)
    seeds = range(9990, 10_000)  # ten, the last of which is the last there is
    told(plan_of(forked, tuple(seeds)), Store(pool.url), 40)
    made: list[Any] = []
    monkeypatch.setattr("qkdemo.web.training.seeds.exhibit", lambda *drawn, made, **rest: shown.append(made))
    monkeypatch.setattr("qkdemo.web.training.seeds.seeds_explored", lambda *drawn: None)
    monkeypatch.setattr("qkdemo.web.training.seeds.origin", lambda lab, settings, link: made.append((settings, link)))
    shown: list[Any] = []
    page = SEEDS_TAB.rsplit("seeds_tab", 1)[0]
    AppTest.from_string(f"{page}seeds_tab(Settings(**{SMALL}, seed=9999, fork='norm_on', fork_at=10))").run()
    assert shown == [("training", forked.but(seed=9990))]
    ((settings, link),) = made
    assert settings == forked.but(seed=9990).as_dict() | {"seeds": 10}
    assert "variant=rms" in link
    assert "fork=norm_on" in link


# ---- the view, and what comes back from it


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_a_view_without_infinity_and_with_every_word(name: str) -> None:
    settings = PRESETS[name]
    view = live_view(settings, plan_of(settings), {"url": "/live/x", "source": "x", "own": True, "pace": 15.0}, "")
    text = json.dumps(view, allow_nan=False)
    assert not set("{}") & set("".join(_sentences(view)))
    assert len(text) < 20_000
    columns = set(view["live"]["columns"])
    assert {line["column"] for panel in view["panels"] for line in panel.get("lines", [])} <= columns


def _sentences(view: Any) -> Iterator[str]:
    if isinstance(view, dict):
        for value in view.values():
            yield from _sentences(value)
    elif isinstance(view, list | tuple):
        for value in view:
            yield from _sentences(value)
    elif isinstance(view, str):
        yield view


def test_a_fork_draws_what_was_not_forked_where_it_differs() -> None:
    views = [plan_of(Settings(fork=fork)) for fork in ("rate", "norm_on")]
    assert [name for name in scalar_names(views[0]) if name.startswith("was")] == [
        f"was.{role}.{curve}" for role in ("plain", "norm") for curve in ("loss", "max_abs_logit")
    ]
    assert [name for name in scalar_names(views[1]) if name.startswith("was")] == [
        "was.plain.loss",
        "was.plain.max_abs_logit",
    ]


def test_every_preset_and_fork_can_be_planned_and_explained() -> None:
    for fork in ("none", "norm_on", "rate", "qk_rate"):
        for variant in ("rms", "l2", "layernorm", "cosine", "softcap", "sigma_reparam", "qk_clip", "quack", "ngpt"):
            settings = Settings(**SMALL | {"fork": fork, "fork_at": 10, "variant": variant})
            assert plan_of(settings).steps >= 40


def test_the_words_of_a_run_are_whole() -> None:
    words = explain(PLAN, whole(PLAN).curves)
    assert len(words) == 4
    assert explain(PLAN, whole(PLAN).curves[:0]) == []


def test_what_is_a_mean_of_the_last_steps_is_called_so_and_the_largest_logit_is_not() -> None:
    curves = whole(PLAN).curves
    means = [written(float(curves[-20:, 0, CURVES.index(name)].mean()), 3) for name in ("loss", "softmax_slope")]
    said = explain(PLAN, curves)[1]
    assert said.endswith(f"Means of the last 20 steps: loss {means[0]}, softmax slope {means[1]}.")
    assert "means of the last {last} steps" in LANGUAGES["en"]["stop.developer.log.explain"]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (Status("going", 7, 15, left_s=5.2), "step 7 of 40 · about 5 s left"),
        (Status("going", 7, 15, left_s=5.2, hurried=True), "as fast as it goes, since others wait"),
        (Status("queued", 0, 15, position=3, wait_s=41.2), "waiting for a worker: number 3, about 41 s"),
        (Status("paused", 7, 15), "step 7 of 40 · paused"),
        (Status("finished", 40, 15, recorded=0.0), f"40 steps, recorded 1970-01-01 00:00 UTC, engine {ENGINE}"),
    ],
)
def test_the_status_says_where_it_stands(status: Status, words: str) -> None:
    assert words in status_words(status, PLAN)


def test_the_table_has_a_row_per_step_and_run() -> None:
    rows = table_rows(PLAN, whole(PLAN).curves)
    assert len(rows) == 80
    assert [rows[1][name] for name in ("step", "run", "variant", "seed")] == [1, 1, "rms", 0]


def test_the_last_stop_of_the_speed_dial_is_no_limit_and_a_head_is_one_there_is() -> None:
    assert pace_of(Settings(speed=200)) == math.inf
    assert pace_of(Settings(speed=15)) == 15
    assert shown_head(Settings(layer=4, head=4, n_layers=2, n_heads=1)) == (1, 0)


@pytest.mark.parametrize("word", ["play", "pause", "step", "stop"])
def test_a_command_is_believed(word: str) -> None:
    assert read_pick({"command": word}) == {"command": word}


@pytest.mark.parametrize(
    "message",
    [{"command": "kill"}, {"command": ["play"]}, {"command": "play", "dial": 1}, {"command": None}, {"news": -1}],
)
def test_a_crafted_command_is_dropped(message: Any) -> None:
    assert read_pick(message) is None


def test_csv_and_parquet_hold_the_recorded_numbers() -> None:
    rows = table_rows(PLAN, whole(PLAN).curves)
    read = parquet.read_table(io.BytesIO(parquet_of(rows, {"lab": "training"})))
    assert read.to_pylist() == rows
    assert json.loads(read.schema.metadata[b"qkdemo"]) == {"lab": "training"}
    again = csv.read_csv(io.BytesIO(csv_of(rows)))
    assert again.column_names == read.column_names
    for at, name in enumerate(CURVES):
        recorded = whole(PLAN).curves[:, :, at].ravel()
        for table in (read, again):
            assert np.array_equal(table[name].to_numpy().astype(np.float32), recorded)


def test_the_csv_writes_the_shortest_decimal_that_is_the_recorded_number() -> None:
    plan = plan_of(SETTINGS.but(steps=300))
    curves = np.zeros((300, 2, len(CURVES)), np.float32)
    curves[:, :, CURVES.index("learning_rate")] = (np.arange(1, 301) * 0.2 / 300)[:, None]
    curves[1, 0, CURVES.index("loss")], curves[2, 0, CURVES.index("loss")] = np.inf, np.nan
    rows = table_rows(plan, curves)
    assert str(rows[0]["learning_rate"]) == "0.00066666666"
    assert b",0.00066666666" in csv_of(rows)
    assert (rows[2]["loss"], math.isnan(rows[4]["loss"])) == (math.inf, True)


# ---- forks of forks

CHAIN = Settings(
    **SMALL,
    fork="rate",
    fork_at=10,
    fork_steps=40,
    fork_2="norm_on",
    fork_2_at=20,
    fork_2_steps=20,
    fork_3="qk_rate",
    fork_3_at=30,
)


def test_one_link_restores_a_chain_of_forks() -> None:
    again, notes = Settings.from_texts(CHAIN.to_texts())
    assert (again, notes) == (CHAIN, [])
    plan = plan_of(again)
    assert [leg.after for leg in plan.legs] == [0, 10, 20, 30]
    assert [leg.runs[0].variant for leg in plan.legs] == ["none", "none", "rms", "qk_lr"]
    assert plan.steps == 50  # a third fork without steps of its own ends where the second ends
    assert plan.trunk is not None
    assert plan.trunk.name == plan_of(CHAIN.but(fork_3="none")).name
    assert Plan.from_json(plan.to_json()) == plan


def test_a_chain_is_trained_exactly_and_each_fork_takes_its_trunks_record(tmp_path: Path) -> None:
    plan = plan_of(CHAIN)
    store = Store(f"sqlite:///{tmp_path}/runs.sqlite")
    for trunk in (plan_of(CHAIN.but(fork_2="none")), plan_of(CHAIN.but(fork_3="none"))):
        told(trunk, store, trunk.steps)
    store.begin(plan)
    record = store.read(plan)
    assert record is not None
    assert record.chunk.last == 30
    told(plan, store, plan.steps)
    found = store.read(plan)
    assert found is not None
    assert np.array_equal(found.chunk.curves[:, :2], whole(plan).curves[:, :2])


def test_what_was_not_forked_is_drawn_since_the_last_fork_alone() -> None:
    rows = rows_between(Live(plan_of(CHAIN), owner="", generation=1, chunks=[whole(plan_of(CHAIN))]), (0, 0), 0, 50)
    drawn = ~np.isnan(rows.scalars["was.plain.loss"])
    assert drawn.tolist() == [False] * 30 + [True] * 20


def test_a_fork_before_an_earlier_one_takes_its_place_and_so_does_one_too_many() -> None:
    new = Fork("rate", 15, 0.01)
    assert [fork.at for fork in forks_of(forked_from(CHAIN, new))] == [10, 15]
    full = forked_from(CHAIN, Fork("rate", 45, 0.01))
    assert [fork.at for fork in forks_of(full)] == [10, 20, 45]
    assert forks_of(with_forks(CHAIN, ())) == ()


LATE = Settings(steps=3000, n_keys=8, d_head=8, fork="norm_on", fork_at=3000, fork_2="norm_on", fork_2_at=4000)


@given(settings_of(Settings, n_keys=8, d_head=8))
@example(LATE.but(fork_3="norm_on", fork_3_at=1))  # the second fork takes the last step of all
@hypothesis_settings(max_examples=60)
def test_any_chain_that_a_link_can_say_is_a_plan(settings: Settings) -> None:
    plan = plan_of(settings)
    assert plan.steps <= MOST_STEPS
    assert len(plan.legs) == 1 + len(forks_of(settings))
    assert plan_of(settings, (1, 2)).width == 4
