"""Everything that knows Streamlit: server, shell, links, controls, charts. Nothing below imports it."""
