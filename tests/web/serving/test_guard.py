"""Whom the server answers, and what its answers say."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect
from streamlit import config
from streamlit.file_util import get_static_dir

from qkdemo.web.serving import guard, visitors
from qkdemo.web.serving.guard import Guard, knows
from qkdemo.web.serving.visitors import COOKIE, name_in

PATHS = ("/", "/drift", "/map", "/qk/map", "/sphere", "/models")
PAGE = {"accept": "text/html,application/xhtml+xml"}


async def page(request: Request) -> Response:
    return HTMLResponse("<head></head><p>page</p>")


async def text(request: Request) -> Response:
    return PlainTextResponse("ok")


async def fresh(request: Request) -> Response:
    return Response(status_code=304)


async def moved(request: Request) -> Response:
    return RedirectResponse("/qk/drift?scale=9", 301)


async def socket(connection: WebSocket) -> None:
    await connection.accept()
    await connection.send_text("hello")
    await connection.close()


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    monkeypatch.setenv("QKDEMO_STORE", f"sqlite:///{tmp_path}/runs.sqlite")
    visitors._ring.cache_clear()
    monkeypatch.setattr(guard, "own_names", lambda: frozenset({"hall-7", "hall-7.local"}))
    routes = [
        *(Route(path, page) for path in PATHS),
        Route("/fresh", fresh),
        Route("/qk/drift/", moved),
        WebSocketRoute("/socket", socket),
    ]
    routes += [Route(path, text) for path in ("/_stcore/metrics", "/_stcore/health", "/qk/_stcore/metrics", "/live/x")]
    app = Starlette(routes=routes, middleware=[Middleware(Guard)])
    return TestClient(app, base_url="http://localhost", follow_redirects=False)


OWN = ["localhost", "localhost:8501", "qk.localhost", "127.0.0.1:8501", "192.168.1.20", "[::1]:8501", "[fe80::1]"]
FOREIGN = ["evil.example", "evil.example:8501", "127.0.0.1.evil.example", "", "localhost.evil.example"]


@pytest.mark.parametrize("host", [*OWN, "Hall-7", "hall-7.local:8501"])
def test_an_address_or_a_name_of_this_machine_is_answered(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", FOREIGN)
def test_a_name_that_was_made_to_lead_here_is_refused(client: TestClient, host: str) -> None:
    refused = client.get("/", headers={"host": host})
    assert refused.status_code == 421
    assert "does not know itself by the name" in refused.text
    assert COOKIE not in refused.cookies
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/socket", headers={"host": host}):
        pass
    assert client.get("/_stcore/health", headers={"host": host}).status_code == 200  # by whatever watches it


def test_what_a_proxy_passes_on_is_answered(client: TestClient) -> None:
    headers = {"host": "qk.example.org", "x-forwarded-for": "203.0.113.9"}
    assert client.get("/", headers=headers).status_code == 200
    with client.websocket_connect("/socket", headers=headers) as connection:
        assert connection.receive_text() == "hello"


@pytest.fixture
def listing() -> Iterator[Callable[[Sequence[str]], None]]:
    """Lists names as a server's start does, for Streamlit to compare with."""
    yield lambda names: config.set_option("server.allowedHosts", [*names])
    config.set_option("server.allowedHosts", [])


def test_where_names_are_listed_those_alone_are_answered(listing: Callable[[Sequence[str]], None]) -> None:
    listing(["qk.example.org"])
    assert knows("qk.example.org", proxied=False)
    assert not knows("localhost", proxied=True)


@pytest.mark.parametrize(
    "host", ["foo.example.org:8619", "foo.example.org", "Foo.Example.org.:80", "my_host:8501", "[2001:db8::7]:8501"]
)
def test_the_command_of_a_refusal_lets_that_name_in_and_no_name_that_it_does_not_list(
    client: TestClient, listing: Callable[[Sequence[str]], None], host: str
) -> None:
    listing(["localhost"])  # so that an address is refused too
    told = client.get("/", headers={"host": host}).text
    assert "only the listed ones are answered" in told
    names = re.findall(r"--server\.allowedHosts (\S+)", told)
    assert len(names) == told.count("--server.allowedHosts") == 2
    listing(names)
    assert client.get("/", headers={"host": host}).status_code == 200
    assert client.get("/", headers={"host": "localhost:8619"}).status_code == 200
    assert client.get("/", headers={"host": "127.0.0.1:8619"}).status_code == 421


def test_the_sentence_repeats_nothing_but_a_name(client: TestClient) -> None:
    told = client.get("/", headers={"host": "evil<script>.example"})
    assert "<" not in told.text
    assert "evilscript.example" in told.text


@pytest.mark.parametrize("path", ["/_stcore/metrics", "/qk/_stcore/metrics"])
def test_counters_are_shown_to_whoever_asked_for_them_at_the_start(
    client: TestClient, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.get(path).status_code == 404
    monkeypatch.setenv("QKDEMO_METRICS", "1")
    assert client.get(path).text == "ok"


def test_no_other_site_may_show_the_pages_in_a_frame_unless_it_is_named(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.get("/").headers["content-security-policy"] == "frame-ancestors 'self'"
    monkeypatch.setenv("QKDEMO_FRAMES", "https://lms.example.org, https://b.example; script-src *")
    said = client.get("/").headers["content-security-policy"]
    assert said == "frame-ancestors 'self' https://lms.example.org https://b.example script-src *"


def test_every_answer_keeps_links_to_itself(client: TestClient) -> None:
    for path in ("/", "/live/x"):
        headers = client.get(path).headers
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"


def test_a_page_gives_a_browser_its_name_once_and_nothing_else_does(client: TestClient) -> None:
    assert "set-cookie" not in client.get("/live/x").headers
    given = client.get("/", headers=PAGE)
    cookie = given.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Secure" not in cookie
    assert "private" in given.headers["cache-control"]
    assert name_in(client.cookies)
    assert "set-cookie" not in client.get("/", headers=PAGE).headers


def test_a_page_that_the_browser_has_kept_gives_a_name_too(client: TestClient) -> None:
    assert COOKIE in client.get("/fresh", headers=PAGE).headers["set-cookie"]


def test_a_name_that_was_made_up_is_replaced(client: TestClient) -> None:
    client.cookies.set(COOKIE, "a" * 32)
    assert COOKIE in client.get("/", headers=PAGE).headers["set-cookie"]


def test_over_https_the_name_stays_there(client: TestClient) -> None:
    client.base_url = "https://localhost"  # type: ignore[assignment]
    assert "Secure" in client.get("/", headers=PAGE).headers["set-cookie"]


def test_a_slash_too_many_leads_to_the_page_wherever_a_proxy_put_it(client: TestClient) -> None:
    assert client.get("/qk/drift/?scale=9").headers["location"] == "../drift?scale=9"


@pytest.mark.parametrize(("path", "parts"), [*zip(PATHS, (0, 0, 5, 5, 2, 3), strict=True)])
def test_a_page_that_draws_with_vega_or_plotly_asks_for_them_at_once_and_no_other_page_does(
    client: TestClient, path: str, parts: int
) -> None:
    found = re.findall(
        r'<link rel="(?:modulepreload|prefetch)"[^>]* href="\./([^"]+)">', client.get(path, headers=PAGE).text
    )
    assert len(found) == parts
    assert all((Path(get_static_dir()) / name).is_file() for name in found)
