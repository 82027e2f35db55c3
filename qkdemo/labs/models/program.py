"""The standalone program that holds the table and filters it: `snippet(settings)`."""

import csv
import io
from typing import Final

from qkdemo.dials import Value
from qkdemo.facts.models import MODELS
from qkdemo.labs.models.lab import CAPS, SHOWN, Settings, wanted_of


def snippet(settings: Settings) -> str:
    """A standalone program that holds the same table and prints which rows pass; it needs Python alone."""
    columns = [name for name in SHOWN if name != "note"]
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_text(getattr(model, name)) for name in columns] for model in MODELS)
    return _PROGRAM.format(
        table=sheet.getvalue(),
        wanted={column: _text(word) for column, word in wanted_of(settings).items()},
        caps={column: getattr(settings, dial) for dial, column in CAPS.items()},
        on={"any": None, "yes": "True", "no": "False"}[settings.on_by_default],
    )


def _text(value: Value | None) -> str:
    if value is None or isinstance(value, (bool, str)):
        return "" if value is None else str(value)
    return f"{value:g}"


_PROGRAM: Final = '''"""Which implementations pass a filter. An empty cell: set elsewhere, or there is none."""
import csv
import json

table = """{table}"""
wanted = {wanted}
caps, on_by_default = {caps}, {on!r}
found = [
    row["model"]
    for row in csv.DictReader(table.splitlines())
    if all(row[column] == word for column, word in wanted.items())
    and all(word in ("any", "yes" if row[column] else "no") for column, word in caps.items())
    and on_by_default in (None, row["default_on"])
]
print(json.dumps({{"found": len(found), "models": found}}, ensure_ascii=False))
'''
