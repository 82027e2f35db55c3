"""Which picture a document begins with: that of its link's state, and nothing that a link may hold besides."""

import asyncio
import gzip
import html
import math
import re
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.file_util import get_static_dir

from qkdemo.labs import arrows, drift
from qkdemo.labs.registry import LABS
from qkdemo.locale import language
from qkdemo.messages import accented, say
from qkdemo.notation import written
from qkdemo.web.first import answer
from qkdemo.web.first.answer import Answers, Picture, page_of, state_of
from qkdemo.web.serving import guard
from qkdemo.web.serving.guard import Guard

T = TypeVar("T")
INDEX = Path(get_static_dir(), "index.html")
PAGE = {"accept": "text/html"}
PACKED = 15 << 10  # bytes of a whole document
HOSTILE = (
    'scale="><script>alert(1)</script>',
    "scale=8&variant=%3Cimg src=x onerror=alert(1)%3E",
    "hide=</template><b id=planted>",
    "<b>planted</b>=1",
    "lang=</template><b>planted</b>",
    "preset=%27%22%3E%3Cb%3Eplanted",
    "scale=8&scale=%FF%00",
)


async def page(request: Request) -> Response:
    return HTMLResponse(INDEX.read_text(encoding="utf-8"))


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setattr(answer, "PATIENCE_S", 60.0)
    monkeypatch.setattr(guard, "Answers", lambda: Answers(60.0))
    routes = [Route(path, page) for path in ("/{name}", "/below/{name}")]
    app = Starlette(routes=routes, middleware=[Middleware(Guard)])
    with TestClient(app, base_url="http://localhost") as client:
        yield client


def awaited(begin: Callable[[], Coroutine[None, None, T]]) -> T:
    """What comes of it, on a loop of its own: a browser's tests may have one in this thread."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(begin())).result()


def picture_of(path: str, query: str = "", patience_s: float = 60.0) -> Picture | None:
    return awaited(lambda: Answers(patience_s).picture(path, query))


@pytest.mark.parametrize("path", ["/drift", "/below/drift"])
def test_the_document_holds_the_numbers_of_its_links_state(client: TestClient, path: str) -> None:
    said = html.unescape(client.get(f"{path}?scale=16&gain=5", headers=PAGE).text)
    result = drift.run(drift.Settings(scale=16, gain=5))
    at = result.scales.tolist().index(16)
    assert drift.explain(result)[0] in said
    assert f">{written(float(result.plain.max_abs_logit[at]))}<" in said
    assert f">{written(float(result.twin.max_abs_logit[at]))} ≤ 5<" in said
    assert ">×16<" in said
    assert f"<title>{say('app.titled', page=say('page.drift'))}</title>" in said


def test_it_stands_before_all_that_is_fetched_and_its_script_is_named(client: TestClient) -> None:
    text = client.get("/drift", headers=PAGE).text
    first = text.index('id="qkdemo-first"')
    assert '<link rel="stylesheet"' not in text[:first]
    assert text.count('<link rel="stylesheet"') == 2
    assert first < text.index('<link rel="stylesheet"') < text.index('id="root"')
    assert text.count("<template") == text.count("</template>") == text.count("</style>") == 1
    assert "_qkdemo/first.js" in text


def test_a_whole_document_is_small_when_it_is_packed(client: TestClient) -> None:
    for name in (*answer._PAGES, *answer._PLANES):
        with client.stream("GET", f"/{name}", headers=PAGE | {"accept-encoding": "gzip"}) as answered:
            packed = b"".join(answered.iter_raw())
        assert answered.headers["content-encoding"] == "gzip"
        assert b"qkdemo-first" in gzip.decompress(packed), name
        assert len(packed) <= PACKED, name
    assert "content-encoding" not in client.get("/drift", headers=PAGE | {"accept-encoding": "identity"}).headers


@pytest.mark.parametrize("query", HOSTILE)
def test_what_a_link_holds_is_in_no_picture(client: TestClient, query: str) -> None:
    text = client.get(f"/drift?{query}", headers=PAGE).text
    for planted in ("alert(1)", "planted", "onerror"):
        assert planted not in text
    assert 'id="qkdemo-first"' in text  # the nearest state that there is, as on the page


@pytest.mark.parametrize(
    "address",
    [
        *("/drift?track=beginner", "/drift?own=1", "/training", "/claims", "/map?lab=drift"),
        *("/drift?" + "x" * 3000, "/drift?" + "&".join(f"a{at}=1" for at in range(300))),
    ],
)
def test_where_a_link_says_more_than_a_state_there_is_none(address: str) -> None:
    path, _, query = address.partition("?")
    assert state_of(path, query) is None


def test_a_state_is_read_as_the_page_reads_it() -> None:
    found = state_of("/qk/drift/", "preset=long_training&scale=9999&nonsense=1&lecture=1&lang=en-XA")
    assert found is not None
    settings = LABS["drift"].presets["long_training"].but(scale=1000)
    assert (found.page, found.settings, found.lecture, found.spoken) == ("drift", settings, True, "en-XA")


@pytest.mark.parametrize("name", answer._PAGES)
def test_every_named_state_has_one_that_says_what_it_finds(name: str) -> None:
    lab = LABS[name]
    for preset, settings in [("", lab.settings()), *lab.presets.items()]:
        found = picture_of(f"/{name}", f"preset={preset}" if preset else "")
        assert found is not None, preset
        table, view = lab.exhibit(lab.run(settings))
        values = table.column(view["dial"]["column"]).to_pylist()
        finding = table.column(view["finding"])[values.index(view["dial"]["at"])].as_py()
        inside = found.html[found.html.index("<template") :]
        assert html.escape(finding) in inside
        assert not re.search(r"(nan|inf)[^a-z]", "".join(re.findall(r'\bd="[^"]*"', inside)), re.IGNORECASE)


@pytest.mark.parametrize(
    ("address", "settings"),
    [
        ("/", arrows.Settings()),
        ("/arrows?scale=4&key_4_angle=-90", arrows.Settings(scale=4, key_4_angle=-90)),
        ("/arrows?preset=overflow&lecture=1", arrows.PRESETS["overflow"]),
    ],
)
def test_the_arrows_have_one_that_says_every_share(address: str, settings: arrows.Settings) -> None:
    path, _, query = address.partition("?")
    found = picture_of(path, query)
    assert found is not None
    result = arrows.run(settings)
    inside = found.html[found.html.index("<template") :]
    assert f'<p class="finding">{html.escape(arrows.explain(result)[0])}</p>' in inside
    shares = [share for side in (result.plain, result.twin) for share in side.shares[result.at].tolist()]
    said = [html.unescape(share) for share in re.findall(r'class="share">([^<]*)<', inside)]
    assert said == ["NaN" if math.isnan(share) else arrows.percent(share) for share in shares]
    assert inside.count("<polygon") == 12


def test_the_page_at_the_servers_own_path_is_the_first_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert page_of("/") == page_of("") == "home"
    monkeypatch.setattr(answer, "get_option", lambda name: "/qk/")
    assert [page_of(path) for path in ("/qk", "/qk/", "/qk/drift", "/qk/drift/")] == ["home", "home", "drift", "drift"]


def test_it_speaks_the_language_of_its_link() -> None:
    found = picture_of("/epsilon", "lang=en-XA")
    assert found is not None
    assert html.escape(accented(say("question.epsilon"))) in found.html
    assert language.get() == "en"


def test_a_document_does_not_wait_for_a_picture_that_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made all the same, once, and the next document has it."""
    may, calls = threading.Event(), []

    def slowly(state: object) -> Picture:
        calls.append(state)
        may.wait(60)
        return Picture("Drift", "<p>drawn</p>")

    monkeypatch.setattr(answer, "_drawn", slowly)

    async def visits() -> list[Picture | None]:
        answers = Answers(0.01)
        found = [await answers.picture("/drift", "scale=3") for _ in range(2)]
        may.set()
        await asyncio.to_thread(answers._thread.shutdown)
        return [*found, await answers.picture("/drift", "scale=3")]

    assert awaited(visits) == [None, None, Picture("Drift", "<p>drawn</p>")]
    assert len(calls) == 1


def test_an_error_costs_the_picture_alone(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def broken(state: object) -> Picture:
        raise ZeroDivisionError

    monkeypatch.setattr(answer, "_drawn", broken)
    assert picture_of("/drift") is None
    assert "could not be drawn" in caplog.text
