"""Whom the server answers, and what every answer says: a middleware around everything.

* `Guard(app)`: refuses names that are not this server's (421), keeps the counters of `/_stcore/metrics` (404), gives
  each browser its name (`qkdemo.web.serving.visitors`), and says who may show the pages in a frame;
* `own_names()`: asks the system for them, once: that may take a second.

**Names.** A page of another site whose name was made to lead here (DNS rebinding) could use the app as its visitor. Its
name is not one of this machine's, and no browser lets a script add a header to the web socket, by which alone the app
can be used. So a name is answered if it is an address, `localhost`, a name of this machine, or if a proxy passed the
request on and says so; where `server.allowedHosts` lists names, then those alone.
"""

import os
import socket
from functools import lru_cache
from ipaddress import ip_address
from typing import Final

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, Response
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

from qkdemo.messages import say
from qkdemo.web.first.answer import Answers
from qkdemo.web.serving.rewriting import Asgi, Config, Message, Page, Receive, Scope, Send, asks_for_page, in_full
from qkdemo.web.serving.visitors import COOKIE, issue, name_in

FRAMES: Final = "QKDEMO_FRAMES"  # the environment's: other sites that may show the pages in a frame
METRICS: Final = "QKDEMO_METRICS"  # and whether the counters are shown
_PROXY: Final = ("x-forwarded-for", "x-forwarded-host", "forwarded")
_HEALTH: Final = "/_stcore/health"
_COUNTERS: Final = "/_stcore/metrics"
_HOST_CONFIG: Final = "/_stcore/host-config"
_MISDIRECTED: Final = 421
_MOVED: Final = (301, 308)
_DAYS: Final = 30  # that a browser keeps its name


class Guard:
    """The middleware; see above."""

    def __init__(self, app: Asgi) -> None:
        self._app, self._pictures = app, Answers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers it, or passes it on and completes the answer."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        refusal = _refusal(scope)
        if refusal is None:
            await self._answer(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await refusal(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._app(scope, receive, send)
        elif asks_for_page(scope):
            path, packs = str(scope["path"]), "gzip" in Headers(scope=scope).get("accept-encoding", "")
            picture = await self._pictures.picture(path, scope["query_string"].decode("latin-1"))
            await self._app(in_full(scope), receive, Page(_completed(scope, send), path, picture, packs=packs))
        elif scope["path"].endswith(_HOST_CONFIG):
            await self._app(scope, receive, Config(_completed(scope, send)))
        else:
            await self._app(scope, receive, _completed(scope, send))


def _refusal(scope: Scope) -> Response | None:
    headers, path = Headers(scope=scope), str(scope["path"])
    host = headers.get("host", "")
    if not knows(host, proxied=any(name in headers for name in _PROXY)) and not path.endswith(_HEALTH):
        return PlainTextResponse(say("server.host", host=_shown(_name(host))), _MISDIRECTED)
    if path.endswith(_COUNTERS) and os.environ.get(METRICS) != "1":
        return PlainTextResponse(say("server.metrics"), 404)
    return None


def knows(host: str, *, proxied: bool) -> bool:
    """Whether a request to `host`, as its header has it, may be answered."""
    if st.get_option("server.allowedHosts"):
        return is_host_allowed(host)
    name = _name(host)
    return proxied or name == "localhost" or name.endswith(".localhost") or name in own_names() or _is_address(name)


def _name(host: str) -> str:
    """The name alone, as Streamlit compares it: no port, and no brackets around an address of IPv6."""
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    return name.strip("[]").rstrip(".").lower()


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=1)
def own_names() -> frozenset[str]:
    """As its network may know this machine; `.local` is how others find it without a name server (RFC 6762)."""
    full = {socket.gethostname().lower(), socket.getfqdn().lower()}
    named = {str(st.get_option("browser.serverAddress") or "").lower()} - {""}
    return frozenset(full | {f"{name.split('.')[0]}.local" for name in full} | named)


def _completed(scope: Scope, send: Send) -> Send:
    """Sends an answer's head with what every answer says; a page also gives the browser its name."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=list(message["headers"]))
            headers["Content-Security-Policy"] = f"frame-ancestors {_frames()}"
            headers["X-Content-Type-Options"] = "nosniff"
            headers["Referrer-Policy"] = "same-origin"  # a link may hold a class's secret
            if _is_page(scope, headers) and not name_in(HTTPConnection(scope).cookies):
                _give_name(headers, secure=scope["scheme"] == "https")
            if message["status"] in _MOVED:
                headers["Location"] = _beside(scope, headers.get("location", ""))
            message["headers"] = headers.raw
        await send(message)

    return sent


def _give_name(headers: MutableHeaders, *, secure: bool) -> None:
    answer = Response()
    answer.set_cookie(COOKIE, issue(), max_age=_DAYS * 86400, httponly=True, samesite="lax", secure=secure)
    headers.append("Set-Cookie", answer.headers["Set-Cookie"])
    headers["Cache-Control"] = "private, no-cache"


def _is_page(scope: Scope, answer: Headers) -> bool:
    """Whether a browser opens a page with it; one that is fresh in the browser's cache comes without a type."""
    return asks_for_page(scope) or answer.get("content-type", "").startswith("text/html")


def _beside(scope: Scope, location: str) -> str:
    """Streamlit takes a slash from a page's end. Said from where the browser is, it leads there behind a proxy too."""
    path = scope["path"].rstrip("/")
    own = location.split("?", maxsplit=1)[0] == path and scope["path"] == f"{path}/"
    return location if not own else "../" + location.rsplit("/", 1)[-1]


def _frames() -> str:
    others = os.environ.get(FRAMES, "").replace(";", " ").replace(",", " ").split()
    return " ".join(["'self'", *others])


def _shown(host: str) -> str:
    return "".join(letter for letter in host if letter.isalnum() or letter in ".-_:")[:100]
