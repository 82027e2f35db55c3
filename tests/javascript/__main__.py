"""`python -m tests.javascript`: exit status 1 if any check of the JavaScript failed."""

import sys

from tests.javascript import checks

sys.exit(1 if checks() else 0)
