"""Watch the attention of a PyTorch model while it runs.

    from qkdemo import watch

    with watch(model) as report:
        model(batch)
    print(report)

    report = watch(model, every=100, to="attention.jsonl", optimizer=optimizer)  # in a training script
    ...
    report.note(loss=loss)  # at any step: numbers of yours beside those of attention

What the model computes is not changed, nor the graph of its gradients: q and k are looked at, detached, as they enter
the product. Between two measured steps one counter is all that runs. Two exceptions: `nn.TransformerEncoder` leaves its
fused inference path while it is measured, as with any hook, and a model that is compiled, or has compiled parts, runs
uncompiled; both are equal to rounding. Watch what you call: `watch(compiled)`. What is compiled as one graph
(`fullgraph=True`) can hold no hook: compile by `torch.compile(model)`, not by `model.compile()`, before you watch it.
"""

import math
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import torch
from torch import Tensor, nn

from qkdemo.diagnose.watching.heads import ROWS, Call, measure
from qkdemo.diagnose.watching.report import Keep, Report, Row, keeper
from qkdemo.diagnose.watching.taps import tapped


class Watch(Report):
    """A report that grows while its model runs; `close()`, or the end of a `with`, ends it."""

    def __init__(self, model: nn.Module, *, every: int, to: Any, optimizer: Any, rows: int) -> None:
        """Begins at once. Raises ValueError for `every` or `rows` below 1."""
        super().__init__()
        for name, value in (("every", every), ("rows", rows)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, but is {value}.")
        self._model, self._every, self._rows_at_once = model, every, rows
        self._keep: Keep | None = None
        self._end: Callable[[], None] = lambda: None
        if to is not None:
            self._keep, self._end = keeper(to)
        self._step = self._now = 0
        self._open: ExitStack | None = None
        self._fresh: list[Row] = []
        self._closers: list[Callable[[], None]] = []
        self._attach(optimizer)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Take every hook off the model, and finish the file that is written."""
        self._after()
        while self._closers:
            self._closers.pop()()
        self._end()
        self._end = lambda: None

    def note(self, **numbers: Any) -> None:
        """Keep other numbers of this step, as its loss: from them a diagnosis tells whether attention came first."""
        plain = {
            name: x.detach() if isinstance(x, Tensor) else x for name, x in numbers.items()
        }  # a loss with its graph
        row: Row = {"step": self._now} | {name: float(x) for name, x in plain.items()}
        self.steps.append(row)
        if self._keep:
            self._keep(self._now, [row])

    def see(self, layer: str, q: Tensor, k: Tensor, **options: Any) -> None:
        """Measure one call of your own attention; `options` are those of `heads.Call`, `scale` 1/√d unless given."""
        options.setdefault("scale", q.shape[-1] ** -0.5)
        self._see(layer, Call(q=q, k=k, **options))

    def _see(self, layer: str, call: Call) -> None:
        columns = {name: values.double().tolist() for name, values in measure(call, self._rows_at_once).items()}
        heads = range(call.q.shape[1])
        new = [
            {"step": self._step, "layer": layer, "head": head}
            | {name: column[head] for name, column in columns.items()}
            for head in heads
        ]
        self.rows.extend(new)
        self._fresh.extend(new)
        if self._open is None and self._keep:  # told outside a forward pass
            self._flush()

    # ---- the model's steps

    def _attach(self, optimizer: Any) -> None:
        before = self._model.register_forward_pre_hook(_Hook(self._before), with_kwargs=True)
        after = self._model.register_forward_hook(_Hook(lambda *_: self._after()), always_call=True)
        self._closers += [before.remove, after.remove]
        self._counts_forwards = optimizer is None
        if optimizer is not None:
            self._closers += _Updates(self, optimizer).hooks()

    @property
    def due(self) -> bool:
        """Whether this step is measured."""
        return self._step % self._every == 0

    def _before(self, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._now = self._step
        if self.due and self._open is None:
            self._open = ExitStack()
            self._open.enter_context(tapped(self._model, self._see, (args, kwargs)))

    def _after(self) -> None:
        if self._open is not None:
            opened, self._open = self._open, None
            opened.close()
            self._flush()
        if self._counts_forwards and self._closers:
            self._step += 1

    def _flush(self) -> None:
        new, self._fresh = self._fresh, []
        if new and self._keep:
            self._keep(self._step, new)

    def advance(self) -> None:
        """One more step of the optimiser."""
        self._step += 1


class _Hook:
    """A hook that a copy of the model, or a model that is saved whole, does not take along: it is not watched."""

    def __init__(self, act: Callable[..., None] | None = None) -> None:
        self._act = act

    def __call__(self, *given: Any) -> None:
        if self._act is not None:
            self._act(*given)

    def __reduce__(self) -> tuple[type["_Hook"], tuple[()]]:
        return _Hook, ()


class _Updates:
    """How far an optimiser moves its parameters in a measured step, and how its moments change."""

    def __init__(self, watch: Watch, optimizer: Any) -> None:
        self._watch, self._optimizer = watch, optimizer
        self._before: list[Tensor] | None = None
        self._moments: dict[str, float] = {}

    def hooks(self) -> list[Callable[[], None]]:
        before = self._optimizer.register_step_pre_hook(lambda *_: self._look())
        after = self._optimizer.register_step_post_hook(lambda *_: self._note())
        return [before.remove, after.remove]

    def _parameters(self) -> list[Tensor]:
        return [p for group in self._optimizer.param_groups for p in group["params"] if p.grad is not None]

    @torch.no_grad()
    def _look(self) -> None:
        if self._watch.due:
            self._before = [p.detach().clone() for p in self._parameters()]
            self._moments = self._sizes()

    @torch.no_grad()
    def _note(self) -> None:
        if self._before is not None:
            moved = math.sqrt(
                sum(
                    float((p - old).double().square().sum())
                    for p, old in zip(self._parameters(), self._before, strict=True)
                )
            )
            row: Row = {"step": self._watch._step, "update_norm": moved}
            for name, size in self._sizes().items():
                before = self._moments.get(name, 0.0)
                row[name] = size
                row[f"{name}_change"] = size / before if before else math.nan
            del row["step"]
            self._watch.note(**row)
            self._before = None
        self._watch.advance()

    def _sizes(self) -> dict[str, float]:
        """The length of all first, and of all second, moments together."""
        sums: dict[str, float] = {}
        for parameter in self._parameters():
            for name, value in self._optimizer.state.get(parameter, {}).items():
                if name in ("exp_avg", "exp_avg_sq", "momentum_buffer") and isinstance(value, Tensor):
                    sums[name] = sums.get(name, 0.0) + float(value.double().square().sum())
        return {name: math.sqrt(total) for name, total in sums.items()}


def watch(model: nn.Module, *, every: int = 1, to: Any = None, optimizer: Any = None, rows: int = ROWS) -> Watch:
    """Watch every attention call of `model` in each `every`-th step.

    A step is a step of `optimizer`, if one is given, else a forward pass. `to` also keeps what is measured as it
    comes: a file (.jsonl, .parquet), a TensorBoard `SummaryWriter`, a W&B run, the `mlflow` module, or a function of
    step and rows. `rows`: how many queries of a head the softmax's measures are taken from; maxima are taken over all,
    and both from the first four sequences of a batch.

    Raises ValueError for `every` or `rows` below 1, TypeError for a `to` that cannot keep rows.
    """
    return Watch(model, every=every, to=to, optimizer=optimizer, rows=rows)
