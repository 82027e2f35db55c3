"""What a page shows of a state, made once for all who ask.

* `make(lab, settings)`: the answer, and its sections, the exhibit first; `made`: the same, kept.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from qkdemo.labs.lab import Lab, R, S, Section
from qkdemo.messages import in_each_language


def make(lab: Lab[S, R], settings: S) -> tuple[R, Sequence[Section]]:
    """The answer and what is shown of it."""
    result = lab.run(settings)
    sections = list(lab.beneath(result))
    if lab.exhibit is not None:
        main = Section(name="exhibit", exhibit=lab.exhibit(result), picked=partial(lab.picked, settings))
        sections = [main, *sections]
    return result, sections


# Most visitors go to and fro. Half a MB each, beside the results, which the labs keep.
made: Final = in_each_language(64)(make)
