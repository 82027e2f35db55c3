"""An example of each kind of file, one click away.

* `SAMPLES`: name → file name and what makes its bytes.

The log is the training lab's own collapsing run, seed 0, as it was recorded (`examples/collapse.jsonl`); a test holds
it to what the engine gives. Tensors and checkpoint are drawn from a seed when they are asked for.
"""

import io
import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from qkdemo.attention.blocks import BlockRecipe, draw_block
from qkdemo.attention.pipeline import Pipeline, trace

_FOLDER: Final = Path(__file__).parent / "examples"


def tensors() -> bytes:
    """q and k of four heads at weight scale 8, as the drift lab draws them; one head has a single long query."""
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((4, 32, 64)) for _ in "qk")
    q[2, 11] *= 12
    out = io.BytesIO()
    np.savez(out, q=(4 * q).astype(np.float32), k=(4 * k).astype(np.float32))
    return out.getvalue()


def checkpoint() -> bytes:
    """Two layers with W_q, W_k and gains; in the second the gains have grown, and W_q of one head too."""
    rng = np.random.default_rng(0)
    arrays: dict[str, np.ndarray] = {}
    for layer, (gain, grown) in enumerate(((1.0, 1.0), (4.0, 30.0))):
        name = f"model.layers.{layer}.self_attn"
        weight = rng.standard_normal((64, 64)).astype(np.float32) / 8
        weight[16:32] *= grown
        arrays[f"{name}.q_proj.weight"] = weight
        arrays[f"{name}.k_proj.weight"] = rng.standard_normal((32, 64)).astype(np.float32) / 8
        for side in "qk":
            arrays[f"{name}.{side}_norm.weight"] = (gain + 0.05 * rng.standard_normal(16)).astype(np.float32)
    header, data = {}, b""
    for name, array in arrays.items():
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": (len(data), len(data) + array.nbytes)}
        data += array.tobytes()
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def log() -> bytes:
    """The collapsing run."""
    return (_FOLDER / "collapse.jsonl").read_bytes()


def port() -> bytes:
    """A port that turns q and k before it normalises them, and its reference, which normalises them first."""
    block = draw_block(BlockRecipe(n_heads=4, n_kv_heads=2, d_head=32, causal=True))
    right = trace(Pipeline(), block)
    wrong = trace(Pipeline(order="rotary_norm"), block)
    arrays = {"q": right.q_projected, "k": right.k_projected, "gamma_q": block.gain_q[0], "gamma_k": block.gain_k[0]}
    arrays |= {"reference": right.logits, "mine": wrong.logits}
    out = io.BytesIO()
    np.savez(out, allow_pickle=False, **{name: x.float().numpy() for name, x in arrays.items()})
    return out.getvalue()


SAMPLES: Final[Mapping[str, tuple[str, Callable[[], bytes]]]] = {
    "log": ("collapse.jsonl", log),
    "tensors": ("long-query.npz", tensors),
    "checkpoint": ("grown.safetensors", checkpoint),
    "port": ("port.npz", port),
}
