"""A browser session without a browser: it speaks Streamlit's protocol and turns sliders.

* `Visitor(address, page)`: opens the page; `turn` moves a slider at random, `put` to a place; both return the bytes
  that the server sent for it;
* `cpu_ms(pid)`: processor time that a process has used.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.Slider_pb2 import Slider
from websockets.sync.client import connect

_PATIENCE_S = 60
_TICK_MS = 10  # of Linux's process statistics


@dataclass
class _Handle:
    """What is needed to move one slider."""

    label: str
    places: Sequence[str | float]
    at: str | float


class Visitor:
    """One open page. It follows the address bar and the values that the server sets, as a browser does."""

    def __init__(self, address: str, page: str, seed: int = 0, query: str = "") -> None:
        self.random = random.Random(seed)
        self.page, self.query = page, query
        self.sliders: dict[str, _Handle] = {}
        url = address.replace("http", "ws", 1) + "/_stcore/stream"
        protocols: Any = ["streamlit"]
        self.socket = connect(url, subprotocols=protocols, compression=None, max_size=None, legacy=True)
        self.rerun()

    def turn(self) -> int:
        """Any slider to any of its places."""
        slider = self.random.choice(list(self.sliders.values()))
        slider.at = self.random.choice(slider.places)
        return self.rerun()

    def put(self, label: str, place: int) -> int:
        """The slider of that label to one of its places."""
        slider = next(slider for slider in self.sliders.values() if slider.label == label)
        slider.at = slider.places[place]
        return self.rerun()

    def rerun(self) -> int:
        """Runs the page with the sliders as they stand. Raises RuntimeError if it shows an exception."""
        self.socket.send(self._request())
        received = 0
        while True:
            data = self.socket.recv(timeout=_PATIENCE_S, decode=False)
            received += len(data)
            message = ForwardMsg.FromString(data)
            if message.HasField("page_info_changed"):
                self.query = message.page_info_changed.query_string
            elif message.HasField("delta"):
                self._see(message)
            elif message.WhichOneof("type") == "script_finished":
                return received

    def _request(self) -> bytes:
        request = BackMsg()
        state = request.rerun_script
        state.page_name, state.query_string = self.page, self.query
        for name, slider in self.sliders.items():
            widget = state.widget_states.widgets.add(id=name)
            if isinstance(slider.at, str):
                widget.string_array_value.data.append(slider.at)
            else:
                widget.double_array_value.data.append(slider.at)
        sent: bytes = request.SerializeToString()
        return sent

    def _see(self, message: ForwardMsg) -> None:
        element = message.delta.new_element
        if element.HasField("exception"):
            raise RuntimeError(f"{self.page or 'The page'} shows {element.exception.type}: {element.exception.message}")
        if element.HasField("slider"):
            self._learn(element.slider)

    def _learn(self, slider: Slider) -> None:
        words = list(slider.options)
        steps = 0 if words else round((slider.max - slider.min) / slider.step)
        places: Sequence[str | float] = words or [slider.min + step * slider.step for step in range(steps + 1)]
        at: str | float = words[int(slider.default[0])] if words else slider.default[0]
        if slider.set_value:
            at = slider.raw_value[0] if words else slider.value[0]
        elif slider.id in self.sliders:
            at = self.sliders[slider.id].at
        self.sliders[slider.id] = _Handle(slider.label, places, at)


def cpu_ms(pid: int) -> float:
    """Milliseconds of processor time that the process has used, all its threads together. Linux only."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return _TICK_MS * (int(fields[11]) + int(fields[12]))
