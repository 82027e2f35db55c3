"""A track on paper: one HTML file with every question, its figure, and what was found, for print or for a folder.

* `handout(track, progress, base_url, answers=...)`: the file as text: no script, nothing fetched; A4, light;
* as a program, `python -m qkdemo.web.handout beginner > beginner.html`; it trains what nobody has recorded.

`answers` says where they stand: `below` each question, or at the `end`, on pages of their own. At the end, a question's
figure shows no more than the page does before it is answered.
"""

import argparse
import io
import math
import re
import sys
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final, Literal, TypeAlias, get_args
from urllib.parse import urlencode

import pyarrow as pa
import torch

from qkdemo.charts.axes import View
from qkdemo.charts.figure import figure
from qkdemo.charts.look import Look, cell, row_of
from qkdemo.charts.spec import Drawn
from qkdemo.dials import SettingsError
from qkdemo.facts.references import REFERENCES, named_in
from qkdemo.messages import language, say
from qkdemo.notation import written
from qkdemo.runs.progress import ProgressLine
from qkdemo.tracks.catalogue import TRACKS, is_trained, text
from qkdemo.tracks.progress import Progress, Said, read_progress
from qkdemo.tracks.prose import without_targets
from qkdemo.tracks.stop import Choose, Estimate, Evidence, Stop
from qkdemo.training.settings import ENGINE
from qkdemo.web.handout_style import STYLE
from qkdemo.web.lab.exhibit import untold
from qkdemo.web.link import STOP, TRACK
from qkdemo.web.read_off import that_matter, with_marks
from qkdemo.web.track.evidence import drawn, evidence_now, train_here
from qkdemo.web.track.lesson import verdict

AnswersWord: TypeAlias = Literal["below", "end"]
_MOST_HEATS: Final = 2
_MARKED: Final = (re.compile(r"`([^`]+)`"), re.compile(r"\*\*([^*]+)\*\*"))  # what little Markdown sentences hold
_LETTERS: Final = "ABCDEFGH"


def handout(track: str, progress: Progress, base_url: str, answers: AnswersWord = "below") -> str:
    """The file. `progress` holds the visitor's predictions, `base_url` is where the app answers."""
    stops = TRACKS[track]
    sheets = [
        _Sheet(track, at, stop, said, base_url) for at, (stop, said) in enumerate(zip(stops, progress, strict=True))
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
    return (
        f"<!DOCTYPE html>\n<html lang='{language.get()}'><head><meta charset='utf-8'>"
        f"<meta name='viewport' content='width=device-width, initial-scale=1'><title>{title}</title>"
        f"<style>{STYLE}</style></head><body><main><header><h1>{title}</h1><p>{lead}</p></header>{body}"
        f"{_sources(sheets)}<footer>{_versions()}</footer></main></body></html>\n"
    )


def _sources(sheets: Sequence["_Sheet"]) -> str:
    """Where the statements of the sheet were read that no lab computes."""
    keys = dict.fromkeys(key for sheet in sheets for key in sheet.sources())
    items = (
        f"<li><a href='{escape(one.link)}'>{escape(one.who)}, {escape(one.title)}</a>, {escape(one.part)}</li>"
        for one in (REFERENCES[key] for key in keys)
    )
    return f"<section><h2>{escape(say('handout.sources'))}</h2><ul>{''.join(items)}</ul></section>" if keys else ""


class _Sheet:
    """One stop of the file."""

    def __init__(self, track: str, at: int, stop: Stop, said: Said, base_url: str) -> None:
        self.track, self.number, self.stop, self.said, self.base_url = track, at + 1, stop, said, base_url
        self.found = evidence_now(stop)
        self.numbers: Mapping[str, str] = self.found.numbers if self.found is not None else {}

    def whole(self) -> str:
        """Question, figure and answer in one."""
        parts = (self._question(), self._figure(drawn(self.stop, self.stop.state)), self._answer(), self._live())
        return self._section("".join(parts))

    def sources(self) -> list[str]:
        """The sources that its answer names."""
        return [] if self.found is None else named_in(text(self.track, self.stop, "explain", self.numbers))

    def question_alone(self) -> str:
        """The question, and what may be seen before it is answered."""
        start = self.stop.start
        seen = self._figure(drawn(self.stop, start), start_only=True) if start is not None else ""
        return self._section(self._question() + seen + self._live())

    def answer_alone(self) -> str:
        """The answer, with the figure that it is read from."""
        again = f"<p class='again'>{_html(self._text('question'))}</p>"
        found = self._figure(drawn(self.stop, self.stop.state)) + self._answer()
        return f"<section class='stop'><h3>{self._title()}</h3>{again}{found}</section>"

    def _section(self, inner: str) -> str:
        return f"<section class='stop' id='stop-{self.number}'><h2>{self._title()}</h2>{inner}</section>"

    def _title(self) -> str:
        return f"{self.number} · {_html(self._text('title'))}"

    def _text(self, part: str) -> str:
        return without_targets(text(self.track, self.stop, part, self.numbers))

    def _question(self) -> str:
        asked = f"<p class='question'>{_html(self._text('question'))}</p>"
        match self.stop.ask:
            case Choose(words=words):
                choices = "".join(f"<li>{_html(self._text(f'choice.{word}'))}</li>" for word in words)
                return f"{asked}<ol class='choices' type='A'>{choices}</ol>{self._prediction()}"
            case Estimate(low=low, high=high):
                span = escape(say("handout.estimate", low=written(low), high=written(high)))
                return f"{asked}<p class='span'>{span}</p>{self._prediction()}"

    def _prediction(self) -> str:
        """What was predicted; else a line to write on."""
        if self.said.guess is None:
            return f"<p class='mine blank'>{escape(say('handout.mine'))}</p>"
        return f"<p class='mine'>{escape(say('handout.mine'))} <b>{_html(self._said(self.said.guess))}</b></p>"

    def _said(self, guess: str | float) -> str:
        if isinstance(guess, str) and isinstance(self.stop.ask, Choose):
            letter = _LETTERS[self.stop.ask.words.index(guess)]
            return say("handout.choice", letter=letter, choice=self._text(f"choice.{guess}"))
        return written(float(guess), 3)

    def _answer(self) -> str:
        if self.found is None:
            return f"<div class='answer'><p>{escape(say('handout.not_trained'))}</p></div>"
        judged = self._judged(self.found)
        kind = "right" if isinstance(self.stop.ask, Choose) else "measured"
        right = _html(say(f"handout.{kind}", answer=self._said(self.found.answer)))
        explained = _html(self._text("explain"))
        return f"<div class='answer'><p><b>{right}</b>{judged}</p><p>{explained}</p></div>"

    def _judged(self, found: Evidence) -> str:
        guess = self.said.guess
        if guess is None:
            return ""
        right = verdict(self.stop, guess, found)
        return f" {escape(say('handout.predicted' if right else 'handout.not_predicted'))}"

    def _figure(self, exhibit: Drawn | None, *, start_only: bool = False) -> str:
        """The panel that matters, and what the heads look at; with the finding under them."""
        if exhibit is None:
            return ""
        table, view = exhibit
        look = self._look(table, view, start_only=start_only)
        if self.found is not None and not start_only:
            view = with_marks(table, view, (self.track, self.stop), self.found, (-math.inf, math.inf))
        matter = _that_matter(view, self.stop)
        panels = [figure(table, view, untold(panel) if start_only else panel, look) for panel in matter]
        finding = escape(cell(table, view["finding"], look.row))
        at = escape(f"{view['dial']['label']} {cell(table, view['dial']['text'], look.row)}")
        caption = f"<figcaption>{at}. {finding}</figcaption>"
        return f"<figure><div class='panels'>{''.join(panels)}</div>{caption}</figure>"

    def _look(self, table: pa.Table, view: View, *, start_only: bool) -> Look:
        """The committed row; before the answer, of the dial that the run turns only the part up to it."""
        row, last = row_of(table, view, view["dial"]["at"]), table.num_rows - 1
        name = view["dial"].get("name", view["dial"]["column"])
        turned = self.stop.turned.get(name)
        if start_only:
            if turned is None:
                return Look(row, 0, last)
            return Look(row, row, last) if turned < view["dial"]["at"] else Look(row, 0, row)
        return Look(row, 0, last, self._marks(name))

    def _marks(self, dial: str) -> Sequence[Mapping[str, object]]:
        """The prediction that is drawn into the chart, as the page does."""
        ask, guess = self.stop.ask, self.said.guess
        x = self.stop.turned.get(dial, getattr(self.stop.state, dial, None))
        if not isinstance(ask, Estimate) or not isinstance(guess, float) or x is None:
            return ()
        return [{"column": ask.column, "x": x, "y": guess, "label": say("lesson.guess_mark", guess=written(guess, 3))}]

    def _live(self) -> str:
        address = escape(self._address())
        seed = getattr(self.stop.state, "seed", None)
        seeded = "" if seed is None else f" · {escape(say('handout.seed', seed=seed))}"
        return f"<p class='live'>{escape(say('handout.live'))} <a href='{address}'>{address}</a>{seeded}</p>"

    def _address(self) -> str:
        page = self.stop.lab.name
        query = urlencode({TRACK: self.track, STOP: self.stop.name})
        return f"{self.base_url.rstrip('/')}/{page}?{query}"


def _that_matter(view: View, stop: Stop) -> list[View]:
    """The panels that the stop is read from; beside a single one the heat maps, if there are not too many."""
    matter = that_matter(view, stop)
    heats = [panel for panel in view["panels"] if panel["kind"] == "heat" and panel not in matter]
    return matter if len(matter) > 1 else [*matter, *heats[:_MOST_HEATS]]


def _html(sentence: str) -> str:
    """A sentence as HTML, its Markdown too; no line begins with a per cent sign."""
    code, strong = _MARKED
    return strong.sub(r"<b>\1</b>", code.sub(r"<code>\1</code>", escape(sentence))).replace(" %", "\u00a0%")


def _versions() -> str:
    stated = say(
        "handout.versions", torch=torch.__version__.split("+")[0], engine=ENGINE, python=sys.version.split()[0]
    )
    return f"<p>{escape(stated)}</p><p>{escape(say('handout.numbers'))}</p>"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the file of a track to standard output."""
    parser = argparse.ArgumentParser(prog="python -m qkdemo.web.handout", description=say("handout.command"))
    parser.add_argument("track", choices=list(TRACKS))
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
