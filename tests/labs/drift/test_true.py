"""Every sentence of the drift lab that depends on a result, held against its numbers at many random settings."""

import random

import numpy as np
import pytest
import torch

from qkdemo.attention.inputs import Inputs
from qkdemo.labs.drift import Settings, explain, findings, on, run, sharpness, sweep_scales
from qkdemo.labs.drift.curves import lost
from qkdemo.labs.drift.sharpness_view import sharpness_exhibit
from tests.labs.drift.truths import NAMES, NAMES_OF_PANELS, ORACLES, SMALL, About
from tests.labs.told import HOW_MANY, SEED, computed, hold, states
from tests.oracles import heard


def test_every_sentence_of_a_result_has_an_oracle() -> None:
    needed = computed(r"drift\.(plain|twin)\..*", r"bound\..*", r"sharpness\.(finding|one_key|undefined)")
    needed |= computed(r"drift\.(measured|undefined|zeroed|rounded_above|first_loss|lost_before|one_key)")
    assert needed <= set(ORACLES)
    assert set(ORACLES) <= computed(".*")


def vectors(draw: random.Random, settings: Settings) -> Settings:
    """The same settings on vectors that nobody would draw: zeros, equal ones, huge ones, one unlike the others."""
    n, d = draw.choice([2, 3, 5]), draw.choice([4, 8])
    shape = (draw.choice([1, 2]), n, d)
    numbers = np.random.default_rng(draw.randrange(10**6))
    q, k = (
        numbers.standard_normal(shape) * draw.choice([0, 1e-300, 1e-160, 1e-8, 1e-4, 1, 1, 1e5, 1e160, 1e200, 1e307])
        for _ in range(2)
    )
    for x in (q, k):
        match draw.randrange(6):
            case 0:
                x[:] = x[0, 0, 0]
            case 1:
                x[:] = x[:, :1]
            case 2:
                x[0, draw.randrange(n)] = 0
            case 3:
                x[0, draw.randrange(n)] *= draw.choice([1e-6, 1e6])
    return on(settings, Inputs(torch.from_numpy(q), torch.from_numpy(k)))


def drawn() -> list[Settings]:
    draw, some = random.Random(SEED + 1), states(Settings, 20, SMALL, device="cpu")
    return [vectors(draw, state) if draw.random() < 0.3 else state for state in some]


def heard_of(settings: Settings, draw: random.Random) -> set[str]:
    result, held = run(settings), set[str]()
    about = About(result, settings.scale)
    with heard() as said:
        explain(result)
        lost(result, {"ticks": []})
    held |= hold(said, ORACLES, f"{NAMES}|{NAMES_OF_PANELS}", about, settings)
    with heard() as said:
        findings(result)
    scale = -1
    for each in said:
        scale += each.key.startswith("drift.plain.")
        if scale >= 0 and (draw.random() < 0.1 or each.key.endswith("unmoved")):
            at = About(result, float(result.scales[scale]))
            held |= hold([each], ORACLES, NAMES, at, settings)
    swept = sharpness(settings)
    if swept is not None:
        with heard() as said:
            sharpness_exhibit(swept, result)
        some = [each for each in said if each.key.startswith("sharpness") and draw.random() < 0.05]
        held |= hold(some, ORACLES, NAMES_OF_PANELS, about, settings)
    return held


def test_every_sentence_is_true_wherever_the_dials_stand() -> None:
    draw, held = random.Random(SEED), set[str]()
    with np.errstate(all="ignore"):
        for state in drawn():
            held |= heard_of(state, draw)
    if HOW_MANY:
        print(len(held), "of", len(ORACLES), "were heard; not", sorted(set(ORACLES) - held))
    assert len(held) > len(ORACLES) // 2


@pytest.mark.parametrize("spread", [1, 16])
@pytest.mark.parametrize("heads", [1, 2, 4])
def test_what_holds_on_average_alone_is_not_told_of_every_head(heads: int, spread: float) -> None:
    """With two heads of sizes 1 and 16, one spreads its attention over 99.9 % and the other over 6.1 %."""
    for variant in ("full_width", "rms"):
        for scale in (1.0, 2.0):
            state = Settings(n_heads=heads, head_spread=spread, variant=variant, scale=scale, **SMALL)  # type: ignore[arg-type]
            with heard() as said:
                explain(run(state))
            hold([said[-1], *said[:8]], ORACLES, f"{NAMES}|{NAMES_OF_PANELS}", About(run(state), scale), state)
            assert any(each.key.startswith("drift.plain.") for each in said)


def test_what_holds_on_average_alone_is_not_told_of_every_query() -> None:
    """Half of the queries are zeros and look everywhere alike, half look at one key: 50 % of the most entropy."""
    q, k = torch.zeros(1, 8, 16, dtype=torch.float64), torch.eye(8, 16, dtype=torch.float64)[None]
    q[0, :4] = 1000 * k[0, :4]
    told = explain(run(on(Settings(scale=1), Inputs(q, k))))[0]
    assert told.startswith("At weight scale 1, plain attention spreads over its keys on average: entropy is 50 %")


def test_the_sweep_of_a_small_state_holds_scale_one() -> None:
    """On it stands every comparison with scale 1."""
    assert 1.0 in sweep_scales(Settings())
