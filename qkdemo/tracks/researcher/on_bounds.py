"""What the researcher's stops on bounds read off their labs: what a norm bounds, and what that does not guarantee."""

import math
from typing import Final

import torch

from qkdemo.attention.bounds import high_keys, largest_weight, least_entropy
from qkdemo.labs import drift, placement, rope, sphere
from qkdemo.notation import at_most, read, superscript, written
from qkdemo.tracks.stop import Evidence, closest

_ODDS: Final = sphere.DECIDED / (1 - sphere.DECIDED)  # of nine tenths
_LONG: Final = 131072  # keys: a context that models are sold with
FEW: Final = drift.Settings(variant="rms")


def bound(found: rope.Result) -> Evidence:
    """Which formula the largest logit of the worst pair meets."""
    gain, d = found.settings.gain_size, found.settings.d_head
    root = math.sqrt(d)
    choices = {"root": root, "once": gain * root, "twice": gain**2 * root, "square": gain**2 * d}
    drawn = rope.run(found.settings.but(vectors="random")).max_abs_logit
    return Evidence(
        closest(found.max_abs_logit, choices),
        {name: written(x) for name, x in choices.items()}
        | {"reached": written(found.max_abs_logit), "bound": written(found.bound_naive), "drawn": written(drawn)},
    )


def border(found: sphere.Result) -> Evidence:
    """How the undecided share of the sphere shrinks when g doubles."""
    half = found.settings.gain / 2
    before, after = (1 - sphere.run(found.settings.but(gain=g)).twin.decided for g in (half, found.settings.gain))
    answer = closest(after / before, {"quarter": 0.25, "half": 0.5, "root": math.sqrt(0.5), "same": 1.0})
    shares = {"before": sphere.whole_percent(before), "after": sphere.whole_percent(after)}
    return Evidence(answer, shares | {"times": written(_ODDS), "odds": written(math.log(_ODDS), 3)})


def pair(found: rope.Result) -> Evidence:
    """The largest logit over all distances, where the gains of a rotary pair cross."""
    return Evidence(
        found.max_abs_logit,
        {
            "naive": written(found.bound_naive),
            "reached": written(found.max_abs_logit, 7),
            "pairwise": written(found.bound_pairwise),
            "farthest": str(int(abs(found.norm_rotary.by_distance).argmax())),
        },
    )


def floor(found: drift.Result) -> Evidence:
    """What share of the greatest entropy a row may be left with."""
    n, bound = found.settings.n_keys, found.twin.bound
    least, most = least_entropy(bound, n), math.log(n)
    shares = {"half": 0.5, "hundredth": 1e-2, "hundred_thousandth": 1e-5}
    return Evidence(
        "zero" if least == 0 else closest(least / most, shares),
        {
            "bound": written(bound),
            "most": at_most(most),
            "least": written(least),
            "high": str(high_keys(bound, n)),
            "weight": written(largest_weight(bound, n), 8),
            "long": written(_LONG, 6),
            "least_long": written(least_entropy(bound, _LONG), 3),
            "most_long": written(math.log(_LONG), 3),
            "with_gain": written(least_entropy(4 * bound, n), 2),
            "with_cap": written(least_entropy(30.0, n), 2),
            "cap": "30",
            "measured": written(100 * found.twin.entropy_fraction[found.at], 3),
            "share": written(100 * least / most, 2),
        },
    )


def spectral(found: placement.Result) -> Evidence:
    """The first head of the block: what its weights can do, and what they do on drawn inputs."""
    block = placement.block_of(found.settings)
    d = block.d_head
    w_q, w_k = block.w_q[:d], block.w_k[:d]
    length = float(torch.linalg.vector_norm(block.x, dim=-1).max())
    sizes = [float(torch.linalg.matrix_norm(w, 2)) for w in (w_q, w_k)]
    left, values, right = torch.linalg.svd(w_q.mT @ w_k)
    bound = float(values[0]) * length**2 / math.sqrt(d)
    aligned = abs(float((length * left[:, 0]) @ w_q.mT @ w_k @ (length * right[0]))) / math.sqrt(d)
    largest = found.left.logits[0].abs().max().item()
    return Evidence(
        closest(bound / largest, {"reached": 1, "half": 2, "fifteenth": 1 / 0.06, "thousandth": 1000}),
        {
            "length": written(length),
            "bound": written(bound),
            "largest": written(largest),
            "aligned": written(aligned),
            "product": written(float(values[0])),
            "apart": written(sizes[0] * sizes[1]),
            "twin": written(found.right.logits[0].abs().max().item()),
        },
    )


def context(found: drift.Result) -> Evidence:
    """The top weight of the same draw with more keys."""
    few, many = FEW.n_keys, found.settings.n_keys
    scale = found.settings.scale
    top = found.twin.top_weight[found.at]
    before = drift.run(FEW, [scale]).twin.top_weight[0]
    henry = {n: math.log2(n * n - n) for n in (few, many)}
    raised_g = read(written(henry[many], 3))  # as the sentence's link says it
    raised = drift.run(found.settings.but(variant="l2", gain=raised_g), [scale]).twin.top_weight[0]
    return Evidence(
        float(top),
        {
            "before": written(before),
            "top": written(top),
            "few": str(few),
            "many": str(many),
            "bound": written(found.twin.bound),
            "g_few": written(henry[few], 3),
            "g_many": written(henry[many], 3),
            "raised": written(raised),
            "long": f"10{superscript(9)}",
            "ceiling": at_most(largest_weight(found.twin.bound, 10**9), 2),
        },
    )
