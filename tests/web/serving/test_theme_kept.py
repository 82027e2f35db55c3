"""The theme that every run tells the browser."""

import pytest
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session

from qkdemo.web.patched.theme import keep_theme

SECTIONS = ("theme", "theme.light", "theme.dark", "theme.sidebar", "theme.light.sidebar", "theme.dark.sidebar")


def test_the_theme_is_read_once_and_told_as_streamlit_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Red when another Streamlit fills it in elsewhere."""
    read, asked = app_session._populate_theme_msg, list[str]()

    def counted(msg: CustomThemeConfig, section: str = "theme") -> None:
        asked.append(section)
        read(msg, section)

    monkeypatch.setattr(app_session, "_populate_theme_msg", counted)
    keep_theme()
    for section in SECTIONS:
        own, first, again = CustomThemeConfig(), CustomThemeConfig(), CustomThemeConfig()
        read(own, section)
        for message in (first, again):
            app_session._populate_theme_msg(message, section)
        assert first.SerializeToString(deterministic=True) == own.SerializeToString(deterministic=True)
        assert again == first
    assert asked == list(SECTIONS)


def test_a_section_without_settings_stays_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_session, "_populate_theme_msg", app_session._populate_theme_msg)  # set back afterwards
    keep_theme()
    whole = CustomThemeConfig()
    app_session._populate_theme_msg(whole.sidebar, "theme.sidebar")
    app_session._populate_theme_msg(whole.light, "theme.light")
    assert not whole.HasField("sidebar")
    assert whole.HasField("light")
