"""The numbers of reported cases that attention decides, each computed by the app's code: scales, norms, gains, entropy.

What a contract read wrongly does to a pipeline stands in `test_contract_cases`, what number formats lose in
`floats/test_reported_numbers`, what a file of such a model gets as a sentence in `diagnose/test_cases`.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

import pytest
import torch
from torch import Tensor

from qkdemo.attention.measures import attend
from qkdemo.attention.norms import NORMS, divisor, normalise
from qkdemo.attention.rotary import rotate
from qkdemo.attention.variants import VARIANTS, Parameters, scores
from qkdemo.floats.formats import FORMATS
from qkdemo.training.remedies import to_sphere
from tests.reported import Case, Found, agrees, f64, params, stored

INF, NAN = math.inf, math.nan


def entropy(logits: Tensor) -> float:
    """In nats, of one row of the logits; a key at −∞ is hidden."""
    return attend(logits[None, None], logits[None] > -INF)[1].entropy.item()


# ---- scales, caps, temperatures


def unit_pair(*cosines: float, d: int = 2) -> tuple[Tensor, Tensor]:
    """A query and keys at these cosines to it, all of length 1."""
    q, k = f64(*[0.0] * d)[None, None].clone(), torch.zeros(1, len(cosines), d, dtype=torch.float64)
    q[..., 0] = 1
    for at, cosine in enumerate(cosines):
        k[0, at, :2] = f64(cosine, math.sqrt(1 - cosine**2))
    return q, k


def l2(g: float, cosine: float = 0.9) -> float:
    return scores(*unit_pair(cosine, d=64), VARIANTS["l2"], Parameters(g=g)).logits.item()


def ones(scale: float | None = None) -> float:
    x = torch.ones(1, 1, 64, dtype=torch.float64)
    made = scores(x, x, VARIANTS["none"], Parameters())
    return made.logits.item() if scale is None else scale * made.raw.item()


def cosine_weights(stored_scale: float, read: Callable[[float], float] = math.exp) -> Tensor:
    made = scores(*unit_pair(0.3, 0.2), VARIANTS["cosine"], Parameters(temperature=1 / read(stored_scale)))
    return torch.softmax(made.logits, -1)


def clamped_slope(at: float) -> float:
    """How the logit scale that Swin and CLIP store moves the logit of a cosine of 1."""
    stored_scale = f64(at).squeeze().requires_grad_()
    made = scores(*unit_pair(1.0), VARIANTS["cosine"], Parameters(temperature=torch.exp(-stored_scale)))
    (slope,) = torch.autograd.grad(made.logits.sum(), stored_scale)
    return float(slope)


STORED = [2.659260036932778, 4.605170185988092, 5.0, 11.1]
SCALES: list[Case] = [
    ("the learned scale", lambda: l2(10.0), 9),
    ("divided by it, and by √d: on q", lambda: l2(1 / 10 / math.sqrt(64)), 0.01125),
    ("and 1/√d once more", lambda: l2(1 / 10 / math.sqrt(64)) / math.sqrt(64), 0.00140625),
    ("so many times less", lambda: l2(10.0) / (l2(1 / 10 / 8) / 8), 6400),
    ("1/√64, 1/√512, 0.12", lambda: [ones(), ones(512**-0.5), ones(0.12)], [8, 2.828427, 7.68]),
    (
        "weights beside a logit of 0",
        lambda: [float(torch.softmax(f64(ones(scale), 0), 0)[0]) for scale in (64**-0.5, 512**-0.5)],
        [0.9996646, 0.9441928],
    ),
    (
        "1/√168 and 1/√128",
        lambda: [float(VARIANTS["none"].factor(Parameters(), d)) for d in (168, 128)],
        [0.07715167, 0.08838835],
    ),
    ("a stored temperature", lambda: f64(*STORED).exp(), [14.28571, 100, 148.4132, 66171.16]),
    ("the last in float16", lambda: stored([math.exp(STORED[3])], "float16"), [INF]),
    ("the largest that float16 bears", lambda: math.log(FORMATS["float16"].largest), 11.08987),
    ("weights with exp", lambda: cosine_weights(STORED[0]), [0.8066786, 0.1933214]),
    ("without", lambda: cosine_weights(STORED[0], lambda x: x), [0.5660925, 0.4339075]),
    (
        "at the clamp and beyond",
        lambda: torch.cat([cosine_weights(x) for x in STORED[1:]]),
        [0.9999546, 4.539787e-05] * 3,
    ),
    ("the slope before the clamp and behind it", lambda: [clamped_slope(4.0), clamped_slope(5.0)], [54.59815, 0]),
]

# ---- norms and gains

RMS = partial(normalise, norm=NORMS["rms"], rule="absent")
QUARTER = f64(math.pi / 2)
GAINS = {"1 1": f64(1, 1), "2 2": f64(2, 2), "2 1": f64(2, 1)}


def turn(x: Tensor) -> Tensor:
    """Every pair of neighbours by a quarter: (x, y) → (−y, x)."""
    return rotate(x.reshape(-1, 1, 2), QUARTER).reshape(x.shape)


def orders(norm: Callable[[Tensor], Tensor], x: Tensor, gain: Tensor | float = 1.0) -> tuple[Tensor, Tensor]:
    """The norm first, and rotary first."""
    return turn(norm(x) * gain), norm(turn(x)) * gain


def logit(gain: Tensor, order: int) -> float:
    key = RMS(f64(1, 2)) * gain
    return float(orders(RMS, f64(3, 4), gain)[order] @ key) / math.sqrt(2)


def offset(gain: Tensor) -> tuple[Tensor, float]:
    x = RMS(f64(3, 4)) * gain
    return x, float(x @ x) / math.sqrt(2)


def normed(times: int, gain: Tensor) -> Tensor:
    x = f64(3, 4)
    for _ in range(times):
        x = RMS(x) * gain
    return x


def sphere(name: str) -> Tensor:
    """What nGPT makes of W = [[3, 4], [0, 5]], outputs × inputs; matrices are kept inputs × outputs."""
    leaves = {f"0.{name}": f64([3, 4], [0, 5]).mT.clone()}
    to_sphere(leaves)
    return leaves[f"0.{name}"].mT


TWO = f64(1, 1, 10, 10)
GAIN, STORED_GAIN = f64(2, 0.5), f64(0.05, -0.1)
CENTRED = partial(normalise, norm=NORMS["layernorm"], rule="absent")
GAINED: list[Case] = [
    ("nGPT’s W_q and W_k: rows, which hold the hidden state", lambda: sphere("qkv"), [0.6, 0.8, 0, 1]),
    ("its matrix of outputs: columns", lambda: sphere("out"), [1, 0.624695, 0, 0.7808688]),
    ("equal unit vectors, scaled by √d and by 1/√d", lambda: [l2(8, cosine=1), l2(1 / 8, cosine=1)], [8, 0.125]),
    ("a unit gain, either order", lambda: torch.cat(orders(RMS, f64(3, 4))), [-1.131371, 0.8485281] * 2),
    ("a gain of 2, either order", lambda: torch.cat(orders(RMS, f64(3, 4), 2.0)), [-2.262742, 1.697056] * 2),
    ("a gain of 2 and 1, norm first", lambda: orders(RMS, f64(3, 4), f64(2, 1))[0], [-1.131371, 1.697056]),
    ("rotary first", lambda: orders(RMS, f64(3, 4), f64(2, 1))[1], [-2.262742, 0.8485281]),
    ("its logits", lambda: [logit(f64(2, 1), 0), logit(f64(2, 1), 1)], [0.5059644, -1.264911]),
    (
        "LayerNorm first",
        lambda: orders(CENTRED, f64(3, 4, 1, 0))[0],
        [-1.264911, 0.6324555, 1.264911, -0.6324555],
    ),
    ("LayerNorm last", lambda: orders(CENTRED, f64(3, 4, 1, 0))[1], [-1.568929, 1.176697, 0.0, 0.3922323]),
    ("the size over all heads", lambda: divisor(TWO, NORMS["rms"], "absent"), [7.106335]),
    ("divided by it", lambda: RMS(TWO), [0.1407195, 0.1407195, 1.407195, 1.407195]),
    ("per head", lambda: RMS(TWO.reshape(2, 2)), [1, 1, 1, 1]),
    (
        "logits of a head with itself, full width",
        lambda: RMS(TWO).reshape(2, 2).square().sum(-1) / math.sqrt(2),
        [0.02800423, 2.800423],
    ),
    ("per head", lambda: RMS(TWO.reshape(2, 2)).square().sum(-1) / math.sqrt(2), [1.414214, 1.414214]),
    ("γ stored as γ − 1", lambda: offset(1 + STORED_GAIN)[0], [0.8909545, 1.018234]),
    ("read as γ", lambda: offset(STORED_GAIN)[0], [0.04242641, -0.1131371]),
    ("the logits of either", lambda: [offset(1 + STORED_GAIN)[1], offset(STORED_GAIN)[1]], [1.29443, 0.01032376]),
    ("normalised once", lambda: normed(1, GAIN), [1.697056, 0.5656854]),
    ("twice", lambda: normed(2, GAIN), [2.683282, 0.2236068]),
    ("three times", lambda: normed(3, GAIN), [2.818657, 0.05872202]),
    ("twenty-one times", lambda: normed(21, GAIN), [2.828427, 8.574798e-13]),
    (
        "a gain of 2, once and twice",
        lambda: torch.cat([normed(n, f64(2, 2)) for n in (1, 2)]),
        [1.697056, 2.262742] * 2,
    ),
]

# ---- entropy and sinks


def additive_cure(keys: int) -> float:
    """How much entropy a row that is one-hot seems to have if 1e-8 is added to each weight."""
    one_hot = torch.zeros(keys, dtype=torch.float64)
    one_hot[0] = 1
    cured = one_hot + 1e-8
    return float(-(cured * cured.log()).sum()) - entropy(torch.where(one_hot > 0, 0.0, -1e4).double())


def with_sink(logits: Sequence[float], sink: float) -> tuple[Tensor, float]:
    """Weights of keys and of a sink behind them, and their entropy."""
    weights, measures = attend(f64(*logits, sink)[None, None])
    return weights.flatten(), measures.entropy.item()


def split_entropy() -> float:
    """H = H(p of the sink, the rest) + (1 − p of the sink) · H of the keys."""
    p = float(with_sink([0, 0], 2)[0][-1])
    return entropy(f64(p, 1 - p).log()) + (1 - p) * entropy(f64(0, 0))


def no_key(mask: Tensor) -> Tensor:
    """What torch's own attention gives a query that sees none of four keys, whose values are all 1."""
    x = torch.ones(1, 1, 4, 1)
    return torch.nn.functional.scaled_dot_product_attention(x[:, :, :1], x, x, attn_mask=mask)


ENTROPY: list[Case] = [
    ("no key, by a mask of booleans", lambda: no_key(torch.zeros(1, 4, dtype=torch.bool)), 0),
    ("no key, by the least number added", lambda: no_key(torch.full((1, 4), torch.finfo(torch.float32).min)), 1),
    ("a hidden key", lambda: [entropy(f64(0, -INF)), entropy(f64(0, 0, -INF))], [0, 0.6931472]),
    ("the ends of float16", lambda: entropy(stored([65504.0, -65504.0], "float16")), 0),
    ("1e-8 added to each weight", lambda: [additive_cure(4096), additive_cure(131072)], [0.000754317, 0.02414416]),
    ("1e-8 in float16", lambda: stored([1e-8], "float16"), [0]),
    ("0 · ln 0 there", lambda: stored([1e-8], "float16") * stored([1e-8], "float16").log(), [NAN]),
    ("keys and sink", lambda: with_sink([0, 0], 2)[0], [0.106507, 0.106507, 0.786986]),
    ("the keys’ share", lambda: 1 - float(with_sink([0, 0], 2)[0][-1]), 0.213014),
    (
        "entropy with the sink and of the keys",
        lambda: [with_sink([0, 0], 2)[1], entropy(f64(0, 0))],
        [0.6655727, 0.6931472],
    ),
    ("with it, from its parts", split_entropy, 0.6655727),
    ("one more in the denominator is a sink of logit 0", lambda: with_sink([3, 1], 0)[0][:2], [0.8437947, 0.1141952]),
    (
        "and of −3 after 3 was subtracted: still 0 there is wrong",
        lambda: torch.cat([with_sink([0, -2], sink)[0][:2] for sink in (-3, 0)]),
        [0.8437947, 0.1141952, 0.4683105, 0.06337894],
    ),
]


@pytest.mark.parametrize(("found", "expected"), params({"scale": SCALES, "norm": GAINED, "entropy": ENTROPY}))
def test_a_reported_number_is_what_the_app_computes(found: Callable[[], Found], expected: float | list[float]) -> None:
    agrees(found(), expected)
