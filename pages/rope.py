"""The rotary lab: one query and one key, normalised before and after rotary positions, moved through the text."""

from functools import partial

from qkdemo.labs import rope
from qkdemo.labs.rope.view import distance_exhibit, picked, rope_exhibit
from qkdemo.messages import say
from qkdemo.web.lab.controls import dials, turn
from qkdemo.web.lab.exhibit import exhibit
from qkdemo.web.lab.takeaway import Takeaway, take_away
from qkdemo.web.track.lesson import tell

settings = dials(rope.Settings, rope.PRESETS, "rope")
result = rope.run(settings)
drawn = rope_exhibit(result)
exhibit(*drawn, key="rope.exhibit", on_pick=lambda pick: turn(rope.Settings, "rope", picked(pick, "position")))
tell(" ".join(rope.explain(result)))


def distances() -> None:
    """Both orders against the distance."""
    exhibit(
        *distance_exhibit(result),
        key="rope.distances",
        on_pick=lambda pick: turn(rope.Settings, "rope", picked(pick, "distance")),
    )


take_away(
    Takeaway(
        lab="rope",
        settings=settings,
        tables={
            say("rope.table.position"): partial(rope.rows, result),
            say("rope.table.distance"): partial(rope.distance_rows, result),
        },
        programs={say("page.rope"): partial(rope.snippet, settings)},
    ),
    {say("rope.distances"): distances},
)
