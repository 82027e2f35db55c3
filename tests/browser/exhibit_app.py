"""A page with nothing but an exhibit of made-up numbers, for the tests of the component alone.

The dial is a scale from 1 to 100 in 41 steps; the plain line overflows near its end. What was picked is written below.
"""

import numpy as np
import pyarrow as pa
import streamlit as st

from qkdemo.charts.spec import Pick
from qkdemo.web.lab.exhibit import exhibit, sent
from qkdemo.web.lab.parcel import parts_of

ROWS, KEYS = 41, 8
state = st.session_state
state.setdefault("at", 10.0)
state.setdefault("selected", [2, 3])
state.setdefault("cell", [0, 1])


def lists(values: np.ndarray, kind: str) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.astype(kind).ravel()), values[0].size)


scale = np.logspace(0, 2, ROWS)
plain = np.where(scale < 60, scale, np.inf)
partly = np.full(ROWS, np.nan)
partly[[4, 5, 9, 20, 21, 22]] = 20.0  # known in two stretches, and at one row alone
weights = np.full((ROWS, KEYS), 1 / KEYS)
weights[:, 3] = np.linspace(0, 1, ROWS)
codes = np.tile(np.arange(KEYS * KEYS) * 3, (ROWS, 1)) + np.arange(ROWS)[:, None]
codes[:, KEYS - 1] = 254
codes[scale >= 60] = 255
table = pa.table(
    {
        "scale": scale,
        "scale.text": [f"×{value:.3g}" for value in scale],
        "finding": [f"At scale {value:.3g} the plain logit is {value:.3g}." for value in scale],
        "plain": plain,
        "norm": np.full(ROWS, 3.0),
        "partly": partly,
        "partly.low": partly / 2,
        "partly.high": partly * 2,
        "plain.text": ["∞" if np.isinf(value) else f"{value:.3g}" for value in plain],
        "norm.text": ["3"] * ROWS,
        "plain.row": lists(np.where(np.isinf(plain)[:, None], np.nan, weights), "float32"),
        "norm.row": lists(weights, "float32"),
        "plain.fates": [f"0\t{row} ∞" for row in range(ROWS)],
        "norm.fates": ["0\t0"] * ROWS,
        "tones": ["03"] * ROWS,
        "heat": lists(codes, "uint8"),
        "arms": lists(np.outer(scale, np.ones(KEYS)), "float32"),
        "angles": lists(np.tile(0.3 * np.arange(KEYS), (ROWS, 1)), "float32"),
    }
)
lines = [{"role": "plain", "column": "plain", "label": "plain"}, {"role": "norm", "column": "norm", "label": "L2·g"}]
between = {"low": "partly.low", "high": "partly.high", "dots": True}
lines.append({"role": "other", "column": "partly", "label": "", **between})
texts = [{"role": "plain", "column": "plain.text"}, {"role": "norm", "column": "norm.text"}]
query, key = state.selected
panels: list[dict[str, object]] = [
    {
        "kind": "curves",
        "title": "Logits grow",
        "subtitle": "largest |logit|",
        "wide": 6,
        "y": {"log": True, "domain": [1, 100], "ticks": [[1, "1"], [10, "10"], [100, "100"]]},
        "x": {"ticks": [[1, "×1"], [10, "×10"], [100, "×100"]]},
        "lines": lines,
        "marks": [{"x": 60, "label": "overflow", "role": "plain"}],
    },
    {
        "kind": "heat",
        "title": "Plain",
        "wide": 3,
        "role": "plain",
        "column": "heat",
        "rows": KEYS,
        "columns": KEYS,
        "selected": [query, key],
        "query_label": "query",
        "key_label": "key",
        "pooled": {"each": 2, "of": 16, "queries": "queries", "keys": "keys"},
    },
    {
        "kind": "bars",
        "title": f"Where query {query} looks",
        "wide": 3,
        "lines": [{"role": "plain", "column": "plain.row"}, {"role": "norm", "column": "norm.row"}],
        "labels": [str(number) for number in range(KEYS)],
        "selected": key,
        "key_label": "key",
    },
    {
        "kind": "cells",
        "title": "Score",
        "wide": 6,
        "head": ["", {"text": "plain"}, "L2·g"],  # a column has that name
        "roles": [None, "plain", "norm"],
        "rows": [["logit", "plain.text", "norm.text"]],
        "strong": 0,
    },
    {
        "kind": "grid",
        "title": "Fates",
        "wide": 12,
        "corner": "format",
        "head": [{"text": "q", "label": "stored q"}, {"text": "q·k", "label": "raw product"}],
        "rows": [
            {"text": side, "label": f"format, {side}", "role": side, "column": f"{side}.fates", "tones": "tones"}
            for side in ("plain", "norm")
        ],
        "selected": state.cell,
    },
    {
        "kind": "arrows",
        "title": "Arrows",
        "wide": 6,
        "role": "plain",
        "angles": "angles",
        "lengths": "arms",
        "query": "scale",
        "selected": key,
        "reach": 50.0,
        "ring": 10.0,
        "label": "scale.text",
    },
]
view = {
    "dial": {"column": "scale", "text": "scale.text", "label": "Weight scale", "at": state.at, "log": True},
    "finding": "finding",
    "heading": 1,
    "tiles": [{"label": "max |logit|", "lines": texts}, {"label": "again", "lines": texts}],
    "panels": panels,
    "words": {
        "hint": "Drag.",
        "play": "Play",
        "pause": "Pause",
        "png": "PNG",
        "svg": "SVG",
        "undefined": "undefined",
        "heat": "Arrows.",
        "bars": "Arrows.",
        "grid": "Arrows.",
    },
    "alt": "All of it in words.",
}


if "lost" in st.query_params and "lost" not in state:  # a message that the browser never got: all is taken for known
    state.lost = True
    sent().known.update(dict.fromkeys(part.name for part in parts_of(table, "scale")))


def take(pick: Pick) -> None:
    state.last = pick
    state.at = float(pick.get("dial", state.at))
    state.cell = [int(pick.get(name, now)) for name, now in zip(("row", "column"), state.cell, strict=True)]
    state.selected = [int(pick.get("query", query)), int(pick.get("key", key))]


exhibit(table, view, key="exhibit", on_pick=take)
st.text(f"picked {state.get('last')}")
