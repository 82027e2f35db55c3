"""The smallest standalone PyTorch program that follows attention through its stages in one number format.

* `stage_program(...)`: runs the stages twice, with torch's own casts and in float64, and prints the counts.

Nothing of this project is imported by the program: it is an independent second opinion, and tests run it.
"""

from textwrap import indent
from typing import Final

from qkdemo.attention.inputs import Recipe
from qkdemo.attention.norms import NORMS, NormWord, program_lines
from qkdemo.floats.formats import ALL_FORMATS, AnyFormatWord
from qkdemo.labs.formats.lab import Settings, choices_of, recipe_of
from qkdemo.labs.formats.stages.kinds import Choices, RoleWord, StoredWord, factors
from qkdemo.notation import plain


def stage_program(choices: Choices, recipe: Recipe, storage: StoredWord, scale: float, *, causal: bool) -> str:
    """A program that prints one line of JSON: per stage, how many entries are ±∞, NaN, vanished and merged.

    It needs torch and NumPy only, and follows `choices` with q, k and v stored in `storage`.
    """
    aside = choices.fp8_cache and ALL_FORMATS[storage].is_narrow
    wide: AnyFormatWord = "bfloat16" if aside else storage

    def of(role: RoleWord) -> str:
        return f"torch.{wide if role == 'stored' else role}"

    return _PROGRAM.format(
        variant=choices.variant,
        storage=storage,
        scale=plain(scale),
        seed=recipe.seed,
        n=recipe.n_keys,
        d=recipe.d_head,
        visible=".tril()" if causal else "",
        wide=f"torch.{wide}",
        kept=f"torch.{storage}",
        norm=of("stored" if choices.norm_in_format else "float32"),
        accumulator=of(choices.accumulator),
        product=of(choices.product_format),
        softmax=of(choices.softmax_format),
        rule=_RULE[choices.fp8_cast],
        own_scale=_OWN_SCALE if choices.fp8_scale == "amax" else "",
        normalise=_normalise(choices),
        scale_q_and_k=_placed(choices, recipe.d_head),
        cache='\n    k = stages["k_entering"] = store(k, kept)' if choices.fp8_cache else "",
        scores=_scores(choices, recipe.d_head),
        mask=_mask(choices) if causal else "",
        maximum=_MAXIMUM if choices.max_subtraction else "",
    )


def _normalise(choices: Choices) -> str:
    if choices.variant == "none":
        return ""
    norm = NORMS[choices.variant]
    epsilon = f"r(tensor({norm.epsilon:g}))"
    lines = [_CENTRE] if norm.centred else []
    if norm.entrywise is None:
        size = f"r(r(squares / x.shape[-1]) + {epsilon}).sqrt()"
        lines += [
            _SIZED.format(length=size if norm.rule == "inside" else f"torch.maximum(r(squares.sqrt()), {epsilon})")
        ]
    else:
        lines += [program_lines(norm, f"r(tensor({plain(choices.alpha)}))", rounded=True)]
    if "gamma" in norm.learns and choices.gamma != 1:
        lines += [f"x = r(x * r(tensor({plain(choices.gamma)})))"]
    return _NORMALISE.format(lines=indent("\n".join(lines), " " * 8))


def _factor(choices: Choices, d_head: int, power: float, store: str) -> str:
    """The operation that scales, its constant stored like what it is applied to."""
    multiplier, divisor = factors(choices, d_head)
    sign, constant = ("*", multiplier) if divisor == 1 else ("/", divisor)
    return f"{sign} {store}(tensor({plain(constant**power)}))"


def _placed(choices: Choices, d_head: int) -> str:
    if choices.placement == "split":
        by = _factor(choices, d_head, 0.5, "w")
        return f"\n    q, k = store(q {by}, wide), store(k {by}, wide)"
    if choices.placement == "on_q":
        return f"\n    q = store(q {_factor(choices, d_head, 1, 'w')}, wide)"
    return ""


def _scores(choices: Choices, d_head: int) -> str:
    def by(store: str) -> str:
        return _factor(choices, d_head, 1, store)

    match choices.placement:
        case "after":
            lines = ["raw = o(dot(q, k))", f"logits = o(raw {by('o')})"]
        case "in_accumulator":
            lines = ["raw = dot(q, k)", f"logits = o(raw {by('a')})"]
        case _:
            lines = ["raw = logits = o(dot(q, k))"]
    return "\n    ".join(lines)


def _mask(choices: Choices) -> str:
    constant = {
        "-inf": "-torch.inf",
        "finfo.min": "torch.finfo(product).min",
        "-1e4": "-1e4",
        "-1e9": "-1e9",
    }[choices.mask]
    return _MASK.format(constant=constant)


_RULE: Final = {
    "overflow": """    if dtype == torch.float8_e4m3fn:  # has no infinity, and torch's own cast saturates
        x = torch.where(x.abs() > 464, torch.nan, x)""",
    "saturate": """    if dtype.itemsize == 1:
        x = x.clamp(torch.finfo(dtype).min, torch.finfo(dtype).max)""",
}
_OWN_SCALE: Final = """
    if dtype.itemsize == 1:  # each 8-bit tensor has a scale of its own
        s = x.abs().amax((-2, -1), keepdim=True) / torch.finfo(dtype).max
        s = torch.where(s > 0, s, 1.0)
        return cast(cast(x / s, dtype) * s, torch.float32)"""
_NORMALISE: Final = """
    def normalise(x, name):
{lines}
        return store(x, wide)

    q, k = normalise(q, "q"), normalise(k, "k")"""
_CENTRE: Final = "x = r(x - r(r(x.sum(-1, keepdim=True)) / x.shape[-1]))"
_SIZED: Final = """squares = stages[name + "_sum_of_squares"] = r(r(x * x).sum(-1, keepdim=True))
root = stages[name + "_reciprocal_root"] = r(1 / {length})
x = r(x * root)"""
_MASK: Final = """
    logits = torch.where(visible, logits, o(logits + (o(tensor({constant})) if casting else -torch.inf)))"""
_MAXIMUM: Final = """
    below = p(below - below.amax(-1, keepdim=True))"""
_PROGRAM: Final = '''"""Attention ({variant}) in {storage} at weight scale {scale}. Needs torch and NumPy."""
import json

import numpy as np
import torch

rng = np.random.default_rng({seed})
base_q, base_k, values = (torch.from_numpy(rng.standard_normal(({n}, {d}))) for _ in range(3))
visible = torch.ones({n}, {n}, dtype=torch.bool){visible}
wide, kept = {wide}, {kept}  # what q is stored in, and what k and v are
norm, accumulator, product, softmax = {norm}, {accumulator}, {product}, {softmax}


def tensor(x):
    return torch.tensor(x, dtype=torch.float64)


def cast(x, dtype):
{rule}
    if dtype.itemsize < 4:  # torch goes by float32: what is not exact there is made odd, so that it is rounded once
        near = x.to(torch.float32)
        below = torch.where(near.abs() > x.abs(), near.nextafter(torch.zeros(())), near)
        x = (below.view(torch.int32) | (below != x)).view(torch.float32)
    return x.to(dtype).to(torch.float64)


def cast_vectors(x, dtype):{own_scale}
    return cast(x, dtype)


def follow(casting):
    def to(dtype):
        return (lambda x: cast(x, dtype)) if casting else (lambda x: x)

    store = cast_vectors if casting else lambda x, dtype: x
    f, w, r, a, o, p = (to(dtype) for dtype in (torch.float32, wide, norm, accumulator, product, softmax))
    stages = {{}}

    def dot(x, y):
        if not casting:
            return x @ y.T
        total = torch.zeros(len(x), len(y), dtype=torch.float64)
        for i in range(x.shape[-1]):  # in order, rounded at every step
            total = a(f(total + f(x[:, None, i] * y[None, :, i])))
        return total

    q, k = store(f({scale} * base_q), wide), store(f({scale} * base_k), wide)
    stages |= {{"q_stored": q, "k_stored": k}}
{normalise}{scale_q_and_k}
    stages |= {{"q_entering": q, "k_entering": k}}{cache}
    {scores}
    stages |= {{"raw_product": raw, "scaled": logits}}{mask}
    below = p(logits){maximum}
    terms = p(below.exp())
    total = terms[:, :1]
    for i in range(1, terms.shape[-1]):
        total = p(total + terms[:, i : i + 1])
    weight = p(terms / total) if casting else torch.softmax(logits, -1)
    stages |= {{"masked": logits, "max_subtracted": below, "exp": terms, "sum": total, "weight": weight}}
    stages["weighted_values"] = w(dot(w(weight), store(f(values), kept).T))
    return stages


def merged(x, exact):
    """Entries that are equal to their neighbour in size, although exactly they differ by more than float64 is off."""
    ordered, places = exact.sort(-1)
    least = 1e-12 * exact.abs().nan_to_num(0, 0, 0).amax(-1, keepdim=True)
    x = x.gather(-1, places)
    same = (x[:, 1:] == x[:, :-1]) & (ordered[:, 1:] - ordered[:, :-1] > least) & ordered[:, :-1].isfinite()
    same &= x[:, 1:].isfinite() & (x[:, 1:] != 0)
    off = torch.zeros(len(x), 1, dtype=torch.bool)
    return (torch.cat([off, same], -1) | torch.cat([same, off], -1)).sum().item()


held, exact = follow(True), follow(False)
counts = {{}}
for stage, x in held.items():
    over_keys = stage in ("raw_product", "scaled", "masked", "max_subtracted", "exp", "weight")
    seen = visible if over_keys else torch.ones(x.shape, dtype=torch.bool)
    order = exact["masked"] if over_keys else exact[stage]
    vanished = (x == 0) & ((exact[stage] != 0) | (stage in ("exp", "sum", "weight")))
    counts[stage] = {{
        "n_inf": (x.isinf() & seen).sum().item(),
        "n_nan": (x.isnan() & seen).sum().item(),
        "n_zero": (vanished & seen).sum().item(),
        "n_merged": merged(x, order),
    }}
print(json.dumps(counts))
'''


def snippet(settings: Settings, variant: NormWord | None = None) -> str:
    """A standalone PyTorch program for the chosen format, the shown side unless `variant` says otherwise."""
    side = variant or (settings.variant if settings.side == "normalised" else "none")
    choices, recipe = choices_of(settings, side), recipe_of(settings)
    return stage_program(choices, recipe, settings.storage, settings.scale, causal=settings.causal)
