"""The ladder of an entry that is pointed at: the route answers what the page would say if it were picked."""

import math
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from qkdemo.labs.formats import PRESETS, Settings, run
from qkdemo.labs.formats.view import formats_exhibit
from qkdemo.web.lab.ladder import routes

SMALL = {"n_keys": 4, "d_head": 8}
ASKED = {"stage": "raw_product", "cast": "overflow", "row": "1", "column": "2", "exact": "70001.5", "held": "inf"}


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(Starlette(routes=routes()))


@pytest.mark.parametrize("name", PRESETS)
def test_what_is_answered_is_what_the_page_says_of_the_entry_once_it_is_picked(client: TestClient, name: str) -> None:
    state = PRESETS[name].but(**SMALL)
    heat = next(panel for panel in formats_exhibit(run(state))[1]["panels"] if panel["kind"] == "heat")
    found = heat["details"]
    for row, column in ((0, 0), (1, 3), (3, 2)):
        at = row * heat["columns"] + column
        numbers = {word: texts[at] for word, texts in found["numbers"].items()}
        answer = client.get(
            found["url"], params={**_query(found["url"]), "row": row, "column": column, **numbers}
        ).json()
        table, view = formats_exhibit(run(state.but(query=row, key=column)))
        place = table["scale"].to_pylist().index(state.scale)
        assert answer["title"] == view["panels"][found["panel"]]["title"]
        said = {cell for line in view["panels"][found["panel"]]["rows"] for cell in line if isinstance(cell, str)}
        assert answer["texts"].keys() == said & set(table.column_names)
        for column_name, text in answer["texts"].items():
            assert text == table[column_name][place].as_py(), column_name


def _query(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def test_every_entry_can_be_asked_for() -> None:
    for stage in ("raw_product", "q_stored", "sum"):
        state = Settings(stage=stage, d_head=64)  # type: ignore[arg-type]
        heat = next(panel for panel in formats_exhibit(run(state))[1]["panels"] if panel["kind"] == "heat")
        for texts in heat["details"]["numbers"].values():
            assert len(texts) == heat["rows"] * heat["columns"]


def test_infinite_and_undefined_entries_are_answered_too(client: TestClient) -> None:
    for exact, told in (("inf", "∞"), ("-inf", "−∞"), ("nan", "NaN")):
        texts = client.get("/ladder", params=ASKED | {"exact": exact}).json()["texts"]
        assert (texts["entry.exact"], texts["stored.bfloat16"]) == (told, told)
    assert math.isinf(float(ASKED["held"]))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("stage", "nonsense"),
        ("cast", "<script>"),
        ("row", "32"),
        ("row", "-1"),
        ("column", "x"),
        ("exact", ""),
        ("exact", "1" * 40),
        ("held", "none"),
    ],
)
def test_what_is_no_entry_is_not_found(client: TestClient, name: str, value: str) -> None:
    assert client.get("/ladder", params=ASKED).status_code == 200
    assert client.get("/ladder", params=ASKED | {name: value}).status_code == 404
    assert client.get("/ladder", params={k: v for k, v in ASKED.items() if k != name}).status_code == 404
    assert client.post("/ladder", params=ASKED).status_code == 405


def test_the_server_lies_wherever_it_was_put() -> None:
    heat = next(p for p in formats_exhibit(run(Settings(**SMALL)))[1]["panels"] if p["kind"] == "heat")  # type: ignore[arg-type]
    assert heat["details"]["url"] == "ladder?stage=raw_product&cast=overflow"  # the browser knows where it is
    below = TestClient(Starlette(routes=routes("/class")))
    assert below.get("/class/ladder", params=ASKED).status_code == 200
    assert below.get("/ladder", params=ASKED).status_code == 404
