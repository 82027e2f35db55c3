"""The route that answers where an entry sits in each format, for the browser."""

from typing import Final, get_args

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from qkdemo.labs.formats import SHOWN
from qkdemo.labs.formats.entry_texts import PATH, entry_texts, ladder_texts, title
from qkdemo.labs.formats.stages.kinds import STAGES, CastWord
from qkdemo.messages import LANGUAGE
from qkdemo.web.address.language import speak

_LONGEST: Final = 32  # characters of a number


_FRESH_S: Final = 3600  # the answer to the same question is the same


def routes(base: str = "") -> list[Route]:
    """What the server answers besides Streamlit, below the path `base`."""
    return [Route(f"{base}/{PATH}", _answer, methods=["GET"])]


async def _answer(request: Request) -> Response:
    asked = request.query_params
    speak(asked.get(LANGUAGE))
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
