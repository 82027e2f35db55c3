"""The address that a lecturer's code gives to a hall."""

import pytest

from qkdemo.web import network
from qkdemo.web.network import own_address, reachable

LINK = "/drift?track=beginner&stop=arms"


@pytest.fixture(autouse=True)
def _in_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "own_address", lambda: "10.1.2.3")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_what_only_this_machine_understands_is_told_as_its_network_knows_it(host: str) -> None:
    assert reachable(f"http://{host}:8501{LINK}") == f"http://10.1.2.3:8501{LINK}"


def test_an_address_that_others_understand_stays() -> None:
    assert reachable(f"https://example.org{LINK}") == f"https://example.org{LINK}"


def test_a_machine_without_a_network_or_a_server_for_itself_alone_is_not_offered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    local = f"http://localhost:8501{LINK}"
    with monkeypatch.context() as alone:
        alone.setattr(network.st, "get_option", {"server.address": "127.0.0.1"}.get)
        assert reachable(local) == local
    monkeypatch.setattr(network, "own_address", lambda: None)
    assert reachable(local) == local


def test_this_machine_is_never_told_to_others_as_their_own() -> None:
    assert not (own_address() or "").startswith("127.")
