"""A browser session without a browser: it speaks Streamlit's protocol and turns dials.

* `Visitor(address, page)`: opens the page; `turn` moves a dial at random, `put` to a place, `open` shows the rest of
  them; all return the bytes that the server sent for it;
* `cpu_ms(pid)`: processor time that a process has used.
"""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Checkbox_pb2 import Checkbox
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.Radio_pb2 import Radio
from streamlit.proto.Selectbox_pb2 import Selectbox
from streamlit.proto.Slider_pb2 import Slider
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.sync.client import connect

_PATIENCE_S = 60


@dataclass
class _Handle:
    """What is needed to move one dial."""

    label: str
    places: Sequence[str | float | bool]
    at: str | float | bool
    listed: bool = False  # sent as a list of one

    def write(self, widget: WidgetState) -> None:
        """Where it stands, as the widget's state."""
        match self.at:
            case bool():
                widget.bool_value = self.at
            case str() if self.listed:
                widget.string_array_value.data.append(self.at)
            case str():
                widget.string_value = self.at
            case number:
                widget.double_array_value.data.append(number)


class Visitor:
    """One open page. It follows the address bar and the values that the server sets, as a browser does."""

    def __init__(self, address: str, page: str, seed: int = 0, query: str = "") -> None:
        self.random = random.Random(seed)
        self.page, self.query = page, query
        self.dials: dict[str, _Handle] = {}
        self._drawn: set[str] = set()
        self._closed, self._opened = set[str](), set[str]()  # what can be opened on the page
        url = address.replace("http", "ws", 1) + "/_stcore/stream"
        protocols: Any = ["streamlit"]
        self.socket = connect(url, subprotocols=protocols, compression=None, max_size=None, legacy=True)
        self.rerun()

    def open(self) -> int:
        """All that can be opened on the page, such as the dials that are not shown at first."""
        self._opened |= self._closed
        return self.rerun()

    def turn(self) -> int:
        """Any dial to any of its places."""
        dial = self.random.choice(list(self.dials.values()))
        dial.at = self.random.choice(dial.places)
        return self.rerun()

    def put(self, label: str, place: int) -> int:
        """The dial of that label to one of its places."""
        dial = next(dial for dial in self.dials.values() if dial.label == label)
        dial.at = dial.places[place]
        return self.rerun()

    def rerun(self) -> int:
        """Runs the page with the dials as they stand. Raises RuntimeError if it shows an exception."""
        self.socket.send(self._request())
        self._drawn.clear()
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
                self.dials = {name: dial for name, dial in self.dials.items() if name in self._drawn}
                return received

    def _request(self) -> bytes:
        request = BackMsg()
        state = request.rerun_script
        state.page_name, state.query_string = self.page, self.query
        for name, dial in self.dials.items():
            dial.write(state.widget_states.widgets.add(id=name))
        for name in self._opened:
            state.widget_states.widgets.add(id=name).bool_value = True
        sent: bytes = request.SerializeToString()
        return sent

    def _see(self, message: ForwardMsg) -> None:
        element, block = message.delta.new_element, message.delta.add_block
        if element.HasField("exception"):
            raise RuntimeError(f"{self.page or 'The page'} shows {element.exception.type}: {element.exception.message}")
        if block.expandable.id:
            self._closed.add(block.expandable.id)
        kind = element.WhichOneof("type")
        if kind == "slider":
            self._learn(element.slider, _slider(element.slider))
        elif kind in ("selectbox", "radio", "checkbox") and f"-{self.page}." in getattr(element, kind).id:
            widget = getattr(element, kind)
            self._learn(widget, _switch(widget) if kind == "checkbox" else _choice(widget))

    def _learn(self, widget: Slider | Selectbox | Radio | Checkbox, handle: _Handle) -> None:
        if not widget.set_value and widget.id in self.dials:
            handle.at = self.dials[widget.id].at
        self.dials[widget.id] = handle
        self._drawn.add(widget.id)


def _slider(slider: Slider) -> _Handle:
    words = list(slider.options)
    steps = 0 if words else round((slider.max - slider.min) / slider.step)
    places: Sequence[str | float] = words or [slider.min + step * slider.step for step in range(steps + 1)]
    at: str | float = words[int(slider.default[0])] if words else slider.default[0]
    if slider.set_value:
        at = slider.raw_value[0] if words else slider.value[0]
    return _Handle(slider.label, places, at, listed=True)


def _choice(choice: Selectbox | Radio) -> _Handle:
    words = list(choice.options)
    return _Handle(choice.label, words, choice.raw_value if choice.set_value else words[choice.default])


def _switch(switch: Checkbox) -> _Handle:
    return _Handle(switch.label, (False, True), switch.value if switch.set_value else switch.default)


def cpu_ms(pid: int) -> float:
    """Milliseconds of processor time that the process has used, all its threads together. Linux only."""
    return 1e3 * time.clock_gettime((~pid << 3) | 2)  # clock_getcpuclockid(3)
