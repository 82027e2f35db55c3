"""The icons: of Streamlit's 375 kB of them the few that a page can show, 15 kB.

* `Symbols(app)`: a middleware that answers for Streamlit's icon font with the app's own;
* `FONT`, `NAMES`: that file (Material Symbols, Google, Apache 2.0), and the names of what is in it.

A name that the file lacks is shown as that word: a test holds it to what the sources and Streamlit's scripts name, and
`python -m tests.symbols` makes it anew. At Streamlit's address a file never changes; this one may, so a browser asks.
"""

from hashlib import blake2b
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import Response

from qkdemo.web.serving.rewriting import Asgi, Receive, Scope, Send

_STATIC: Final = Path(__file__).parents[1] / "static"
FONT: Final = _STATIC / "symbols.woff2"
NAMES: Final = _STATIC / "symbols.txt"
_INSTEAD_OF: Final = "/static/media/MaterialSymbols-Rounded."


class Symbols:
    """The middleware; see above."""

    def __init__(self, app: Asgi) -> None:
        self._app = app
        self._font = FONT.read_bytes()
        self._tag = f'"{blake2b(self._font, digest_size=9).hexdigest()}"'

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers for the font, and passes anything else on."""
        if scope["type"] != "http" or scope["method"] != "GET" or _INSTEAD_OF not in str(scope["path"]):
            await self._app(scope, receive, send)
            return
        known = Headers(scope=scope).get("if-none-match") == self._tag
        headers = {"ETag": self._tag, "Cache-Control": "no-cache"}
        body, status = (b"", 304) if known else (self._font, 200)
        await Response(body, status, headers, media_type="font/woff2")(scope, receive, send)
