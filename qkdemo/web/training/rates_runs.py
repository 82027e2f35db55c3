"""The runs behind losses over learning rates: started on arrival, one rate after another, shown as they come.

* `attend(settings)`: the sweep of a visitor; `Sweep`: how it stands, and what is trained of it;
* `start(settings)`, `stop(settings)`: what buttons call; `own_run(settings)`: the visitor's last twins.

Every rate is a run of its own in the store, so that what is trained is there at once the next time, also for others.
"""

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import streamlit as st

from qkdemo.labs.learning_rates.lab import Result, Settings, order, plans_of, result_of
from qkdemo.labs.learning_rates.view import Own, own_of
from qkdemo.messages import say
from qkdemo.runs.durations import duration
from qkdemo.runs.live import RESTING, Live
from qkdemo.runs.plan import Plan
from qkdemo.runs.pool import Pool, PoolError
from qkdemo.training.settings import ENGINE
from qkdemo.web.link import marked
from qkdemo.web.training.shown import shown_run, visitor
from qkdemo.web.training.stream import pool

PREFIX: Final = "sensitivity"
_STARTED: Final = f"{PREFIX}:started"


@dataclass(frozen=True, eq=False)
class Sweep:
    """The runs of all rates, in order; None for one that nothing is known of."""

    settings: Settings
    plans: tuple[Plan, ...]
    lives: tuple[Live | None, ...]
    workers: Pool

    @property
    def going(self) -> bool:
        """Whether one of them trains or waits for a worker."""
        return any(live is not None and live.state not in RESTING for live in self.lives)

    @property
    def result(self) -> Result:
        """The curves as far as they are trained."""
        done = tuple(live if live is not None and live.state == "finished" else None for live in self.lives)
        return _result(self.settings, done)

    @property
    def share(self) -> float:
        """The share of all steps that is trained."""
        return sum(live.steps for live in self.lives if live is not None) / (len(self.plans) * self.settings.steps)

    @property
    def words(self) -> str:
        """How far it is, how long it still takes, or when it was recorded."""
        done = sum(live is not None and live.state == "finished" for live in self.lives)
        if done == len(self.lives):
            times = [live.recorded for live in self.lives if live is not None]
            if None in times:
                return say("rates.status.unkept")
            when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(max(filter(None, times))))
            return say("rates.status.recorded", runs=self._runs, when=when, engine=ENGINE)
        text = say("rates.status.done", done=done, count=len(self.lives), runs=self._runs)
        for live in self.lives:
            if live is not None and live.state == "queued":
                status = self.workers.status(live)
                return (
                    text + " · " + say("training.status.queued", position=status.position, wait=duration(status.wait_s))
                )
            if live is not None and live.state == "going" and live.step_s is not None:
                left = live.step_s * (1 - self.share) * len(self.plans) * self.settings.steps
                return text + " · " + say("training.status.left", left=duration(left))
        return text + " · " + say("training.status.stopped") if self.share and not self.going else text

    @property
    def notices(self) -> list[str]:
        """What the workers have to say, once each."""
        return list(dict.fromkeys(live.notice for live in self.lives if live is not None and live.notice))

    @property
    def _runs(self) -> int:
        return sum(plan.width for plan in self.plans)


def attend(settings: Settings) -> Sweep | str:
    """The sweep on this visitor's screen; a sentence if there can be none.

    The first one of a visit is started; later, dials that describe another one start nothing by themselves.
    """
    workers = pool()
    if workers is None:
        return say("training.no_server")
    if not st.session_state.get(_STARTED):
        st.session_state[_STARTED] = True
        start(settings)
    workers.attend(visitor())
    return look(settings, workers)


def look(settings: Settings, workers: Pool) -> Sweep:
    """The sweep as it stands now."""
    plans = plans_of(settings)
    workers.attend(visitor())
    return Sweep(settings, plans, tuple(workers.look(plan) for plan in plans), workers)


def start(settings: Settings) -> None:
    """Train what is not trained yet."""
    workers = pool()
    if workers is None:
        return
    plans = plans_of(settings)
    try:
        workers.start_all([plans[at] for at in order(len(plans))], visitor())
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


@lru_cache(maxsize=32)
def _result(settings: Settings, done: tuple[Live | None, ...]) -> Result:
    return result_of(settings, [live.chunk.curves if live is not None else None for live in done])
