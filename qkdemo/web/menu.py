"""The navigation: Streamlit's own pages, made once for all visitors.

* `menus()`: title of a menu → its pages; those of no menu first, under no title.

Streamlit looks a page's script up in the file system whenever a page is made, and asks for them in every run. Each run
gets copies: a page notes whether it may be called in this run.
"""

from copy import copy

import streamlit as st

from qkdemo.messages import in_each_language, say
from qkdemo.web.pages import HOME, PAGES


def menus() -> dict[str, list[st.Page]]:
    """All pages, by the menu in which they stand."""
    return {title: [copy(page) for page in pages] for title, pages in _made().items()}


@in_each_language(None)
def _made() -> dict[str, list[st.Page]]:
    made: dict[str, list[st.Page]] = {}
    for entry in PAGES.values():
        title, menu = say(f"page.{entry.name}"), say(f"menu.{entry.menu}") if entry.menu else ""
        page = st.Page(
            entry.script,
            title=title,
            icon=entry.icon,
            url_path=entry.name,
            default=entry.name == HOME,
            visibility="visible" if entry.listed else "hidden",
        )
        made.setdefault(menu, []).append(page)
    return made
