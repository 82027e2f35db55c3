"""Our own browser components: small ES modules, each in a folder of its name, served from a URL.

* `Component(name, html)`: one of them; `mount(data, key, ...)` puts it on the page;
* `register()`: called when a server starts.

Streamlit sends what a component needs to draw; its assets it fetches once. `<name>/<name>.js` is the entry point,
`<name>/<name>.css` its style sheet.
"""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import streamlit as st
from streamlit.components.v2.get_bidi_component_manager import get_bidi_component_manager
from streamlit.components.v2.manifest_scanner import ComponentConfig, ComponentManifest
from streamlit.components.v2.types import ComponentRenderer

_PACKAGE: Final = "qkdemo"
_NAMES: Final = ("exhibit", "arrows", "prose", "presenter", "notes", "arrival", "again", "kept", "draft", "cross")
_MANIFEST: Final = ComponentManifest(
    name=_PACKAGE,
    version="1",
    components=[ComponentConfig(name=name, asset_dir=name) for name in _NAMES],
)
_lock: Final = threading.Lock()


def register() -> None:
    """Let a server know the assets before the first visitor asks: another of several may have drawn the page."""
    with _lock:
        _register()


def _register() -> None:
    manager = get_bidi_component_manager()
    if manager.get_component_asset_root(f"{_PACKAGE}.{_NAMES[0]}") is None:
        manager.register_from_manifest(_MANIFEST, Path(__file__).parent)


class Component:
    """One component; it can only be mounted where a server runs."""

    def __init__(self, name: str, html: str) -> None:
        assert name in _NAMES
        self._name, self._html = name, html
        self._renderer: ComponentRenderer | None = None

    def mount(self, data: Mapping[str, Any] | bytes, *, key: str, **callbacks: Any) -> Mapping[str, Any]:
        """Put it on the page with `data`; `on_<trigger>_change` are called with what the visitor does in it.

        Returns what was triggered in it before this run.
        """
        sent = data if isinstance(data, bytes) else dict(data)
        return cast(Mapping[str, Any], self._known()(data=sent, key=key, **callbacks))

    def _known(self) -> ComponentRenderer:
        """The mounting function, its assets known to the current runtime: tests start several in one process."""
        full = f"{_PACKAGE}.{self._name}"
        with _lock:
            _register()
            if self._renderer is None:
                sheet, script = f"{self._name}.css", f"{self._name}.js"
                self._renderer = st.components.v2.component(full, html=self._html, js=script, css=sheet)
            return self._renderer
