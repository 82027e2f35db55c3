"""What an exhibit and its visitor say to each other, as types.

* `Pick`: what a visitor picked in an exhibit, by name; `Drawn`: the table of an exhibit, and how it is drawn.
"""

from typing import Any, TypeAlias

import pyarrow as pa

from qkdemo.charts.axes import View

Pick = dict[str, Any]
Drawn: TypeAlias = tuple[pa.Table, View]
