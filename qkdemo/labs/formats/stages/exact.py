"""The stages of attention in float64, where nothing is lost: what every format is measured against.

* `exactly(inputs, scales, choices)`: all of them;
* `exact_part(part, …)`: those of one of the five `PARTS`, given the stages before it.
"""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from qkdemo.attention.norms import NORMS, numerator, reciprocal_root
from qkdemo.floats.formats import exact
from qkdemo.labs.formats.stages.kinds import PARTS, STAGE_OF, Choices, Inputs, Part, StageWord, factors, power_on


def exactly(inputs: Inputs, scales: Float[Tensor, "scales"], choices: Choices) -> dict[StageWord, Tensor]:
    """Every stage in float64, [scales, a, b]; a hidden key's logit is −∞ whatever the mask is.

    Weights are formed with the row maximum subtracted, also where exp and sum are not.
    """
    stages: dict[StageWord, Tensor] = {}
    for part in PARTS:
        stages |= exact_part(part, stages, inputs, scales, choices)
    return stages


def exact_part(
    part: Part,
    before: Mapping[StageWord, Tensor],
    inputs: Inputs,
    scales: Float[Tensor, "scales"],
    choices: Choices,
) -> dict[StageWord, Tensor]:
    """The stages of one part in float64, given those `before` it."""
    multiplier, divisor = factors(choices, inputs.q.shape[-1])
    factor = multiplier / divisor
    match PARTS.index(part):
        case 0:
            return {"q_stored": scales[:, None, None] * inputs.q, "k_stored": scales[:, None, None] * inputs.k}
        case 1:
            stages: dict[StageWord, Tensor] = {}
            for name in ("q", "k"):
                x = before[STAGE_OF[name, "stored"]]
                stages |= {STAGE_OF[name, part]: value for part, value in _exact_norm(x, choices).items()}
                x = NORMS[choices.variant].apply(x, choices.gamma, choices.alpha, exact)
                power = power_on(name, choices)
                stages[STAGE_OF[name, "entering"]] = x * factor**power if power else x
            return stages
        case 2:
            raw = before["q_entering"] @ before["k_entering"].mT
            logits = raw if choices.placement in ("on_q", "split") else raw * factor
            masked = logits if inputs.visible is None else logits.masked_fill(~inputs.visible, -torch.inf)
            return {"raw_product": raw, "scaled": logits, "masked": masked}
        case 3:
            masked = before["masked"]
            shown = masked - masked.amax(-1, keepdim=True) if choices.max_subtraction else masked
            terms = shown.exp()
            total = terms.sum(-1, keepdim=True)
            return {"max_subtracted": shown, "exp": terms, "sum": total, "weight": torch.softmax(masked, -1)}
        case _:
            return {"weighted_values": before["weight"] @ inputs.v}


def _exact_norm(x: Tensor, choices: Choices) -> dict[str, Tensor]:
    norm = NORMS[choices.variant]
    if norm.entrywise is not None:
        return {}
    squares = numerator(x, norm).square().sum(-1, keepdim=True)
    return {"sum_of_squares": squares, "reciprocal_root": reciprocal_root(squares, x.shape[-1], norm)}
