"""One run, written plainly: an nn.Module and torch.optim.AdamW. It shares no arithmetic with the engine.

It takes the engine's first weights and batches, so that both start alike.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from qkdemo.training.network.parameters import initial, power_vectors, shape_of, views
from qkdemo.training.settings import Settings
from qkdemo.training.tasks import TASKS, batch_of


class Head(nn.Module):
    """One query head's own matrices, so that an optimiser can treat each as it likes."""

    def __init__(self, q: Tensor, k: Tensor | None, v: Tensor | None) -> None:
        super().__init__()
        self.q = nn.Parameter(q.clone())
        self.k = nn.Parameter(k.clone()) if k is not None else None
        self.v = nn.Parameter(v.clone()) if v is not None else None


class Block(nn.Module):
    def __init__(self, run: Settings, leaves: dict[str, Tensor], vectors: list[Tensor]) -> None:
        super().__init__()
        self.run, self.vectors = run, [vector.clone() for vector in vectors]
        width, n_kv = run.d_head, 1 if run.shared_keys else run.n_heads
        d = width * run.n_heads
        q, k, v = leaves["qkv"].split([d, n_kv * width, n_kv * width], dim=1)
        pieces = [[x[:, at * width : (at + 1) * width] for at in range(x.shape[1] // width)] for x in (q, k, v)]
        self.heads = nn.ModuleList(
            [
                Head(pieces[0][h], pieces[1][h] if h < n_kv else None, pieces[2][h] if h < n_kv else None)
                for h in range(run.n_heads)
            ]
        )
        for name in ("attention_gain", "mlp_gain", "out", "up", "down", *NEEDS.get(run.variant, ())):
            setattr(self, name, nn.Parameter(leaves[name].clone()))
        self.largest: list[Tensor] = []

    def key_head(self, h: int) -> Head:
        head = self.heads[0 if self.run.shared_keys else h]
        assert isinstance(head, Head)
        return head

    def divided(self, matrix: Tensor, at: int) -> Tensor:
        """σReparam."""
        if self.run.variant != "sigma_reparam":
            return matrix
        with torch.no_grad():
            left = functional.normalize(matrix @ self.vectors[at], dim=0)
            self.vectors[at] = functional.normalize(matrix.T @ left, dim=0)
            left = functional.normalize(matrix @ self.vectors[at], dim=0)
        return self.sigma_gain[at] * matrix / (left @ matrix @ self.vectors[at])

    def attend(self, x: Tensor) -> Tensor:
        n_keys, width = x.shape[1], self.run.d_head
        q_all = self.divided(torch.cat([head.q for head in self.heads], dim=1), 0)
        k_all = self.divided(torch.cat([head.k for head in self.heads if head.k is not None], dim=1), 1)
        v_all = self.divided(torch.cat([head.v for head in self.heads if head.v is not None], dim=1), 2)
        future = torch.ones(n_keys, n_keys).triu(1).bool()
        mixed, self.largest = [], []
        for h in range(self.run.n_heads):
            own = slice(h * width, (h + 1) * width)
            keys = slice(0, width) if self.run.shared_keys else own
            s = self.logits(x @ q_all[:, own], x @ k_all[:, keys], h)
            s = s.masked_fill(future, float("-inf"))
            self.largest.append(s.detach().max())
            mixed.append(torch.softmax(s, -1) @ (x @ v_all[:, keys]))
        return torch.cat(mixed, -1) @ self.divided(self.out, 3)

    def logits(self, q: Tensor, k: Tensor, h: int) -> Tensor:  # noqa: PLR0911
        width = self.run.d_head
        match self.run.variant:
            case "l2":
                return self.g[h] * functional.normalize(q, dim=-1) @ functional.normalize(k, dim=-1).mT
            case "rms":
                q, k = (functional.rms_norm(x, (width,), eps=1e-6) for x in (q, k))
                return (q * self.gamma_q) @ (k * self.gamma_k).mT / math.sqrt(width)
            case "layernorm":
                q = functional.layer_norm(q, (width,), self.gamma_q, eps=1e-6)
                k = functional.layer_norm(k, (width,), self.gamma_k, eps=1e-6)
                return q @ k.mT / math.sqrt(width)
            case "dyt":
                q, k = self.gamma_q * torch.tanh(self.alpha_q * q), self.gamma_k * torch.tanh(self.alpha_k * k)
                return q @ k.mT / math.sqrt(width)
            case "cosine":
                cosine = functional.normalize(q, dim=-1) @ functional.normalize(k, dim=-1).mT
                return cosine * self.log_scale[h].clamp(max=math.log(100)).exp()
            case "softcap":
                return self.run.softcap * torch.tanh(q @ k.mT / math.sqrt(width) / self.run.softcap)
            case "ngpt":
                s = self.s_qk[h] * math.sqrt(width * self.run.n_heads)
                q, k = (functional.normalize(x, dim=-1) * s for x in (q, k))
                return q @ k.mT * math.sqrt(width)
            case _:
                return q @ k.mT / math.sqrt(width)

    def forward(self, x: Tensor) -> Tensor:
        d = x.shape[-1]
        if self.run.variant == "ngpt":
            towards = functional.normalize(self.attend(x), dim=-1)
            x = functional.normalize(x + (self.alpha_attention * 0.05 * math.sqrt(d)).abs() * (towards - x), dim=-1)
            towards = functional.normalize(torch.relu(x @ self.up * self.s_up) @ self.down, dim=-1)
            return functional.normalize(x + (self.alpha_mlp * 0.05 * math.sqrt(d)).abs() * (towards - x), dim=-1)
        x = x + self.attend(functional.layer_norm(x, (d,), self.attention_gain))
        inner = torch.relu(functional.layer_norm(x, (d,), self.mlp_gain) @ self.divided(self.up, 4))
        return x + inner @ self.divided(self.down, 5)


NEEDS = {
    "l2": ("g",),
    "rms": ("gamma_q", "gamma_k"),
    "layernorm": ("gamma_q", "gamma_k"),
    "dyt": ("gamma_q", "gamma_k", "alpha_q", "alpha_k"),
    "cosine": ("log_scale",),
    "sigma_reparam": ("sigma_gain",),
    "ngpt": ("s_qk", "alpha_attention", "alpha_mlp", "s_up"),
}


class Model(nn.Module):
    def __init__(self, run: Settings) -> None:
        super().__init__()
        shape = shape_of(run)
        leaves = {name: leaf[0] for name, leaf in views(initial(run)[None], shape).items()}
        d, kv, ff = shape.d_model, shape.d_kv, shape.d_ff
        vectors = list(power_vectors(run).split([d, kv, kv, d, ff, d] * run.n_layers))
        self.run = run
        self.embedding, self.position = (nn.Parameter(leaves[name].clone()) for name in ("embedding", "position"))
        self.blocks = nn.ModuleList(
            [
                Block(
                    run,
                    {name.partition(".")[2]: leaf for name, leaf in leaves.items() if name.startswith(f"{layer}.")},
                    vectors[6 * layer : 6 * layer + 6],
                )
                for layer in range(run.n_layers)
            ]
        )
        self.gain, self.head = (nn.Parameter(leaves[name].clone()) for name in ("gain", "head"))
        if run.variant == "ngpt":
            self.s_logits = nn.Parameter(leaves["s_logits"].clone())
            self.onto_sphere()

    @torch.no_grad()
    def onto_sphere(self) -> None:
        for rows in (self.embedding, self.position, *(w for b in self.blocks for w in (b.out, b.down))):
            rows.copy_(functional.normalize(rows, dim=1))
        for columns in (self.head, *(b.up for b in self.blocks)):
            columns.copy_(functional.normalize(columns, dim=0))
        for head in (head for block in self.blocks for head in block.heads):
            for matrix in (head.q, head.k, head.v):
                if matrix is not None:
                    matrix.copy_(functional.normalize(matrix, dim=0))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding[tokens] + self.position
        sphere = self.run.variant == "ngpt"
        x = functional.normalize(x, dim=-1) if sphere else x
        for block in self.blocks:
            x = block(x)
        if sphere:
            return x @ self.head * self.s_logits * math.sqrt(x.shape[-1])
        return functional.layer_norm(x, x.shape[-1:], self.gain) @ self.head


def rate_of(step: int, run: Settings) -> float:
    match run.schedule:
        case "ramp":
            return run.learning_rate * step / run.steps
        case "constant":
            return run.learning_rate * min(1, step / run.warmup)
        case "cosine":
            if step <= run.warmup:
                return run.learning_rate * step / run.warmup
            done = (step - run.warmup) / (run.steps - run.warmup)
            return run.learning_rate * (0.55 + 0.45 * math.cos(math.pi * done))


def train(run: Settings, steps: int) -> tuple[list[float], list[float], Model]:
    """Losses and gradient norms of the first steps, and the model after them."""
    model = Model(run)
    matrices = [p for p in model.parameters() if p.dim() == 2 and p.shape != (run.n_heads, run.d_head)]
    known = {id(p) for p in matrices}
    q, k = ([getattr(h, w) for b in model.blocks for h in b.heads if getattr(h, w) is not None] for w in "qk")
    slow = {id(p) for p in (*q, *k)} if run.variant in ("qk_lr", "quack") else set()
    groups = [
        {"params": [p for p in matrices if id(p) not in slow], "weight_decay": run.weight_decay},
        {"params": [p for p in model.parameters() if id(p) not in known], "weight_decay": 0.0},
        *({"params": [p], "weight_decay": run.weight_decay} for p in matrices if id(p) in slow),
    ]
    optimizer = torch.optim.AdamW(groups, lr=0.0, betas=(run.beta1, run.beta2), eps=1e-8)
    losses, norms = [], []
    for step in range(1, steps + 1):
        batch = batch_of(TASKS[run.task], run.n_keys, run.batch, run.seed, step)
        outputs = model(torch.tensor(batch.tokens))
        counted = torch.tensor(batch.counted)
        loss = functional.cross_entropy(outputs[counted], torch.tensor(batch.targets)[counted])
        optimizer.zero_grad()
        (loss + run.z_loss * torch.logsumexp(outputs[counted], -1).square().mean()).backward()
        losses.append(loss.item())
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), run.grad_clip or math.inf).item())
        for group in optimizer.param_groups:
            group["lr"] = rate_of(step, run) * share_of(group["params"][0], model, run, slow)
        optimizer.step()
        if run.variant == "qk_clip":
            clip(model, run)
        if run.variant == "ngpt":
            model.onto_sphere()
    return losses, norms, model


def share_of(parameter: nn.Parameter, model: Model, run: Settings, slow: set[int]) -> float:
    """The share of the learning rate that a matrix of a head gets."""
    if id(parameter) not in slow:
        return 1.0
    if run.variant == "qk_lr":
        return run.qk_lr_factor
    fresh_q = math.sqrt(run.d_head)  # ‖W_q‖ of a head with entries of variance 1/d_model
    for block in model.blocks:
        assert isinstance(block, Block)
        for h, head in enumerate(block.heads):
            if parameter is head.q:
                keys = block.key_head(h).k
                assert keys is not None
                n_kv = 1 if run.shared_keys else run.n_heads
                return fresh_q * math.sqrt(2 / (1 + n_kv / run.n_heads)) / keys.norm().item()
            if parameter is head.k:
                lookers = block.heads if run.shared_keys else [head]
                mean = sum(looker.q.square().sum().item() for looker in lookers) / len(lookers)
                return fresh_q / math.sqrt(mean)
    raise AssertionError


@torch.no_grad()
def clip(model: Model, run: Settings) -> None:
    for block in model.blocks:
        assert isinstance(block, Block)
        for head, largest in zip(block.heads, block.largest, strict=True):
            if largest > run.clip_threshold:
                eta = run.clip_threshold / largest
                if run.shared_keys and run.n_heads > 1:
                    head.q *= eta
                else:
                    head.q *= eta.sqrt()
                    head.k *= eta.sqrt()
