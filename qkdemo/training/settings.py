"""The dials of a training run.

* `Settings`: every dial; the defaults are the demonstration: fixed-offset copy, a learning-rate ramp to 0.2;
* `RESTARTS`: the dials that a run cannot change on its way; `SHARED`: those that runs in one batch have in common;
* `canonical(settings)`, `identity(settings)`: which settings are the same run, and its name;
* `ENGINE`: the version of the arithmetic; it changes when the same settings give numbers that differ by more
  than rounding.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from qkdemo.attention.norms import ALPHA, NormaliserWord, norms_with
from qkdemo.dials import Choice, Dial, Dials, Switch, declarations
from qkdemo.floats.autocast import ForwardFormat, available_formats
from qkdemo.floats.devices import DeviceWord, available_devices
from qkdemo.training.schedule import ScheduleWord
from qkdemo.training.tasks import TaskWord, text_digest, words_digest

TreatmentWord: TypeAlias = Literal[
    NormaliserWord, "cosine", "softcap", "sigma_reparam", "qk_clip", "qk_lr", "quack", "ngpt"
]
RemedyWord: TypeAlias = Literal["none", TreatmentWord]

ENGINE: Final = "2"
_WIDTHS: Final = (8.0, 16.0, 32.0, 64.0)
_LENGTHS: Final = (8.0, 16.0, 32.0, 64.0)
_BATCHES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


@dataclass(frozen=True, kw_only=True)
class Settings(Dials):
    """One run. The model's width is n_heads · d_head, so that no two dials can contradict each other."""

    kin: ClassVar[str] = "training"

    variant: Annotated[RemedyWord, Choice()] = "rms"
    task: Annotated[TaskWord, Choice()] = "copy"
    schedule: Annotated[ScheduleWord, Choice()] = "ramp"
    learning_rate: Annotated[float, Dial(1e-5, 3, log=True)] = 0.2
    warmup: Annotated[int, Dial(0, 1000, only_for=("schedule", ("constant", "cosine")))] = 20
    steps: Annotated[int, Dial(20, 3000, 20)] = 300
    softcap: Annotated[float, Dial(1, 1000, log=True, only_for=("variant", ("softcap",)))] = 50.0
    clip_threshold: Annotated[float, Dial(1, 1000, log=True, only_for=("variant", ("qk_clip",)))] = 30.0
    temperature: Annotated[float, Dial(0.01, 10, log=True, only_for=("variant", ("cosine",)))] = 0.1
    gamma: Annotated[float, Dial(0.1, 10, log=True, only_for=("variant", norms_with("gamma")))] = 1.0
    alpha: Annotated[float, Dial(0.01, 10, log=True, only_for=("variant", norms_with("alpha")))] = ALPHA
    qk_lr_factor: Annotated[float, Dial(1e-4, 1, log=True, sign="×", only_for=("variant", ("qk_lr",)))] = 0.1
    qk_start: Annotated[float, Dial(0.1, 100, log=True, sign="×")] = 1.0
    n_layers: Annotated[int, Dial(1, 4, more=True)] = 2
    n_heads: Annotated[int, Dial(1, 4, more=True)] = 2
    d_head: Annotated[int, Dial(8, 64, log=True, stops=_WIDTHS, more=True)] = 16
    shared_keys: Annotated[bool, Switch(more=True)] = False
    n_keys: Annotated[int, Dial(8, 64, log=True, stops=_LENGTHS, more=True)] = 32
    batch: Annotated[int, Dial(1, 32, log=True, stops=_BATCHES, more=True)] = 8
    grad_clip: Annotated[float, Dial(0, 100, 0.1, more=True)] = 1.0
    weight_decay: Annotated[float, Dial(0, 1, 0.01, more=True)] = 0.0
    z_loss: Annotated[float, Dial(0, 0.1, 1e-4, more=True)] = 1e-4
    beta1: Annotated[float, Dial(0, 0.99, 0.01, more=True)] = 0.9
    beta2: Annotated[float, Dial(0.5, 0.9999, 1e-4, more=True)] = 0.95
    forward_format: Annotated[ForwardFormat, Choice(more=True, available=available_formats)] = "float32"
    seed: Annotated[int, Dial(0, 9999, more=True)] = 0
    device: Annotated[DeviceWord, Choice(more=True, available=available_devices)] = "cpu"


# What the first weights, the batches or the shapes of the tensors depend on.
RESTARTS: Final = frozenset(
    {
        *(
            "task",
            "temperature",
            "gamma",
            "alpha",
            "qk_start",
            "n_layers",
            "n_heads",
            "d_head",
            "shared_keys",
            "n_keys",
        ),
        *("batch", "forward_format", "seed", "device"),
    }
)
# What runs that train together must share: the shapes, and where and how the arithmetic runs.
SHARED: Final = RESTARTS - {"temperature", "gamma", "alpha", "qk_start", "seed"}
# Dials that came after the first recorded runs: at their default they leave no trace in a run's name.
_LATER: Final = frozenset({"alpha"})


def canonical(settings: Settings) -> Settings:
    """The same run, with every dial that does not act at its default: equal runs become equal settings."""
    idle = {dial.name: dial.default for dial in declarations(Settings) if not dial.acts_for(settings)}
    return settings.but(**idle)


def identity(settings: Settings) -> str:
    """A run's name: a hash of everything that its numbers depend on."""
    dials = canonical(settings).as_dict()
    same = {dial.name for dial in declarations(Settings) if dial.name in _LATER and dials[dial.name] == dial.default}
    told: dict[str, Any] = {"engine": ENGINE, "settings": {n: v for n, v in dials.items() if n not in same}}
    if settings.task == "text":
        told["text"] = text_digest()  # it ships with Python, and differs between versions of it
    if settings.task == "words":
        told["words"] = words_digest()
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:24]
