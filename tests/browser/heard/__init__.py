"""The accessibility tree of a track, a quiz and a run, in reading order; `python -m tests.browser.heard` writes it."""
