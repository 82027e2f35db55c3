"""A report as one HTML file that needs nothing else, and as JSON.

* `html(report)`: findings with what to try, curves of a log as SVG, and every table; no script, no request;
* `as_json(report)`: the same for machines; ∞ and NaN as words;
* `plotted(role, values)`: what a curve draws of a column, and whether its axis is logarithmic.

No name from a file reaches the page unescaped.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from qkdemo.diagnose.findings.finding import Report
from qkdemo.messages import say
from qkdemo.notation import written

_MOST_ROWS: Final = 200
_WIDTH, _HEIGHT, _MARGIN = 640, 150, 46
_DRAWN: Final = ("loss", "max_logit", "entropy", "grad_norm")
_STYLE: Final = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#111;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}
.finding{border-left:.4rem solid;padding:.2rem .9rem;margin:.8rem 0}.bad{border-color:#c4420c}
.watch{border-color:#b58900;border-left-style:double}.good{border-color:#0063b0;border-left-style:dotted}
.finding p{margin:.2rem 0}.advice{color:#444}
table{border-collapse:collapse;font-size:.85rem;display:block;overflow-x:auto}
td,th{padding:.15rem .6rem;text-align:right;border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}
svg{max-width:100%;height:auto;display:block;margin:.6rem 0}svg text{font-size:12px;fill:#333}
"""


def html(report: Report) -> str:
    """The report as a page of its own."""
    title = escape(say("report.title", name=report.name))
    parts = [f"<h1>{title}</h1>", *map(_finding, report.findings), *_curves(report)]
    for name, rows in report.tables.items():
        parts.append(f"<h2>{escape(say(f'report.table.{name}'))}</h2>{_table(rows)}")
    body = "\n".join(parts)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n'
        f"<body>{body}</body></html>\n"
    )


def as_json(report: Report) -> dict[str, Any]:
    """The report as what JSON can hold."""
    return {
        "kind": report.kind,
        "name": report.name,
        "healthy": report.healthy,
        "findings": [
            {
                "level": finding.level,
                "key": finding.key,
                "sentence": finding.sentence,
                "advice": finding.advice,
                "values": dict(finding.values),
            }
            for finding in report.findings
        ],
        "tables": {name: [_plain(row) for row in rows] for name, rows in report.tables.items()},
    }


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: str(x) if isinstance(x, float) and not math.isfinite(x) else x for name, x in row.items()}


def _finding(finding: Any) -> str:
    advice = f"<p class='advice'>{escape(finding.advice)}</p>" if finding.advice else ""
    level = escape(say(f"report.level.{finding.level}"))
    return (
        f"<div class='finding {finding.level}'><p><strong>{level}</strong> {escape(finding.sentence)}</p>{advice}</div>"
    )


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return ""
    names = list(rows[0])
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_cell(row.get(name)))}</td>" for name in names) + "</tr>"
        for row in rows[:_MOST_ROWS]
    )
    more = f"<p>{escape(say('report.more', shown=_MOST_ROWS, all=len(rows)))}</p>" if len(rows) > _MOST_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return written(value) if isinstance(value, float) else str(value)


def _curves(report: Report) -> Iterable[str]:
    for run, log in report.curves.items():
        for role, column in report.roles(run).items():
            if role in _DRAWN:
                title = f"{run} · {column}" if len(report.curves) > 1 else column
                values, logarithmic = plotted(role, log.columns[column])
                yield _curve(title, log.step, values, logarithmic=logarithmic)


def plotted(role: str, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], bool]:
    """What a curve draws of a column, logits without their sign; and whether its axis is logarithmic.

    That of a loss which is 0 or less somewhere, as a logarithm of a density may be, is not.
    """
    if role == "max_logit":
        return np.abs(values), True
    return values, role == "grad_norm" or (role == "loss" and not bool((values <= 0).any()))


def _curve(title: str, step: Any, values: Any, *, logarithmic: bool) -> str:
    """One curve over steps as SVG; what is not finite is left out and said in the title."""
    kept = np.isfinite(values) & ((values > 0) if logarithmic else True)
    x, y = step[kept], values[kept]
    if len(x) < 2:
        return ""
    shown = np.log10(y) if logarithmic else y
    low, high = float(shown.min()), float(shown.max())
    span = (high - low) or 1.0
    wide = float(x[-1] - x[0]) or 1.0
    across = _MARGIN + (_WIDTH - 2 * _MARGIN) * (x - x[0]) / wide
    down = _HEIGHT - 24 - (_HEIGHT - 52) * (shown - low) / span
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True))
    lost = int(np.isinf(values).sum())
    words = escape(title + (f" · {say('report.lost', count=lost)}" if lost else ""))
    ends = [(20, y[shown.argmax()]), (_HEIGHT - 24, y[shown.argmin()])]
    labels = "".join(f'<text x="4" y="{at + 4}">{escape(written(float(value), 3))}</text>' for at, value in ends)
    first, last = (escape(written(float(value))) for value in (x[0], x[-1]))
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{words}">'
        f'<text x="{_MARGIN}" y="12">{words}</text>'
        f'<polyline points="{points}" fill="none" stroke="#c4420c" stroke-width="1.5"/>{labels}'
        f'<text x="{_MARGIN}" y="{_HEIGHT - 6}">{first}</text>'
        f'<text x="{_WIDTH - _MARGIN}" y="{_HEIGHT - 6}" text-anchor="end">{last}</text></svg>'
    )
