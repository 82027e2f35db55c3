"""The sphere in words.

* `explain(result)`; `shares(side)`: how many directions each key of a side has, and how many are clear to none;
* `whole_percent(share)`: as a share of all directions is written;
* `alt_plain`, `alt_sphere`, `alt_scores`: its pictures.
"""

import math

import numpy as np

from qkdemo.labs.sphere.lab import FRAME, Result, Side
from qkdemo.messages import say
from qkdemo.notation import written


def explain(result: Result) -> list[str]:
    """Which key the query chooses on either side, how much of the sphere is decided, and what leaves the frame."""
    settings = result.settings
    plain, twin = (_chosen(side) for side in (result.plain, result.twin))
    values = {
        "scale": written(settings.scale),
        "gain": written(settings.gain),
        "plain": plain[0],
        "plain_weight": plain[1],
        "norm": twin[0],
        "norm_weight": twin[1],
    }
    kind = "alike" if plain[0] == twin[0] else "apart"
    kind = kind if settings.query_length else "none"
    decided = "decided" if settings.query_length else "decided_of_none"
    lengths = np.linalg.norm([result.query, *result.keys], axis=-1)
    return [
        say(f"sphere.finding.{kind}", **values),
        say(f"sphere.{decided}", plain=_part(result.plain.decided), norm=_part(result.twin.decided)),
        say(
            "sphere.longest",
            length=written(float(lengths.max())),
            frame=written(FRAME),
            outside=result.outside,
            arrows=len(lengths),
        ),
        scores(result),
    ]


def scores(result: Result) -> str:
    """The pair that is shown: its angle, and the score on either side."""
    at = result.shown
    return say(
        "sphere.score" if result.settings.query_length else "sphere.score_of_none",
        key=at,
        angle=written(math.degrees(math.acos(max(-1.0, min(1.0, result.cosine)))), 3),
        q=written(float(np.linalg.norm(result.query))),
        k=written(float(np.linalg.norm(result.keys[at]))),
        plain=written(float(result.plain.logits[at])),
        norm=written(float(result.twin.logits[at])),
    )


def alt_plain(result: Result) -> str:
    """The arrows of plain attention."""
    said = explain(result)
    return say("sphere.alt.plain", arrows=", ".join(_arrow(result, at) for at in range(len(result.keys))), rest=said[2])


def alt_sphere(result: Result) -> str:
    """The sphere, and how much of it each key has."""
    return say("sphere.alt.sphere", regions=_regions(result.twin), decided=_part(result.twin.decided))


def alt_scores(result: Result) -> str:
    """Both surfaces of the score."""
    return say(
        "sphere.alt.scores",
        longest=written(float(result.lengths[-1])),
        plain=written(float(result.plain_scores[-1, -1])),
        norm=written(float(result.twin_scores[-1, -1])),
        pair=scores(result),
    )


def shares(side: Side) -> str:
    """How many of all directions each key has, and in how many none has nine tenths."""
    if side.level:
        return say("sphere.level")
    return say("sphere.shares", regions=_regions(side), undecided=_part(side.undecided))


def _regions(side: Side) -> str:
    each = (say("sphere.region", key=at, share=_part(side.territory(at))) for at in range(len(side.weights)))
    return ", ".join(each)


def _chosen(side: Side) -> tuple[int, str]:
    at = int(side.weights.argmax())
    return at, _percent(float(side.weights[at]))


def _arrow(result: Result, at: int) -> str:
    return say("sphere.arrow", key=at, length=written(float(np.linalg.norm(result.keys[at]))))


def whole_percent(share: float) -> str:
    """A share of all directions: they are counted on a grid, and a tenth of a per cent would be the grid's."""
    return str(round(100 * share))


def _part(share: float) -> str:
    return say("number.percent", x=whole_percent(share))


def _percent(share: float) -> str:
    return say("number.percent", x=written(100 * share, 3))
