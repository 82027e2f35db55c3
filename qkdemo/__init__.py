"""qkdemo: see and try query-key normalisation in transformer attention.

* `watch(model)`: measure every attention call of a PyTorch model while it runs;
* `assert_qk_norm(model, *batch)`: whether QK norm is really on in it.

Both are loaded when they are asked for, and need torch alone.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from qkdemo.diagnose.watching.qk_norm import assert_qk_norm
    from qkdemo.diagnose.watching.watch import watch

__all__ = ["assert_qk_norm", "watch"]
__version__: Final = "1.0.0"
_HERE: Final = Path(__file__).parent
SERVED: Final = _HERE / "served" if (_HERE / "served").is_dir() else _HERE.parent  # where app.py and pages/ lie
_HOMES: Final = {"watch": "qkdemo.diagnose.watching.watch", "assert_qk_norm": "qkdemo.diagnose.watching.qk_norm"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"qkdemo has no {name!r}.")
    return getattr(import_module(_HOMES[name]), name)
