"""What the browser says late: a query that this session wrote itself is no link.

A browser tells its address with everything that a visitor does. A held key does more before the address of the last
change has arrived: then the browser tells one that was written some changes ago, and it would turn the dials back.
Streamlit marks what the browser's back and forward buttons asked for, so those stay links.

* `catch_up()`: called first in every run: puts what was written last in the place of what is told late;
* `note()`: called after the query was written: it may be told from now on;
* `by_history()`: whether the browser's back or forward button led here;
* `rewrite(query)`: puts `query` in the place of the whole one; in callbacks.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import streamlit as st
from streamlit.runtime.scriptrunner import ScriptRunContext, get_script_run_ctx

_WRITTEN, _PAGE, _ORDERED = "echo.written", "echo.page", "echo.ordered"
_MOST: Final = 64  # that are remembered: nobody turns a dial further ahead of the browser's address
Query = dict[str, str]


def catch_up() -> None:
    """Let the query be what this session wrote last, if the browser tells what it wrote before that."""
    context = get_script_run_ctx()
    if context is None:
        return
    written: list[Query] = st.session_state.get(_WRITTEN, [])
    told = _told(context, {name for query in [*written, st.query_params.to_dict()] for name in query})
    here = st.session_state.get(_PAGE) == context.page_script_hash and not context.is_history_navigation
    ordered = st.session_state.pop(_ORDERED, False)  # a callback of this run wrote the whole query
    st.session_state[_PAGE] = context.page_script_hash
    if here and told in written:
        written = written[written.index(told) :]
        st.session_state[_WRITTEN] = written
        if told != written[-1] and not ordered:
            now = st.query_params.to_dict()
            edits = {name: text for name, text in now.items() if told.get(name) != text}  # by callbacks of this run
            kept = {name: text for name, text in written[-1].items() if name in now or name not in told}
            st.query_params.from_dict(kept | edits)
    else:
        st.session_state[_WRITTEN] = [told]
    note()


def note() -> None:
    """Remember the query as one that this session wrote."""
    written: list[Query] = st.session_state.get(_WRITTEN, [])
    now = st.query_params.to_dict()
    if not written or written[-1] != now:
        st.session_state[_WRITTEN] = [*written, now][-_MOST:]


def by_history() -> bool:
    """Whether this run was asked for by the browser's history."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def rewrite(query: Mapping[str, str]) -> None:
    """Let `query` be all that the link says, from this run on; in callbacks."""
    st.query_params.from_dict(query)
    st.session_state[_ORDERED] = True


def _told(context: ScriptRunContext, names: Iterable[str]) -> Query:
    """The query that the browser told with this run, before callbacks wrote into it."""
    with context.session_state.query_params() as query:
        found = {name: query.get_initial_value(name) for name in names}
    return {name: text if isinstance(text, str) else text[-1] for name, text in found.items() if text is not None}
