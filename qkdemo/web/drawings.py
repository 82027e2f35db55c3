"""Which table and view stand behind a stop: what its page draws, without a page.

* `drawn(stop, state)`: the exhibit of the stop's lab in a state; None where there is none (yet).
"""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from qkdemo.charts.axes import View
from qkdemo.dials import Dials
from qkdemo.labs import cache, cost, drift, epsilon, formats, mla, placement, rope
from qkdemo.labs.cache.view import cache_exhibit
from qkdemo.labs.cost.view import cost_exhibit
from qkdemo.labs.drift.view import drift_exhibit
from qkdemo.labs.epsilon.view import epsilon_exhibit
from qkdemo.labs.formats.view import formats_exhibit
from qkdemo.labs.mla.view import mla_exhibit
from qkdemo.labs.placement.view import placement_exhibit
from qkdemo.labs.rope.view import rope_exhibit
from qkdemo.labs.training import lab as twins
from qkdemo.labs.training.view import live_view, rows_of, shown_head
from qkdemo.runs.record import Chunk
from qkdemo.tracks.stop import Stop
from qkdemo.web.track.evidence import finished

Drawn = tuple[pa.Table, View]

EXHIBITS: Final[Mapping[ModuleType, Callable[[Any], Drawn]]] = {  # as the pages draw them
    cache: lambda state: cache_exhibit(cache.run(state)),
    cost: cost_exhibit,
    drift: lambda state: drift_exhibit(drift.run(state)),
    epsilon: epsilon_exhibit,
    formats: lambda state: formats_exhibit(formats.run(state)),
    mla: lambda state: mla_exhibit(mla.run(state)),
    placement: lambda state: placement_exhibit(placement.run(state)),
    rope: lambda state: rope_exhibit(rope.run(state)),
}


def drawn(stop: Stop, state: Dials) -> Drawn | None:
    """The exhibit of the stop's lab in that state; of a trained stop, its recorded run; None if there is neither."""
    if stop.lab in EXHIBITS:
        return EXHIBITS[stop.lab](state)
    if not isinstance(state, twins.Settings):
        return None
    chunk = finished(twins.plan_of(state))
    return None if chunk is None else _trained(state, chunk)


def _trained(state: twins.Settings, chunk: Chunk) -> Drawn:
    """The curves of a finished run, looked at after its last step."""
    plan = twins.plan_of(state)
    none = chunk.maps[:0]
    rows = rows_of(plan, shown_head(state), chunk.curves, none, 1)
    view = live_view(state, plan, {}, rows.texts["finding"][-1])
    view["dial"] |= {"at": float(len(chunk.curves))}
    scalars = {name: np.asarray(column, np.float64) for name, column in rows.scalars.items()}
    panels = [panel for panel in view["panels"] if panel["kind"] == "curves"]
    return pa.table({**scalars, **rows.texts}), view | {"panels": panels}
