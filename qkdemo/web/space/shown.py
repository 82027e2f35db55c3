"""Pictures in space on a page.

* `theme()`: the colours of this visitor's page; `in_space(figure, key, words)`: shows one;
* `sphere_body(settings)`: the middle of the sphere's page.
"""

from collections.abc import Mapping
from typing import Any, Final

import streamlit as st

from qkdemo.charts.theme import DARK, LIGHT, Theme
from qkdemo.labs.sphere import Result, Settings, explain, run
from qkdemo.labs.sphere.lab import Side
from qkdemo.labs.sphere.view import plain_arrows, score_surfaces, sphere
from qkdemo.labs.sphere.words import alt_plain, alt_scores, alt_sphere, shares
from qkdemo.messages import say
from qkdemo.web import lecture
from qkdemo.web.track.lesson import asks, current
from qkdemo.web.track.shown import tell

_HALL: Final = 26  # px: what is written into a picture for a hall
_AXES_IN_A_HALL: Final = 15  # px: the names of its axes
_TALL_IN_A_HALL: Final = 700  # px


def theme() -> Theme:
    """Light or dark, as the page is."""
    return DARK if st.context.theme.type == "dark" else LIGHT


def in_space(figure: Mapping[str, Any], key: str, words: str, *, fills: bool = False) -> None:
    """A picture that can be turned; `words` say what it shows. It may fill its container."""
    config = {"displaylogo": False, "modeBarButtonsToRemove": ["toImage"], "scrollZoom": False}
    height: Any = "stretch" if fills else "content"
    if lecture.on():
        layout = dict(figure["layout"])
        layout |= {"font": layout["font"] | {"size": _AXES_IN_A_HALL}} | ({} if fills else {"height": _TALL_IN_A_HALL})
        figure = {**figure, "data": [_for_a_hall(trace) for trace in figure["data"]], "layout": layout}
    st.plotly_chart(dict(figure), key=key, theme=None, config=config, alt="" if asks() else words, height=height)


def _for_a_hall(trace: Mapping[str, Any]) -> dict[str, Any]:
    return {**trace, "textfont": {**trace["textfont"], "size": _HALL}} if "textfont" in trace else dict(trace)


def sphere_body(settings: Settings) -> Result:
    """The finding, the arrows beside the sphere, the words, and the logit over both lengths."""
    result, look = run(settings), theme()
    said = explain(result)
    st.title(say("sphere.question") if asks() else said[0])
    if lecture.on() and current() is not None:  # a hall sees on one screen what the stop asks about
        with st.container(key="sphere:exhibit"):
            in_space(sphere(result, look), "sphere:norm", alt_sphere(result), fills=True)
    else:
        _both(result, look)
    tell(" ".join(said[1:]))
    st.markdown(f"## {say('sphere.scores')}")
    in_space(score_surfaces(result, look), "sphere:scores", alt_scores(result))
    st.caption(say("sphere.scores_help"))
    return result


def _both(result: Result, look: Theme) -> None:
    """The arrows beside the sphere; at a track's stop, which asks about the sphere, that comes first."""
    arrows, globe = reversed(st.columns(2)) if current() is not None else st.columns(2)
    with globe:
        st.markdown(f"## {say('sphere.globe')}")
        in_space(sphere(result, look), "sphere:norm", alt_sphere(result))
        _caption(say("sphere.globe_help"), result.twin)
    with arrows:
        st.markdown(f"## {say('sphere.arrows')}")
        in_space(plain_arrows(result, look), "sphere:plain", alt_plain(result))
        _caption(say("sphere.arrows_help"), result.plain)


def _caption(words: str, side: Side) -> None:
    """`words`, and which share of all directions every key has, unless that is what a stop asks."""
    st.caption(words if asks() else f"{words} {shares(side)}")
