"""A track as slides without a server: one HTML file, in which arrow keys, a remote control, a click or a touch go on.

* `deck(track, base_url)`: the file as text; nothing is fetched, its script is its own.

A stop has two slides, its question and its answer, made of the same parts as the handout (`sheet`).
Printed, every slide is a page.
"""

from collections.abc import Iterator
from html import escape
from typing import Final

from qkdemo.charts.paper.page import filled
from qkdemo.charts.theme import LIGHT, mixed
from qkdemo.messages import language, say
from qkdemo.notation import written
from qkdemo.tracks.catalogue import TRACKS
from qkdemo.tracks.progress import Said
from qkdemo.tracks.stop import Choose, Estimate
from qkdemo.web.handout.sheet import Sheet, in_html
from qkdemo.web.handout.style import STYLE
from qkdemo.web.track.hall import asking

_TINT: Final = mixed(LIGHT.paper, LIGHT.ink, 0.08)
_STYLE: Final = f"""
@page {{ size: 254mm 142.9mm; margin: 0; }}
html {{ font-size: min(2vw, 3.4vh); }}
body {{ font: 1rem/1.35 "Source Sans 3", "Source Sans Pro", "Segoe UI", "Helvetica Neue", Arial, sans-serif; }}
.slide {{ display: none; grid-template: auto minmax(0, 1fr) / 5fr 6fr; gap: 0.5rem 2rem; height: 100vh; padding: 1.2rem 1.6rem 2rem; overflow: hidden; }}
.slide.now {{ display: grid; }}
.slide.words {{ align-content: center; grid-template: none / 1fr; }}
.slide > h2, .slide > h1 {{ grid-column: 1 / -1; margin: 0; font-size: 1.7rem; }}
.slide > div {{ min-height: 0; }}
.slide.words > * {{ font-size: 1.2rem; }}
.slide.words > h1 {{ font-size: 3rem; }}
.slide ol {{ margin: 0.5rem 0; padding: 0; list-style: none; counter-reset: n; }}
.slide li {{ margin-bottom: 0.25rem; padding: 0.1rem 0.5rem 0.1rem 1.8rem; border: 2px solid transparent; border-radius: 0.3rem; text-indent: -1.3rem; counter-increment: n; }}
.slide li::before {{ content: counter(n); display: inline-block; width: 1.3rem; font-weight: 700; text-indent: 0; }}
.slide li.right {{ border-color: {LIGHT.ink}; background: {_TINT}; font-weight: 600; }}
.slide li.right::before {{ content: "✓"; }}
.slide figure, .slide .panels {{ margin: 0; }}
.slide .panel {{ width: 100%; }}
.slide .panel svg {{ width: 100%; max-height: 33vh; }}
.slide .panel:only-child svg {{ max-height: 70vh; }}
.slide .title {{ font-size: 0.9rem; }}
.slide .axis {{ font-size: 0.75rem; }}
.slide figcaption {{ display: none; }}
.slide table {{ font-size: 0.72rem; }}
.slide .panel.grid, .slide .panel.cells {{ overflow: hidden; }}
.count {{ position: fixed; right: 1.6rem; bottom: 0.5rem; color: {LIGHT.muted}; font-size: 0.75rem; }}
@media print {{ .slide, .slide.words {{ display: grid; break-after: page; }} .count {{ display: none; }} }}
"""  # noqa: E501  a style sheet
# Keys, clicks and touches; what does not fit a slide is set smaller.
_SCRIPT: Final = """
const slides = [...document.querySelectorAll(".slide")];
const ways = {
  ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, Enter: 1,
  ArrowLeft: -1, ArrowUp: -1, PageUp: -1, Home: -1e9, End: 1e9,
};
let at = Number(location.hash.slice(1)) - 1 || 0;
function fit(slide) {
  for (const part of slide.querySelectorAll(":scope > div"))
    for (let size = 100; size >= 70; size -= 3) {
      part.style.fontSize = `${size}%`;
      if (part.scrollHeight <= part.clientHeight + 1) break;
    }
}
function show(to) {
  at = Math.max(0, Math.min(slides.length - 1, to));
  slides.forEach((slide, i) => slide.classList.toggle("now", i === at));
  document.querySelector(".count").textContent = `${at + 1} / ${slides.length}`;
  history.replaceState(null, "", `#${at + 1}`);
  fit(slides[at]);
}
addEventListener("keydown", (event) => {
  if (!(event.key in ways) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  show(at + ways[event.key]);
});
addEventListener("click", ({ target, clientX }) => {
  if (!target.closest("a")) show(at + (clientX < innerWidth / 4 ? -1 : 1));
});
addEventListener("resize", () => fit(slides[at]));
show(at);
"""


def deck(track: str, base_url: str) -> str:
    """The file. `base_url` is where the app answers, for the links."""
    name = say(f"track.{track}.name")
    title = escape(say("handout.title", track=name))
    first = _words(title, f"<p>{escape(say('deck.keys'))}</p>")
    sheets = [_Slides(track, at, stop, Said(), base_url) for at, stop in enumerate(TRACKS[track])]
    slides = [first, *(slide for sheet in sheets for slide in _of(sheet)), _last(base_url)]
    return filled(
        f"<!DOCTYPE html>\n<html lang='{language.get()}'><head><meta charset='utf-8'>"
        f"<meta name='viewport' content='width=device-width, initial-scale=1'><title>{title}</title>"
        f"<style>{STYLE}{_STYLE}</style></head><body>{''.join(slides)}<p class='count'></p>"
        f"<script>{_SCRIPT}</script></body></html>\n"
    )


class _Slides(Sheet):
    most_heats = 0


def _of(sheet: Sheet) -> Iterator[str]:
    """The question's slide and the answer's."""
    yield _slide(sheet, f"<p>{in_html(sheet.sentence('question'))}</p>{_asked(sheet)}", sheet.seen())
    again = f"<p>{in_html(asking(sheet.sentence('question')))}</p>"
    if sheet.found is None:
        yield _slide(sheet, f"{again}<p>{escape(say('handout.not_trained'))}</p>", "")
    else:
        yield _slide(
            sheet, f"{again}{_asked(sheet, shown=True)}<p>{in_html(sheet.sentence('explain'))}</p>", sheet.shown()
        )


def _asked(sheet: Sheet, *, shown: bool = False) -> str:
    """The choices, the right one told apart once it is shown; or the number."""
    answer = sheet.found.answer if shown and sheet.found is not None else None
    match sheet.stop.ask:
        case Choose(words=words):
            kinds = [" class='right'" if word == answer else "" for word in words]
            said = [in_html(sheet.sentence(f"choice.{word}")) for word in words]
            return f"<ol>{''.join(f'<li{kind}>{line}</li>' for kind, line in zip(kinds, said, strict=True))}</ol>"
        case Estimate():
            return (
                f"<p><b>{escape(say('handout.measured', answer=written(float(answer or 0))))}</b></p>" if shown else ""
            )


def _slide(sheet: Sheet, words: str, figure: str) -> str:
    return f"<section class='slide'><h2>{sheet.title()}</h2><div>{words}</div><div>{figure}</div></section>"


def _words(title: str, inner: str) -> str:
    return f"<section class='slide words'><h1>{title}</h1>{inner}</section>"


def _last(base_url: str) -> str:
    address = escape(base_url)
    return _words(escape(say("end.title")), f"<p>{escape(say('handout.live'))} <a href='{address}'>{address}</a></p>")
