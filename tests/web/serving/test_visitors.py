"""A visitor's name is one that this server gave: signed, kept over a restart, and no other is believed."""

import sqlite3
from pathlib import Path

import pytest

from qkdemo.runs.kept import database
from qkdemo.web.serving import visitors
from qkdemo.web.serving.visitors import COOKIE, issue, mark, name_in


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QKDEMO_STORE", f"sqlite:///{tmp_path}/runs.sqlite")
    visitors._ring.cache_clear()


def test_a_name_that_was_given_is_believed_and_no_two_are_the_same() -> None:
    cookies = [issue() for _ in range(20)]
    names = {name_in({COOKIE: cookie}) for cookie in cookies}
    assert len(names) == 20
    assert "" not in names


NAME = "a" * 32


@pytest.mark.parametrize("made_up", ["", NAME, f"{NAME}.", f"{NAME}.{'b' * 27}", "é.ü", "." * 40, "x" * 9999])
def test_a_name_that_was_made_up_is_none(made_up: str) -> None:
    assert name_in({COOKIE: made_up}) == ""


def test_a_name_with_anothers_signature_is_none() -> None:
    mine, other = issue(), issue()
    assert name_in({COOKIE: mine.split(".")[0] + "." + other.split(".")[1]}) == ""


def test_a_name_outlives_a_restart_and_no_other_server_believes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cookie = {COOKIE: issue()}
    name = name_in(cookie)
    visitors._ring.cache_clear()
    assert name_in(cookie) == name != ""
    monkeypatch.setenv("QKDEMO_STORE", f"sqlite:///{tmp_path}/another.sqlite")
    assert name_in(cookie) == ""


def test_without_a_store_names_live_as_long_as_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    monkeypatch.setenv("QKDEMO_STORE", f"sqlite:///{tmp_path}/file/runs.sqlite")
    assert name_in({COOKIE: issue()})


def test_a_store_that_was_locked_at_first_is_asked_again_and_names_signed_meanwhile_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    url = f"sqlite:///{tmp_path}/locked.sqlite"
    monkeypatch.setenv("QKDEMO_STORE", url)
    monkeypatch.setattr(database, "_AWAY_S", 0.0)
    monkeypatch.setattr(visitors, "_PATIENCE_S", 0.01)
    ring = visitors._Ring(url, clock=lambda: now[0])
    monkeypatch.setattr(visitors, "_ring", lambda url: ring)
    other = sqlite3.connect(tmp_path / "locked.sqlite", isolation_level=None)
    other.execute("PRAGMA locking_mode=EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    cookie = {COOKIE: issue()}
    early = name_in(cookie)
    assert early
    other.close()
    assert name_in({COOKIE: issue()})  # too soon to ask again
    assert len(ring.keys) == 1
    now[0] = visitors._RETRY_S
    late = {COOKIE: issue()}
    assert name_in(cookie) == early
    assert len(ring.keys) == 2
    again = visitors._Ring(url)  # after a restart: what the store's key signed is believed, and nothing else
    monkeypatch.setattr(visitors, "_ring", lambda url: again)
    assert name_in(late)
    assert name_in(cookie) == ""


def test_a_mark_is_the_same_for_the_same_use_and_tells_no_name() -> None:
    name = name_in({COOKIE: issue()})
    assert mark(name, "class a") == mark(name, "class a")
    assert len({mark(name, "class a"), mark(name, "class b"), mark("0" * 32, "class a")}) == 3
    assert name not in mark(name, "class a")
