"""As many descriptors as the system gives, a word if they are too few, and no log that fills the disk."""

import logging
import subprocess
import sys

import pytest

from qkdemo.web.serving.descriptors import HALL, OF_A_TAB, raise_limit, too_few
from qkdemo.web.serving.repeats import Repeats
from tests.serving import ROOT

resource = pytest.importorskip("resource")

RAISED = """
import resource
from qkdemo.web.serving.descriptors import raise_limit, too_few
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (256, {hard}))
print(raise_limit(), resource.getrlimit(resource.RLIMIT_NOFILE)[0], len(too_few(raise_limit())))
"""


def in_a_process(program: str) -> list[int]:
    """What a Python of its own prints: a hard limit that was lowered stays so."""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return [int(word) for word in done.stdout.split()]


def test_the_soft_limit_becomes_the_hard_one() -> None:
    raised, now, words = in_a_process(RAISED.format(hard="min(hard, 4096) if hard > 0 else 4096"))
    assert raised == now == 4096
    assert words == 0


def test_too_low_a_hard_limit_is_said_in_one_line() -> None:
    raised, now, words = in_a_process(RAISED.format(hard=512))
    assert raised == now == 512
    assert words > 0


def test_where_the_hard_limit_is_infinite_and_not_given_the_soft_one_is_raised_nevertheless(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on macOS: (256, ∞), where whoever asks for more than 10,240 is refused."""
    now = [256]

    def given(_: int, wanted: tuple[int, int]) -> None:
        if not 0 <= wanted[0] <= 10_240:
            raise ValueError("current limit exceeds maximum limit")
        now[0] = wanted[0]

    monkeypatch.setattr(resource, "getrlimit", lambda _: (now[0], resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", given)
    assert raise_limit() == now[0] == 10_240


def test_two_hundred_tabs_that_watch_are_enough_and_one_less_is_said() -> None:
    enough = 100 + HALL * OF_A_TAB
    assert too_few(None) == too_few(enough) == ""
    assert too_few(enough - 1).startswith("This process may have 1099 files and connections open, enough for about 199")
    assert "\n" not in too_few(enough - 1)
    assert "Raise the limit: " in too_few(enough - 1)


class Kept(logging.Handler):
    """Keeps what is logged, each with its traceback."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def log() -> tuple[logging.Logger, Kept]:
    logger, kept = logging.Logger("asyncio"), Kept()  # none that others have
    logger.addFilter(Repeats())
    logger.addHandler(kept)
    return logger, kept


def test_a_repeated_error_is_logged_once_and_at_powers_of_ten(log: tuple[logging.Logger, Kept]) -> None:
    logger, kept = log
    for _ in range(2500):
        logger.error("socket.accept() out of system resource\nsocket: 7", exc_info=OSError(24, "Too many open files"))
    assert [line.split("\n")[0] for line in kept.lines] == [
        "socket.accept() out of system resource",
        "10 times by now: socket.accept() out of system resource",
        "100 times by now: socket.accept() out of system resource",
        "1000 times by now: socket.accept() out of system resource",
    ]
    assert "Too many open files" in kept.lines[0]


def test_other_errors_and_what_is_no_error_are_logged_each_time(log: tuple[logging.Logger, Kept]) -> None:
    logger, kept = log
    for number in (23, 24):
        logger.error("out of resource", exc_info=OSError(number, "x"))
    for _ in range(3):
        logger.warning("slow")
    assert len(kept.lines) == 5
