"""Maps: `python -m tests.benchmarks.bench_maps`.

* What a map of drift costs, coarse and fine, in processor seconds of one core, beside a bare product of matrices;
* how long a slider of another visitor takes while a map fills in, beside how long it takes while none does: in turns,
  so that what else goes on on the machine meets both.

The target is a ratio of at most 1.3 for the second, and on a quiet machine 0.4 s for the coarse map and 3 s for
33 × 33 cells.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import torch
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from qkdemo.labs.registry import LABS
from qkdemo.maps.cells import Canvas, fill
from qkdemo.maps.request import SIZES, request_of
from tests.benchmarks.bench_states import bare_s
from tests.benchmarks.printing import head, late, line, median
from tests.benchmarks.visitor import Visitor, cpu_ms
from tests.serving import ROOT, served

_BLOCKS, _TURNS = 8, 12
_LOOKS_S = 0.4  # as the page does


def main() -> None:
    """Both."""
    torch.set_num_threads(1)
    costs()
    with tempfile.TemporaryDirectory() as folder, served(ROOT / "app.py", Path(folder) / "log.txt") as app:
        beside(app.address, app.pid)


def costs() -> None:
    """Processor time of every size of the map that drift opens with."""
    head("A map of drift, read in one process")
    bare = 1e3 * bare_s()
    run = LABS["drift"].settings()
    LABS["drift"].run(run)  # what is loaded once
    for size in SIZES[:3]:
        canvas, begun = Canvas(request_of("drift", run.but(seed=size), "", "")), time.process_time()
        for _ in fill(canvas, size):
            pass
        line(f"{size} × {size} cells, CPU", 1e3 * (time.process_time() - begun), bare)


def beside(address: str, pid: int) -> None:
    """One who turns a slider of drift, with and without another one whose map fills in."""
    head("A slider of another visitor, from turn to answer")
    visitor = Visitor(address, "drift")
    for _ in range(_TURNS):
        visitor.turn()
    found: dict[bool, list[float]] = {True: [], False: []}
    spent: dict[bool, float] = {True: 0.0, False: 0.0}
    for block in range(2 * _BLOCKS):
        fills = block % 2 == 1
        with filling(address, block) if fills else nothing():
            before = cpu_ms(pid)
            for _ in range(_TURNS):
                begun = time.perf_counter()
                visitor.turn()
                found[fills].append(1e3 * (time.perf_counter() - begun))
            spent[fills] += cpu_ms(pid) - before
    line("a turn, median", median(found[True]), median(found[False]))
    line("a turn, 95 of 100", late(found[True]), late(found[False]))
    line("CPU of the web process, a turn", *(spent[fills] / _BLOCKS / _TURNS for fills in (True, False)))


class Onlooker(Visitor):
    """Somebody whose map fills in: only the part of the page that shows it runs again."""

    fragment = ""

    def _see(self, message: ForwardMsg) -> None:
        super()._see(message)
        self.fragment = message.delta.fragment_id or self.fragment

    def _request(self) -> bytes:
        request = BackMsg.FromString(super()._request())
        request.rerun_script.fragment_id = self.fragment
        sent: bytes = request.SerializeToString()
        return sent


@contextmanager
def filling(address: str, seed: int) -> Iterator[None]:
    """Somebody looks at a map that fills in, as often as its page does."""
    over, begun = Event(), Event()

    def look() -> None:
        other = Onlooker(address, "map", query=f"cells=65&seed={seed}&y=alignment")
        begun.set()
        while not over.wait(_LOOKS_S):
            other.rerun()

    thread = Thread(target=look)
    thread.start()
    begun.wait()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def nothing() -> Iterator[None]:
    """Nobody."""
    yield


if __name__ == "__main__":
    main()
