"""One stop of a track on paper: its question, its figure, and what was found.

* `Sheet`: a stop, from whose parts the handout, the slides and the Markdown are made; a document draws its pictures
  (`charts.paper.page.filled`);
* `in_html(sentence)`: a sentence as HTML.
"""

import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final
from urllib.parse import urlencode

import pyarrow as pa

from qkdemo.charts.look import Look, cell, row_of
from qkdemo.charts.panels import Panel
from qkdemo.charts.paper.page import figure_html
from qkdemo.charts.spec import Drawn, Exhibit, Guess
from qkdemo.facts.references import named_in
from qkdemo.messages import say
from qkdemo.notation import written
from qkdemo.tracks.catalogue import text
from qkdemo.tracks.progress import Said
from qkdemo.tracks.prose import without_targets
from qkdemo.tracks.stop import Choose, Estimate, Evidence, Stop
from qkdemo.web.address.link import STOP, TRACK
from qkdemo.web.lab.exhibit import untold
from qkdemo.web.read_off import that_matter, with_marks
from qkdemo.web.track.evidence import drawn, evidence_now
from qkdemo.web.track.shown import was_right

_MOST_HEATS: Final = 2
_MARKED: Final = (re.compile(r"`([^`]+)`"), re.compile(r"\*\*([^*]+)\*\*"))  # what little Markdown sentences hold
_LETTERS: Final = "ABCDEFGH"


class Sheet:
    """One stop of the file."""

    most_heats = _MOST_HEATS  # beside a single panel that matters

    def __init__(self, track: str, at: int, stop: Stop, said: Said, base_url: str) -> None:
        self.track, self.number, self.stop, self.said, self.base_url = track, at + 1, stop, said, base_url
        self.found = evidence_now(stop)
        self.numbers: Mapping[str, str] = self.found.numbers if self.found is not None else {}

    def whole(self) -> str:
        """Question, figure and answer in one."""
        parts = (self._question(), self.shown(), self._answer(), self._live())
        return self._section("".join(parts))

    def sources(self) -> list[str]:
        """The sources that its answer names."""
        return [] if self.found is None else named_in(text(self.track, self.stop, "explain", self.numbers))

    def question_alone(self) -> str:
        """The question, and what may be seen before it is answered."""
        return self._section(self._question() + self.seen() + self._live())

    def answer_alone(self) -> str:
        """The answer, with the figure that it is read from."""
        again = f"<p class='again'>{in_html(self.sentence('question'))}</p>"
        found = self.shown() + self._answer()
        return f"<section class='stop'><h3>{self.title()}</h3>{again}{found}</section>"

    def seen(self) -> str:
        """The figure as it may be seen before the answer; empty if every state would give that away."""
        start = self.stop.start
        return self._figure(drawn(self.stop, start), start_only=True) if start is not None else ""

    def shown(self) -> str:
        """The figure that the answer is read from."""
        return self._figure(drawn(self.stop, self.stop.state))

    def _section(self, inner: str) -> str:
        return f"<section class='stop' id='stop-{self.number}'><h2>{self.title()}</h2>{inner}</section>"

    def title(self) -> str:
        """Its number and its title, as HTML."""
        return f"{self.number} · {in_html(self.sentence('title'))}"

    def sentence(self, part: str) -> str:
        """A sentence of the stop, as Markdown."""
        return without_targets(text(self.track, self.stop, part, self.numbers))

    def _question(self) -> str:
        asked = f"<p class='question'>{in_html(self.sentence('question'))}</p>"
        match self.stop.ask:
            case Choose(words=words):
                choices = "".join(f"<li>{in_html(self.sentence(f'choice.{word}'))}</li>" for word in words)
                return f"{asked}<ol class='choices' type='A'>{choices}</ol>{self._prediction()}"
            case Estimate(low=low, high=high):
                span = escape(say("handout.estimate", low=written(low), high=written(high)))
                return f"{asked}<p class='span'>{span}</p>{self._prediction()}"

    def _prediction(self) -> str:
        """What was predicted; else a line to write on."""
        if self.said.guess is None:
            return f"<p class='mine blank'>{escape(say('handout.mine'))}</p>"
        return f"<p class='mine'>{escape(say('handout.mine'))} <b>{in_html(self.in_words(self.said.guess))}</b></p>"

    def in_words(self, guess: str | float) -> str:
        """A prediction, or the answer: the choice with its letter, or the number."""
        if isinstance(guess, str) and isinstance(self.stop.ask, Choose):
            letter = _LETTERS[self.stop.ask.words.index(guess)]
            return say("handout.choice", letter=letter, choice=self.sentence(f"choice.{guess}"))
        return written(float(guess), 3)

    def _answer(self) -> str:
        if self.found is None:
            return f"<div class='answer'><p>{escape(say('handout.not_trained'))}</p></div>"
        judged = self._judged(self.found)
        kind = "right" if isinstance(self.stop.ask, Choose) else "measured"
        right = in_html(say(f"handout.{kind}", answer=self.in_words(self.found.answer)))
        explained = in_html(self.sentence("explain"))
        return f"<div class='answer'><p><b>{right}</b>{judged}</p><p>{explained}</p></div>"

    def _judged(self, found: Evidence) -> str:
        guess = self.said.guess
        if guess is None:
            return ""
        right = was_right(self.stop, guess, found)
        return f" {escape(say('handout.predicted' if right else 'handout.not_predicted'))}"

    def _figure(self, exhibit: Drawn | None, *, start_only: bool = False) -> str:
        """The panel that matters, and what the heads look at; with the finding under them."""
        if exhibit is None:
            return ""
        table, view = exhibit
        look = self._look(table, view, start_only=start_only)
        if self.found is not None and not start_only:
            view = with_marks(table, view, (self.track, self.stop), self.found, (-math.inf, math.inf))
        matter = self._that_matter(view)
        panels = [figure_html(table, view, untold(panel) if start_only else panel, look) for panel in matter]
        finding = escape(cell(table, view["finding"], look.row))
        at = escape(f"{view['dial']['label']} {cell(table, view['dial']['text'], look.row)}")
        caption = f"<figcaption>{at}. {finding}</figcaption>"
        return f"<figure><div class='panels'>{''.join(panels)}</div>{caption}</figure>"

    def _that_matter(self, view: Exhibit) -> list[Panel]:
        """The panels that the stop is read from; beside a single one the heat maps, if there are not too many."""
        matter = that_matter(view, self.stop)
        heats = [panel for panel in view["panels"] if panel["kind"] == "heat" and panel not in matter]
        return matter if len(matter) > 1 else [*matter, *heats[: self.most_heats]]

    def _look(self, table: pa.Table, view: Exhibit, *, start_only: bool) -> Look:
        """The committed row; before the answer, of the dial that the run turns only the part up to it."""
        row, last = row_of(table, view, view["dial"]["at"]), table.num_rows - 1
        name = view["dial"].get("name", view["dial"]["column"])
        turned = self.stop.turned.get(name)
        if start_only:
            if turned is None:
                return Look(row, 0, last)
            return Look(row, row, last) if turned < view["dial"]["at"] else Look(row, 0, row)
        return Look(row, 0, last, self._marks(name))

    def _marks(self, dial: str) -> Sequence[Guess]:
        """The prediction that is drawn into the chart, as the page does."""
        ask, guess = self.stop.ask, self.said.guess
        x = self.stop.turned.get(dial, getattr(self.stop.state, dial, None))
        if not isinstance(ask, Estimate) or not isinstance(guess, float) or x is None:
            return ()
        return [{"column": ask.column, "x": x, "y": guess, "label": say("lesson.guess_mark", guess=written(guess, 3))}]

    def _live(self) -> str:
        address = escape(self.address())
        seed = getattr(self.stop.state, "seed", None)
        seeded = "" if seed is None else f" · {escape(say('handout.seed', seed=seed))}"
        return f"<p class='live'>{escape(say('handout.live'))} <a href='{address}'>{address}</a>{seeded}</p>"

    def address(self) -> str:
        """Where the stop is live."""
        page = self.stop.lab.name
        query = urlencode({TRACK: self.track, STOP: self.stop.name})
        return f"{self.base_url.rstrip('/')}/{page}?{query}"


def in_html(sentence: str) -> str:
    """A sentence as HTML, its Markdown too; no line begins with a per cent sign."""
    code, strong = _MARKED
    return strong.sub(r"<b>\1</b>", code.sub(r"<code>\1</code>", escape(sentence))).replace(" %", "\u00a0%")
