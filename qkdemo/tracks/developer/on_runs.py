"""What the developer's stops on recorded runs read off them."""

from qkdemo.labs import cost
from qkdemo.labs import training as twins
from qkdemo.notation import at_most, written
from qkdemo.runs.plan import outcomes
from qkdemo.tracks.stop import Evidence, only
from qkdemo.training.outcome import LAST_STEPS, incidents
from qkdemo.training.telemetry import CURVES


def log(found: twins.Result) -> Evidence:
    """How many steps before the loss is lost the logits said so."""
    plain, twin = outcomes(found.plan, found.curves)
    large, ahead = plain.first_step_logit_over_100, plain.warned
    assert large is not None
    assert ahead is not None
    spiked, twin_spiked = first_spikes(found)
    gradients = found.curves[large - 1 : plain.lost_at, :2, CURVES.index("gradient_norm")].max(0)
    numbers = {
        "large": str(large),
        "lost": str(plain.lost_at),
        "ahead": str(ahead),
        "spiked": str(spiked),
        "twin_spiked": str(twin_spiked),
        "jump": written(float(gradients[0]), 2),
        "twin_jump": written(float(gradients[1]), 2),
        "slope": written(plain.final_softmax_slope, 2),
        "twin_slope": written(twin.final_softmax_slope, 2),
        "last": str(LAST_STEPS),
        "clip": written(found.plan.legs[0].runs[0].grad_clip),
    }
    answer = only(after=ahead < 0, once=0 <= ahead < 10, ten=10 <= ahead <= 50, hundred=ahead > 50)
    return Evidence(answer, numbers)


def first_spikes(found: twins.Result) -> list[int]:
    """The step of each model's first spike of the loss; the plain one's comes before its logits are large."""
    losses = found.curves[:, :2, CURVES.index("loss")].T.tolist()
    first = [next(one.start + 1 for one in incidents(loss) if one.kind == "spike") for loss in losses]
    large = outcomes(found.plan, found.curves)[0].first_step_logit_over_100
    assert large is not None
    assert first[0] < large
    return first


def calm(found: twins.Result) -> Evidence:
    """Whether the norm changes the loss of a run that does not need it."""
    plain, twin = outcomes(found.plan, found.curves)
    gap = plain.final_loss - twin.final_loss
    share = next(part.share for part in cost.run(cost.Settings()).parts if part.part == "rms")
    numbers = {
        "rate": written(found.plan.legs[0].runs[0].learning_rate),
        "loss": at_most(max(plain.final_loss, twin.final_loss), 1),
        "last": str(LAST_STEPS),
        "logit": written(plain.max_abs_logit, 2),
        "twin_logit": written(twin.max_abs_logit, 2),
        "cost": written(100 * share, 2),
    }
    apart = abs(gap) > 0.01  # nats
    return Evidence(only(better=apart and gap > 0, same=not apart, worse=apart and gap < 0), numbers)
