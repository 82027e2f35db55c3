"""Which picture belongs to a request: that of the state which the link names, made once for all who ask for it.

* `Answers`: `await picture(path, query)`: the picture for an address, or None if it has none or it takes too long;
* `state_of(path, query)`: what an address asks for.

A document never waits long for its picture. What making one computes is kept for the page's own script, which asks for
the same a moment later: on the whole nothing is computed twice. Errors cost the picture, never the document.
"""

import asyncio
import logging
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from streamlit.config import get_option

from qkdemo.dials import Dials
from qkdemo.labs import arrows
from qkdemo.labs.registry import LABS
from qkdemo.locale import ENGLISH, language
from qkdemo.messages import LANGUAGE, has, known, say
from qkdemo.web.address.link import LECTURE, OWN, RUN, TRACK, read
from qkdemo.web.first.page import Picture, pictured, pictured_arrows
from qkdemo.web.lab.made import made
from qkdemo.web.pages import HOME

PATIENCE_S: Final = 0.2  # for so long a document waits for its picture
_WAITING: Final = 8  # pictures that may wait for being made
_KEPT: Final = 256
_LONGEST: Final = 2000  # characters of a query
_MOST: Final = 100  # names in it
# Pages that begin with their lab's exhibit, right below their question.
_PAGES: Final = ("drift", "formats", "cache", "cost", "epsilon", "mla", "rope")
_PLANES: Final = ("home", "arrows")  # and with the arrows in the plane; the first has no dials


@dataclass(frozen=True)
class State:
    """What is shown."""

    page: str
    settings: Dials
    lecture: bool
    spoken: str


def page_of(path: str) -> str:
    """The name of the page at a path, which a server may have below another one."""
    below = str(get_option("server.baseUrlPath") or "").strip("/")
    page = path.strip("/")
    return page.removeprefix(below).strip("/").rpartition("/")[2] or HOME


def state_of(path: str, query: str) -> State | None:
    """The state that an address names; None if the page there has no picture for it."""
    page = page_of(path)
    if page not in (*_PAGES, *_PLANES) or len(query) > _LONGEST:
        return None
    try:
        asked = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST))
    except ValueError:
        return None
    if any(name in asked for name in (TRACK, OWN, RUN)):  # a question is open there, or something that no link holds
        return None
    spoken = asked.get(LANGUAGE, ENGLISH)
    if page == HOME:
        settings: Dials = arrows.Settings()
    else:
        lab = LABS[page]
        settings, _ = read(lab.settings, lab.presets, asked, lab.settings())
    return State(page, settings, asked.get(LECTURE) == "1", spoken if known(spoken) else ENGLISH)


class Answers:
    """See above. Used by one event loop."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._made: OrderedDict[State, Future[Picture | None]] = OrderedDict()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="first picture")

    async def picture(self, path: str, query: str) -> Picture | None:
        """What the document at this address begins with."""
        state = state_of(path, query)
        if state is None:
            return None
        making = self._made.get(state)
        if making is None:
            if sum(not each.done() for each in self._made.values()) >= _WAITING:
                return None
            making = self._made[state] = self._thread.submit(copy_context().run, _picture, state)
            if len(self._made) > _KEPT:
                self._made.popitem(last=False)
        else:
            self._made.move_to_end(state)
        if making.done():
            return making.result()
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(making)), self._patience_s)
        except TimeoutError:
            return None


def _picture(state: State) -> Picture | None:
    try:
        language.set(state.spoken)
        return _drawn(state)
    except Exception:  # the page itself will say what is wrong
        logging.getLogger(__name__).exception("A first picture could not be drawn.")
        return None


def _drawn(state: State) -> Picture | None:
    title, name = say(f"page.{state.page}"), state.page
    if isinstance(state.settings, arrows.Settings):
        lead, beside = say("home.lead") if name == HOME else say("arrows.instruction"), name != HOME
        return pictured_arrows(title, lead, arrows.run(state.settings), lecture=state.lecture, beside=beside)
    _, sections = made(LABS[name], state.settings)
    exhibit = sections[0].exhibit
    if exhibit is None:
        return None
    question = (say(f"question.{name}"), say(f"instruction.{name}")) if has(f"question.{name}") else ("", "")
    return pictured(title, question, *exhibit, lecture=state.lecture)
