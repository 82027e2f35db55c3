"""The phase diagram of training on the page of maps: the record that comes with the app.

* `phases_shown()`: both sides, and the table.
"""

import pyarrow as pa
import streamlit as st

from qkdemo.maps.phase_picture import alt, finding, phase_spec, phase_table
from qkdemo.maps.phases import RECORDED_ON, SEEDS, VARIANTS, cells, read, rows
from qkdemo.messages import say
from qkdemo.web.lab.takeaway import csv_of


def phases_shown() -> None:
    """Where training survives: the share of seeds that solve the task, plain and with RMSNorm."""
    ends = read()
    made = cells(ends)
    st.markdown(f"## {finding(made)}")
    seconds = round(sum(end.seconds for end in ends))
    st.markdown(say("phases.lead", seeds=len(SEEDS), seconds=seconds, day=RECORDED_ON))
    for role, column in zip(VARIANTS, st.columns(2), strict=True):
        with column:
            st.markdown(f"### {say(f'phases.side.{role}')}")
            picture = phase_table(made, role)
            st.vega_lite_chart(picture, phase_spec(), key=f"phases:{role}", alt=alt(made, role), width="stretch")
    found = rows(made)
    with st.expander(say("phases.table")):
        st.dataframe(pa.Table.from_pylist(found), hide_index=True, key="phases:table")
        st.download_button(
            say("takeaway.csv"),
            lambda: csv_of(found),
            "qkdemo-phases.csv",
            "text/csv",
            on_click="ignore",
            icon=":material/download:",
        )
