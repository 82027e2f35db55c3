"""The numbers of reported cases that number formats decide: overflow, steps, epsilon, each computed by the app's code.

What attention makes of a scale, a norm or a mask stands in `attention/test_reported_numbers`.
"""

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from qkdemo.attention.measures import attend
from qkdemo.attention.norms import NORMS, NormWord, RuleWord, divisor, normalise, reciprocal_root, rms_norm
from qkdemo.attention.variants import VARIANTS, Parameters, Scores, scores
from qkdemo.floats.formats import ALL_FORMATS, FORMATS, FormatWord, rounded
from qkdemo.floats.layout import rung
from tests.reported import Case, Found, agrees, f64, params, stored

INF, NAN = math.inf, math.nan


def store(word: FormatWord) -> Callable[[Tensor], Tensor]:
    return partial(rounded, format=FORMATS[word])


# ---- scores of 24 and 23 in each of 128 channels

Q, K = torch.full((1, 1, 128), 24.0), torch.stack([torch.full((128,), 24.0), torch.full((128,), 23.0)])[None]


def plain(word: FormatWord = "float64", of_q: float = 1.0, of_k: float = 1.0) -> Scores:
    """Plain attention's scores; with a factor on q, or on both, it is q·k that are the logits."""
    return scores(of_q * Q.double(), of_k * K.double(), VARIANTS["none"], Parameters(), store=store(word))


def scaled_first(word: FormatWord) -> Tensor:
    return plain(word, of_q=128**-0.5).raw.flatten()


OVERFLOW: list[Case] = [
    ("the exact scores", lambda: plain().raw, [73728, 70656]),
    ("the exact logits", lambda: plain().logits, [6516.696, 6245.167]),
    ("the exact weights", lambda: attend(plain().logits)[0], [1, 1.192482e-118]),
    ("their entropy", lambda: attend(plain().logits)[1].entropy, 3.249860e-116),
    ("their slope", lambda: attend(plain().logits)[1].softmax_slope, 1.192482e-118),
    ("scores in float16", lambda: plain("float16").raw, [INF, INF]),
    ("logits in float16", lambda: plain("float16").logits, [INF, INF]),
    ("weights in float16", lambda: attend(plain("float16").logits)[0], [NAN, NAN]),
    ("scores in bfloat16", lambda: plain("bfloat16").raw, [73728, 70656]),
    ("exact, 1/√d on q", lambda: scaled_first("float64"), [6516.696, 6245.167]),
    ("exact, its root on both", lambda: plain(of_q=128**-0.25, of_k=128**-0.25).raw, [6516.696, 6245.167]),
    ("that root", lambda: 128**-0.25, 0.2973018),
    ("float16, 1/√d on q, in steps of 4", lambda: scaled_first("float16") / 4, [1629, 1561]),
    ("its weights", lambda: torch.softmax(scaled_first("float16"), 0), [1, 0]),
]

# ---- epsilon


def unit_zero(word: FormatWord) -> Tensor:
    """x / max(‖x‖, 1e-12) of four zeros, as a kernel in that format computes it."""
    zeros = torch.zeros(4, dtype=FORMATS[word].working_dtype)
    l2 = NORMS["l2"]
    r = store(word)
    return r(zeros * r(reciprocal_root(zeros.square().sum(), 4, l2, r, lambda x: stored([x], word)[0].item())))


def at_zero(word: NormWord, rule: RuleWord, epsilon: float) -> Tensor:
    """A norm of the zero vector and its gradient, one entry of either."""
    x = torch.zeros(4, requires_grad=True)
    out = normalise(x, NORMS[word], rule, epsilon)
    (gradient,) = torch.autograd.grad(out.sum(), x)
    return torch.stack([out[0].detach(), gradient[0]])


EPSILON: list[Case] = [
    ("float16", lambda: unit_zero("float16"), [NAN] * 4),
    ("bfloat16", lambda: unit_zero("bfloat16"), [0] * 4),
    ("float32", lambda: unit_zero("float32"), [0] * 4),
    ("ε in float16", lambda: stored([1e-12, 1e-8, 1e-7, 1e-6], "float16"), [0, 0, 1.192093e-07, 1.013279e-06]),
    ("ε of 1e-12 in bfloat16", lambda: stored([1e-12], "bfloat16"), [1.001865e-12]),
    ("the smallest of float16", lambda: FORMATS["float16"].smallest, 5.960464e-08),
    ("half of it becomes 0", lambda: stored([2.98e-8, 2.99e-8], "float16"), [0, 5.960464e-08]),
    ("L2 with a floor: 1/ε", lambda: at_zero("l2", "floor", 1e-12), [0, 1e12]),
    ("L2 bare", lambda: at_zero("l2", "absent", 0.0), [NAN, NAN]),
    ("L2 with ε beside: 1/ε", lambda: at_zero("l2", "outside", 1e-6), [0, 1e6]),
    ("RMS with ε inside: 1/√ε", lambda: at_zero("rms", "inside", 1e-6), [0, 1000]),
    ("L2 with a floored root", lambda: at_zero("l2", "floored_root", 1e-12), [0, NAN]),
]

# ---- formats of 8 bits, steps, and what attention does not explain


STEPS: list[FormatWord] = ["bfloat16", "float16", "float32"]
ELSEWHERE: list[Case] = [
    (
        "torch’s own float16, whose mean is one operation",
        lambda: [
            float((x * (x.square().mean() + 1e-5).rsqrt())[0])
            for x in (torch.full((64,), size, dtype=torch.float16) for size in (255, 256, 300))
        ],
        [1, 0, 0],
    ),
    ("in float32", lambda: rms_norm(torch.full((64,), 300.0))[0], 1),
    (
        "the smallest of 8 bits",
        lambda: [ALL_FORMATS["float8_e4m3fn"].smallest, ALL_FORMATS["float8_e5m2"].smallest],
        [0.001953125, 1.525879e-05],
    ),
    (
        "one step between 1 and 2",
        lambda: [rung(1.5, FORMATS[word]).spacing for word in STEPS],
        [0.0078125, 0.0009765625, 1.192093e-07],
    ),
    ("a feed-forward’s float16", lambda: stored([66246.39, 277000.0, 54.5e6], "float16"), [INF, INF, INF]),
    ("in bfloat16", lambda: stored([66246.39, 277000.0], "bfloat16"), [66048, 276480]),
    ("the root of the mean square", lambda: divisor(f64(math.sqrt(54.5e6)), NORMS["rms"], "absent"), [7382.412]),
    ("a norm after an infinity", lambda: normalise(f64(INF, 1), NORMS["rms"])[0], NAN),
    ("a scaled loss’s gradient", lambda: stored([65536.0], "float16"), [INF]),
]

TABLES = {"overflow": OVERFLOW, "epsilon": EPSILON, "elsewhere": ELSEWHERE}


@pytest.mark.parametrize(("found", "expected"), params(TABLES))
def test_a_reported_number_is_what_the_app_computes(found: Callable[[], Found], expected: float | list[float]) -> None:
    agrees(found(), expected)
