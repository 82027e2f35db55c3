"""How long something takes, in words: `about 8 s`, `about 46 min`, `about 2.5 h`, `about 4 days`.

* `duration(seconds)`: without the word *about*.
"""

from typing import Final

from qkdemo.messages import say
from qkdemo.notation import written

_UNITS: Final = (("s", 1.0, 120.0), ("min", 60.0, 7200.0), ("h", 3600.0, 172_800.0), ("days", 86_400.0, float("inf")))


def duration(seconds: float) -> str:
    """At least one second; two digits from hours on."""
    word, unit, _ = next(each for each in _UNITS if seconds < each[2])
    number = max(1, round(seconds / unit)) if unit < 3600 else seconds / unit
    return say(f"duration.{word}", number=written(number, 2) if unit >= 3600 else str(number))
