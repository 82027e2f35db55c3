"""Writes down anew what is heard: `python -m tests.browser.heard`; read the difference aloud before it is kept."""

import os
import sys

import pytest

from tests.browser.heard.ear import REWRITE

if __name__ == "__main__":
    os.environ[REWRITE] = "1"
    sys.exit(pytest.main(["tests/browser/test_heard.py", "-q", "-p", "no:xdist", *sys.argv[1:]]))
