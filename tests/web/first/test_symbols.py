"""The small icon font: every icon that is named is in it, and it is answered where Streamlit's own would be."""

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from qkdemo.web.first.symbols import FONT, NAMES, Symbols
from tests.symbols import LACKING, named


async def text(request: Request) -> Response:
    return PlainTextResponse("Streamlit's")


@pytest.fixture
def client() -> TestClient:
    app = Starlette(routes=[Route("/{path:path}", text)], middleware=[Middleware(Symbols)])
    return TestClient(app)


def test_every_icon_that_is_named_is_in_it() -> None:
    assert named() - LACKING == set(NAMES.read_text(encoding="utf-8").split())


@pytest.mark.parametrize("below", ["", "/qk"])
def test_it_is_answered_where_streamlits_own_would_be_and_a_browser_that_has_it_gets_nothing(
    client: TestClient, below: str
) -> None:
    address = f"{below}/static/media/MaterialSymbols-Rounded.nEdyypZU.woff2"
    found = client.get(address)
    assert found.content == FONT.read_bytes()
    assert found.content[:4] == b"wOF2"
    assert len(found.content) < 30_000
    assert found.headers["content-type"] == "font/woff2"
    again = client.get(address, headers={"if-none-match": found.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get(f"{below}/static/media/SourceSansVF-Upright.ttf.woff2").text == "Streamlit's"
