"""What comes back from the browser is believed only if it is a pick, and the component is known to every runtime."""

import math
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from qkdemo.web.lab.exhibit import read_pick


@pytest.mark.parametrize(
    ("message", "pick"),
    [
        ({"dial": 8.0}, {"dial": 8.0}),
        ({"dial": 8}, {"dial": 8.0}),
        ({"dial": -0.5}, {"dial": -0.5}),
        ({"query": 5, "key": 9}, {"query": 5, "key": 9}),
        ({"key": 0}, {"key": 0}),
        ({"row": 4, "column": 8}, {"row": 4, "column": 8}),
    ],
)
def test_a_pick_is_believed(message: Any, pick: Any) -> None:
    assert read_pick(message) == pick


@pytest.mark.parametrize(
    "message",
    [
        None,
        {},
        8.0,
        "8",
        [{"dial": 8.0}],
        {"dial": "8"},
        {"dial": None},
        {"dial": True},
        {"dial": math.nan},
        {"dial": math.inf},
        {"dial": 10**400},
        {"dial": [8.0]},
        {"dial": 8.0, "other": 1},
        {"query": -1, "key": 9},
        {"query": 5.0, "key": 9},
        {"query": 5, "key": math.nan},
        {"query": False, "key": 9},
        {"key": "9"},
        {"row": -1, "column": 8},
        {"row": 4, "column": 8.0},
    ],
)
def test_anything_else_is_dropped(message: Any) -> None:
    assert read_pick(message) is None


PAGE = """
import pyarrow as pa
import streamlit as st

from qkdemo.web.lab.exhibit import exhibit

table = pa.table({"scale": [1.0, 2.0], "text": ["×1", "×2"], "finding": ["One.", "Two."]})
dial = {"column": "scale", "text": "text", "label": "Scale", "at": 1.0, "log": True}
view = {"dial": dial, "finding": "finding", "tiles": [], "panels": [], "words": {}, "alt": ""}
exhibit(table, view, key="exhibit", on_pick=st.write)
st.write("mounted")
"""


@pytest.mark.parametrize("runtime", ["first", "second"])
def test_the_component_mounts_in_every_runtime_of_a_process(runtime: str) -> None:
    app = AppTest.from_string(PAGE).run()
    assert not app.exception
    assert app.markdown[0].value == "mounted"
