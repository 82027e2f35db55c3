"""The gate through which page scripts pass."""

import threading

import pytest

from qkdemo.web import server
from qkdemo.web.pages import PAGES
from tests.web.visit import visit


class Counted(threading.Semaphore):
    """A gate that counts who came in; it has one place, so a script that kept it would keep the next out."""

    came = 0

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        self.came += 1
        return super().acquire(blocking, timeout)

    __enter__ = acquire


@pytest.mark.parametrize("page", PAGES)
def test_every_run_of_a_page_passes_the_gate_and_leaves_it(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Counted(1)
    monkeypatch.setattr(server, "gate", gate)
    visit(page).run()
    assert gate.came == 2
    assert gate.acquire(blocking=False)
