"""What may a KV cache hold, so that decoding stays the function that a fresh pass computes?"""

from functools import partial
from typing import Final

from qkdemo.floats.formats import noise
from qkdemo.labs.cache.lab import ERRORS, PRESETS, Result, Settings, every, label_rows, report, rows, run
from qkdemo.labs.cache.plane import PLANE
from qkdemo.labs.cache.program import snippet
from qkdemo.labs.cache.view import cache_exhibit, picked
from qkdemo.labs.cache.words import explain
from qkdemo.labs.lab import Lab

__all__ = ["LAB", "PRESETS", "Result", "Settings", "every", "explain", "label_rows", "rows", "run", "snippet"]

LAB: Final = Lab(
    name="cache",
    icon=":material/database:",
    menu="contract",
    question=__doc__,
    settings=Settings,
    presets=PRESETS,
    run=run,
    explain=explain,
    exhibit=cache_exhibit,
    picked=picked,
    tables=lambda result: {
        "cache.table.steps": partial(rows, result),
        "cache.table.ways": partial(label_rows, result.settings),
    },
    programs=lambda result: {"cache.program.title": partial(snippet, result.settings)},
    report=report,
    noise=dict.fromkeys(ERRORS, noise("float32")),
    plane=PLANE,
)
