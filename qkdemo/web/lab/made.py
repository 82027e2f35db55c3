"""What a page shows of a state, made once for all who ask.

* `make(lab, settings)`: the answer, and its sections, the exhibit first; `made`: the same, kept.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from qkdemo.labs.lab import Lab, R, S, Section
from qkdemo.web.lab.kept import within


def make(lab: Lab[S, R], settings: S) -> tuple[R, Sequence[Section]]:
    """The answer and what is shown of it."""
    result = lab.run(settings)
    sections = list(lab.beneath(result))
    if lab.exhibit is not None:
        main = Section(name="exhibit", exhibit=lab.exhibit(result), picked=partial(lab.picked, settings))
        sections = [main, *sections]
    return result, sections


made: Final = within(32 << 20)(make)  # most visitors go to and fro; half a MB each, and 6 MB at most
