"""What an exhibit and its visitor say to each other, as types.

* `Pick`: what a visitor picked in an exhibit, by name.
"""

from typing import Any

Pick = dict[str, Any]
