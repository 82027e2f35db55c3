"""What the exhibit's scripts know of its types: `spec.d.ts`, made from `qkdemo.charts.panels` and `spec`.

`python -m tests.javascript.declarations` writes it anew; `tests/charts/test_spec.py` says when that was forgotten.
"""

import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from qkdemo.charts import panels, spec

FILE: Final = Path(__file__).parent / "spec.d.ts"
_HEAD: Final = "// Made by `python -m tests.javascript.declarations` from qkdemo/charts: panels.py, spec.py.\n"
_SIMPLE: Final = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}


def declarations() -> str:
    """All of the file."""
    known = vars(panels) | vars(spec)
    named = {name: value for name, value in known.items() if is_typeddict(value) and not name.startswith("_")}
    kinds = " | ".join(kind.__name__ for kind in get_args(panels.Panel))
    inner = "\n".join(_interface(name, kind) for name, kind in named.items())
    return f"{_HEAD}\ndeclare namespace Spec {{\n{inner}\n  type Panel = {kinds};\n}}\n"


def _interface(name: str, kind: type) -> str:
    optional: frozenset[str] = kind.__optional_keys__  # type: ignore[attr-defined]
    hints = get_type_hints(kind, include_extras=True)
    fields = "".join(f"    {key}{'?' if key in optional else ''}: {_type(hint)};\n" for key, hint in hints.items())
    return f"  interface {name} {{\n{fields}  }}\n"


def _type(hint: Any) -> str:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is NotRequired:
        found = _type(parts[0])
    elif origin is Literal:
        found = " | ".join(f'"{word}"' for word in parts)
    elif origin in (Union, types.UnionType):
        found = " | ".join(dict.fromkeys(map(_type, parts)))
    elif origin is list:
        inner = _type(parts[0])
        found = f"({inner})[]" if " | " in inner else f"{inner}[]"
    elif origin is tuple:
        found = f"[{', '.join(map(_type, parts))}]"
    elif origin is Mapping:
        found = f"Record<{_type(parts[0])}, {_type(parts[1])}>"
    else:
        found = _SIMPLE.get(hint, hint.__name__)
    return found


if __name__ == "__main__":
    FILE.write_text(declarations(), encoding="utf-8")
