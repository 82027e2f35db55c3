"""Streamlit's own files, as Streamlit serves them, deflated once and kept; everything else passes untouched."""

import gzip
from pathlib import Path

import pytest
import streamlit
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.web.server.starlette.starlette_static_routes import create_streamlit_static_assets_routes

from qkdemo.web.serving.packed import Packed

FILES = Path(streamlit.__file__).parent / "static"
SCRIPT = next((FILES / "static" / "js").glob("index.*.js"))
FONT = next(FILES.glob("static/media/*.woff2"))
OURS = "/_stcore/bidi-components/qkdemo.exhibit/exhibit.js"
ASKED = list[str]()


def changing(request: Request) -> Response:
    ASKED.append(request.url.path)
    return PlainTextResponse("one text " * 1000)


def unchanging(request: Request) -> Response:
    return Response(changing(request).body, headers={"Cache-Control": "public, immutable", "ETag": "1"})


@pytest.fixture(params=["", "/app"])
def below(request: pytest.FixtureRequest) -> str:
    path: str = request.param
    return path


@pytest.fixture
def client(below: str) -> TestClient:
    ASKED.clear()
    own = [Route("/static/own.js", unchanging), Route("/static/today.js", changing), Route(OURS, changing)]
    return TestClient(
        Starlette(routes=[*own, *create_streamlit_static_assets_routes(below or None)], middleware=[Middleware(Packed)])
    )


def sent(client: TestClient, path: str, **headers: str) -> tuple[Response, bytes]:
    """The answer, and its body as it was on the line."""
    with client.stream("GET", path, headers={name.replace("_", "-"): text for name, text in headers.items()}) as answer:
        return answer, b"".join(answer.iter_raw())  # type: ignore[return-value]


def test_a_script_is_a_fourth_to_a_third_of_itself_and_the_same_when_unpacked(client: TestClient, below: str) -> None:
    whole = SCRIPT.read_bytes()
    for _ in range(2):
        answer, body = sent(client, f"{below}/static/js/{SCRIPT.name}", accept_encoding="gzip, deflate, br")
        assert answer.headers["content-encoding"] == "gzip"
        assert int(answer.headers["content-length"]) == len(body) < len(whole) / 2.5
        assert gzip.decompress(body) == whole
        assert "immutable" in answer.headers["cache-control"]
        assert "Accept-Encoding" in answer.headers["vary"]


def test_who_cannot_unpack_or_wants_a_part_gets_the_file_as_it_lies(client: TestClient, below: str) -> None:
    path, whole = f"{below}/static/js/{SCRIPT.name}", SCRIPT.read_bytes()
    answer, body = sent(client, path, accept_encoding="identity")
    assert "content-encoding" not in answer.headers
    assert body == whole
    answer, body = sent(client, path, accept_encoding="gzip", range="bytes=10-19")
    assert (answer.status_code, body) == (206, whole[10:20])


def test_what_is_deflated_already_passes(client: TestClient, below: str) -> None:
    answer, body = sent(client, f"{below}/static/media/{FONT.name}", accept_encoding="gzip")
    assert "content-encoding" not in answer.headers
    assert body == FONT.read_bytes()


def test_what_may_not_change_is_asked_for_once_and_what_may_every_time(client: TestClient) -> None:
    for path in ("/static/own.js", "/static/today.js"):
        for _ in range(3):
            answer, _ = sent(client, path, accept_encoding="gzip", if_none_match="1")
            assert answer.status_code == 200
    asked = list(ASKED)
    assert asked == ["/static/own.js", *["/static/today.js"] * 3]


def test_a_browser_that_has_a_file_of_our_own_components_gets_no_bytes(client: TestClient) -> None:
    answer, body = sent(client, OURS, accept_encoding="gzip")
    assert gzip.decompress(body) == b"one text " * 1000
    assert answer.headers["cache-control"] == "no-cache"
    again, nothing = sent(client, OURS, accept_encoding="gzip", if_none_match=answer.headers["etag"])
    assert (again.status_code, nothing) == (304, b"")
    assert sent(client, OURS, accept_encoding="gzip", if_none_match='"other"')[1] == body
    assert ASKED == [OURS]


def test_a_script_that_is_not_there_is_answered_as_before(client: TestClient, below: str) -> None:
    answer, body = sent(client, f"{below}/static/js/none.js", accept_encoding="gzip")
    assert "content-encoding" not in answer.headers
    assert b"<html" in body  # Streamlit answers with its page
