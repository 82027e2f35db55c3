"""The runs behind losses over learning rates: started on arrival, one rate after another, shown as they come.

* `attend(settings)`: the sweep of a visitor; `Sweep`: how it stands, and what is trained of it;
* `start(settings)`, `stop()`, `show_shipped()`: what buttons call; `own_run(settings)`: the visitor's last twins.

Every rate is a run of its own in the store, or several where its seeds are trained apart, so that what is trained is
there at once the next time, also for others. What takes long, or much memory, waits for a press. So does a sweep that
came with the app: that is shown, whole, until it is trained here.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final

import streamlit as st

from qkdemo.labs.learning_rates.lab import Ended, Result, Settings, order, parts_of, plans_of, result_from
from qkdemo.labs.learning_rates.view import Own, own_of
from qkdemo.messages import now, say
from qkdemo.runs.budget import Part, is_dear, plan_bytes, price
from qkdemo.runs.durations import duration
from qkdemo.runs.plan import Plan
from qkdemo.runs.workers.live import RESTING, Live
from qkdemo.runs.workers.pool import Pool, PoolError
from qkdemo.training.settings import ENGINE
from qkdemo.web.address.link import marked
from qkdemo.web.serving.networks import here
from qkdemo.web.training.shown import shown_run, visitor
from qkdemo.web.training.stream import pool

PREFIX: Final = "sensitivity"
_STARTED: Final = f"{PREFIX}:started"
_HERE: Final = f"{PREFIX}:here"  # the sweep that this visitor asked to be trained here


@dataclass(frozen=True, eq=False)
class Sweep:
    """The runs of all rates, in order, each in its parts; None for one that nothing is known of."""

    settings: Settings
    lives: tuple[tuple[Live | None, ...], ...]
    workers: Pool

    @property
    def plans(self) -> tuple[Plan, ...]:
        """All runs of each rate."""
        return plans_of(self.settings)

    @property
    def going(self) -> bool:
        """Whether one of them trains or waits for a worker, or is about to."""
        return any(live.state not in RESTING for live in self._known) or self.wanted

    @property
    def wanted(self) -> bool:
        """Whether it trains for this visitor."""
        mine = any(live.state not in RESTING and visitor() in live.visitors for live in self._known)
        return mine or self.workers.still_wants(visitor(), _plans_in(self.settings))

    @property
    def finished(self) -> bool:
        """Whether all of them are trained to their end."""
        return all(live is not None and live.state == "finished" for live in chain.from_iterable(self.lives))

    @property
    def shipped(self) -> bool:
        """Whether it came with the app."""
        return all(live.shipped for live in self._known) and bool(self._known)

    @property
    def result(self) -> Result:
        """The curves as far as they are trained."""
        rates = zip(parts_of(self.settings), self.lives, strict=True)
        return result_from(self.settings, tuple(_ended(parts, lives) for parts, lives in rates))

    @property
    def share(self) -> float:
        """The share of all steps that is trained."""
        done = sum(live.steps * live.plan.width for live in self._known)
        return done / (self._runs * self.settings.steps)

    @property
    def words(self) -> str:
        """How far it is, how long it still takes, or when it was recorded."""
        done = sum(all(live is not None and live.state == "finished" for live in lives) for lives in self.lives)
        if done == len(self.lives):
            times = [live.recorded for live in self._known]
            if None in times:
                return say("rates.status.unkept")
            when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(max(filter(None, times))))
            key = "rates.status.shipped" if self.shipped else "rates.status.recorded"
            return say(key, runs=self._runs, when=when, engine=ENGINE)
        text = say("rates.status.done", done=done, count=len(self.lives), runs=self._runs)
        active = next((live for live in self._known if live.state not in RESTING), None)
        if active is None:
            return f"{text} · {say('training.status.stopped')}" if self.share else text
        status = self.workers.status(active)
        if active.state == "queued":
            wait = say("training.status.queued", position=status.position, wait=duration(status.wait_s))
            return f"{text} · {wait}"
        return f"{text} · {say('training.status.left', left=duration(self._left_s))}"

    @property
    def price(self) -> str:
        """What the rest of it takes, and whether that is too much for a link alone."""
        if self.shipped:
            every = _plans_in(self.settings)
            return say("rates.came", price=price(self.workers.seconds_of(every), max(map(plan_bytes, every))))
        rest = _rest(self.settings, self.workers)
        most = max(map(plan_bytes, rest), default=0)
        said = say("rates.price", price=price(self._left_s, most))
        return f"{said} {say('rates.dear')}" if is_dear(rest) else said

    @property
    def notices(self) -> list[str]:
        """What the workers have to say, once each."""
        said = [now(live.notice) for live in self._known if live.notice]
        return list(dict.fromkeys([*said, *filter(None, [self.workers.away])]))

    @property
    def _known(self) -> list[Live]:
        return [live for live in chain.from_iterable(self.lives) if live is not None]

    @property
    def _left_s(self) -> float:
        return self.workers.seconds_of(_plans_in(self.settings)) * (1 - self.share)

    @property
    def _runs(self) -> int:
        return sum(plan.width for plan in self.plans)


def attend(settings: Settings) -> Sweep | str:
    """The sweep on this visitor's screen; a sentence if there can be none.

    The first one of a visit is started, unless it came with the app, takes too much for that, or may be recorded in a
    store that cannot be asked; later, dials that describe another one start nothing by themselves.
    """
    workers = pool()
    if workers is None:
        return say("training.no_server")
    if not st.session_state.get(_STARTED):
        st.session_state[_STARTED] = True
        if not came(settings, workers) and not is_dear(_rest(settings, workers)) and not workers.away:
            _train(settings, workers)
    return look(settings, workers)


def look(settings: Settings, workers: Pool) -> Sweep:
    """The sweep as it stands now."""
    workers.attend(visitor())
    sweep = Sweep(settings, _lives(settings, workers.look), workers)
    if sweep.wanted or sweep.finished or st.session_state.get(_HERE) == plans_of(settings):
        return sweep
    return Sweep(settings, _lives(settings, workers.shipped), workers) if came(settings, workers) else sweep


def came(settings: Settings, workers: Pool) -> bool:
    """Whether all of this sweep came with the app."""
    return all(workers.shipped(plan) is not None for plan in _plans_in(settings))


def start(settings: Settings) -> None:
    """Train here what is not trained here yet, and show that."""
    st.session_state[_HERE] = plans_of(settings)
    workers = pool()
    if workers is not None:
        _train(settings, workers)


def show_shipped() -> None:
    """Show the curves that came with the app again."""
    st.session_state.pop(_HERE, None)


def _train(settings: Settings, workers: Pool) -> None:
    parts = parts_of(settings)
    plans = [part.plan for at in order(len(parts)) for part in parts[at]]
    try:
        workers.start_all(plans, visitor(), here())
    except PoolError as error:
        st.toast(str(error))


def stop() -> None:
    """Let this visitor's runs rest; what is trained stays."""
    workers = pool()
    if workers is not None:
        workers.leave(visitor())


def own_run(settings: Settings) -> Own | None:
    """The run that the link marks, else the last one of this visitor's training page, if it can be drawn."""
    workers = pool()
    name = marked() or shown_run()
    live = workers.live(name) if workers is not None and name else None
    return own_of(live, settings) if live is not None else None


def _lives(settings: Settings, find: Callable[[Plan], Live | None]) -> tuple[tuple[Live | None, ...], ...]:
    return tuple(tuple(find(part.plan) for part in parts) for parts in parts_of(settings))


def _plans_in(settings: Settings) -> list[Plan]:
    return [part.plan for parts in parts_of(settings) for part in parts]


def _rest(settings: Settings, workers: Pool) -> list[Plan]:
    """The plans of a sweep that are not trained to their end."""
    plans = _plans_in(settings)
    return [plan for plan in plans if (live := workers.look(plan)) is None or live.state != "finished"]


def _ended(parts: tuple[Part, ...], lives: tuple[Live | None, ...]) -> Ended | None:
    """What became of the runs of one rate; None where some of them are not finished."""
    found = [live for live in lives if live is not None and live.state == "finished"]
    if len(found) < len(parts):
        return None
    return Ended.joined(parts, [live.once("ended", partial(_of, live)) for live in found])


def _of(live: Live) -> Ended:
    return Ended.of(live.plan, live.chunk.curves)
