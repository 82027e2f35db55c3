"""What the researcher's other stops read off their labs: gradients, a recorded run, remedies, rounding, the table."""

from typing import Final

import numpy as np
import torch

from qkdemo.attention.blocks import BlockRecipe, draw_block
from qkdemo.attention.variants import VariantWord
from qkdemo.facts.models import MODELS
from qkdemo.labs import drift, epsilon, mla, models, placement
from qkdemo.labs import training as twins
from qkdemo.notation import at_least, at_most, below, power, written
from qkdemo.runs.plan import outcomes
from qkdemo.tracks.stop import Evidence, closest, only
from qkdemo.training.optimizer import EPSILON
from qkdemo.training.outcome import LARGE_LOGIT
from qkdemo.training.telemetry import CURVES

FRESH: Final = drift.Settings(scale=1)


def jacobian(found: drift.Result) -> Evidence:
    """The mean softmax slope of plain attention, and that of a tie."""
    slope, twin = found.plain.softmax_slope[found.at], found.twin.softmax_slope[found.at]
    fresh = drift.run(FRESH, [FRESH.scale]).plain.softmax_slope[0]
    gone = drift.run(FRESH, [400.0]).plain.softmax_slope[0]
    tied = torch.softmax(torch.zeros(2), 0)[0].item()
    return Evidence(
        float(slope),
        {
            "fresh": written(fresh),
            "slope": written(slope),
            "times": written(fresh / slope),
            "gone": written(gone),
            "twin": written(twin),
            "epsilon": power(EPSILON),
            "tie": written(tied * (1 - tied)),
        },
    )


def course(found: twins.Result) -> Evidence:
    """How plain attention ends."""
    plain, twin = outcomes(found.plan, found.curves)[:2]
    columns = {name: found.curves[:, :2, at] for at, name in enumerate(CURVES)}
    spectral = columns["spectral_q"][-1] / columns["spectral_q"][0]
    gradients = columns["gradient_norm"][:, 0]
    told = plain.spikes > 0 and (plain.warned or 0) > 0 and twin.outcome != "failed" and spectral[1] > 2
    finite = plain.non_finite_at is None
    return Evidence(
        only(
            spike=plain.spikes > 0 and plain.diverged_at is None and finite,
            divergence=plain.diverged_at is not None and finite and told,
            non_finite=not finite,
        ),
        {
            "large": written(LARGE_LOGIT),
            "at": str(plain.first_step_logit_over_100),
            "lost": str(plain.lost_at),
            "jump": written(gradients.max() / np.median(gradients), 2),
            "spectral_plain": written(float(spectral[0]), 2),
            "spectral_twin": written(float(spectral[1]), 2),
            "clip": written(found.plan.legs[0].runs[0].grad_clip),
        },
    )


def remedies(found: drift.Result) -> Evidence:
    """Inputs grow, weights stay: what each remedy makes of the largest logit."""
    k = found.settings.scale / FRESH.scale
    block = draw_block(BlockRecipe())
    d = block.d_head
    bounded = [w / torch.linalg.matrix_norm(w, 2) for w in (block.w_q[:d], block.w_k[:d])]
    sizes = [_largest(x, *bounded) for x in (block.x, k * block.x)]
    growth = {"plain": _growth(found, "none"), "norm": _growth(found, "rms")}
    return Evidence(
        closest(sizes[1] / sizes[0], {"same": 1, "times": k, "square": k * k}),
        {name: written(x) for name, x in growth.items()}
        | {
            "k": written(k),
            "fresh": written(drift.run(found.settings, [FRESH.scale]).plain.max_abs_logit[0]),
            "normed": written(found.twin.max_abs_logit[found.at]),
            "grown": written(found.plain.max_abs_logit[found.at]),
            "square": written(k * k),
            "sigma": written(sizes[1] / sizes[0]),
        },
    )


def capped(found: drift.Result) -> Evidence:
    """What a softcap lets through of the gradient of the largest logit."""
    settings, before = found.settings, float(found.plain.max_abs_logit[found.at])
    cap = settings.softcap
    logit = torch.tensor(before, dtype=torch.float64, requires_grad=True)
    (share,) = torch.autograd.grad(cap * torch.tanh(logit / cap), logit)
    threshold = twins.Settings().clip_threshold
    assert before > threshold
    shares = {"half": 0.5, "tenth": 0.1, "thousandth": 1e-3, "ten_thousandth": 1e-4}
    return Evidence(
        closest(float(share), shares),
        {
            "before": written(before),
            "capped": written(found.twin.max_abs_logit[found.at], 6),
            "passes": written(float(share), 2),
            "threshold": written(threshold),
        },
    )


def _largest(x: torch.Tensor, w_q: torch.Tensor, w_k: torch.Tensor) -> float:
    return float(((x @ w_q.mT) @ (x @ w_k.mT).mT).abs().max())


def _growth(found: drift.Result, variant: VariantWord) -> float:
    swept = drift.run(found.settings.but(variant=variant), [FRESH.scale, found.settings.scale])
    sizes = (swept.plain if variant == "none" else swept.twin).max_abs_logit
    return float(sizes[1] / sizes[0])


def rate(found: epsilon.Result) -> Evidence:
    """The slope of the norm before and after its vector grew."""
    k = 10.0
    short = epsilon.run(found.settings.but(size=found.settings.size / k))
    slopes = [one.slope[one.rule, one.at] for one in (short, found)]
    return Evidence(
        closest(slopes[0] / slopes[1], {"same": 1, "tenth": k, "hundredth": k * k}),
        {"before": written(slopes[0]), "after": written(slopes[1]), "k": written(k)},
    )


def rounding(found: placement.Result) -> Evidence:
    """The error of another order of rounding, between none and that of the known mistakes."""
    spread = found.settings.gain_spread
    row = next(row for row in placement.mistake_rows(found.settings) if row["gain_spread"] == spread)
    others = [float(error) for name, error in row.items() if name != "gain_spread" and error is not None]
    choices = {"millionth": 1e-6, "half_percent": 5e-3, "tenth": 0.1}
    wide = placement.run(found.settings.but(format="float32")).relative_score_error
    assert found.relative_score_error < min(others) / 5
    assert wide < found.relative_score_error / 1000
    return Evidence(
        closest(found.relative_score_error, choices),
        {
            "error": _percent(found.relative_score_error),
            "least": at_least(100 * min(others), 3),
            "most": at_most(100 * max(others), 3),
        },
    )


def latent(found: mla.Result) -> Evidence:
    """The cache of an exact norm, against that without one."""
    costs = {item.reading: item for item in found.costs}
    base = costs["without_norm"].cache_bytes
    ratio, full = costs["absorbed"].cache_bytes / base, costs["full_keys"].cache_bytes / base
    return Evidence(
        closest(ratio, {"same": 1, "fifth": 1.2, "double": 2, "forty": 40}),
        {
            "extra": _percent(ratio - 1),
            "with_norm": mla.size_text(costs["absorbed"].cache_bytes),
            "without_norm": mla.size_text(base),
            "with_keys": mla.size_text(costs["full_keys"].cache_bytes),
            "full": written(full, 3),
            "kept": str(found.settings.latent + found.settings.d_rotary),
            "difference": below(found.relative_difference, 1e-14),
            "forming": written(costs["naive"].flops / costs["absorbed"].flops, 3),
        },
    )


def table(found: models.Result) -> Evidence:
    """How many rows are held against the class itself: those that `found` holds."""
    held = found.models
    share = len(held) / len(MODELS)
    models_only = [model for model in MODELS if model.kind == "model"]
    without = [model for model in models_only if model.qk_norm == "no"]
    return Evidence(
        closest(share, {"all": 1, "half": 0.5, "tenth": 0.1}),
        {
            "rows": str(len(MODELS)),
            "held": str(len(held)),
            "read": str(len(MODELS) - len(held)),
            "without": str(len(without)),
            "models": str(len(models_only)),
        },
    )


def _percent(fraction: float) -> str:
    return written(100 * fraction, 3)
