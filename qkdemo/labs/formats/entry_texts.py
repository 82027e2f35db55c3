"""The ladder of any entry that a pointer stands on, asked for by the browser.

* `ladder_texts(value, cast)`: where a value sits in each format, as texts;
* `details(result)`: what an exhibit's heat map needs to ask for the ladder of one of its entries;
* `routes()`: `/ladder?stage=…&cast=…&row=…&column=…&exact=…&held=…`, the answer: texts of a table's columns.

Texts of all entries would be a hundred times what one visitor looks at; the answer to one is a few lines.
"""

import math
from typing import Final
from urllib.parse import urlencode

from qkdemo.charts.panels import Details
from qkdemo.floats.layout import Rung
from qkdemo.labs.formats.lab import Result, ladder
from qkdemo.labs.formats.stages.kinds import STORED, CastWord, StageWord
from qkdemo.labs.formats.words import stage_name
from qkdemo.messages import in_each_language, in_link, say
from qkdemo.notation import spelled, written

PATH: Final = "ladder"
PARTS: Final = ("stored", "neighbours", "spacing", "bits", "decimal")
_TOLD_APART: Final = 9  # digits that tell neighbouring float32 numbers apart


def entry_texts(exact: float, held: float) -> dict[str, str]:
    """An entry in float64 and as held."""
    return {"entry.exact": written(exact, _TOLD_APART), "entry.held": written(held, _TOLD_APART)}


@in_each_language(10_000)
def ladder_texts(value: float, cast: CastWord) -> dict[str, str]:
    """Where `value` sits in each format, by the name of the column that says it."""
    rungs = zip(STORED, ladder(value, cast), strict=True)
    return {f"{part}.{word}": text for word, rung in rungs for part, text in _rung_texts(rung).items()}


def title(stage: StageWord, row: int, column: int) -> str:
    """Whose ladder it is."""
    return say("formats.panel.ladder", row=row, column=column, stage=stage_name(stage))


def details(result: Result, panel: int) -> Details:
    """Where the texts of any entry of the shown stage come from, and which panel says them."""
    shown = result.shown
    question = urlencode({"stage": shown.stage, "cast": result.settings.fp8_cast} | in_link())
    numbers = {"exact": shown.exact, "held": shown.values}
    return {
        "url": f"{PATH}?{question}",
        "panel": panel,
        "numbers": {name: [repr(x) for x in values.ravel().tolist()] for name, values in numbers.items()},
    }


def _rung_texts(rung: Rung) -> dict[str, str]:
    none = say("formats.cell.none")
    below, above = written(rung.below, _TOLD_APART), written(rung.above, _TOLD_APART)
    decimal = spelled(rung.decimal) if math.isfinite(rung.stored) else written(rung.stored)
    texts = (
        written(rung.stored, _TOLD_APART),
        none if math.isnan(rung.below) else say("formats.ladder.pair", below=below, above=above),
        none if math.isnan(rung.spacing) else written(rung.spacing, 6),
        f"{rung.sign} {rung.exponent} {rung.mantissa}",
        decimal,
    )
    return dict(zip(PARTS, texts, strict=True))
