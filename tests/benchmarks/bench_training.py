"""How much faster the stacked engine trains than a plain loop: `python -m tests.benchmarks.bench_training`.

The plain loop is written as in nanoGPT: one nn.Module, torch.optim.AdamW, one run after another. It comes twice: with
fused attention, reading nothing but the loss; and reading what the engine reads at every step, for which attention
must be written out. All work on the default configuration with one thread, in turns, and time is the CPU time of
this process: other programs move the ratio less than the rates.
"""

import math
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from qkdemo.runs.batches import keep_freed_memory
from qkdemo.training.network.parameters import n_parameters, shape_of
from qkdemo.training.settings import Settings
from qkdemo.training.tasks import TASKS, batch_of
from qkdemo.training.telemetry import MEASURED
from qkdemo.training.trainer import Trainer, learning_rate

STEPS = 20
ROUNDS = 15


class Norm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return functional.layer_norm(x, self.weight.shape, self.weight, None, 1e-5)


class Block(nn.Module):
    seen: tuple[Tensor, Tensor]

    def __init__(self, run: Settings, *, reads: bool) -> None:
        super().__init__()
        width = run.n_heads * run.d_head
        self.run, self.reads = run, reads
        self.register_buffer("visible", torch.ones(run.n_keys, run.n_keys, dtype=torch.bool).tril())
        self.norm_1, self.norm_2 = Norm(width), Norm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)
        self.norm_q = nn.RMSNorm(run.d_head, eps=1e-6) if run.variant == "rms" else nn.Identity()
        self.norm_k = nn.RMSNorm(run.d_head, eps=1e-6) if run.variant == "rms" else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        batch, n_keys, width = x.shape
        q, k, v = (
            part.view(batch, n_keys, self.run.n_heads, self.run.d_head).transpose(1, 2)
            for part in self.qkv(self.norm_1(x)).split(width, dim=2)
        )
        q, k = self.norm_q(q), self.norm_k(k)
        if self.reads:
            logits = (q @ k.mT) / math.sqrt(self.run.d_head)
            weights = logits.masked_fill(~self.visible, -torch.inf).softmax(-1)
            mixed = weights @ v
            self.seen = logits.detach(), weights.detach()
        else:
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).contiguous().view(batch, n_keys, width))
        return x + self.down(functional.relu(self.up(self.norm_2(x))))


class Model(nn.Module):
    def __init__(self, run: Settings, *, reads: bool) -> None:
        super().__init__()
        width, symbols = run.n_heads * run.d_head, TASKS[run.task].symbols()
        self.embedding, self.position = nn.Embedding(symbols, width), nn.Embedding(run.n_keys, width)
        self.blocks = nn.ModuleList([Block(run, reads=reads) for _ in range(run.n_layers)])
        self.norm, self.head = Norm(width), nn.Linear(width, symbols, bias=False)
        self.register_buffer("at", torch.arange(run.n_keys))

    def forward(self, tokens: Tensor, targets: Tensor, z_loss: float) -> Tensor:
        x = self.embedding(tokens) + self.position(self.at)
        for block in self.blocks:
            x = block(x)
        outputs = self.head(self.norm(x))
        loss = functional.cross_entropy(outputs.flatten(0, 1), targets.flatten(), ignore_index=-1)
        counted = (targets >= 0).flatten()
        return loss + z_loss * torch.logsumexp(outputs.flatten(0, 1)[counted], -1).square().mean()


@torch.no_grad()
def read(model: Model) -> list[float]:
    """What the engine's telemetry reads, written as one would for one model."""
    logits, weights = (torch.stack([block.seen[which] for block in model.blocks]) for which in (0, 1))
    visible, sample = model.blocks[0].visible, weights[:, :MEASURED]
    seen = visible.sum(-1)
    entropy = -(sample * sample.clamp_min(1e-30).log()).sum(-1)
    slope = sample * (1 - sample)
    q, k = (torch.stack([block.qkv.weight.chunk(3)[which] for block in model.blocks]) for which in (0, 1))
    return [
        logits.abs().masked_fill(~visible, 0).max().item(),
        (entropy[..., 1:] / seen[1:].log()).mean().item(),
        (slope.sum((-2, -1)) / visible.sum()).mean().item(),
        torch.linalg.matrix_norm(q, 2).max().item(),
        torch.linalg.matrix_norm(k, 2).max().item(),
    ]


def plain_loop(runs: list[Settings], *, reads: bool) -> Callable[[int], None]:
    models = [Model(run, reads=reads) for run in runs]
    optimizers = [torch.optim.AdamW(m.parameters(), lr=0.0, betas=(0.9, 0.95), weight_decay=0.0) for m in models]
    done = [0]

    def advance(steps: int) -> None:
        for run, model, optimizer in zip(runs, models, optimizers, strict=True):
            for step in range(done[0] + 1, done[0] + steps + 1):
                batch = batch_of(TASKS[run.task], run.n_keys, run.batch, run.seed, step)
                targets = torch.from_numpy(batch.targets).masked_fill(~torch.from_numpy(batch.counted.copy()), -1)
                for group in optimizer.param_groups:
                    group["lr"] = learning_rate(step, run)
                loss = model(torch.from_numpy(batch.tokens.copy()), targets, run.z_loss)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), run.grad_clip)
                optimizer.step()
                loss.item()
                if reads:
                    read(model)
                    torch.stack([block.seen[1][0] for block in model.blocks]).half()
        done[0] += steps

    return advance


def engine(runs: list[Settings]) -> Callable[[int], None]:
    trainer = Trainer(runs)

    def advance(steps: int) -> None:
        trainer.advance(steps)

    return advance


def rates(advances: list[tuple[int, Callable[[int], None]]]) -> list[float]:
    """Run-steps per second of CPU time of each, the best of rounds in which they take turns."""
    seconds: list[list[float]] = [[] for _ in advances]
    for _, advance in advances:
        advance(5)
    for _ in range(ROUNDS):
        for at, (_, advance) in enumerate(advances):
            begun = time.process_time()
            advance(STEPS)
            seconds[at].append(time.process_time() - begun)
    return [n * STEPS / min(spent) for (n, _), spent in zip(advances, seconds, strict=True)]


def operations(run: Settings) -> float:
    """Floating-point operations of one run-step's matrix products, forward and backward."""
    shape = shape_of(run)
    d, positions = shape.d_model, run.batch * run.n_keys
    per_position = shape.n_layers * (4 * d * d + 2 * d * shape.d_ff + 2 * run.n_keys * d)
    counted = run.batch * (run.n_keys - TASKS[run.task].first_counted(run.n_keys))
    return 6 * (positions * per_position + counted * d * shape.n_symbols)


def ceiling(run: Settings, n_runs: int) -> float:
    """What this machine's batched matrix product reaches at the shape of the MLP, operations per CPU second."""
    shape = shape_of(run)
    a = torch.randn(n_runs, run.batch * run.n_keys, shape.d_model)
    b = torch.randn(n_runs, shape.d_model, shape.d_ff)
    out = torch.empty(n_runs, a.shape[1], shape.d_ff)
    spent = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        for _ in range(100):
            torch.bmm(a, b, out=out)
        spent.append(time.process_time() - begun)
    return 100 * 2 * math.prod(out.shape) * shape.d_model / min(spent)


def main() -> None:
    torch.set_num_threads(1)
    keep_freed_memory()
    twins = [Settings(variant=variant, seed=seed) for seed in range(16) for variant in ("none", "rms")]
    sizes = (1, 2, 8, 32)
    loops = [(2, plain_loop(twins[:2], reads=reads)) for reads in (False, True)]
    bare, reading, *found = rates([*loops, *((n, engine(twins[:n])) for n in sizes)])
    run = twins[0]
    work, top = operations(run), ceiling(run, 8)
    print(f"{n_parameters(shape_of(run))} parameters, {work / 1e6:.1f} MFLOP a run-step")
    print(f"matrix products here: {top / 1e9:.0f} GFLOP per CPU second, one thread")
    print("run-steps per CPU second, and how many times that of the plain loop that reads as much, and as the bare one")
    print(f"plain loop, bare     {bare:7.0f}")
    print(f"plain loop, reading  {reading:7.0f}")
    for n, rate in zip(sizes, found, strict=True):
        share = f"{100 * rate * work / top:.0f} % of what the matrix products alone could do"
        print(f"engine, runs: {n:3d}    {rate:7.0f}  {rate / reading:5.2f}×  {rate / bare:5.2f}×  {share}")


if __name__ == "__main__":
    main()
