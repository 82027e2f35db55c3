"""A process that trains, `python -m qkdemo.runs.workers.worker`: one job at a time, and nothing is held between jobs.

* `main()`: orders arrive as lines of JSON on standard input; frames leave on standard output. The store is the one
  that the environment names; `read_frame(read)`: a frame, as its server reads it.

Every few seconds a frame says that the process is there, and whether its work moved since the last one: a process that
is stopped, or hangs, is found out by its silence. It ends when its input does: a server that dies leaves no worker.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, BinaryIO, Final

import torch

from qkdemo.dials import SettingsError
from qkdemo.runs.batches import keep_freed_memory
from qkdemo.runs.kept.parking import Parking, folder_beside
from qkdemo.runs.kept.store import Store, default_url
from qkdemo.runs.plan import Plan
from qkdemo.runs.workers.job import Hand, Job, train

BEAT_S: Final = 2.0
_LAST_S: Final = 10.0  # to come to rest, for a worker whose server is gone
_NICE: Final = 5


def main() -> None:
    """Serve orders until standard input ends."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no frame
    torch.set_num_threads(1)
    keep_freed_memory()
    if hasattr(os, "nice"):
        os.nice(_NICE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches this process too, whose server ends it
    desk = _Desk(output, default_url())
    desk.emit("ready", {}, ())
    threading.Thread(target=desk.listen, args=(sys.stdin.buffer,), daemon=True).start()
    threading.Thread(target=desk.pulse, daemon=True).start()
    desk.work()


class _Desk:
    """Where orders wait for the one job at a time."""

    def __init__(self, output: BinaryIO, url: str) -> None:
        self._output = output
        self._writing = threading.Lock()
        self._ordered = threading.Condition()
        self._orders: list[dict[str, Any]] = []
        self._hand = Hand()
        self._number = -1
        self._store = Store(url, later=True)
        self._parking = Parking(folder_beside(url))
        self._idle = 0  # how often it was looked for an order
        self._ended = False

    def listen(self, lines: BinaryIO) -> None:
        """Take orders: a job with its number, or a word about the job of that number."""
        for line in lines:
            order = json.loads(line)
            with self._ordered:
                if order["do"] == "train":
                    self._orders.append(order)
                    self._number, self._hand = order["number"], Hand(order["pace"] or float("inf"))
                    self._ordered.notify()
                elif order["number"] == self._number and order["do"] == "stop":
                    self._hand.stop()
                elif order["number"] == self._number and order["do"] == "pace":
                    self._hand.set_pace(order["pace"] or float("inf"))
        last = threading.Timer(_LAST_S, os._exit, (1,))  # whatever the job is busy with
        last.daemon = True
        last.start()
        with self._ordered:
            self._ended = True
            self._hand.abandon()
            self._ordered.notify()

    def work(self) -> None:
        """Do jobs until the input has ended."""
        while True:
            with self._ordered:
                self._ordered.wait_for(lambda: self._orders or self._ended, BEAT_S / 2)
                self._idle += 1
                if self._ended:
                    return
                if not self._orders:
                    continue
                order, hand = self._orders.pop(0), self._hand
            self._do(order, hand)

    def pulse(self) -> None:
        """Say every few seconds how far the work is: where the same is said twice, nothing moves."""
        while True:
            time.sleep(BEAT_S)
            self.emit("alive", {"number": self._number, "beats": [self._hand.beats, self._idle]}, ())

    def _do(self, order: dict[str, Any], hand: Hand) -> None:
        number = order["number"]

        def emit(kind: str, told: dict[str, Any], data: tuple[bytes, ...]) -> None:
            self.emit(kind, told | {"number": number}, data)

        try:
            job = Job(Plan.from_json(order["plan"]), order["until"], order["after"], order["seconds"])
            train(job, self._store, hand, emit, self._parking)
        except (
            SettingsError,
            ValueError,
            RuntimeError,
            MemoryError,
        ) as error:  # torch says RuntimeError when it is full
            emit("failed", {"why": str(error).splitlines()[0] if str(error) else type(error).__name__}, ())

    def emit(self, kind: str, told: dict[str, Any], data: tuple[bytes, ...]) -> None:
        """Write a frame: the length of a line of JSON, the line, the bytes whose lengths it gives."""
        head = json.dumps({"kind": kind, "sizes": [len(part) for part in data], **told}).encode()
        try:
            with self._writing:
                self._output.write(len(head).to_bytes(4, "big") + head + b"".join(data))
                self._output.flush()
        except BrokenPipeError:
            os._exit(0)


def read_frame(read: Callable[[int], bytes]) -> tuple[dict[str, Any], list[bytes]] | None:
    """The next frame, or None at the end, also at one in mid-frame."""
    length = read(4)
    if len(length) < 4:
        return None
    head = read(int.from_bytes(length, "big"))
    try:
        told = json.loads(head)
    except ValueError:
        return None
    data = [read(size) for size in told["sizes"]]
    whole = all(len(part) == size for part, size in zip(data, told["sizes"], strict=True))
    return (told, data) if whole else None


if __name__ == "__main__":
    main()
