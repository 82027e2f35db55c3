"""The ladder of any entry that a pointer stands on, asked for by the browser.

* `ladder_texts(value, cast)`: where a value sits in each format, as texts;
* `details(result)`: what an exhibit's heat map needs to ask for the ladder of one of its entries;
* `routes()`: `/ladder?stage=…&cast=…&row=…&column=…&exact=…&held=…`, the answer: texts of a table's columns.

Texts of all entries would be a hundred times what one visitor looks at; the answer to one is a few lines.
"""

import math
from functools import lru_cache
from typing import Final, get_args
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from qkdemo.bits import Rung
from qkdemo.format_words import stage_name
from qkdemo.labs.formats import SHOWN, Result, ladder
from qkdemo.notation import written
from qkdemo.stages import STAGES, STORED, CastWord, StageWord
from qkdemo.strings import say
from qkdemo.web.axes import View

PATH: Final = "ladder"
PARTS: Final = ("stored", "neighbours", "spacing", "bits", "decimal")
_TOLD_APART: Final = 9  # digits that tell neighbouring float32 numbers apart
_LONGEST: Final = 32  # characters of a number
_FRESH_S: Final = 3600  # the answer to the same question is the same


def entry_texts(exact: float, held: float) -> dict[str, str]:
    """An entry in float64 and as held."""
    return {"entry.exact": written(exact, _TOLD_APART), "entry.held": written(held, _TOLD_APART)}


@lru_cache(maxsize=10_000)
def ladder_texts(value: float, cast: CastWord) -> dict[str, str]:
    """Where `value` sits in each format, by the name of the column that says it."""
    rungs = zip(STORED, ladder(value, cast), strict=True)
    return {f"{part}.{word}": text for word, rung in rungs for part, text in _rung_texts(rung).items()}


def title(stage: StageWord, row: int, column: int) -> str:
    """Whose ladder it is."""
    return say("formats.panel.ladder", row=row, column=column, stage=stage_name(stage))


def details(result: Result, panel: int) -> View:
    """Where the texts of any entry of the shown stage come from, and which panel says them."""
    shown = result.shown
    question = urlencode({"stage": shown.stage, "cast": result.settings.fp8_cast})
    numbers = {"exact": shown.exact, "held": shown.values}
    return {
        "url": f"{PATH}?{question}",
        "panel": panel,
        "numbers": {name: [repr(x) for x in values.ravel().tolist()] for name, values in numbers.items()},
    }


def routes(base: str = "") -> list[Route]:
    """What the server answers besides Streamlit, below the path `base`."""
    return [Route(f"{base}/{PATH}", _answer, methods=["GET"])]


async def _answer(request: Request) -> Response:
    asked = request.query_params
    stage = next((stage for stage in STAGES if stage == asked.get("stage")), None)
    cast = next((cast for cast in get_args(CastWord) if cast == asked.get("cast")), None)
    exact, held = (_number(asked.get(name, "")) for name in ("exact", "held"))
    row, column = (_place(asked.get(name, "")) for name in ("row", "column"))
    if stage is None or cast is None or exact is None or held is None or row is None or column is None:
        return PlainTextResponse("There is no such entry.", status_code=404)
    texts = ladder_texts(exact, cast) | entry_texts(exact, held)
    headers = {"Cache-Control": f"private, max-age={_FRESH_S}"}
    return JSONResponse({"title": title(stage, row, column), "texts": texts}, headers=headers)


def _number(text: str) -> float | None:
    try:
        return float(text) if len(text) <= _LONGEST else None
    except ValueError:
        return None


def _place(text: str) -> int | None:
    return int(text) if len(text) <= len(str(SHOWN)) and text.isdecimal() and int(text) < SHOWN else None


def _rung_texts(rung: Rung) -> dict[str, str]:
    none = say("formats.cell.none")
    below, above = written(rung.below, _TOLD_APART), written(rung.above, _TOLD_APART)
    decimal = rung.decimal if math.isfinite(rung.stored) else written(rung.stored)
    texts = (
        written(rung.stored, _TOLD_APART),
        none if math.isnan(rung.below) else say("formats.ladder.pair", below=below, above=above),
        none if math.isnan(rung.spacing) else written(rung.spacing, 6),
        f"{rung.sign} {rung.exponent} {rung.mantissa}",
        decimal.replace("-", "−"),
    )
    return dict(zip(PARTS, texts, strict=True))
