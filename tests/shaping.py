"""A line that many share, before a server of this machine: `shaped(port, bytes_s, delay_s)`.

What the server sends waits until the line has room for it, all connections together, and for the delay of a radio; what
clients send is little and passes.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

_PIECE: Final = 16 << 10


class Line:
    """How much one second carries; pieces of all connections by turns."""

    def __init__(self, bytes_s: float) -> None:
        self._bytes_s, self._free_at = bytes_s, 0.0
        self.carried = 0

    async def carry(self, size: int) -> None:
        """Waits until so many bytes have passed."""
        now = asyncio.get_running_loop().time()
        self._free_at = max(self._free_at, now) + size / self._bytes_s
        self.carried += size
        await asyncio.sleep(self._free_at - now)


@asynccontextmanager
async def shaped(port: int, bytes_s: float, delay_s: float = 0.0) -> AsyncIterator[tuple[int, Line]]:
    """The port at which the server behind `port` is reached over such a line, and the line."""
    line, busy = Line(bytes_s), set[asyncio.Task[None]]()

    async def pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, down: bool) -> None:
        try:
            while piece := await source.read(_PIECE):
                if down:
                    await line.carry(len(piece))
                sink.write(piece)
                await sink.drain()
        except OSError:
            pass
        finally:
            sink.close()

    async def connect(client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        await asyncio.sleep(delay_s)
        server, forth = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pass_on(client, forth, down=False), pass_on(server, back, down=True))

    def accept(client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(connect(client, back))
        busy.add(task)
        task.add_done_callback(busy.discard)

    listening = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with listening:
        yield listening.sockets[0].getsockname()[1], line
        for task in busy:
            task.cancel()
