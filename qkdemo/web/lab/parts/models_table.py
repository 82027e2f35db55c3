"""How the table of models is drawn: in words, with links, searched, and two rows beside each other.

* `models_body(settings)`: the middle of the page;
* `search_box()`: what is searched for; the link keeps it, as it keeps the pair;
* `show_rows(result)`, `show_families(result)`: the tables; `FIRST_COLUMNS`, `LARGE`: which columns are seen first;
* `show_pair(result)`: two models, in what they differ, and the door to the placement lab.
"""

from collections.abc import Sequence
from typing import Any, Final

import streamlit as st

from qkdemo.facts.cells import cell
from qkdemo.facts.models import MODELS
from qkdemo.labs.models import (
    SHOWN,
    Result,
    Settings,
    beside,
    corrections,
    explain,
    family_rows,
    finding,
    rows,
    run,
    searched,
)
from qkdemo.messages import say
from qkdemo.web import lecture
from qkdemo.web.address.link import ask, asked
from qkdemo.web.pages import PAGES
from qkdemo.web.track.lesson import current
from qkdemo.web.track.shown import tell

_SEARCH: Final = "models:find"
_SIDES: Final = ("left", "right")
_FIRST: Final = ("qwen3-dense-transformers", "olmo-2-transformers")  # beside each other at first
_HEIGHT: Final = 480
# What makes the function comes first and fits a page of 1280 pixels; the rest is further right.
FIRST_COLUMNS: Final = (
    *("model", "norm", "place", "gain", "order", "epsilon", "scale", "verified"),
    *("softcap", "link", "family"),
)
LARGE: Final = FIRST_COLUMNS[:7]  # what a lecture shows, in large type
_FEW: Final = 4  # columns, and rows, of which a lecture's stop shows the first
_WIDTHS: Final = {"model": 146, "link": 210, "note": 600}  # in pixels; the others are as wide as their words


def models_body(settings: Settings) -> Result:
    """The middle of the page: the rows that pass, a pair of them, and what is often told wrongly."""
    shown = st.container(key="models:exhibit")
    heading = shown.empty()
    result = searched(run(settings), search_box())
    heading.title(finding(result))
    if lecture.on() and current() is not None and result.models:  # what fits a screen
        shown.table(_table(result, LARGE[:_FEW])[:_FEW], hide_index=True, border="horizontal")
    show_rows(result)
    tell(" ".join(explain(result)[1:]))
    st.header(say("models.compare"))
    show_pair(result)
    st.header(say("models.often"))
    tell("\n".join(f"- {sentence}" for sentence in corrections()))
    return result


def search_box() -> str:
    """Draw the box and return what it holds, which is what the link says."""
    st.session_state[_SEARCH] = asked("find")
    text: str = st.text_input(
        say("models.find"),
        key=_SEARCH,
        on_change=lambda: ask("find", st.session_state[_SEARCH]),
        icon=":material/search:",
    )
    return text


def show_rows(result: Result) -> None:
    """One row per implementation, every choice in words; a click on a head sorts. A lecture shows `LARGE` alone."""
    if not result.models:
        return
    if lecture.on():
        st.table(_table(result, LARGE), hide_index=True, border="horizontal")
        return
    order = [*FIRST_COLUMNS, *(name for name in rows(result)[0] if name not in FIRST_COLUMNS)]
    config: dict[str, Any] = {
        say(f"column.{name}"): st.column_config.TextColumn(width=width, pinned=name == "model")
        for name, width in _WIDTHS.items()
    }
    file_name = r"blob/[^/]+/(?:.*/)?(.*)#"
    config[say("column.link")] = st.column_config.LinkColumn(display_text=file_name, width=_WIDTHS["link"])
    st.dataframe(_table(result, order), hide_index=True, height=_HEIGHT, key="models:rows", column_config=config)
    more = ", ".join(say(f"column.{name}") for name in order[order.index("softcap") :])
    st.markdown(say("models.sideways", names=more))


def _table(result: Result, columns: Sequence[str]) -> list[dict[str, str]]:
    return [{say(f"column.{name}"): cell(name, row[name]) for name in columns} for row in rows(result)]


def show_families(result: Result) -> None:
    """One row per family."""
    names = {"models": say("models.models"), "names": say("models.names")}
    table = [
        {
            names.get(name) or say(f"column.{name}"): "; ".join(cell(name, word) for word in str(value).split(", "))
            if name in SHOWN
            else value
            for name, value in row.items()
        }
        for row in family_rows(result)
    ]
    st.dataframe(table, hide_index=True, key="models:families")


def show_pair(result: Result) -> None:
    """Two models whose every choice is known, and what sets them apart."""
    known = {model.id: model for model in MODELS if model.pipeline is not None}
    passing = [model.id for model in result.models if model.id in known]
    first = [*(name for name in _FIRST if name in passing or not passing), *passing, *_FIRST]
    wanted = [asked(side) for side in _SIDES]
    if any(name and name not in known for name in wanted):
        st.warning(say("models.unknown"), icon=":material/link_off:")
    chosen: list[str] = []
    for side, name, column in zip(_SIDES, wanted, st.columns(2), strict=True):
        key = f"models:{side}"
        others = [*wanted, *chosen]
        st.session_state[key] = name if name in known else next(one for one in first if one not in others)
        place = column.selectbox(
            say(f"models.{side}"),
            list(known),
            format_func=lambda name: known[name].model,
            key=key,
            on_change=_keep_pair,
        )
        chosen.append(place)
    left, right = (known[name] for name in chosen)
    st.markdown(" ".join(beside(left, right)))
    if "placement" in PAGES:
        page = PAGES["placement"]
        words = left.choices("left") | right.choices("right")
        st.page_link(page.script, label=say("models.open"), icon=page.icon, query_params=words)


def _keep_pair() -> None:
    """Both, so that the other stays what it was."""
    for side in _SIDES:
        ask(side, st.session_state[f"models:{side}"])
