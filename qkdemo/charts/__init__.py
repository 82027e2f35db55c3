"""Exhibits as data: what a browser or a sheet of paper draws. Nothing here knows Streamlit."""
