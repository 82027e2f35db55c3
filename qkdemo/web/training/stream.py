"""Live training in the web process: the pool, and the route that streams it.

* `open_pool()`: starts the workers, once per process; `pool()`: them, or None where no server is; `close_pool()`;
* `routes()`: `/live/<run>?layer=&head=&lang=`, server-sent events of a run's steps, from any step on; with `&shipped=1`
  those of the run that came with the app;
* `farewell()`: ends all of them, with a word that the page shows.

All who watch the same head of the same run share one encoder: a step is turned into text once. A message is JSON:
`rows` (steps, or none) and `status`. Its id names how far it reaches, so that a browser that lost the connection asks
for the rest.
"""

import asyncio
import base64
import json
import os
import re
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Final, TypeAlias
from urllib.parse import urlencode

import numpy as np
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from qkdemo.labs.training.view import Rows, rows_of, status_words
from qkdemo.messages import LANGUAGE, in_link, language, now, say
from qkdemo.runs.kept.record import after, cut, joined_chunks
from qkdemo.runs.kept.store import Store, default_url
from qkdemo.runs.workers.job import FRAME_S
from qkdemo.runs.workers.live import RESTING, Live
from qkdemo.runs.workers.pool import Pool
from qkdemo.web.address.language import speak
from qkdemo.web.serving.networks import address_in
from qkdemo.web.serving.places import Place, Places
from qkdemo.web.serving.visitors import name_in

Key: TypeAlias = tuple[int, int, int, str]  # generation, layer, head, language
WORKERS: Final = "QKDEMO_WORKERS"
PATH: Final = "live"
_MANY: Final = 40  # watchers of one stream, from which on it sends eleven times a second
_SLOW_S: Final = 0.09
_HEARTBEAT_S: Final = 15.0
_MOST_MAPS: Final = 400  # in one message
_BEHIND: Final = 100  # messages a watcher may be behind, before the connection is closed; the browser asks anew
_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_RETRY_AFTER: Final = "10"  # seconds
_NAME: Final = re.compile(r"[0-9a-f]{24}")

_PATIENCE_S: Final = 0.5  # for a store that another process has locked: visitors wait

_FAREWELL: Final = b'data: {"closing": true}\n\n'

_pool: Pool | None = None
_leaving = False
_places: Final = Places()
_lock: Final = threading.Lock()
_streams: Final[dict[Key, "_Stream"]] = {}


def open_pool() -> Pool:
    """The workers of this process. A store that cannot be opened is asked again, and the page says so meanwhile."""
    global _pool  # noqa: PLW0603  one per process
    with _lock:
        if _pool is None:
            cores = os.cpu_count() or 1
            workers = int(os.environ.get(WORKERS) or max(1, min(2, cores // 2)))
            url = default_url()
            _pool = Pool(Store(url, later=True, patience_s=_PATIENCE_S), url, workers)
        return _pool


def pool() -> Pool | None:
    """The workers, where `open_pool` was called."""
    return _pool


def close_pool(patience_s: float) -> None:
    """End the workers, which first write what they have; those that take longer are killed."""
    if _pool is not None:
        _pool.end(patience_s)


def farewell() -> None:
    """Tell all who watch that the server is restarting, and the workers to end; in the server's event loop."""
    global _leaving  # noqa: PLW0603  one server per process
    _leaving = True
    for stream in _streams.values():
        stream.end()
    if _pool is not None:  # in a thread: whoever has the pool may wait for a store
        threading.Thread(target=_pool.close, daemon=True, name="closing").start()


def address_of(live: Live, head: tuple[int, int]) -> str:
    """Where its rows come from, seen from where the app answers: the browser knows where that is."""
    query = {"layer": head[0], "head": head[1]} | ({"shipped": 1} if live.shipped else {}) | in_link()
    return f"{PATH}/{live.plan.name}?{urlencode(query)}"


def routes(base: str = "") -> list[Route]:
    """What the server answers besides Streamlit, below the path `base`."""
    return [Route(f"{base}/{PATH}/{{name}}", _watch, methods=["GET"])]


async def _watch(request: Request) -> Response:
    name, head = request.path_params["name"], _head(request)
    speak(request.query_params.get(LANGUAGE))
    if _pool is None or head is None or not _NAME.fullmatch(name):
        return PlainTextResponse("There is no such run.", status_code=404)
    found = _pool.shipped_named if request.query_params.get("shipped") == "1" else _pool.live
    live = await asyncio.to_thread(found, name)
    if live is None or not live.plan.maps or head[0] >= live.plan.map_shape[0] or head[1] >= live.plan.map_shape[1]:
        return PlainTextResponse("There is no such run.", status_code=404)
    who = name_in(request.cookies)
    place = _places.take(who, address_in(request))
    if place is None:
        return PlainTextResponse(say("live.watched"), status_code=503, headers={"Retry-After": _RETRY_AFTER})
    if request.method == "HEAD":
        place.leave()
        return Response(headers=_HEADERS, media_type="text/event-stream")
    key = (live.generation, *head, language.get())
    stream = _streams.setdefault(key, _Stream(_pool, live, head))
    seen = _seen(request.headers.get("last-event-id", ""), live)
    return _Answer(place, stream.messages(seen, key, who), media_type="text/event-stream", headers=_HEADERS)


class _Answer(StreamingResponse):
    """A stream, which holds its place until it ends in whichever way."""

    def __init__(self, place: Place, content: AsyncIterator[bytes], **more: Any) -> None:
        super().__init__(content, **more)
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._place.leave()


def _head(request: Request) -> tuple[int, int] | None:
    texts = [request.query_params.get(name, "0") for name in ("layer", "head")]
    return (int(texts[0]), int(texts[1])) if all(re.fullmatch(r"\d", text) for text in texts) else None


def _seen(told: str, live: Live) -> int:
    """How many steps a browser that comes back has; none if they were of an earlier run."""
    match = re.fullmatch(r"(\d{1,9})-(\d{1,9})", told)
    return min(int(match[2]), live.steps) if match and int(match[1]) == live.generation else 0


class _Stream:
    """One head of one run, encoded once for all who watch it. Lives in the server's event loop."""

    def __init__(self, pool: Pool, live: Live, head: tuple[int, int]) -> None:
        self._pool, self._live, self._head = pool, live, head
        self.queues: set[asyncio.Queue[bytes | None]] = set()
        self._sent = live.steps
        self._version = -1
        self._task: asyncio.Task[None] | None = None
        self._past: tuple[int, int, bytes] | None = None  # the last catching-up message: from, to

    async def messages(self, seen: int, key: Key, who: str = "") -> AsyncIterator[bytes]:
        """Everything after `seen` steps, and then what happens."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(_BEHIND)
        if self._task is None or self._task.done():
            self._sent, self._version = self._live.steps, self._live.version
            self._task = asyncio.create_task(self._run())
        to = self._sent
        self.queues.add(queue)
        if _leaving:
            self.end()
        self._pool.watch(self._live, 1, who)
        try:
            yield self._caught_up(seen, to)
            while True:
                try:
                    message = await asyncio.wait_for(queue.get(), _HEARTBEAT_S)
                except TimeoutError:
                    message = b": still here\n\n"
                if message is None:
                    return
                yield message
        finally:
            self.queues.discard(queue)
            self._pool.watch(self._live, -1, who)
            if not self.queues:
                if self._task is not None:
                    self._task.cancel()
                self._task = None
                _streams.pop(key, None)

    def end(self) -> None:
        """Say goodbye to all who watch."""
        for queue in self.queues:
            while queue.qsize() > _BEHIND - 2:
                queue.get_nowait()
            queue.put_nowait(_FAREWELL)
            queue.put_nowait(None)

    def _caught_up(self, seen: int, to: int) -> bytes:
        """Asked for by many at once when a hall opens a link, so it is kept until it changes."""
        if self._past is None or self._past[:2] != (seen, to) or self._live.state not in RESTING:
            self._past = (seen, to, self._message(seen, to))
        return self._past[2]

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        due = clock()
        while True:
            if self._live.version != self._version:
                self._version = self._live.version
                steps = self._live.steps
                message = self._message(self._sent, steps)
                self._sent = steps
                for queue in list(self.queues):
                    if queue.full():
                        self.queues.discard(queue)
                        while not queue.empty():
                            queue.get_nowait()
                        queue.put_nowait(None)
                    else:
                        queue.put_nowait(message)
            due = max(due + (_SLOW_S if len(self.queues) > _MANY else FRAME_S), clock())
            await asyncio.sleep(due - clock())

    def _message(self, seen: int, to: int) -> bytes:
        status = self._pool.status(self._live)
        told = {
            "status": {
                "state": status.state,
                "text": status_words(status, self._live.plan),
                "notice": now(status.notice),
                "generation": self._live.generation,
            },
            "rows": _encoded(rows_between(self._live, self._head, seen, to)) if to > seen else None,
        }
        data = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
        return f"id: {self._live.generation}-{to}\ndata: {data}\n\n".encode()


def rows_between(live: Live, head: tuple[int, int], seen: int, to: int) -> Rows:
    """The steps after `seen` up to `to`; of many at once, not all have their maps."""
    plan, chunks = live.plan, live.chunks
    curves = np.concatenate([chunk.curves for chunk in chunks])[:to]
    late = [after(cut(chunk, to), seen) for chunk in chunks if chunk.last > seen and chunk.first <= to]
    rows = rows_of(plan, head, curves, joined_chunks(plan, late), seen + 1)
    every = -(-len(rows.mapped) // _MOST_MAPS)
    return rows if every <= 1 else replace(rows, mapped=rows.mapped[::every], maps=_thinned(rows.maps, every))


def _thinned(maps: dict[str, NDArray[np.uint8]], every: int) -> dict[str, NDArray[np.uint8]]:
    return {name: codes[::every] for name, codes in maps.items()}


def _encoded(rows: Rows) -> dict[str, Any]:
    """Numbers as base64 of little-endian float32, column after column; a text only where it changes."""
    scalars = np.stack(list(rows.scalars.values())).astype("<f4")
    return {
        "first": rows.first,
        "count": scalars.shape[1],
        "scalars": _base64(scalars.tobytes()),
        "texts": {name: _changes(texts) for name, texts in rows.texts.items()},
        "mapped": rows.mapped,
        "maps": {name: _base64(np.ascontiguousarray(codes).tobytes()) for name, codes in rows.maps.items()},
    }


def _changes(texts: list[str]) -> list[Any]:
    """[index, text, index, text, …]: the first one, and each that differs from the one before."""
    changes: list[Any] = []
    for at, text in enumerate(texts):
        if at == 0 or text != texts[at - 1]:
            changes += [at, text]
    return changes


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
