"""A visit to a page without a browser: Streamlit's own AppTest, always through the shell."""

from collections.abc import Mapping
from typing import Any

from streamlit.testing.v1 import AppTest

from qkdemo.dials import Choice, Declaration, Dial, Dials, Sentence, Switch
from qkdemo.web.pages import PAGES
from qkdemo.web.server import SHELL


def visit(page: str, query: Mapping[str, str] | None = None) -> AppTest:
    """Open a link in a new session."""
    app = AppTest.from_file(str(SHELL), default_timeout=60)
    app.switch_page(str(PAGES[page].script))
    app.session_state[f"{page}:more"] = True
    for name, value in (query or {}).items():
        app.query_params[name] = value
    return app.run()


def link_of(app: AppTest) -> dict[str, str]:
    """What the address bar shows."""
    return {name: value if isinstance(value, str) else value[-1] for name, value in app.query_params.items()}


def standing(app: AppTest, page: str) -> Dials:
    """What the dials of a page stand at, drawn or not."""
    settings: Dials = app.session_state[f"link.settings.{page}"]
    return settings


def complaints(app: AppTest) -> list[str]:
    """Sentences about the link, as the visitor reads them."""
    return [warning.value.replace("\\", "").replace("`", "'") for warning in app.warning]


def widget_of(app: AppTest, page: str, dial: Declaration) -> Any:
    """The control of a dial on the page. Raises KeyError if it is not drawn."""
    match dial.kind:
        case Switch():
            kind = "toggle"
        case Choice():
            kind = "radio" if len(dial.allowed_words()) <= 3 else "selectbox"
        case Sentence():
            kind = "text_input"
        case Dial() as numbers:
            kind = "select_slider" if numbers.grid() else "slider"
    return getattr(app, kind)(key=f"{page}.{dial.name}")
