"""The run that a visitor looks at: which one it is, and what the visitor does with it.

* `attend(settings)`: the visitor's run, started on arrival; `Shown`: it, and what the dials say beside it;
* `on_pick(pick)`: a control of the exhibit; `fork(...)`, `start()`, `again()`: what buttons call;
* `trained_here(live)`: whether a run was trained here to its end, or is under way.

Dials that describe another run than the one on screen start nothing: the page says so and offers it. A link that is
opened starts its run; one that is recorded is shown as it is, and one that came with the app, unless it was trained
here to its end or is being trained: that goes first.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import parse_qsl, urlencode

import pyarrow as pa
import streamlit as st

from qkdemo.charts.spec import Live as Stream
from qkdemo.charts.spec import Pick
from qkdemo.labs.training.lab import Fork, ForkWord, Result, Settings, forked_from, plan_of, with_forks
from qkdemo.labs.training.lessons import lessons
from qkdemo.labs.training.view import pace_of, recorded_exhibit, shown_head
from qkdemo.labs.training.words import explain
from qkdemo.messages import phrase, say
from qkdemo.runs.budget import is_dear, plan_bytes, price
from qkdemo.runs.plan import Plan
from qkdemo.runs.workers.live import RESTING, Live
from qkdemo.runs.workers.pool import Pool, PoolError
from qkdemo.web.address.language import speak_on
from qkdemo.web.connection import HELD
from qkdemo.web.lab.controls import turn
from qkdemo.web.serving.networks import here
from qkdemo.web.serving.visitors import name_in, new_name
from qkdemo.web.training.stream import address_of, pool

Offer: TypeAlias = tuple[str, ForkWord, float, int]  # its name, what it changes, the rate and the steps after it
PREFIX: Final = "training"
_HELD: Final = f"{HELD}run"
_GOING: Final = "going"
_SHIPPED: Final = "shipped"
_SHOWN, _AT, _GO, _AGAIN, _VISITOR = (f"{PREFIX}:{word}" for word in ("shown", "at", "go", "again", "visitor"))
_CAME: Final = f"{PREFIX}:{_SHIPPED}"  # whether the run on screen is the one that came with the app


@dataclass(frozen=True, eq=False)
class Shown:
    """A run on screen: the settings it was started with, and whether the dials now describe another one."""

    settings: Settings
    plan: Plan
    live: Live
    own: bool
    other: bool
    at: int | None  # the step that is looked at, if not the newest
    turned: Settings  # what the dials say
    begins: int  # the last step that is known of their run

    @property
    def resting(self) -> bool:
        """Whether nothing trains it now."""
        return self.live.state in RESTING

    @property
    def cost(self) -> str:
        """What training it here takes."""
        workers = pool()
        assert workers is not None
        return price(workers.seconds_of([self.plan]), plan_bytes(self.plan))

    @property
    def new_rate(self) -> float | None:
        """The learning rate of the dials, if nothing else makes another run of what they describe."""
        rate = self.turned.learning_rate
        return rate if self.other and _same_run(self.settings.but(learning_rate=rate), self.turned) else None

    @property
    def words(self) -> list[str]:
        """What its numbers say, once it rests."""
        return self.live.once("words", lambda: explain(self.plan, self.live.chunk.curves)) if self.resting else []

    @property
    def lessons(self) -> list[str]:
        """What it teaches beyond which twin won, once it is finished."""
        return self.live.once("lessons", lambda: lessons(self.plan, self.live.chunk.curves)) if self.resting else []

    @property
    def recorded(self) -> pa.Table | None:
        """Its rows, as its exhibit draws them, once it is finished."""
        result = Result(self.settings, self.plan, self.live.chunk.curves)
        return self.live.once("rows", lambda: recorded_exhibit(result)[0]) if self.resting and self.live.steps else None

    def source(self) -> Stream:
        """Where the exhibit gets its rows."""
        url = address_of(self.live, shown_head(self.settings))
        pace = min(pace_of(self.settings), 200.0)
        return {
            "url": url,
            "source": f"{url}#{self.live.generation}",
            "own": self.own,
            "shipped": self.live.shipped,
            "pace": pace,
            "resting": self.resting,
            "shown": self.live.steps,
            "lead": phrase("training.fork.lead"),
            "forks": [
                {"label": say(f"training.fork.{name}"), "help": say(f"training.fork.{name}_help")}
                for name, *_ in offers(self.settings)
            ],
        }


def attend(settings: Settings) -> Shown | str:
    """What is on this visitor's screen; a sentence if it cannot be."""
    workers = pool()
    if workers is None:
        return say("training.no_server")
    held: Settings | None = st.session_state.get(_SHOWN)
    if held is None:
        held = _before()
    asked = st.session_state.pop(_GO, False)  # by a press, not by the link alone
    same = _same_run(settings, held)
    new = asked or held is None or (not same and _at_hand(workers, settings, held))
    if new or same or held is None:
        held = settings
    plan = plan_of(held)
    live = None if new else _on_screen(workers, plan)
    if live is None:
        try:
            live = _opened(workers, held, asked=asked)
        except PoolError as error:
            return str(error)
        st.session_state[_AT] = None
    st.session_state[_SHOWN], st.session_state[_CAME] = held, live.shipped
    _hold(held, live)
    if not live.shipped:  # which is everybody's, and plays at each one's pace
        workers.set_pace(live, visitor(), pace_of(held))
    other = not _same_run(settings, held)
    known = workers.look(plan_of(settings)) if other and live.state in RESTING else None
    begins = known.steps if known is not None else 0
    at: int | None = st.session_state.get(_AT)
    return Shown(held, plan, live, workers.owns(live, visitor()), other, at, settings, begins)


def trained_here(live: Live | None) -> bool:
    """Whether it was trained to its end on this server, or goes on now: then it goes before one that came along."""
    return live is not None and (live.state == "finished" or live.state not in RESTING)


def _on_screen(workers: Pool, plan: Plan) -> Live | None:
    return workers.shipped(plan) if st.session_state.get(_CAME) else workers.live(plan.name)


def _opened(workers: Pool, settings: Settings, *, asked: bool) -> Live:
    """The run that these dials describe: recorded, or started, unless that takes too much and nobody `asked` for it."""
    plan, again = plan_of(settings), st.session_state.pop(_AGAIN, False)
    known = workers.look(plan)
    came = None if asked or trained_here(known) else workers.shipped(plan)
    if came is not None:
        return came
    if not asked and is_dear([plan]):
        dear = say("live.dear", price=price(workers.seconds_of([plan]), plan_bytes(plan)))
        return workers.show(plan, visitor(), dear)
    return workers.start(plan, visitor(), pace=pace_of(settings), again=again, address=here())


def _hold(shown: Settings, live: Live) -> None:
    told = {_GOING: int(live.state not in RESTING), _SHIPPED: int(live.shipped)}
    st.session_state[_HELD] = urlencode(told | shown.to_texts())


def _before() -> Settings | None:
    """What was on screen before the server, or the browser, was away; a run that went on then goes on."""
    told = dict(parse_qsl(st.session_state.get(_HELD, "")))
    if not told:
        return None
    st.session_state[_GO] = st.session_state.get(_GO, False) or told.pop(_GOING, "0") == "1"
    st.session_state[_CAME] = told.pop(_SHIPPED, "0") == "1"
    return Settings.from_texts(told)[0]


def visitor() -> str:
    """Who this is: the name that this server gave the browser; where that keeps no cookies, one for this session."""
    if _VISITOR not in st.session_state:
        st.session_state[_VISITOR] = name_in(st.context.cookies.to_dict()) or new_name()
    name: str = st.session_state[_VISITOR]
    return name


def shown_run() -> str:
    """The name of the run that this visitor last saw on the training page, or nothing."""
    held: Settings | None = st.session_state.get(_SHOWN)
    return plan_of(held).name if held is not None else ""


def on_pick(pick: Pick) -> None:
    """What was done in the exhibit."""
    speak_on()
    workers = pool()
    held: Settings | None = st.session_state.get(_SHOWN)
    if workers is None or held is None:
        return
    live = _on_screen(workers, plan_of(held))
    if "fork" in pick:
        _fork_from(held, pick)
    elif live is not None:
        _do(pick, workers, live, held)


def _do(pick: Pick, workers: Pool, live: Live, held: Settings) -> None:
    match pick:
        case {"command": "play"}:
            try:
                workers.start(live.plan, visitor(), pace=pace_of(held), address=here())
            except PoolError as error:
                st.toast(str(error))
        case {"command": "pause"}:
            workers.pause(live, visitor())
        case {"command": "step"}:
            workers.step(live, visitor())
        case {"command": "stop"}:
            workers.stop(live, visitor())
        case {"command": "train"}:
            start()
        case {"dial": step}:
            st.session_state[_AT] = int(step) if 1 <= step < live.steps else None
        case _:  # news: the page is drawn anew, and that is all
            pass


def start() -> None:
    """Start what the dials describe."""
    st.session_state[_GO] = True


def again() -> None:
    """Train the run on screen once more, from its beginning."""
    st.session_state[_GO] = st.session_state[_AGAIN] = True


def offers(settings: Settings) -> list[Offer]:
    """The forks that the exhibit offers, in the order in which it names them."""
    offered: list[Offer] = [("norm_on", "norm_on", 0.003, 0)] if settings.variant != "none" else []
    offered += [("qk_rate", "qk_rate", 0.003, 0), ("way_back", "rate", 0.003, 600)]
    return offered + ([("none", "none", 0.003, 0)] if settings.fork != "none" else [])


def fork(shown: Shown, word: ForkWord, rate: float, steps: int) -> None:
    """Go on from the step that is looked at: with this fork, or with `none` without any."""
    _go_on(shown.settings, word, min(shown.at or max(shown.live.steps, 1), shown.plan.steps), rate, steps)


def _fork_from(held: Settings, pick: Pick) -> None:
    """Go on from the step that was on screen when the exhibit's button was pressed."""
    offered, step = offers(held), pick.get("dial", 0)
    if pick["fork"] < len(offered) and step >= 1:
        _, word, rate, steps = offered[pick["fork"]]
        _go_on(held, word, min(int(step), plan_of(held).steps), rate, steps)


def _go_on(settings: Settings, word: ForkWord, at: int, rate: float, steps: int) -> None:
    forked = with_forks(settings, ()) if word == "none" else forked_from(settings, Fork(word, at, rate, steps))
    turn(Settings, PREFIX, forked.as_dict())
    st.session_state[_GO] = True


def put_back(shown: Shown) -> None:
    """Turn the dials to the run on screen."""
    turn(Settings, PREFIX, shown.settings.as_dict())


def _same_run(settings: Settings, held: Settings | None) -> bool:
    return held is not None and plan_of(settings).name == plan_of(held).name


def _at_hand(workers: Pool, settings: Settings, held: Settings | None) -> bool:
    """Whether the dials' run is recorded to its end, and nothing is interrupted by showing it."""
    now = _on_screen(workers, plan_of(held)) if held is not None else None
    if now is not None and now.state not in RESTING:
        return False
    plan = plan_of(settings)
    found = workers.look(plan)
    if found is not None and trained_here(found):
        return found.state == "finished"
    return workers.shipped(plan) is not None
