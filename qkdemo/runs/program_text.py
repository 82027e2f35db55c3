"""The text of the standalone program: its template, and what stands in it for the sphere and for other remedies."""

from typing import Final

OUTPUTS: Final = "        outputs = model(tokens, dials)[counted]"
IN_BFLOAT16: Final = """        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            outputs = model(tokens, dials)
        outputs = outputs.float()[counted]"""
BLOCK: Final = """        x = x + self.attention(F.layer_norm(x, (D,), self.attention_gain), dials)
        up = self.up(F.layer_norm(x, (D,), self.mlp_gain)DIALS)
        return x + self.down(torch.relu(up)DIALS)"""
SPHERE_PARAMETERS: Final = """        self.alpha_attention = nn.Parameter(torch.full((D,), D**-0.5))  # stands for 0.05
        self.alpha_mlp = nn.Parameter(torch.full((D,), D**-0.5))
        self.s_up = nn.Parameter(torch.ones(2 * D))
"""
SPHERE_BLOCK: Final = (
    """        if dials["variant"] == "ngpt":
            x = towards(x, self.attention(x, dials), self.alpha_attention)
            return towards(x, self.down(torch.relu(self.up(xDIALS) * self.s_up)DIALS), self.alpha_mlp)
"""
    + BLOCK
)
MODEL: Final = """        x = self.embedding[tokens] + self.position
        for block in self.blocks:
            x = block(x, dials)
        return self.head(F.layer_norm(x, (D,), self.gain))"""
SPHERE_MODEL: Final = """        x = self.embedding[tokens] + self.position
        sphere = dials["variant"] == "ngpt"
        x = F.normalize(x, dim=-1) if sphere else x
        for block in self.blocks:
            x = block(x, dials)
        if sphere:
            return self.head(x) * self.s_logits * math.sqrt(D)
        return self.head(F.layer_norm(x, (D,), self.gain))"""
VECTORS: Final = """    rng = np.random.default_rng((seed, 2))  # σReparam's first vectors
    for block in model.blocks:
        a = block.attention
        for matrix in (a.q, a.k, a.v, a.out, block.up, block.down):
            u = rng.standard_normal(matrix.out_features)
            matrix.u = torch.tensor(u / np.linalg.norm(u), dtype=torch.float32, device=DEVICE)
"""
SCALED: Final = """        with torch.no_grad():  # a step at a share of the rate is that share of the step
            for p, share in shares.items():
                p.copy_(before[p] + share * (p - before[p]))
"""
TELEMETRY: Final = """
names = ("loss", "max_abs_logit", "entropy_fraction", "softmax_slope", "gradient_norm", "spectral_q", "spectral_k")
print("step", "run", "variant", "seed", *names, "learning_rate", sep=",")
for number, run in enumerate(RUNS):
    for row in train(run):
        told = row["step"], number, row["variant"], run[0][1]["seed"]
        print(*told, *(f"{row[name]:.7g}" for name in (*names, "learning_rate")), sep=",")
"""
FINAL: Final = """
print("variant", "learning_rate", "seed", "final_loss", "max_abs_logit", sep=",")
for run in RUNS:
    dials, rows = run[0][1], list(train(run))
    final = np.mean([row["loss"] for row in rows[-20:]])
    largest = max(row["max_abs_logit"] for row in rows)
    told = (dials["variant"], dials["learning_rate"], dials["seed"])
    print(*told, f"{final:.7g}", f"{largest:.7g}", sep=",", flush=True)
"""
TEMPLATE: Final = '''"""{title}. Needs torch and NumPy.

First weights and batches are those of the app. In float32, with small logits and at rates well below the limit of what
trains, losses as a rule agree with those of the app to {tolerance} nats over the first {agrees} steps; later, or sooner
at high rates, with large logits, in large models or at BETA1 = 0, differences in the last bit grow by themselves, as
those between two machines do. Near the limit of what trains, such rounding decides how a run ends: one that is solved
in the app may be solved partly or fail here, and the other way round.
"""
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)
{sizes}
D = HEADS * WIDTH  # width of the hidden state

RUNS = [  # each run: after which step, with which dials
{runs}
]
{task}


def batch_of(seed, step):
    """Sequences, what follows each position, and which of those guesses count: a function of seed and step."""
    symbols, counted = draw(np.random.default_rng((seed, 1, step)), BATCH, KEYS + 1{lesson})
    return (torch.tensor(x, device=DEVICE) for x in (symbols[:, :-1], symbols[:, 1:], counted[:, :-1]))

{sigma}{sphere_functions}{norm_functions}
class Attention(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.q = {q}
        self.k = {k}
        self.v = {k}
        self.out = {square}
{own}
    def forward(self, x, dials):
        def heads(y):
            y = y.view(*x.shape[:2], -1, WIDTH).transpose(1, 2)
            return y.expand(-1, HEADS, -1, -1)  # where all query heads share one key head

        q, k, v = heads(self.q(x{dials})), heads(self.k(x{dials})), heads(self.v(x{dials}))
{logits}
        future = torch.ones(KEYS, KEYS, dtype=torch.bool, device=x.device).triu(1)
        s = s.float().masked_fill(future, -math.inf)
        p = s.softmax(-1)
        self.logits, self.weights = s.detach(), p.detach()
        return self.out((p.to(v.dtype) @ v).transpose(1, 2).reshape(x.shape){dials})


class Block(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.attention_gain, self.mlp_gain = nn.Parameter(torch.ones(D)), nn.Parameter(torch.ones(D))
        self.attention = Attention(start)
        self.up, self.down = {up}, {down}
{sphere_parameters}
    def forward(self, x, dials):
{block}


class Model(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.embedding = nn.Parameter(torch.empty(SYMBOLS, D))
        self.position = nn.Parameter(torch.empty(KEYS, D))
        self.blocks = nn.ModuleList(Block(start) for _ in range(LAYERS))
        self.gain = nn.Parameter(torch.ones(D))
        self.head = nn.Linear(D, SYMBOLS, bias=False)
{sphere_scale}
    def forward(self, tokens, dials):
{model}


@torch.no_grad()
def first_weights(model, seed):
    """Xavier normal, embeddings and head 1/√D; in this order from one generator."""
    rng = np.random.default_rng((seed, 0))

    def drawn(rows, columns, deviation):
        return torch.tensor(rng.standard_normal((rows, columns)) * deviation)

    model.embedding.copy_(drawn(SYMBOLS, D, D**-0.5))
    model.position.copy_(drawn(KEYS, D, D**-0.5))
    for block in model.blocks:
        a = block.attention
        for matrix in (a.q, a.k, a.v, a.out, block.up, block.down):
            inputs, outputs = matrix.in_features, matrix.out_features
            start = QK_START if matrix in (a.q, a.k) else 1
            matrix.weight.copy_(drawn(inputs, outputs, math.sqrt(2 / (inputs + outputs)) * start).T)
    model.head.weight.copy_(drawn(D, SYMBOLS, D**-0.5).T)
{vectors}

def learning_rate(step, dials):
    peak, warmup, steps = dials["learning_rate"], dials["warmup"], dials["steps"]
    if dials["schedule"] == "ramp":
        return peak * min(step / steps, 1)
    if step <= warmup:
        return peak * step / warmup
    if dials["schedule"] == "constant":
        return peak
    done = min((step - warmup) / max(steps - warmup, 1), 1)
    return peak * (0.55 + 0.45 * math.cos(math.pi * done))
{clip}{by_norm}

@torch.no_grad()
def read(model):
    """What is read off a step's attention; entropy and slope of four sequences of the batch."""
    layers = [block.attention for block in model.blocks]
    p = torch.stack([layer.weights[:4] for layer in layers])
    visible = torch.ones(KEYS, KEYS, dtype=torch.bool, device=p.device).tril()
    entropy = torch.special.entr(p).sum(-1)[..., 1:] / torch.arange(2, KEYS + 1, device=p.device).log()
    return {{
        "max_abs_logit": max(layer.logits[..., visible].abs().max().item() for layer in layers),
        "entropy_fraction": entropy.mean().item(),
        "softmax_slope": (p * (1 - p))[..., visible].mean().item(),
        "spectral_q": max(torch.linalg.matrix_norm(layer.q.{used}, 2).item() for layer in layers),
        "spectral_k": max(torch.linalg.matrix_norm(layer.k.{used}, 2).item() for layer in layers),
    }}


def train(run):
    """Yields one row per step: its numbers before the update."""
    start = run[0][1]
    seed = start["seed"]
    model = Model(start).to(DEVICE)
    first_weights(model, seed)
{sphere_start}    matrices = [module.weight for module in model.modules() if isinstance(module, nn.Linear)]
    matrices += [model.embedding, model.position]
    others = [p for p in model.parameters() if all(p is not m for m in matrices)]  # gains and scales do not decay
    optimizer = torch.optim.AdamW([{{"params": matrices}}, {{"params": others}}], betas=(BETA1, BETA2), eps=1e-8)
    for step in range(1, STEPS + 1):
        dials = [dials for after, dials in run if after < step][-1]
        tokens, targets, counted = batch_of(seed, step)
{outputs}
        loss = F.cross_entropy(outputs, targets[counted])
        optimizer.zero_grad()
        (loss + Z_LOSS * outputs.logsumexp(-1).square().mean()).backward()
        for p in model.parameters():  # what this variant does not use stays as it is
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        norm = nn.utils.clip_grad_norm_(model.parameters(), CLIP or math.inf).item()
        rate = learning_rate(step, dials)
        for group, decay in zip(optimizer.param_groups, (dials["weight_decay"], 0)):
            group["lr"], group["weight_decay"] = rate, decay
        row = {{"step": step, "variant": dials["variant"], "loss": loss.item()}}
        yield row | read(model) | {{"gradient_norm": norm, "learning_rate": rate}}
{shares}{before}        optimizer.step()
{scaled}{after}

{ending}
'''
