"""One notion of where a visitor comes from, for pages and streams alike."""

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.testclient import TestClient

from qkdemo.labs.training.lab import Settings, plan_of
from qkdemo.runs.workers.pool import Pool
from qkdemo.web.serving.networks import address_in, here, network_of
from qkdemo.web.serving.places import Place, Places
from qkdemo.web.training import stream

ALIKE = [
    ("192.0.2.7", "::ffff:192.0.2.7"),
    ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9"),
    ("127.0.0.1", "::1"),
    ("127.0.0.1", "::ffff:127.0.0.1"),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_who_has_one_address_however_it_is_written_is_one(one: str, other: str) -> None:
    assert network_of(one) == network_of(other) == network_of(network_of(other))


def test_others_are_others_and_this_machine_has_none() -> None:
    assert len({network_of(host) for host in ("192.0.2.7", "192.0.2.8", "2001:db8:1:2::1", "2001:db8:1:3::1")}) == 4
    assert network_of("::1") == network_of("") == ""
    assert network_of("no address") == "no address"


@pytest.mark.parametrize("host", ["192.0.2.7", "2001:db8:1:2::1", "::1", ""])
def test_a_page_and_a_stream_of_one_visitor_have_the_same(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Context:
        ip_address = host or None  # as Streamlit has it for this machine

    monkeypatch.setattr("qkdemo.web.serving.networks.st.context", Context())
    scope: dict[str, Any] = {"type": "http", "headers": [], "client": (host, 1) if host else None}
    assert here() == address_in(Request(scope)) == network_of(host)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """From where the places of streams were asked for; there is none."""
    monkeypatch.setattr("qkdemo.runs.workers.process.WorkerProcess.start", lambda self: None)
    pool, found = Pool(None), list[str]()

    def take(self: Places, visitor: str, address: str) -> Place | None:
        found.append(address)
        return None

    monkeypatch.setattr(Places, "take", take)
    monkeypatch.setattr(stream, "_pool", pool)
    yield found
    pool.close()


def test_streams_are_counted_by_network(asked: list[str]) -> None:
    run = plan_of(Settings()).name  # it came with the app
    for host in ("2001:db8:1:2::1", "2001:db8:1:2::2", "::1"):
        client = TestClient(Starlette(routes=stream.routes()), client=(host, 50_000))
        assert client.get(f"/live/{run}?layer=0&head=0").status_code == 503
    assert asked == ["2001:db8:1:2::/64", "2001:db8:1:2::/64", ""]
