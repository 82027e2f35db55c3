"""Scripts of Streamlit that a page is sure to draw with, asked for while its own script still runs.

* `links(path)`: what stands in the head of the page at `path`; nothing on a page that draws on our canvas alone.

Streamlit asks for them when it meets the first chart, one after the other. Vega has 0.8 MB, Plotly 4.7 MB.
"""

from functools import cache
from pathlib import Path
from typing import Final

from streamlit.file_util import get_static_dir

_VEGA: Final = ("ArrowVegaLiteChart", "embed", "vega-interpreter")
_AT_ONCE: Final = {"map": (*_VEGA, "Selectbox", "Slider"), "sphere": ("PlotlyChart", "Slider")}
_LATER: Final = {"models": _VEGA, "sensitivity": _VEGA, "cost": _VEGA}  # where a tab explores; when nothing else loads
_KINDS: Final = (
    (_AT_ONCE, '<link rel="modulepreload" fetchpriority="low" href="./static/js/{}">'),
    (_LATER, '<link rel="prefetch" href="./static/js/{}">'),
)


def links(path: str) -> str:
    """Links to the scripts of the page whose address ends as `path` does."""
    return _of_page(path.rstrip("/").rpartition("/")[2])


@cache
def _of_page(page: str) -> str:
    """A name of a script holds a hash of what is in it; a part that this Streamlit lacks is left out."""
    scripts = Path(get_static_dir(), "static", "js")
    parts = [(link, part) for pages, link in _KINDS for part in pages.get(page, ())]
    return "".join(link.format(found.name) for link, part in parts for found in scripts.glob(f"{part}.*.js"))
