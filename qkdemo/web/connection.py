"""What is between a page and its server: whether they are connected, and what outlives it when they are not.

* `keep_up(page)`, `hand_over()`: called by the shell first and last in every run: what this session holds goes to the
  browser, and comes back from there when the session is a new one (the server was started again, or the browser was
  away for long);
* `HELD`: how the names begin of what is held in the session's state: texts alone, which whoever reads them checks;
  `ANSWERS`: of what a page that is loaded anew gets back too;
* `routes(base)`: the script that watches the connection, the style of what has the focus, and the name of this server;
  `in_page()`: what a page's head says of them.

Streamlit asks for no run when a browser comes back to a session that is gone: the first thing that a visitor then does
would be swallowed. So the browser asks, with all that its widgets say.
"""

import json
import secrets
from html import escape
from pathlib import Path
from typing import Any, Final

import streamlit as st
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route
from streamlit.runtime import Runtime

from qkdemo.messages import say
from qkdemo.web.components import Component

HELD: Final = "held:"
ANSWERS: Final = f"{HELD}answers:"
_ANSWERED: Final = ("quiz",)  # pages that want the answers of before
_MOST: Final = 50
_LONGEST: Final = 4000  # characters of one
_PATH: Final = "_qkdemo"
_FILES: Final = {
    **dict.fromkeys(("connection.js", "status.js", "first.js"), "text/javascript"),
    "everyone.css": "text/css",
}
_FOLDER: Final = Path(__file__).parent / "connection"
_WORDS: Final = ("lost", "never", "several", "unknown")
_SERVER: Final = secrets.token_hex(8)
_AGAIN: Final = Component("again", html="<span class='again'></span>")
_KEPT: Final = Component("kept", html="<span class='kept'></span>")


def keep_up(page: str) -> None:
    """Take from the browser what a session before this one held; before anything asks for it."""
    if Runtime.exists():
        data = {"server": _SERVER, "page": page, "wants": ANSWERS if page in _ANSWERED else ""}
        back: Any = _AGAIN.mount(data, key="again", on_again_change=lambda: None).get("again")
        if isinstance(back, dict):
            take_back(back.get("kept"), same_page=back.get("why") == "back")


def hand_over() -> None:
    """Let the browser have what this session holds, if anything; after everything that a run changes of it."""
    held = {name: st.session_state[name] for name in st.session_state if str(name).startswith(HELD)}
    if held and Runtime.exists():
        _KEPT.mount({"kept": json.dumps(held, ensure_ascii=False)}, key="kept")


def take_back(kept: object, *, same_page: bool = True) -> None:
    """Hold again what a browser says that a session before held; whatever else it says is dropped.

    A page that was loaded anew shows what its link says, and nothing of what was on screen before.
    """
    try:
        found = json.loads(kept) if isinstance(kept, str) else {}
    except ValueError:
        return
    for name, text in list(found.items())[:_MOST] if isinstance(found, dict) else ():
        if name.startswith(HELD if same_page else ANSWERS) and isinstance(text, str) and len(text) <= _LONGEST:
            st.session_state.setdefault(name, text)


def in_page() -> str:
    """What stands in a page's head, from which the script is found wherever the page lies."""
    words = json.dumps({"words": {word: say(f"server.{word}", page="{page}") for word in _WORDS}}, ensure_ascii=False)
    script = "".join(
        f'<script type="module" src="./{_PATH}/{name}"></script>' for name in ("first.js", "connection.js")
    )
    sheet = f'<link rel="stylesheet" href="./{_PATH}/everyone.css">'
    return f'<meta name="qkdemo" content="{escape(words)}">{sheet}{script}'


def routes(base: str = "") -> list[Route]:
    """What the server answers besides Streamlit, below the path `base`."""
    return [
        *(Route(f"{base}/{_PATH}/{name}", _file, methods=["GET"]) for name in _FILES),
        Route(f"{base}/{_PATH}/server", _server, methods=["GET"]),
    ]


async def _file(request: Request) -> Response:
    name = request.url.path.rpartition("/")[2]
    return FileResponse(_FOLDER / name, media_type=_FILES[name], headers={"Cache-Control": "no-cache"})


async def _server(_: Request) -> Response:
    return PlainTextResponse(_SERVER, headers={"Cache-Control": "no-store"})
