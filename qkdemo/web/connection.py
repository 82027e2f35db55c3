"""What is between a page and its server: whether they are connected, and what outlives it when they are not.

* `keep_up(page)`: called by the shell in every run: what this session holds goes to the browser, and comes back from
  there when the session is a new one (the server was started again, or the browser was away for long);
* `HELD`: how the names begin of what is held in the session's state: texts alone, which whoever reads them checks;
* `routes(base)`: the script that watches the connection, and the name of this server; `in_page()`: what a page's head
  says of them.

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
_MOST: Final = 50
_LONGEST: Final = 4000  # characters of one
_BACK: Final = "connection.back"
_PATH: Final = "_qkdemo"
_SCRIPT: Final = Path(__file__).parent / "connection" / "connection.js"
_WORDS: Final = ("lost", "never", "several", "unknown")
_SERVER: Final = secrets.token_hex(8)
_COMPONENT: Final = Component("again", html="<span class='again'></span>")


def keep_up(page: str) -> None:
    """Let the browser have what this session holds, and take from it what a session before held."""
    if not Runtime.exists():
        return
    held = {name: text for name, text in st.session_state.items() if str(name).startswith(HELD)}
    kept = json.dumps(held, ensure_ascii=False) if held else ""
    told = _COMPONENT.mount({"kept": kept, "server": _SERVER, "page": page}, key="again", on_again_change=lambda: None)
    back: Any = told.get("again")
    if not held and isinstance(back, dict):
        take_back(back.get("kept"))


def take_back(kept: object) -> None:
    """Hold again what a browser says that a session before held; whatever else it says is dropped."""
    try:
        found = json.loads(kept) if isinstance(kept, str) else {}
    except ValueError:
        return
    for name, text in list(found.items())[:_MOST] if isinstance(found, dict) else ():
        if name.startswith(HELD) and isinstance(text, str) and len(text) <= _LONGEST:
            st.session_state.setdefault(name, text)


def in_page() -> str:
    """What stands in a page's head, from which the script is found wherever the page lies."""
    words = json.dumps({"words": {word: say(f"server.{word}", page="{page}") for word in _WORDS}}, ensure_ascii=False)
    script = f'<script type="module" src="./{_PATH}/connection.js"></script>'
    return f'<meta name="qkdemo" content="{escape(words)}">{script}'


def routes(base: str = "") -> list[Route]:
    """What the server answers besides Streamlit, below the path `base`."""
    return [
        Route(f"{base}/{_PATH}/connection.js", _script, methods=["GET"]),
        Route(f"{base}/{_PATH}/server", _server, methods=["GET"]),
    ]


async def _script(_: Request) -> Response:
    return FileResponse(_SCRIPT, media_type="text/javascript", headers={"Cache-Control": "no-cache"})


async def _server(_: Request) -> Response:
    return PlainTextResponse(_SERVER, headers={"Cache-Control": "no-store"})
