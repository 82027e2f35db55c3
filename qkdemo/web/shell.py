"""The script that runs for every visitor on every change: navigation, then the page that was asked for."""

from pathlib import Path

import streamlit as st

from qkdemo.strings import say
from qkdemo.web.link import enter
from qkdemo.web.pages import PAGES

STATIC = Path(__file__).parent / "static"

st.set_page_config(page_title=say("app.title"), page_icon=STATIC / "icon.svg", layout="wide")
st.html(STATIC / "shell.css")
page = st.navigation(
    [
        st.Page(
            entry.script,
            title=say(f"page.{entry.name}"),
            icon=entry.icon,
            url_path=entry.name,
            default=entry.name == "home",
        )
        for entry in PAGES.values()
    ],
    position="top",
)
enter(page.url_path)
page.run()
