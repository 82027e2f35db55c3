"""Blocks, and what whoever ports a model saves of them: both logits, and q and k as the projections leave them."""

import io
import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from qkdemo.attention.blocks import Block, BlockRecipe, draw_block
from qkdemo.attention.pipeline import Pipeline, trace
from qkdemo.diagnose.findings.of_port import of_port
from qkdemo.diagnose.port import port_of, run

BLOCK = draw_block(BlockRecipe(n_heads=4, n_kv_heads=2, d_head=16, d_model=32, n_keys=24, causal=True))
HIDDEN = ~torch.ones(24, 24, dtype=torch.bool).tril()
REFERENCE = Pipeline()
MISREAD: dict[str, dict[str, Any]] = {
    "scale_one": {"scale": "one"},
    "norm_skipped": {"norm": "none"},
    "full_width": {"place": "full_width"},
    "layernorm": {"norm": "layernorm"},
    "rotary_first": {"order": "rotary_norm"},
    "layout": {"layout": "interleaved"},
    "direction": {"layout": "half_split_swapped"},
    "rotated_half": {"rotated": "half"},
    "tiled": {"grouping": "tile"},
    "q_gain_on_k": {"key_gain": "of_q"},
    "gamma_as_one_plus": {"stored": "one_plus"},
}


def arrays(
    mine: Pipeline, reference: Pipeline = REFERENCE, kind: torch.dtype = torch.float64
) -> dict[str, torch.Tensor]:
    """What whoever ports a model saves: logits with the mask in them, and q and k as the projections leave them."""
    right, wrong = trace(reference, BLOCK), trace(mine, BLOCK)
    found = {"q": right.q_projected, "k": right.k_projected}
    found |= {"gamma_q": BLOCK.gain_q[0], "gamma_k": BLOCK.gain_k[0]}
    for name, made in (("reference", right), ("mine", wrong)):
        found[name] = made.logits.masked_fill(HIDDEN, -math.inf).to(kind)
    return found


def file_of(given: dict[str, torch.Tensor]) -> bytes:
    out = io.BytesIO()
    np.savez(out, allow_pickle=False, **{name: x.float().numpy() for name, x in given.items()})
    return out.getvalue()


SEQUENCE = torch.ones(40, 40, dtype=torch.bool).triu(1)


def of_size(size: float, rows: int = 40) -> Block:
    """A block of 64 channels a head, whose q has entries of about that size."""
    block = draw_block(BlockRecipe(n_heads=2, n_kv_heads=2, d_head=64, d_model=32, n_keys=rows))
    return replace(block, x=block.x * size / trace(BARE, block).q_projected.square().mean().sqrt())


def said_of(block: Block, mine: torch.Tensor, reference: torch.Tensor) -> dict[str, tuple[str, str]]:
    """By key, the sentence and the advice on both logits beside q and k, in float32."""
    made = trace(BARE, block)
    given = {"q": made.q_projected, "k": made.k_projected, "mine": mine, "reference": reference}
    found = of_port(run(port_of({name: x.float() for name, x in given.items()})), "x").findings
    return {finding.key: (finding.sentence, finding.advice) for finding in found}


BARE = Pipeline(gain="none")
OTHER = BARE.but(epsilon=1e-5)


def in_16_bits(
    q: torch.Tensor, k: torch.Tensor, *, turn: int = 1, normed: bool = False, cap: float = 0
) -> torch.Tensor:
    """Logits of which every step has the format of q and k: rotary positions, RMSNorm without gains, softcap."""
    width = q.shape[-1]
    angles = turn * torch.arange(q.shape[1])[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
    cos, sin = angles.cos().to(q), angles.sin().to(q)

    def side(x: torch.Tensor) -> torch.Tensor:
        one, other = x.chunk(2, -1)
        x = torch.cat([one * cos - other * sin, other * cos + one * sin], -1)
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) if normed else x

    logits = side(q) @ side(k).mT * width**-0.5
    return (torch.tanh(logits / cap) * cap if cap else logits).masked_fill(
        torch.ones(q.shape[1], q.shape[1]).triu(1) > 0, -torch.inf
    )
