"""The theme, which Streamlit tells the browser in every run.

* `keep_theme()`: lets it be read from the settings once.

Streamlit goes through all of its settings seven times for that, a tenth of a rerun. They do not change while a
server stands.
"""

from functools import cache

from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session


def keep_theme() -> None:
    """Give every run the same theme."""
    read = app_session._populate_theme_msg

    @cache
    def kept(section: str) -> CustomThemeConfig:
        theme = CustomThemeConfig()
        read(theme, section)
        return theme

    def tell(msg: CustomThemeConfig, section: str = "theme") -> None:
        theme = kept(section)
        if theme.ByteSize():  # what is not set stays so
            msg.MergeFrom(theme)

    app_session._populate_theme_msg = tell
