"""A foreign page does not make the server ask anybody for its own address."""

import pytest
from streamlit import net_util
from streamlit.web.server.server_util import is_url_from_allowed_origins

from qkdemo.web.patched.address import ask_nobody


def test_a_foreign_page_makes_the_server_ask_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(net_util, "_make_blocking_http_get", lambda url, timeout: asked.append(url))
    monkeypatch.setattr(net_util, "get_external_ip", net_util.get_external_ip)  # to be put back
    ask_nobody()
    assert not is_url_from_allowed_origins("http://elsewhere.example")
    assert is_url_from_allowed_origins("http://localhost:8501")
    assert asked == []
