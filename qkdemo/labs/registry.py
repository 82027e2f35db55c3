"""Every lab: the one list from which pages, command line, tracks, handouts and tests take what they need.

* `LABS`: name → lab, in the order of the navigation.
"""

from collections.abc import Mapping
from typing import Final

from qkdemo.labs import (
    arrows,
    cache,
    cost,
    drift,
    epsilon,
    formats,
    learning_rates,
    mla,
    models,
    placement,
    rope,
    sphere,
    training,
    words,
)
from qkdemo.labs.lab import Lab

LABS: Final[Mapping[str, Lab]] = {
    lab.name: lab
    for lab in (
        arrows.LAB,
        words.LAB,
        drift.LAB,
        formats.LAB,
        training.LAB,
        learning_rates.LAB,
        placement.LAB,
        rope.LAB,
        sphere.LAB,
        epsilon.LAB,
        cache.LAB,
        mla.LAB,
        cost.LAB,
        models.LAB,
    )
}
