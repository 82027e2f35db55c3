"""The process that serves the app.

* `prepare()`: loads everything before the health check turns green;
* `gate`: through which page scripts pass, two at a time: run by hundreds of threads at once all of them would be
  late, and each would hold its memory while it waits.

Torch works on one thread: a visitor's arithmetic is small, and parallelism comes from visitors. What was
loaded at start-up is frozen, so that the garbage collector never walks it again.
"""

import gc
import logging
import threading
from pathlib import Path
from typing import Final

import streamlit as st
import torch

from qkdemo.runs.batches import keep_freed_memory
from qkdemo.web.patched.address import ask_nobody
from qkdemo.web.patched.session import look_up_alone
from qkdemo.web.patched.theme import keep_theme
from qkdemo.web.serving.descriptors import raise_limit, too_few
from qkdemo.web.serving.guard import own_names
from qkdemo.web.serving.repeats import log_once

SHELL: Final = Path(__file__).parent / "shell.py"
gate: Final = threading.Semaphore(2)


def base_path() -> str:
    """The path below which everything is, as `server.baseUrlPath` says; empty where it says nothing."""
    path = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{path}" if path else ""


def prepare() -> None:
    """Load the libraries and run the default state once, so that no visitor pays for it."""
    log_once()
    ask_nobody()
    keep_theme()
    look_up_alone()
    if words := too_few(raise_limit()):
        logging.getLogger(__name__).warning(words)
    torch.set_num_threads(1)
    keep_freed_memory()
    from qkdemo.labs import drift, formats  # noqa: PLC0415  after the threads are set
    from qkdemo.labs.drift.view import drift_exhibit  # noqa: PLC0415
    from qkdemo.labs.formats.view import formats_exhibit  # noqa: PLC0415
    from qkdemo.maps import picture  # noqa: F401, PLC0415  Altair takes a second to load
    from qkdemo.web.training.stream import open_pool  # noqa: PLC0415

    drift_exhibit(drift.run(drift.Settings()))
    formats_exhibit(formats.run(formats.Settings()))
    open_pool()
    own_names()
    gc.collect()
    gc.freeze()
