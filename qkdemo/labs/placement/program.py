"""The smallest standalone PyTorch program for two pipelines beside each other.

* `placement_program(recipe, left, right, format)`: draws the block, computes both, prints how far they are apart.

Nothing of this project is imported by the program: it is an independent second opinion, and tests run it.
Each choice contributes its own lines, so the program shows what a choice costs to write.
"""

from textwrap import indent
from typing import Final

from qkdemo.attention.blocks import BlockRecipe
from qkdemo.attention.norms import NORMS, program_lines, program_parts
from qkdemo.attention.pipeline import KEY_GAINS, Pipeline
from qkdemo.attention.rotary import turned
from qkdemo.labs.placement.lab import Settings, pair_of, recipe_of
from qkdemo.notation import plain

_GAIN: Final = {
    "none": "1.0",
    "scalar": "gain[:1, :1].unsqueeze(1)",
    "head": "gain[:, :1].unsqueeze(1)",
    "channel": "gain[:1].unsqueeze(1)",
    "head_channel": "gain.unsqueeze(1)",
}
_SCALE: Final = {"inverse_root": "d_head**-0.5", "one": "1.0", "root": "d_head**0.5", "inverse": "1 / d_head"}


def placement_program(recipe: BlockRecipe, left: Pipeline, right: Pipeline, format: str) -> str:
    """A program that prints one line of JSON: `relative_score_error` and `largest_weight_difference`."""
    stored = "x.double()" if format == "float64" else f"x.to(torch.{format}).to(torch.float32)"
    return _PROGRAM.format(
        draw=_draw(recipe),
        tril=".tril()" if recipe.causal else "",
        store=stored if format != "float32" else "x.to(torch.float32)",
        left=_function("left", left, recipe),
        right=_function("right", right, recipe),
    )


def _draw(r: BlockRecipe) -> str:
    lines = [
        f"rng = np.random.default_rng({r.seed})",
        f"d_model, n_heads, n_kv, d_head, n_keys = {r.d_model}, {r.n_heads}, {r.n_kv_heads}, {r.d_head}, {r.n_keys}",
        "x = rng.standard_normal((n_keys, d_model))",
        "x = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)",
        f"x = x * rng.permuted({plain(r.token_spread)} ** np.linspace(-0.5, 0.5, n_keys))[:, None]",
        "W_q, W_k = (rng.standard_normal((n * d_head, d_model)) / d_model**0.5 for n in (n_heads, n_kv))",
        "rng.standard_normal((n_kv * d_head, d_model)), rng.standard_normal((d_model, n_heads * d_head))  # v, output",
        "gain_q, gain_k, bias_q, bias_k = (rng.uniform(-1, 1, (n, d_head)) for n in (n_heads, n_kv, n_heads, n_kv))",
        *_sized(r, "q", r.n_heads),
        *_sized(r, "k", r.n_kv_heads),
        f"b_q, b_k = {plain(r.mean)} * size_q, {plain(r.mean)} * size_k",
        *(_tied(r) if r.gains == "tied" else []),
        f"gain_q, gain_k = ({_spread(r)} for gain in (gain_q, gain_k))",
        f"bias_q, bias_k = {plain(r.gain_spread)} * bias_q, {plain(r.gain_spread)} * bias_k",
        f"positions = torch.arange({r.offset}, {r.offset + r.n_keys}).double()",
    ]
    return "\n".join(lines)


def _sized(r: BlockRecipe, side: str, heads: int) -> list[str]:
    steps = f"np.linspace(-0.5, 0.5, {heads})" if heads > 1 else "np.zeros(1)"
    return [
        f"size_{side} = np.repeat({plain(r.head_spread)} ** {steps}, d_head)",
        f"W_{side} = W_{side} * size_{side}[:, None]",
    ]


def _tied(r: BlockRecipe) -> list[str]:
    """Lines that name, for each channel, the one whose gain it has: the first of its rotary pair."""
    width = turned(r.d_head, r.rotated)
    first, second = {
        "half_split": (f":{width // 2}", f"{width // 2}:{width}"),
        "half_split_swapped": (f"{width // 2}:{width}", f":{width // 2}"),
        "interleaved": (f":{width}:2", f"1:{width}:2"),
    }[r.layout]
    return ["tied = np.arange(d_head)", f"tied[{second}] = tied[{first}]"]


def _spread(r: BlockRecipe) -> str:
    start = "0.0" if r.offset_stored else "1.0"
    if r.gains == "unit":
        return f"{start} + 0 * gain"
    deviation = "gain"
    if r.gains == "tied":
        deviation = "gain[:, tied]"
    return f"{start} + {plain(r.gain_spread)} * {deviation}"


def _function(name: str, p: Pipeline, recipe: BlockRecipe) -> str:
    norm = f"{program_lines(NORMS[p.norm], plain(p.alpha))}\nreturn x".lstrip()
    sized = _sized_sides(p)
    if sized:
        lines = [f"def {name}_parts(x):  # what is divided, and by what", indent(program_parts(NORMS[p.norm]), " " * 4)]
    else:
        lines = [f"def {name}_norm(x):", indent(norm, " " * 4)]
    lines += ["", "", f"def {name}(x):"]
    lines += (_side(name, side, p, turned(recipe.d_head, p.rotated)) for side in ("q", "k"))
    of_heads = "repeat_interleave(n_heads // n_kv, 0)" if p.grouping == "repeat" else "repeat(n_heads // n_kv, 1, 1)"
    lines += (f"    {k} = {k}.{of_heads}" for k in ("k", *(["size_k"] if "k" in sized else [])))
    lines.append("    raw = store(q @ k.mT)")
    if sized:
        sizes = " * ".join({"q": "size_q", "k": "size_k.mT"}[side] for side in sized)
        lines.append(f"    raw = store(raw / ({sizes}))")
    lines.append(f"    logits = store(raw * {_SCALE.get(p.scale, plain(recipe.learned_scale))})")
    if p.cap == "softcap":
        cap = plain(recipe.softcap)
        lines.append(f"    logits = store({cap} * torch.tanh(logits / {cap}))")
    masked = "logits.masked_fill(~seen, -torch.inf)" if recipe.causal else "logits"
    weights = f"torch.softmax({masked}, -1)"
    lines.append(f"    return logits, {f'{name}_norm({weights})' if p.place == 'weights' else weights}")
    return "\n".join(lines)


def _sized_sides(p: Pipeline) -> list[str]:
    """The sides by whose sizes the product is divided."""
    inside = p.place == "in_product" and NORMS[p.norm].entrywise is None
    return [side for side in "qk" if inside and side in p.on]


def _side(name: str, side: str, p: Pipeline, width: int) -> str:
    """The lines that make q or k from the input; the first `width` channels of a head are rotated."""
    normed = side in p.on
    source = f"{name}_norm(x)" if p.place == "input" and normed else "x"
    lines = [f"{side} = store({source} @ t(W_{side}).mT + t(b_{side})).unflatten(-1, (-1, d_head)).movedim(-2, -3)"]
    order = f"layout_order({p.layout!r}, {width})"
    if p.conversion != "none":
        lines.append(f"{side} = {side}[..., {order}]")
    turn = f"{side} = store(rotate({side}, {p.layout!r}, {width}))"
    if not normed:
        lines += [turn] if p.order != "none" else []
        return "\n".join("    " + line for line in lines)
    inner = _normed(name, side, p, order)
    match p.order:
        case "norm_rotary":
            lines += [*inner, turn]
        case "rotary_norm":
            lines += [turn, *inner]
        case "none":
            lines += inner
    return "\n".join("    " + line for line in lines)


def _normed(name: str, side: str, p: Pipeline, order: str) -> list[str]:
    lines = []
    if p.place == "full_width":
        merged = f"{side}.movedim(-3, -2).flatten(-2)"
        lines.append(f"{side} = {name}_norm({merged}).unflatten(-1, (-1, d_head)).movedim(-2, -3)")
    elif side in _sized_sides(p):
        lines.append(f"{side}, size_{side} = {name}_parts({side})")
    elif p.place in ("per_head", "in_product"):
        lines.append(f"{side} = {name}_norm({side})")
    whose = KEY_GAINS[p.key_gain][side]
    if whose:
        of = f"gain_{whose}[:n_kv]" if whose != side else f"gain_{whose}"
        lines.append(f"gain = t({of}){' + 1' if p.stored == 'one_plus' else ''}")
    lines.append(f"gain = {_GAIN[p.gain if whose else 'none']}")
    bias = "0.0"
    if p.bias == "channel":
        lines.append(f"bias = t(bias_{side}){'' if p.gain == 'head_channel' else '[:1]'}.unsqueeze(1)")
        bias = "bias"
    if p.conversion == "weights_and_gain":
        if whose and p.gain in ("channel", "head_channel"):
            lines.append(f"gain = gain[..., {order}]")
        if bias == "bias":
            lines.append(f"bias = bias[..., {order}]")
    if p.cast == "cast_first" and p.place != "in_product":
        lines.append(f"{side} = store(store(store({side}) * store(torch.as_tensor(gain))) + {bias})")
    else:
        whole = f"bias * size_{side}" if bias == "bias" and side in _sized_sides(p) else bias
        lines.append(f"{side} = store({side} * gain + {whole})")
    return lines


_PROGRAM: Final = '''"""Two pipelines from q and k to attention, on one block. Needs torch and NumPy."""
import json

import numpy as np
import torch

{draw}
seen = torch.ones(n_keys, n_keys, dtype=torch.bool){tril}  # which keys a query sees
t = torch.as_tensor


def store(x):  # what writing to memory does
    return {store}


def pairs(layout, width):
    i = torch.arange(width // 2)
    near, far = (i, i + width // 2)
    return {{"half_split": (near, far), "half_split_swapped": (far, near), "interleaved": (2 * i, 2 * i + 1)}}[layout]


def layout_order(layout, width):  # carries the other rotary layout over to this one
    order = torch.arange(d_head)
    other = "half_split" if layout == "interleaved" else "interleaved"
    order[torch.cat(pairs(layout, width))] = torch.cat(pairs(other, width))
    return order


def rotate(x, layout, width):  # the first `width` channels of each head
    first, second = pairs(layout, width)
    angle = positions[:, None] * 10000.0 ** (-torch.arange(len(first)).double() / len(first))
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    y = x.clone()
    y[..., first] = x[..., first] * cos - x[..., second] * sin
    y[..., second] = x[..., first] * sin + x[..., second] * cos
    return y


{left}


{right}


(l_logits, l_weights), (r_logits, r_weights) = left(t(x)), right(t(x))
l_logits, r_logits = (logits.double() * seen for logits in (l_logits, r_logits))
print(json.dumps({{
    "relative_score_error": ((r_logits - l_logits).norm() / l_logits.norm()).item(),
    "largest_weight_difference": (r_weights - l_weights).abs().max().item(),
}}))
'''


def snippet(settings: Settings) -> str:
    """A standalone PyTorch program that prints the errors of this state."""
    return placement_program(recipe_of(settings), *pair_of(settings), settings.format)
