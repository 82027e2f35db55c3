"""The page on which somebody examines a file of their own: tensors, a checkpoint, a training log.

* `diagnose_page()`: draws it.

What is brought is read in memory, never written, and gone with the session. An example is named by the link.
"""

from typing import Any, Final

import pyarrow as pa
import streamlit as st

from qkdemo.diagnose.drift import in_words, opened
from qkdemo.diagnose.findings.examine import are_arrays, examine
from qkdemo.diagnose.findings.finding import Finding, Report
from qkdemo.diagnose.paper import html
from qkdemo.diagnose.readers.columns import ROLES
from qkdemo.diagnose.readers.inputs import MOST_BYTES, InputError, sized
from qkdemo.diagnose.readers.logs import MOST_OF_A_LOG
from qkdemo.diagnose.samples import SAMPLES
from qkdemo.messages import say
from qkdemo.web.address.given import as_text
from qkdemo.web.address.link import OWN
from qkdemo.web.diagnosis.charts import MOST_HEADS, curves, growth, heat_map
from qkdemo.web.lab.own import Own, bring
from qkdemo.web.pages import PAGES
from qkdemo.web.space.shown import theme

EXAMPLE: Final = "example"  # in the link
_ICONS: Final = {"bad": ":material/error:", "watch": ":material/visibility:", "good": ":material/check_circle:"}
_WATCH: Final = """from qkdemo import watch

report = watch(model, every=100, to="attention.jsonl", optimizer=optimizer)
...
report.note(loss=loss)  # in the loop, at any step
"""


def diagnose_page() -> None:
    """The page, from its question to its last table."""
    st.title(say("diagnose.question"))
    st.markdown(say("diagnose.instruction"))
    data, name = _brought()
    if data is None:
        _in_a_script()
        return
    try:
        report = examine(data, name, reference=_reference(), **_options(data, name))
    except InputError as error:
        st.error(as_text(str(error)), icon=":material/block:")
        return
    _findings(report)
    _pictures(report)
    _in_the_lab(report)
    _tables(report)
    st.download_button(
        say("diagnose.report"),
        html(report),
        f"{name}.html",
        "text/html",
        on_click="ignore",
        icon=":material/download:",
    )
    _in_a_script()


def _brought() -> tuple[bytes | None, str]:
    """The file's bytes and name: what was dropped, pasted, or the example that was pressed, whichever came last."""
    dropped = st.file_uploader(
        say("diagnose.file"),
        key="diagnose:file",
        help=say("diagnose.file_help", most=sized(MOST_BYTES), log=sized(MOST_OF_A_LOG)),
        on_change=_forget_example,
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(say("diagnose.or"))
        for word in SAMPLES:
            st.button(say(f"diagnose.example.{word}"), key=f"diagnose:{word}", on_click=_take_example, args=(word,))
    with st.expander(say("diagnose.paste"), icon=":material/content_paste:"):
        pasted = st.text_area(
            say("diagnose.lines"),
            key="diagnose:lines",
            height=160,
            help=say("diagnose.lines_help"),
            on_change=_forget_example,
        )
    example = st.query_params.get(EXAMPLE, "")
    if example in SAMPLES:
        name, make = SAMPLES[example]
        return make(), name
    if dropped is not None:
        return dropped.getvalue(), dropped.name
    return (pasted.encode(), say("diagnose.pasted")) if pasted.strip() else (None, "")


def _reference() -> tuple[bytes, str] | None:
    """The logits that a port should have given, if somebody brings them."""
    if st.query_params.get(EXAMPLE, "") in SAMPLES:
        return None
    with st.expander(say("diagnose.reference"), icon=":material/compare_arrows:"):
        given = st.file_uploader(
            say("diagnose.reference"),
            key="diagnose:reference",
            help=say("diagnose.reference_help"),
            label_visibility="collapsed",
        )
        st.caption(say("diagnose.reference_help"))
    return None if given is None else (given.getvalue(), given.name)


def _take_example(word: str) -> None:
    st.query_params[EXAMPLE] = word


def _forget_example() -> None:
    st.query_params.pop(EXAMPLE, None)


def _options(data: bytes, name: str) -> dict[str, Any]:
    """How tensors are read, and which column is what; the page asks below the file."""
    with st.expander(say("diagnose.options"), icon=":material/tune:"):
        if name.endswith(".safetensors") or are_arrays(data):
            swapped = st.toggle(say("diagnose.swap"), key="diagnose:swap")
            causal = st.toggle(say("diagnose.causal"), key="diagnose:causal")
            scale = st.number_input(say("diagnose.scale"), value=None, format="%g", key="diagnose:scale")
            st.caption(say("diagnose.of_pair"))
            return {"swapped": swapped, "causal": causal, "scale": scale}
        named = {role: st.text_input(say("diagnose.column", role=role), key=f"diagnose:{role}") for role in ROLES}
        return {"columns": {role: column for role, column in named.items() if column.strip()}}


def _findings(report: Report) -> None:
    st.header(as_text(say("report.title", name=report.name)))
    for finding in report.findings:
        _finding(finding)


def _finding(finding: Finding) -> None:
    show = {"bad": st.error, "watch": st.warning, "good": st.success}[finding.level]
    advice = f"\n\n{as_text(finding.advice)}" if finding.advice else ""
    show(f"**{say(f'report.level.{finding.level}')}** {as_text(finding.sentence)}{advice}", icon=_ICONS[finding.level])
    if finding.look is not None:
        lab, dials = finding.look
        st.page_link(
            PAGES[lab].script, label=say(f"diagnose.look.{lab}"), icon=PAGES[lab].icon, query_params=dict(dials)
        )


def _pictures(report: Report) -> None:
    """Curves of a log, two beside each other; of tensors the heads, and the worst of them while its weights grow."""
    for run, log in report.curves.items():
        if len(report.curves) > 1:
            st.subheader(as_text(run))
        shown = curves(log, report.roles(run))
        for at in range(0, len(shown), 2):
            for place, (chart, words) in zip(st.columns(2), shown[at : at + 2], strict=False):
                place.altair_chart(chart, width="stretch", alt=words)
    if heads := report.tables.get("heads"):
        st.subheader(say("diagnose.heads"))
        chart, words = heat_map(heads, theme())
        st.altair_chart(chart, width="stretch", alt=words)
        if len(heads) > MOST_HEADS:
            st.caption(say("diagnose.first_heads", shown=MOST_HEADS, all=len(heads)))
    if grown := report.tables.get("growth"):
        st.subheader(say("diagnose.growth", head=heads[0]["head"] if heads else ""))
        st.markdown(say("diagnose.growth_text"))
        for place, (chart, words) in zip(st.columns(2), growth(grown), strict=True):
            place.altair_chart(chart, width="stretch", alt=words)


def _in_the_lab(report: Report) -> None:
    """The way to the drift lab with these q and k, which this session keeps, and no link."""
    if report.pair is None:
        return
    try:
        found = opened(report.pair)
    except InputError as error:
        st.caption(as_text(str(error)))
        return
    bring(Own(found.inputs, in_words(found, report.name)))
    page = PAGES["drift"]
    st.page_link(page.script, label=say("own.open"), icon=page.icon, query_params={**found.dials, OWN: "1"})
    st.caption(say("own.open_help"))


def _tables(report: Report) -> None:
    for name, rows in report.tables.items():
        st.subheader(say(f"report.table.{name}"))
        st.dataframe(pa.Table.from_pylist([dict(row) for row in rows]), hide_index=True, key=f"diagnose:table:{name}")


def _in_a_script() -> None:
    st.header(say("diagnose.script"))
    st.markdown(say("diagnose.script_text"))
    st.code(_WATCH, language=None)  # the colours of code are too faint for some
