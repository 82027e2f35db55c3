"""What `streamlit run app.py` starts: the server, with the libraries loaded before the first visitor comes.

Streamlit recognises an application by the text `st.App(` in this file. The script that visitors run is
`qkdemo/web/shell.py`: had the script itself a `pages` folder beside it, as this file has, a deep link into a fresh
server would run the page alone, without the shell.
"""

import streamlit as st
from starlette.middleware import Middleware

from qkdemo.web import connection
from qkdemo.web.first.symbols import Symbols
from qkdemo.web.lab import ladder
from qkdemo.web.server import SHELL, base_path, prepare
from qkdemo.web.serving.closing import lifespan
from qkdemo.web.serving.guard import Guard
from qkdemo.web.serving.packed import Packed
from qkdemo.web.training import stream as live

prepare()
base = base_path()
app = st.App(
    SHELL,
    routes=[*live.routes(base), *ladder.routes(base), *connection.routes(base)],
    middleware=[Middleware(Guard), Middleware(Symbols), Middleware(Packed)],
    lifespan=lifespan,
)
