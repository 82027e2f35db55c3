"""The standalone program that times fused attention with and without norms: `snippet(settings)`."""

from typing import Final

from qkdemo.labs.cost.lab import Settings, count_attention, count_projections, count_rms
from qkdemo.notation import plain


def snippet(settings: Settings) -> str:
    """A standalone PyTorch program that times plain and normalised fused attention on the machine it runs on."""
    return _PROGRAM.format(
        shape=f"1, {settings.n_heads}, {settings.n_keys}, {settings.d_head}",
        d=settings.d_head,
        format=settings.format,
        device=settings.device,
        causal=settings.causal,
        seed=settings.seed,
        repeats=settings.repeats,
        flops=plain(count_rms(settings)[0] / (count_projections(settings)[0] + count_attention(settings)[0])),
    )


_PROGRAM: Final = '''"""Fused attention with and without RMSNorm on q and k, timed in turns. Needs torch alone."""
import json
import statistics
import time

import torch
from torch.nn.functional import rms_norm, scaled_dot_product_attention

torch.manual_seed({seed})
q, k, v = (torch.randn({shape}, device="{device}", dtype=torch.{format}) for _ in "qkv")
gain_q, gain_k = (1 + 0.1 * torch.randn({d}, device="{device}", dtype=torch.{format}) for _ in "qk")
ways = {{
    "sdpa": lambda: scaled_dot_product_attention(q, k, v, is_causal={causal}),
    "sdpa_norms": lambda: scaled_dot_product_attention(
        rms_norm(q, ({d},), gain_q, 1e-6), rms_norm(k, ({d},), gain_k, 1e-6), v, is_causal={causal}
    ),
}}
times = {{way: [] for way in ways}}
with torch.inference_mode():
    for turn in range(2 + {repeats}):
        for way, attend in ways.items():
            start = time.perf_counter()
            attend()
            if q.is_cuda:
                torch.cuda.synchronize()
            if turn > 1:  # the first two warm up
                times[way].append(1e3 * (time.perf_counter() - start))
# By formula, the norms' share of the operations of projections and attention:
print(json.dumps({{"share": {flops}, **{{way: statistics.median(found) for way, found in times.items()}}}}))
'''
