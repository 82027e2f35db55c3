"""What goes with a figure, with numbers and with a sentence that leave the app: how they were made, and where.

* `caption(lab, settings, link)`: below a figure: the settings with the seed, the versions, and where the page is live;
* `made_with()`: the versions; `origin(lab, settings, link)`: all of it as JSON has it; `parquet_file(table, made)`:
  a Parquet file that holds it, under the key `qkdemo`. CSV has no place for it;
* `citation(lab, settings, link, day)`: a line for a text, and an entry for BibTeX.
"""

import io
import json
from collections.abc import Collection, Mapping
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from pyarrow import parquet

from qkdemo import __version__
from qkdemo.dials import Dials, declarations
from qkdemo.messages import say


def caption(lab: str, settings: Dials, link: str = "", *, without: Collection[str] = (), less: str = "") -> str:
    """What a figure needs beside it to be made again. `without` are dials that the figure shows as axes."""
    stated = _stated(settings, without)
    return say("figure.caption", lab=lab, settings=stated, less=less, link=link, **made_with()).strip()


def made_with() -> dict[str, str]:
    """The versions of qkdemo, of torch and of NumPy."""
    return {"qkdemo": __version__, "torch": torch.__version__, "numpy": np.__version__}


def origin(lab: str, settings: Mapping[str, Any], link: str = "") -> dict[str, Any]:
    """Where numbers are from; without a link if there is none, as in a shell."""
    found = {"lab": lab, "settings": dict(settings), "made_with": made_with()}
    return found | ({"link": link} if link else {})


def parquet_file(table: pa.Table | Mapping[str, NDArray[Any]], made: Mapping[str, Any]) -> bytes:
    """A Parquet file of the table, or of these columns, which says in its metadata how they were `made`, as JSON."""
    whole = table if isinstance(table, pa.Table) else pa.table(dict(table))
    sink = io.BytesIO()
    parquet.write_table(whole.replace_schema_metadata({"qkdemo": json.dumps(made, ensure_ascii=False)}), sink)
    return sink.getvalue()


def citation(lab: str, settings: Dials, link: str, day: date) -> tuple[str, str]:
    """A line that names the page in its state, seen on that day, and the same as an entry for BibTeX."""
    told = {"title": say(f"page.{lab}"), "settings": _stated(settings), "version": __version__, "link": link}
    line = say("takeaway.cite_line", **told, day=day.isoformat())
    note = f"Version {__version__}; {told['settings']}".replace("_", r"\_")
    fields = {
        "author": "{The qkdemo authors}",
        "title": f"qkdemo: {told['title']}",
        "year": str(day.year),
        "howpublished": rf"\url{{{link}}}",
        "urldate": day.isoformat(),
        "note": note,
    }
    inner = "".join(f"  {name} = {{{text}}},\n" for name, text in fields.items())
    return line, f"@misc{{qkdemo-{lab},\n{inner}}}"


def _stated(settings: Dials, without: Collection[str] = ()) -> str:
    dials = [each for each in declarations(type(settings)) if each.acts_for(settings) and each.name not in without]
    return ", ".join(f"{each.name}={each.write(getattr(settings, each.name))}" for each in dials)
