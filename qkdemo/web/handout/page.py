"""A track on paper: one HTML file with every question, its figure, and what was found, for print or for a folder.

* `handout(track, progress, base_url, answers=...)`: the file as text: no script, nothing fetched; A4, light;
* as a program, `python -m qkdemo.web.handout.page beginner > beginner.html`; `--form slides` or `--form markdown`
  writes the track as those; it trains what nobody has recorded.

`answers` says where they stand: `below` each question, or at the `end`, on pages of their own. At the end, a question's
figure shows no more than the page does before it is answered.
"""

import argparse
import io
import sys
from collections.abc import Sequence
from html import escape
from typing import Literal, TypeAlias, get_args

from qkdemo.charts.paper.page import filled
from qkdemo.dials import SettingsError
from qkdemo.facts.references import REFERENCES
from qkdemo.labs.caption import made_with
from qkdemo.messages import language, say
from qkdemo.runs.progress import ProgressLine
from qkdemo.tracks.catalogue import TRACKS, is_trained, text
from qkdemo.tracks.progress import Progress, read_progress
from qkdemo.tracks.stop import Stop
from qkdemo.training.settings import ENGINE
from qkdemo.web.handout.deck import deck
from qkdemo.web.handout.markdown import markdown
from qkdemo.web.handout.sheet import Sheet
from qkdemo.web.handout.style import STYLE
from qkdemo.web.track.evidence import evidence_now, train_here

AnswersWord: TypeAlias = Literal["below", "end"]
FormWord: TypeAlias = Literal["page", "slides", "markdown"]


def handout(track: str, progress: Progress, base_url: str, answers: AnswersWord = "below") -> str:
    """The file. `progress` holds the visitor's predictions, `base_url` is where the app answers."""
    stops = TRACKS[track]
    sheets = [
        Sheet(track, at, stop, said, base_url) for at, (stop, said) in enumerate(zip(stops, progress, strict=True))
    ]
    if answers == "below":
        body = "".join(sheet.whole() for sheet in sheets)
    else:
        key = "".join(sheet.answer_alone() for sheet in sheets)
        head = f"<h2 class='key'>{escape(say('handout.answers'))}</h2>"
        body = "".join(sheet.question_alone() for sheet in sheets) + f"<section class='answers'>{head}{key}</section>"
    name = say(f"track.{track}.name")
    title = escape(say("handout.title", track=name))
    lead = escape(say(f"handout.lead_{answers}", count=len(stops)))
    return filled(
        f"<!DOCTYPE html>\n<html lang='{language.get()}'><head><meta charset='utf-8'>"
        f"<meta name='viewport' content='width=device-width, initial-scale=1'><title>{title}</title>"
        f"<style>{STYLE}</style></head><body><main><header><h1>{title}</h1><p>{lead}</p></header>{body}"
        f"{_sources(sheets)}<footer>{_versions()}</footer></main></body></html>\n"
    )


def _sources(sheets: Sequence[Sheet]) -> str:
    """Where the statements of the sheet were read that no lab computes."""
    keys = dict.fromkeys(key for sheet in sheets for key in sheet.sources())
    items = (
        f"<li><a href='{escape(one.link)}'>{escape(one.who)}, {escape(one.title)}</a>, {escape(one.part)}</li>"
        for one in (REFERENCES[key] for key in keys)
    )
    return f"<section><h2>{escape(say('handout.sources'))}</h2><ul>{''.join(items)}</ul></section>" if keys else ""


def _versions() -> str:
    versions = {name: version.split("+")[0] for name, version in made_with().items()}
    stated = say("handout.versions", **versions, engine=ENGINE, python=sys.version.split()[0])
    return f"<p>{escape(stated)}</p><p>{escape(say('handout.numbers'))}</p>"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the file of a track to standard output."""
    parser = argparse.ArgumentParser(prog="python -m qkdemo.web.handout.page", description=say("handout.command"))
    parser.add_argument("track", choices=list(TRACKS))
    parser.add_argument("--form", choices=get_args(FormWord), default="page", help=say("handout.command_form"))
    parser.add_argument(
        "--answers", choices=get_args(AnswersWord), default="below", help=say("handout.command_answers")
    )
    parser.add_argument("--url", default="http://localhost:8501", help=say("handout.command_url"))
    parser.add_argument("--said", default="", help=say("handout.command_said"))
    given = parser.parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    progress = read_progress(given.said, TRACKS[given.track])
    lacking = [stop for stop in TRACKS[given.track] if not _is_answered(given.track, stop)]
    match given.form:
        case "slides":
            sys.stdout.write(deck(given.track, given.url))
        case "markdown":
            sys.stdout.write(markdown(given.track, given.url))
        case _:
            sys.stdout.write(handout(given.track, progress, given.url, given.answers))
    return 1 if lacking else 0


def _is_answered(track: str, stop: Stop) -> bool:
    """Whether the sheet can hold the answer of a stop: a run that nobody has recorded is trained, and that is said."""
    if not is_trained(stop) or evidence_now(stop) is not None:
        return True
    title = text(track, stop, "title")
    sys.stderr.write(say("handout.training", title=title) + "\n")
    try:
        train_here(stop, ProgressLine())
    except (SettingsError, RuntimeError, MemoryError) as error:  # torch says RuntimeError when it is full
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        sys.stderr.write(say("handout.lacking", title=title, reason=reason) + "\n")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
