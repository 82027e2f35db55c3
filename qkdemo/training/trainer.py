"""Training many runs at once, step by step.

* `State`: everything that the next step depends on, in plain tensors; copy it, pick rows of it, go on from it;
* `Trainer`: takes steps, and reads every one of them.

A run's numbers do not depend on which runs train beside it: in float32 on a CPU to the last bit; in bfloat16 torch
forms the smallest products in another way if there are few of them. Pausing is not calling; resuming, and forking with
other dials, is making a trainer from a `State`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from qkdemo.attention.inputs import causal_mask
from qkdemo.dials import SettingsError
from qkdemo.floats.autocast import forward_in
from qkdemo.messages import say
from qkdemo.training import telemetry
from qkdemo.training.network.by_hand import by_hand, takes
from qkdemo.training.network.groups import Groups
from qkdemo.training.network.model import HIDDEN, Attention, Cap, Setup, forward, losses
from qkdemo.training.network.parameters import initial, n_later, n_parameters, power_vectors, shape_of, views
from qkdemo.training.optimizer import Hyperparameters, adamw, clip_gradients
from qkdemo.training.remedies import (
    REMEDIES,
    block_matrices,
    clip_heads,
    factor_of,
    power_step,
    power_vectors_of,
    to_sphere,
)
from qkdemo.training.schedule import SCHEDULES
from qkdemo.training.settings import RESTARTS, SHARED, Settings, canonical
from qkdemo.training.tasks import TASKS, batch_of
from qkdemo.training.telemetry import Telemetry


@dataclass(frozen=True, eq=False)
class State:
    """Where runs stand after `step` steps; one row per run."""

    step: int
    parameters: Float[Tensor, "runs parameters"]
    first_moment: Float[Tensor, "runs parameters"]
    second_moment: Float[Tensor, "runs parameters"]
    power_vectors: Float[Tensor, "runs entries"]  # σReparam's

    @classmethod
    def fresh(cls, runs: Sequence[Settings]) -> "State":
        """The state of `runs` before their first step."""
        rows = torch.stack([initial(run) for run in runs])
        vectors = torch.stack([power_vectors(run) for run in runs])
        return cls(0, rows, torch.zeros_like(rows), torch.zeros_like(rows), vectors)

    def rows(self, indices: Sequence[int]) -> "State":
        """A copy with those runs, in that order; one may occur twice."""
        return State(self.step, *(tensor[list(indices)] for tensor in self.tensors()))

    def fitted(self, runs: Sequence[Settings]) -> "State":
        """For `runs`, row by row: parameters that came to the end of the layout since it was kept, at their start."""
        more = n_parameters(shape_of(runs[0])) - self.parameters.shape[1]
        if more <= 0:
            return self
        starts = torch.stack([initial(run)[-more:] for run in runs])
        first, second = (functional.pad(moment, (0, more)) for moment in (self.first_moment, self.second_moment))
        return State(self.step, torch.cat([self.parameters, starts], dim=1), first, second, self.power_vectors)

    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Its tensors, in order."""
        return self.parameters, self.first_moment, self.second_moment, self.power_vectors


_Gradients: TypeAlias = tuple[Tensor, list[Attention], dict[str, Tensor]]


@dataclass(frozen=True, eq=False)
class _Way:
    """Runs that stand beside each other, and how their steps are taken."""

    rows: slice
    step: Callable[..., _Gradients]  # leaves, tokens, targets, counted, z_loss, setup
    setup: Setup
    leaves: dict[str, Tensor]  # views into the rows of all parameters
    zeros: dict[str, Tensor]  # the gradient of a leaf that has none


class Trainer:
    """Trains `runs` together, from `state` or afresh. Results come in the order of `runs`; attention maps if asked.

    Raises SettingsError if the runs cannot share a batch.
    """

    def __init__(self, runs: Sequence[Settings], state: State | None = None, *, maps: bool = True) -> None:
        _refuse_strangers(runs)
        words = list(REMEDIES)
        self._order = sorted(range(len(runs)), key=lambda at: words.index(runs[at].variant))
        self._place = [self._order.index(at) for at in range(len(runs))]
        self._runs = [runs[at] for at in self._order]
        self._maps = maps
        self._device = torch.device(runs[0].device)
        self._task = TASKS[runs[0].task]
        self._seeds = sorted({run.seed for run in runs})
        self._seed_of = [self._seeds.index(run.seed) for run in self._runs]
        self._shape = shape_of(runs[0])
        self._groups = Groups.of([run.variant for run in self._runs])
        self._hyper = Hyperparameters.of(self._runs, self._device)
        begun = state.rows(self._order).fitted(self._runs) if state is not None else State.fresh(self._runs)
        self.step = begun.step
        tensors = [tensor.to(self._device) for tensor in begun.tensors()]
        self._parameters, self._first, self._second, self._vectors = tensors
        self._named = views(self._parameters, self._shape)
        if state is None:
            self._onto_sphere()
        self._hidden = torch.zeros(()).masked_fill(~causal_mask(runs[0].n_keys), HIDDEN).to(self._device)
        self._first_counted = self._task.first_counted(runs[0].n_keys)
        n_by_hand = sum(takes(REMEDIES[run.variant]) for run in self._runs) if self._may_go_by_hand() else 0
        ways = (slice(0, n_by_hand), by_hand), (slice(n_by_hand, len(runs)), self._by_autograd)
        self._ways = [self._way(rows, step) for rows, step in ways if rows.start < rows.stop]

    @property
    def state(self) -> State:
        """A copy of where the runs stand, in their order."""
        return self.rows(range(len(self._place)))

    def rows(self, indices: Sequence[int]) -> State:
        """A copy of where some of them stand."""
        tensors, places = (
            (self._parameters, self._first, self._second, self._vectors),
            [self._place[i] for i in indices],
        )
        return State(self.step, *(tensor[places].cpu() for tensor in tensors))

    def advance(self, steps: int, goes_on: Callable[[], bool] = lambda: True) -> Telemetry:
        """Takes `steps` steps, or fewer if `goes_on`, asked after each, says no; returns what was read off them."""
        first = self.step + 1
        with torch.inference_mode(all(way.step is by_hand for way in self._ways)):
            rows = [self._one_step()]
            while len(rows) < steps and goes_on():
                rows.append(self._one_step())
        arrays = {
            name: torch.stack([row[name] for row in rows]).cpu().numpy()[:, self._place] for name in telemetry.ARRAYS
        }
        return Telemetry(first_step=first, **arrays)

    def _may_go_by_hand(self) -> bool:
        return self._runs[0].forward_format == "float32" and self._shape.n_kv_heads == self._shape.n_heads

    def _way(self, rows: slice, step: Callable[..., _Gradients]) -> _Way:
        runs = self._runs[rows]
        groups = Groups.of([run.variant for run in runs])
        setup = Setup(
            shape=self._shape,
            groups=groups,
            hidden=self._hidden,
            cap=next((self._cap(runs, capped) for remedy, capped in groups.slices if remedy.caps), None),
            power_vectors=self._vectors[rows],
            first_counted=self._first_counted,
        )
        leaves, zero = views(self._parameters[rows], self._shape), torch.zeros((), device=self._device)
        zeros = {name: zero.expand(len(view), view[0].numel()) for name, view in leaves.items()}
        return _Way(rows, step, setup, leaves, zeros)

    def _cap(self, runs: Sequence[Settings], rows: slice) -> Cap:
        at = torch.tensor([run.softcap for run in runs[rows]], device=self._device)
        return Cap(rows, at[:, None, None, None, None])

    def _one_step(self) -> dict[str, Tensor]:
        self.step += 1
        rates = torch.tensor([learning_rate(self.step, run) for run in self._runs], device=self._device)[:, None]
        self._advance_power_vectors()
        loss, layers, gradients = self._loss_and_gradients()
        read = telemetry.read_attention(layers, self._hidden, self._shape)
        norm = clip_gradients(gradients, self._hyper.largest_norm, n_later(self._shape))
        adamw(
            self._parameters,
            gradients,
            (self._first, self._second),
            self._scaled(rates),
            self._hyper,
            self.step,
        )
        self._clip_heads(layers)
        self._onto_sphere()
        maps = torch.stack([layer.weights[:, 0] for layer in layers], dim=1)[:, : None if self._maps else 0]
        return read | {"loss": loss, "gradient_norm": norm, "learning_rate": rates[:, 0], "maps": maps.half()}

    def _loss_and_gradients(self) -> tuple[Tensor, list[Attention], Tensor]:
        batch, parts = (*self._batch(), self._hyper.z_loss), []
        for way in self._ways:
            loss, layers, found = way.step(way.leaves, *(tensor[way.rows] for tensor in batch), way.setup)
            flat = [found[name].flatten(1) if name in found else zeros for name, zeros in way.zeros.items()]
            parts.append((loss, layers, torch.cat(flat, dim=1)))
        if len(parts) == 1:
            return parts[0]
        losses_of, layers_of, gradients_of = zip(*parts, strict=True)
        together = [Attention.beside(layers) for layers in zip(*layers_of, strict=True)]
        return torch.cat(losses_of), together, torch.cat(gradients_of)

    def _by_autograd(
        self,
        leaves: Mapping[str, Tensor],
        tokens: Tensor,
        targets: Tensor,
        counted: Tensor,
        z_loss: Tensor,
        setup: Setup,
    ) -> _Gradients:
        leaves = {name: view.detach().requires_grad_() for name, view in leaves.items()}
        with forward_in(self._runs[0].forward_format, self._device.type):
            outputs, layers = forward(leaves, tokens, setup)
        minimised, loss = losses(outputs.float(), targets, counted, z_loss)
        gradients: Sequence[Tensor | None] = torch.autograd.grad(
            minimised.sum(), list(leaves.values()), allow_unused=True
        )
        return loss, layers, {n: g for n, g in zip(leaves, gradients, strict=True) if g is not None}

    def _batch(self) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens, targets and the share of each counted position; runs with one seed share the drawing."""
        settings, first = self._runs[0], self._first_counted
        drawn = [batch_of(self._task, settings.n_keys, settings.batch, seed, self.step) for seed in self._seeds]
        tokens = np.stack([batch.tokens for batch in drawn])[self._seed_of]
        targets = np.stack([batch.targets[:, first:] for batch in drawn])[self._seed_of]
        counted = np.stack([batch.counted[:, first:] for batch in drawn])
        shares = (counted / counted.sum((1, 2), keepdims=True))[self._seed_of]
        return (
            torch.from_numpy(tokens).to(self._device),
            torch.from_numpy(targets).to(self._device),
            torch.from_numpy(shares.astype(np.float32)).to(self._device),
        )

    def _scaled(self, rates: Tensor) -> Tensor:
        """Every parameter's rate, if a remedy scales some of them; else the runs' rates as they are."""
        scaling = [(remedy, rows) for remedy, rows in self._groups.slices if remedy.rates is not None]
        if not scaling:
            return rates
        scaled = rates.repeat(1, n_parameters(self._shape))
        leaves = views(scaled, self._shape)
        for remedy, rows in scaling:
            assert remedy.rates is not None
            factor = torch.tensor([factor_of(run) for run in self._runs[rows]], device=self._device)
            for layer in range(self._shape.n_layers):
                scale = torch.ones_like(leaves[f"{layer}.qkv"][rows])
                remedy.rates(scale, self._named[f"{layer}.qkv"][rows], self._shape, factor)
                leaves[f"{layer}.qkv"][rows] *= scale
        return scaled

    def _clip_heads(self, layers: Sequence[Attention]) -> None:
        for remedy, rows in self._groups.slices:
            if remedy.clips:
                thresholds = torch.tensor([run.clip_threshold for run in self._runs[rows]], device=self._device)
                for layer, attention in enumerate(layers):
                    largest = telemetry.largest_by_head(attention.logits[rows])
                    clip_heads(self._named[f"{layer}.qkv"][rows], largest, thresholds[:, None], self._shape)

    def _onto_sphere(self) -> None:
        for remedy, rows in self._groups.slices:
            if remedy.on_sphere:
                to_sphere({name: leaf[rows] for name, leaf in self._named.items()})

    def _advance_power_vectors(self) -> None:
        for remedy, rows in self._groups.slices:
            if remedy.reparametrises:
                vectors = power_vectors_of(self._vectors[rows], self._shape)
                for layer in range(self._shape.n_layers):
                    leaves = {name: self._named[f"{layer}.{name}"][rows] for name in ("qkv", "out", "up", "down")}
                    of_layer = vectors[6 * layer : 6 * layer + 6]
                    for matrix, vector in zip(block_matrices(leaves, self._shape), of_layer, strict=True):
                        vector.copy_(power_step(matrix, vector))


def learning_rate(step: int, run: Settings) -> float:
    """The rate of a run at `step`, counted from 1."""
    return SCHEDULES[run.schedule](step, run.learning_rate, run.warmup, run.steps)


def forked(run: Settings, **changes: object) -> Settings:
    """`run` with dials changed on its way. Raises SettingsError for a dial that would begin another run."""
    changed = run.but(**changes)
    for name in sorted(RESTARTS):
        if getattr(canonical(changed), name) != getattr(canonical(run), name):
            raise SettingsError(say("training.error.restarts", name=name))
    return changed


def _refuse_strangers(runs: Sequence[Settings]) -> None:
    for run in runs[1:]:
        for name in sorted(SHARED):
            if getattr(run, name) != getattr(runs[0], name):
                raise SettingsError(say("training.error.shared", name=name))
