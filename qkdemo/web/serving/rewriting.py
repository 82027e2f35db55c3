"""Streamlit's own answers that are changed on their way to the browser.

* `Page(send, path, picture, packs)`: a page, to whose head what watches its connection is added
  (`qkdemo.web.connection`), and which scripts it is sure to draw with (`qkdemo.web.serving.early`); it begins with its
  first picture (`qkdemo.web.first`), and is deflated for a browser that takes that;
* `Config(send)`: what Streamlit's page is to do.
"""

import gzip
import json
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from typing import Any, ClassVar, Final

from starlette.datastructures import Headers, MutableHeaders

from qkdemo.web.connection import in_page
from qkdemo.web.first.page import Picture
from qkdemo.web.serving.early import links

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

_FOUND: Final = 200
_IN_PART: Final = (b"accept-encoding", b"if-none-match", b"if-modified-since", b"range")


def asks_for_page(scope: Scope) -> bool:
    """Whether a browser opens a page with it."""
    return scope["method"] == "GET" and "text/html" in Headers(scope=scope).get("accept", "")


def in_full(scope: Scope) -> Scope:
    """The request without what would let the answer be shorter than its text."""
    return {**scope, "headers": [(name, value) for name, value in scope["headers"] if name.lower() not in _IN_PART]}


class Rewritten:
    """Sends an answer of `kind` when its whole text is there, changed; others, which may have no end, as they come."""

    kind: ClassVar[str]

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        """Takes a part of the answer."""
        if message["type"] == "http.response.start":
            answer = Headers(raw=message["headers"])
            if message["status"] == _FOUND and answer.get("content-type", "").startswith(self.kind):
                self._start = message
                return
        if self._start is None:
            await self._send(message)
            return
        self._body += message.get("body", b"")
        if not message.get("more_body"):
            headers = MutableHeaders(raw=list(self._start["headers"]))
            body = self.change(headers, self._body)
            headers["Content-Length"] = str(len(body))
            await self._send({**self._start, "headers": headers.raw})
            await self._send({"type": "http.response.body", "body": body})

    def change(self, headers: MutableHeaders, body: bytes) -> bytes:
        """What is sent instead."""
        raise NotImplementedError


class Page(Rewritten):
    """A page, with the script that watches its connection; it is never taken from a cache without that."""

    kind = "text/html"

    def __init__(self, send: Send, path: str, picture: Picture | None = None, *, packs: bool = False) -> None:
        super().__init__(send)
        self._more = in_page() + links(path)
        self._picture, self._packs = picture, packs

    def change(self, headers: MutableHeaders, body: bytes) -> bytes:
        """The page with more in its head."""
        for name in ("etag", "last-modified"):
            if name in headers:
                del headers[name]
        body = body.replace(b"</head>", self._more.encode() + b"</head>", 1)
        if self._picture is not None:
            body = self._picture.into(body)
        headers.add_vary_header("Accept-Encoding")
        if self._packs:
            headers["Content-Encoding"] = "gzip"
            body = _packed(body)
        return body


@lru_cache(maxsize=128)
def _packed(body: bytes) -> bytes:
    """The same document is the same for many visitors."""
    return gzip.compress(body, 9, mtime=0)


class Config(Rewritten):
    """What Streamlit's page is to do: no dialog of its own about the connection, which would cover the charts."""

    kind = "application/json"

    def change(self, headers: MutableHeaders, body: bytes) -> bytes:
        """The same with one setting more."""
        return json.dumps(json.loads(body) | {"blockErrorDialogs": True}).encode()
