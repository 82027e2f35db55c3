"""Maps that fill in while their visitors look on: rows are read in processes of their own, never in the web process.

* `Fillings(workers)`: the maps of all visitors; who asks for the same one shares it;
* `Filling`: one of them: its cells so far, how far it is, stop and go on.

Rows of all maps that somebody looks at take turns, so that a large one does not hold up a small one. A map that nobody
has looked at for a while (`Fillings.of`) reads no further row.
"""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

from qkdemo.maps.cells import Canvas, Cells, Row, read_row
from qkdemo.maps.reader import Found, Reader
from qkdemo.maps.request import SIZES, Request

StateWord: TypeAlias = Literal["going", "stopped", "whole", "failed"]
_MOST_KEPT: Final = 24  # maps
_ABSENT_S: Final = 5.0  # without a look, after which a map waits
_PATIENCE: Final = 6  # with processes that end
_AHEAD: Final = 2  # rows given out to each process, so that it need not wait for the next


class Filling:
    """A map under way. Whoever changes it holds the lock of its `Fillings`."""

    def __init__(self, request: Request, size: int, clock: Callable[[], float]) -> None:
        self.canvas = Canvas(request)
        self.size = size
        self.state: StateWord = "going"
        self.looked = clock()
        self.done, self.total = 0, 0
        self._rows: deque[Row] = deque()
        self._lost = 0  # rows, one after the other
        self._begun = clock()
        self._clock = clock
        self.plan()

    def plan(self) -> None:
        """The rows of the next size that is not whole."""
        self._rows = deque(self.canvas.rows_of(self.next_size))
        self.done, self.total = 0, len(self._rows)
        self._begun = self._clock()
        if not self._rows:
            self.state = "whole"

    @property
    def next_size(self) -> int:
        """Of the sizes up to what is asked for, the first that is not whole."""
        sizes = [size for size in SIZES if size <= self.size]
        return next((size for size in sizes if self.canvas.rows_of(size)), sizes[-1])

    def resume(self) -> None:
        """Go on where it was."""
        self.state, self._lost = "going", 0
        self.plan()

    def next_row(self) -> Row | None:
        """The row to be read next, if there is one."""
        return self._rows.popleft() if self._rows and self.state == "going" else None

    def take(self, row: Row, found: Found) -> None:
        """A row came in."""
        self.canvas.put(row, found)
        self._lost = 0
        self.done += 1
        if self.done >= self.total:
            self.plan()

    def give_back(self, row: Row) -> None:
        """A process ended before it had read this row: another one tries, but not for ever."""
        self._rows.appendleft(row)
        self._lost += 1
        if self.state == "going" and self._lost >= _PATIENCE:
            self.state = "failed"

    def cells(self, measure: str) -> Cells | None:
        """The finest map that is whole, up to the size that is asked for."""
        for size in reversed([size for size in SIZES if size <= self.size]):
            if (made := self.canvas.cells(size, measure)) is not None:
                return made
        return None

    @property
    def left_s(self) -> float | None:
        """Seconds until the size that is being read is whole, as it goes at present."""
        spent = self._clock() - self._begun
        return spent / self.done * (self.total - self.done) if self.done else None


class Fillings:
    """Maps by what their numbers depend on. Threads share it; nothing here waits for a process."""

    def __init__(self, workers: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._kept: OrderedDict[Any, Filling] = OrderedDict()
        self._turns: deque[Filling] = deque()
        self._readers = [Reader(self._came) for _ in range(workers)]
        self._out: dict[int, Filling] = {}  # whose a row is that is being read

    def of(self, request: Request, size: int) -> Filling:
        """The map, which goes on while it is asked for; coarse to fine, up to `size` cells along a side."""
        with self._lock:
            filling = self._kept.get(request.ground)
            if filling is None:
                filling = self._kept[request.ground] = Filling(request, size, self._clock)
                while len(self._kept) > _MOST_KEPT:
                    _, oldest = self._kept.popitem(last=False)
                    oldest.state = "stopped"
            self._kept.move_to_end(request.ground)
            filling.looked = self._clock()
            if filling.size != size:
                filling.size = size
                if filling.state in ("whole", "going"):
                    filling.state = "going"
                    filling.plan()
            return filling

    def begin(self, filling: Filling, seconds: float = 0.0) -> None:
        """Let it go on; its first size here, as far as that takes no more than so many seconds of this thread's."""
        until = time.thread_time() + seconds
        while seconds and time.thread_time() < until and filling.next_size == SIZES[0] and self._read_here(filling):
            pass
        with self._lock:
            if filling.state == "going" and filling not in self._turns:
                self._turns.append(filling)
            self._hand_out()

    def stop(self, filling: Filling) -> None:
        """What is read stays."""
        with self._lock:
            if filling.state == "going":
                filling.state = "stopped"

    def go_on(self, filling: Filling) -> None:
        """Read what is missing."""
        with self._lock:
            filling.resume()
        self.begin(filling)

    @property
    def processes(self) -> list[int]:
        """The process ids of those that run."""
        return [pid for reader in self._readers if (pid := reader.pid) is not None]

    def close(self) -> None:
        """End the processes, each after the row that it is at."""
        with self._lock:
            self._turns.clear()
        for reader in self._readers:
            reader.close()

    def _read_here(self, filling: Filling) -> bool:
        with self._lock:
            row = filling.next_row()
        if row is None:
            return False
        found = read_row(row)
        with self._lock:
            filling.take(row, found)
        return True

    def _hand_out(self) -> None:
        """Give rows to the processes, one map after the other. Holds the lock."""
        idle = 0
        while self._turns and idle < len(self._turns):
            reader = min(self._readers, key=lambda each: each.waiting)
            if reader.waiting >= _AHEAD:
                return
            filling = self._turns[0]
            self._turns.rotate(-1)
            row = filling.next_row() if self._clock() - filling.looked < _ABSENT_S else None
            if row is not None:
                idle = 0
                self._give(reader, filling, row)
            elif filling.state == "going":  # it waits: for its last rows, or for somebody who looks
                idle += 1
            else:
                self._turns.remove(filling)

    def _give(self, reader: Reader, filling: Filling, row: Row) -> None:
        self._out[id(row)] = filling
        reader.read(row)

    def _came(self, row: Row, found: Found | None) -> None:
        with self._lock:
            filling = self._out.pop(id(row))
            if found is None:
                filling.give_back(row)
            else:
                filling.take(row, found)
            self._hand_out()
