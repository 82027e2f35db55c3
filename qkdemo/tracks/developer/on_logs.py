"""What the diagnosis of a log says, for a stop: of the run that comes with the app (`diagnose/examples`).

* `case(...)`: the log with its logits, and with no more than loss, gradient norm and rate.

The run beside it may have been trained anew, on a machine that rounds otherwise: no number of it is read here.
"""

from dataclasses import replace
from functools import cache
from typing import Final

from qkdemo.diagnose.curves import causes
from qkdemo.diagnose.curves.growth import LARGE
from qkdemo.diagnose.findings.of_logs import doubling
from qkdemo.diagnose.readers.logs import read_logs
from qkdemo.diagnose.samples import SAMPLES
from qkdemo.labs import training as twins
from qkdemo.notation import written
from qkdemo.tracks.stop import Evidence, only
from qkdemo.training.outcome import incidents

_LOGITS: Final = "max_logit"
_OF_ATTENTION: Final = (_LOGITS, "entropy")  # roles of columns that most training scripts do not log


@cache
def _diagnosed(*without: str) -> causes.Result:
    """The bundled log, without the columns of these roles."""
    name, make = SAMPLES["log"]
    (log,) = read_logs(make(), name)
    dropped = {causes.run(log).roles[role] for role in without}
    return causes.run(replace(log, columns={name: log.columns[name] for name in log.columns.keys() - dropped}))


def case(_beside: twins.Result) -> Evidence:
    """What each of the three logs lets a diagnosis say, and what the page of a run says of the first."""
    whole, bare, with_entropy = _diagnosed(), _diagnosed(*_OF_ATTENTION), _diagnosed(_LOGITS)
    (found,), (asked,), (half,) = whole.causes, bare.causes, with_entropy.causes
    assert found.key == "attention_max_logit"
    assert half.key == "entropy_alone"
    assert whole.growth is not None
    doubled, log = doubling(whole.growth), whole.log
    rises = {one.kind: log.step[one.start] for one in reversed(incidents(log.columns["loss"].tolist()))}  # the first
    numbers = {
        "since": written(found.numbers["since"]),
        "step": written(found.numbers["step"]),
        "diverged": written(rises["divergence"]),
        "spiked": written(rises["spike"]),
        "ahead": written(found.numbers["step"] - found.numbers["since"]),
        "large": written(LARGE),
        "gone": written(100 * causes.COLLAPSED),
        "logit": written(found.numbers["logit"], 3),
        "doubles": doubled["steps"],
        "fast": doubled["low"],
        "slow": doubled["high"],
    }
    answer = only(
        attention=asked.key.startswith("attention"),
        rate=asked.key in ("not_attention", "beyond_start"),
        overflow=asked.key == "gradient_overflow",
        cannot=asked.key == "cannot_tell",
    )
    return Evidence(answer, numbers)
