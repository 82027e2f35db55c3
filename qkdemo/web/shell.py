"""The script that runs for every visitor on every change: navigation, then the page that was asked for.

A link that stands in a track puts the track's column beside the page.
"""

from pathlib import Path

import streamlit as st

from qkdemo.messages import say
from qkdemo.web import connection, lecture
from qkdemo.web.address import echo, language
from qkdemo.web.address.link import enter, stand_on
from qkdemo.web.menu import menus
from qkdemo.web.pages import HOME, PAGES
from qkdemo.web.server import gate
from qkdemo.web.track import lesson
from qkdemo.web.track.column import lesson_column
from qkdemo.web.track.hall import hall_column
from qkdemo.web.training.ahead import train_ahead

STATIC = Path(__file__).parent / "static"
WIDTHS = (3, 7)  # of the lesson and of its page
LECTURE_WIDTHS = (5, 7)

echo.catch_up()
language.settle()
# Before the navigation, which would fetch the page's own icon from elsewhere for the browser's tab.
st.set_page_config(page_title=say("app.title"), page_icon=STATIC / "icon.svg", layout="wide")
st.html(STATIC / "shell.css")
page = st.navigation(menus(), position="hidden" if lecture.on() else "top")
taught, complaint = lesson.now(page.url_path)
echo.note()
st.set_page_config(
    page_title=say("app.titled", page=lesson.titled(taught) or page.title),
    initial_sidebar_state="collapsed" if taught or lecture.on() else "auto",
)
complaint = complaint or st.session_state.pop("shell.complaint", "")
going = lesson.pending() or lesson.astray(page.url_path)
if going is not None:
    there, query = going
    st.session_state["shell.complaint"] = complaint  # it is said where one comes to
    st.switch_page(there.script, query_params=query)
connection.keep_up(page.url_path)
enter(page.url_path)
stand_on(taught.base if taught else None)
if complaint:
    st.warning(complaint, icon=":material/link_off:")
with gate, lecture.lit(page.url_path or HOME, dials=PAGES[page.url_path or HOME].lab is not None):
    if taught is None:
        page.run()
    else:
        column, beside = st.columns(LECTURE_WIDTHS if lecture.on() else WIDTHS, gap="medium")
        with column:
            (hall_column if lecture.on() else lesson_column)(taught)
        with beside:
            if taught.concealed and lecture.on():
                train_ahead(taught.stop)
            if taught.concealed:
                st.info(say("lesson.concealed"), icon=":material/visibility_off:")
            else:
                page.run()
echo.note()
connection.hand_over()
