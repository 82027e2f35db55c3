"""A small picture for every word of the glossary, drawn from numbers: bars, a curve, arrows, a grid, a chain of boxes.

* `figure(term)`: it as SVG, in the colour of the text around it; plain attention is orange and dashed where it matters.
"""

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import Final

import torch

from qkdemo.attention.measures import attend
from qkdemo.attention.variants import VARIANTS, Parameters, scores

_W, _H = 160, 84
_BLUE, _ORANGE = "#0072b2", "#d55e00"
Point = tuple[float, float]


def figure(term: str) -> str:
    """The picture of a word. Raises KeyError for a word without one."""
    return (
        f'<svg viewBox="0 0 {_W} {_H}" width="{_W}" height="{_H}" role="img" aria-hidden="true"'
        f' xmlns="http://www.w3.org/2000/svg" style="color:inherit">{FIGURES[term]()}</svg>'
    )


def _bars(values: Sequence[float], colours: Sequence[str] = ()) -> str:
    """Bars as high as `values`, of which the largest fills the picture."""
    step, most = _W / len(values), max(values)
    parts = []
    for at, value in enumerate(values):
        height = max(1.0, 70 * value / most)
        colour = colours[at] if at < len(colours) else _BLUE
        parts.append(
            f'<rect x="{at * step + 3:.1f}" y="{78 - height:.1f}" width="{step - 6:.1f}" height="{height:.1f}"'
            f' fill="{colour}"/>'
        )
    return "".join(parts) + _line([(0, 78.5), (_W, 78.5)], "currentColor")


def _line(points: Sequence[Point], colour: str = _BLUE, dashed: str = "") -> str:
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dash = f' stroke-dasharray="{dashed}"' if dashed else ""
    return f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'


def _curve(function: Callable[[float], float], low: float, high: float, colour: str = _BLUE, dashed: str = "") -> str:
    """A curve over [low, high] of a function whose values lie in [0, 1]."""
    xs = [low + (high - low) * at / 60 for at in range(61)]
    points = [(4 + 152 * at / 60, 78 - 70 * min(max(function(x), 0.0), 1.0)) for at, x in enumerate(xs)]
    return _line([(4, 78), (156, 78)], "currentColor") + _line(points, colour, dashed)


def _on(function: Callable[[float], float], xs: Sequence[float], colour: str, dashed: str = "") -> str:
    """A line through points of a curve over [0, 1], as `_curve` draws it: steps along it."""
    return _line([(4 + 152 * x, 78 - 70 * function(x)) for x in xs], colour, dashed)


def _arrows(*arrows: tuple[float, float, str]) -> str:
    """Arrows from one point: length in parts of the picture, degrees, colour."""
    drawn = []
    for length, degrees, colour in arrows:
        angle = math.radians(degrees)
        x, y = 36 + 110 * length * math.cos(angle), 72 - 110 * length * math.sin(angle)
        heads = [(x - 9 * math.cos(angle + turn), y + 9 * math.sin(angle + turn)) for turn in (0.45, -0.45)]
        drawn += [_line([(36, 72), (x, y)], colour), _line([heads[0], (x, y), heads[1]], colour)]
    return "".join(drawn)


def _grid(rows: Sequence[Sequence[float]], colour: str = _BLUE) -> str:
    """Cells that are as dark as their value, from 0 to 1."""
    side = min(_W / len(rows[0]), 78 / len(rows))
    return "".join(
        f'<rect x="{column * side + 1:.1f}" y="{row * side + 1:.1f}" width="{side - 2:.1f}" height="{side - 2:.1f}"'
        f' fill="{colour}" fill-opacity="{0.08 + 0.92 * value:.2f}"/>'
        for row, values in enumerate(rows)
        for column, value in enumerate(values)
    )


def _chain(*words: str) -> str:
    """Boxes with a word each, joined from left to right."""
    step, parts = _W / len(words), []
    for at, word in enumerate(words):
        x = at * step + 3
        parts.append(
            f'<rect x="{x:.1f}" y="26" width="{step - 12:.1f}" height="32" rx="4" fill="none" stroke="currentColor"/>'
            f'<text x="{x + (step - 12) / 2:.1f}" y="46" text-anchor="middle" font-size="{_fitting(word, step - 18)}"'
            f' fill="currentColor">{escape(word)}</text>'
        )
        if at:
            parts.append(_line([(x - 9, 42), (x - 1, 42)], "currentColor"))
    return "".join(parts)


def _fitting(word: str, width: float) -> int:
    """The largest font that fits a word into a width: a letter is about 0.6 of its font's size wide."""
    return max(7, min(13, int(width / (0.6 * len(word)))))


def _bits(*parts: int) -> str:
    """Sign, exponent and mantissa of a format, bit by bit."""
    colours = [colour for count, colour in zip(parts, ("#999999", _ORANGE, _BLUE), strict=True) for _ in range(count)]
    step = min(18.0, _W / len(colours))
    return "".join(
        f'<rect x="{at * step + 0.5:.1f}" y="30" width="{max(step - 1, 1):.1f}" height="26" fill="{colour}"/>'
        for at, colour in enumerate(colours)
    )


def _softmax(logits: Sequence[float]) -> list[float]:
    return [float(p) for p in attend(torch.tensor([[list(logits)]], dtype=torch.float64))[0][0, 0]]


def _capped(s: float, cap: float) -> float:
    """The logit s under a softcap, by the variant of the labs."""
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    return float(scores(s * one, one, VARIANTS["softcap"], Parameters(softcap=cap)).logits)


def _entropy(p: float) -> float:
    """Of two keys, as a part of ln 2."""
    return -sum(x * math.log(x) for x in (p, 1 - p) if x > 0) / math.log(2)


def _sizes_of_jacobian(p: Sequence[float]) -> list[list[float]]:
    """|∂p_j/∂s_k| of a softmax, as parts of the largest."""
    sizes = [[abs(x * ((at == k) - y)) for k, y in enumerate(p)] for at, x in enumerate(p)]
    most = max(map(max, sizes))
    return [[size / most for size in row] for row in sizes]


def _loss(*heights: float) -> str:
    return _line([(4 + 152 * at / (len(heights) - 1), 78 - 70 * y) for at, y in enumerate(heights)], _ORANGE)


def _bowl(x: float) -> float:
    """A loss over one weight."""
    return 4 * (x - 0.5) ** 2


_LOGITS: Final = (1.0, 2.0, 0.5, 1.4)
_LOWER: Final = [[float(key <= query) * 0.7 for key in range(6)] for query in range(6)]
FIGURES: Final[dict[str, Callable[[], str]]] = {
    "attention": lambda: _grid([_softmax([float(-abs(q - k)) for k in range(6)]) for q in range(6)]),
    "query": lambda: _arrows((0.8, 35, _BLUE)),
    "key": lambda: _arrows((0.8, 35, _BLUE), (0.6, 60, "#999999"), (0.9, 10, "#999999")),
    "value": lambda: _chain("v", "· p", "output"),
    "weights": lambda: _chain("x", "W_q", "q"),
    "token": lambda: _chain("the", "cat", "sat"),
    "head": lambda: _grid([[0.9, 0.2, 0, 0.1, 0.8, 0.3], [0.1, 0.9, 0, 0.7, 0.1, 0.6]]),
    "channel": lambda: _bars((0.4, 0.9, 0.2, 0.6, 0.7, 0.3, 0.8, 0.5)),
    "layer": lambda: _chain("x", "attn", "MLP", "x′"),
    "mlp": lambda: _chain("W₁", "relu", "W₂"),
    "residual": lambda: _chain("x", "+", "+", "+"),
    "pre_norm": lambda: _chain("norm", "attn", "+"),
    "vector": lambda: _arrows((0.9, 30, _BLUE)),
    "length": lambda: _arrows((0.9, 30, _BLUE), (0.5, 30, _ORANGE)),
    "cosine": lambda: (
        _curve(lambda x: (1 + math.cos(x)) / 2, 0, math.pi) + _line([(4, 43), (156, 43)], "#999999", "2 3")
    ),
    "score": lambda: _arrows((0.8, 20, _BLUE), (0.7, 55, _ORANGE)),
    "logit": lambda: _bars(_LOGITS),
    "softmax": lambda: _bars([*_LOGITS, *(4 * p for p in _softmax(_LOGITS))], ("#999999",) * 4),
    "attention_weight": lambda: _bars(_softmax(_LOGITS)),
    "row": lambda: _grid([[0, 0, 0, 0, 0, 0], _softmax([1, 2, 0.5, 3, 1, 0]), [0, 0, 0, 0, 0, 0]]),
    "mask": lambda: _grid(_LOWER),
    "entropy": lambda: _curve(_entropy, 0, 1),
    "nats": lambda: _curve(lambda n: math.log(n) / math.log(16), 1, 16),
    "one_hot": lambda: _bars((0.01, 0.01, 1, 0.01)),
    "slope": lambda: _curve(lambda p: 4 * p * (1 - p), 0, 1),
    "jacobian": lambda: _grid(_sizes_of_jacobian(_softmax(_LOGITS[:3]))),
    "gradient": lambda: _curve(lambda x: (x - 0.6) ** 2 * 2, 0, 1),
    "saturated": lambda: _curve(lambda x: (1 + math.tanh(x)) / 2, -6, 6),
    "loss": lambda: _loss(0.95, 0.8, 0.5, 0.25, 0.1, 0.05),
    "rate": lambda: (
        _curve(_bowl, 0, 1, "#999999")
        + _on(_bowl, (0.02, 0.14, 0.24, 0.33, 0.41), _BLUE)
        + _on(_bowl, (0.02, 0.93, 0.12, 0.84), _ORANGE, "5 3")
    ),
    "adam": lambda: _chain("m", "/ √v", "step"),
    "clipping": lambda: _curve(lambda x: min(x, 0.5), 0, 1),
    "spike": lambda: _loss(0.6, 0.3, 0.2, 0.9, 0.25, 0.1),
    "divergence": lambda: _loss(0.6, 0.3, 0.15, 0.5, 0.8, 0.9),
    "nan": lambda: _chain("∞ − ∞", "NaN"),
    "weight_scale": lambda: _arrows((0.4, 40, "#999999"), (0.9, 40, _BLUE)),
    "norm": lambda: _arrows((0.95, 20, _ORANGE), (0.6, 20, _BLUE), (0.6, 60, _BLUE)),
    "l2": lambda: _arrows((0.6, 15, _BLUE), (0.6, 45, _BLUE), (0.6, 75, _BLUE)),
    "rms": lambda: _chain("x", "/ rms", "· γ"),
    "layernorm": lambda: _chain("− mean", "/ rms", "· γ"),
    "gain": lambda: _bars((0.8, 1.2, 1, 0.6, 1.4, 1)),
    "scale": lambda: _bars((0.25, 0.5, 1)),
    "temperature": lambda: _bars(
        [*_softmax(_LOGITS), *_softmax([3 * s for s in _LOGITS])], (_BLUE,) * 4 + (_ORANGE,) * 4
    ),
    "softcap": lambda: (
        _curve(lambda s: _capped(s, 1) * 0.9, 0, 4) + _on(lambda x: 4 * x * 0.9, (0, 1 / 3.6), _ORANGE, "5 3")
    ),
    "qk_norm": lambda: _chain("q, k", "norm", "q · k"),
    "variant": lambda: _chain("L2", "RMS", "cap"),
    "bound": lambda: _curve(lambda x: 0.8 * math.tanh(x), 0, 4) + _line([(4, 22), (156, 22)], "#999999", "2 3"),
    "epsilon": lambda: _curve(lambda x: x / math.sqrt(x * x + 0.05), 0, 2),
    "spectral": lambda: _arrows((0.35, 50, "#999999"), (0.9, 25, _BLUE)),
    "format": lambda: _bits(1, 3, 4),
    "float16": lambda: _bits(1, 5, 10),
    "bfloat16": lambda: _bits(1, 8, 7),
    "float32": lambda: _bits(1, 8, 23),
    "float8": lambda: _bits(1, 4, 3),
    "overflow": lambda: (
        _curve(lambda x: x * x if x < 0.8 else 1, 0, 1, _ORANGE) + _line([(4, 33), (156, 33)], "#999999", "2 3")
    ),
    "rounding": lambda: _curve(lambda x: round(5 * x) / 5, 0, 1) + _curve(lambda x: x, 0, 1, "#999999", "2 3"),
    "rotary": lambda: _arrows((0.7, 10, "#999999"), (0.7, 40, _BLUE), (0.7, 70, _BLUE)),
    "pair": lambda: _bars(
        (0.3, 0.9, 0.3, 0.3, 0.3, 0.9, 0.3, 0.3), ("#999999", _BLUE, *("#999999",) * 3, _BLUE, *("#999999",) * 2)
    ),
    "cache": lambda: _chain("k₀", "k₁", "k₂", "…"),
    "latent": lambda: _chain("c", "W_up", "k"),
    "gqa": lambda: _chain("q q q", "k"),
    "kernel": lambda: _chain("norm", "rotary", "attn"),
    "checkpoint": lambda: _chain("file", "W, γ"),
    "port": lambda: _chain("x", "f = f′", "y"),
    "sigma_reparam": lambda: _chain("W", "/ σ", "· γ"),
    "qk_clip": lambda: _loss(0.2, 0.5, 0.9, 0.5, 0.6, 0.5),
    "ngpt": lambda: _arrows((0.6, 10, _BLUE), (0.6, 35, _BLUE), (0.6, 60, _BLUE), (0.6, 85, _BLUE)),
    "z_loss": lambda: _curve(lambda x: x * x, -1, 1),
    "seed": lambda: _chain("7", "random", "0.1, …"),
}
