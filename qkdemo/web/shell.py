"""The script that runs for every visitor on every change: navigation, then the page that was asked for."""

from pathlib import Path

import streamlit as st

from qkdemo.strings import say
from qkdemo.web.link import enter
from qkdemo.web.pages import PAGES
from qkdemo.web.server import gate

STATIC = Path(__file__).parent / "static"

st.set_page_config(page_title=say("app.title"), page_icon=STATIC / "icon.svg", layout="wide")
st.html(STATIC / "shell.css")
menus: dict[str, list[st.Page]] = {}
for entry in PAGES.values():
    title = say(f"page.{entry.name}")
    page = st.Page(entry.script, title=title, icon=entry.icon, url_path=entry.name, default=entry.name == "home")
    menus.setdefault(say(f"menu.{entry.menu}") if entry.menu else "", []).append(page)
page = st.navigation(menus, position="top")
enter(page.url_path)
with gate:
    page.run()
