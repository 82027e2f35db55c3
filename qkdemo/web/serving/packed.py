"""Scripts and styles, Streamlit's and our own, deflated once for all visitors: 2.7 MB of a page's 3.2 MB become 0.7 MB.

* `Packed(app)`: a middleware; what it answers from memory is never asked for below it again.

Streamlit sends them as they lie on the disk and leaves it to a proxy to deflate them; a class's own server has none.
Their names hold a hash of what is in them, so that a browser keeps them for a year, and the server for good. The names
of our own components' files do not: a browser asks each time whether it has them, and gets no bytes if it does.
"""

import asyncio
import gzip
from hashlib import blake2b
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response

from qkdemo.web.serving.rewriting import Asgi, Message, Receive, Scope, Send, in_full

_BELOW: Final = "/static/"
_OURS: Final = "/_stcore/bidi-components/qkdemo."
_TEXTS: Final = (".js", ".css", ".json", ".svg", ".wasm", ".ttf")  # the other fonts are deflated already
_ROOM: Final = 16 << 20  # bytes, beyond which no more is kept; all that there is takes half of it
_FOUND, _NOT_MODIFIED = 200, 304
_LEVEL: Final = 9


class Packed:
    """The middleware; see above."""

    def __init__(self, app: Asgi) -> None:
        self._app = app
        self._kept: dict[str, tuple[list[tuple[bytes, bytes]], bytes]] = {}  # by path: headers and body
        self._room = _ROOM

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers with what is deflated, if the browser takes that; else passes the request on."""
        path = str(scope.get("path", ""))
        if scope["type"] != "http" or not _may_be_packed(scope, path) or (self._room <= 0 and path not in self._kept):
            await self._app(scope, receive, send)
            return
        if path not in self._kept:
            answer = _Whole(send, any_age=_OURS in path)
            await self._app(in_full(scope), receive, answer)
            if answer.start is None:
                return
            body = await asyncio.to_thread(gzip.compress, answer.body, _LEVEL, mtime=0)
            headers = MutableHeaders(raw=list(answer.start["headers"]))
            headers["Content-Encoding"], headers["Content-Length"] = "gzip", str(len(body))
            headers.add_vary_header("Accept-Encoding")
            for name in ("accept-ranges", "etag", "last-modified"):  # are those of the file as it lies there
                if name in headers:
                    del headers[name]
            if _OURS in path:
                headers["ETag"] = f'"{blake2b(body, digest_size=9).hexdigest()}"'
                headers["Cache-Control"] = "no-cache"
            if path not in self._kept:
                self._room -= len(body)
                self._kept[path] = headers.raw, body
        else:
            raw, body = self._kept[path]
            headers = MutableHeaders(raw=list(raw))
        if "etag" in headers and Headers(scope=scope).get("if-none-match") == headers["etag"]:
            kept = {name: headers[name] for name in ("etag", "cache-control")}
            await Response(status_code=_NOT_MODIFIED, headers=kept)(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": _FOUND, "headers": headers.raw})
        await send({"type": "http.response.body", "body": body})


class _Whole:
    """Collects an answer that is to be kept for good; lets any other pass."""

    def __init__(self, send: Send, *, any_age: bool = False) -> None:
        self._send, self._any_age = send, any_age
        self.start: Message | None = None
        self.body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = Headers(raw=message["headers"])
            kept = self._any_age or "immutable" in headers.get("cache-control", "")
            if message["status"] == _FOUND and kept:
                self.start = message
                return
        if self.start is None:
            await self._send(message)
        else:
            self.body += message.get("body", b"")


def _may_be_packed(scope: Scope, path: str) -> bool:
    headers = Headers(scope=scope)
    return (
        scope["method"] == "GET"
        and (_BELOW in path or _OURS in path)
        and path.endswith(_TEXTS)
        and "range" not in headers
        and "gzip" in headers.get("accept-encoding", "")
    )
