"""Charts as files: SVG, PNG and PDF by vl-convert, without a browser or a network.

* `svgs(specs)`: charts as SVG, all by one process; `as_file(svg, kind)`: an SVG as one of these;
* `MIMES`: the kinds, and what a browser calls them.

vl-convert runs V8 and holds Python's lock while it draws, 20 to 100 ms a chart and half a second at first: it has a
process of its own, one at a time, which ends when it is done, so that no visitor waits for another's figures. What was
drawn is kept.
"""

import base64
import json
import re
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

Kind: TypeAlias = Literal["svg", "png", "pdf"]
MIMES: Final[Mapping[Kind, str]] = {"svg": "image/svg+xml", "png": "image/png", "pdf": "application/pdf"}
_SHARPNESS: Final = 3  # pixels of a PNG to one of the drawing
_MOST_KEPT: Final = 400  # of about 20 kB
# Names of Vega's groups: to a reader of screens the drawing is one picture, which says itself.
_IDLE: Final = re.compile(
    r' (?:role="graphics[^"]*"|aria-[a-z]+="[^"]*"|pointer-events="none")|<path class="foreground"[^>]*display="none"/>'
)
_RAISED: Final = re.compile("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")  # the font that comes with vl-convert has few of these
_TEXT: Final = re.compile(">[^<]+<")
_DIGITS: Final = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "−0123456789")
_TSPAN: Final = '<tspan baseline-shift="super" font-size="70%">{}</tspan>'
_LARGE: Final = 200_000  # letters of a chart that is not kept
_kept: Final[OrderedDict[str, str]] = OrderedDict()
_one_at_a_time: Final = threading.Lock()
_PROGRAM: Final = """
import base64, json, sys, vl_convert
kind, sharpness, given = json.load(sys.stdin)
made = {
    "chart": vl_convert.vegalite_to_svg,
    "png": lambda svg: base64.b64encode(vl_convert.svg_to_png(svg, scale=sharpness)).decode(),
    "pdf": lambda svg: base64.b64encode(vl_convert.svg_to_pdf(svg)).decode(),
}
print(json.dumps([made[kind](each) for each in given]))
"""


def svgs(specs: Sequence[dict[str, Any]]) -> list[str]:
    """Each chart as SVG; its words stay text. Raises RuntimeError for what Vega-Lite cannot draw."""
    asked = [json.dumps(spec, allow_nan=False, ensure_ascii=False) for spec in specs]
    with _one_at_a_time:
        new = [spec for spec in dict.fromkeys(asked) if spec not in _kept]
        found = {spec: _kept[spec] for spec in asked if spec in _kept}
        if new:
            drawn = _made("chart", new)
            found |= {spec: _IDLE.sub("", svg) for spec, svg in zip(new, drawn, strict=True)}
        for spec in [spec for spec in found if len(spec) < _LARGE]:
            _kept[spec] = found[spec]
            _kept.move_to_end(spec)
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
    return [found[spec] for spec in asked]


def as_file(svg: str, kind: Kind) -> bytes:
    """An SVG as a file of that kind."""
    if kind == "svg":
        return svg.encode()
    svg = _TEXT.sub(lambda text: _RAISED.sub(lambda found: _TSPAN.format(found[0].translate(_DIGITS)), text[0]), svg)
    with _one_at_a_time:
        (made,) = _made(kind, [svg])
    return base64.b64decode(made)


def _made(kind: str, given: Sequence[str]) -> list[str]:
    order = json.dumps([kind, _SHARPNESS, given], allow_nan=False)
    command = [sys.executable, "-c", _PROGRAM]
    done = subprocess.run(command, input=order, capture_output=True, encoding="utf-8", check=False)  # noqa: S603  ours
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or [str(done.returncode)])[-1])
    made: list[str] = json.loads(done.stdout)
    return made
