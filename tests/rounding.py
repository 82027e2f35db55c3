"""Another machine's rounding, simulated: `QKDEMO_ROUNDING=other python -m pytest …`.

Processors and libraries order their sums and approximate exp in ways of their own: results differ by a few units in the
last place, while the same input gives the same result every time, its negative the negative, and its double the double.
Here every float that leaves one of these functions of torch is moved by up to four units in its last place, by a rule
that its own digits decide. What is exact everywhere stays: numbers of few digits, 0, ∞ and NaN; shares, and sines, end
at 1.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

_MOST: Final = 4  # units in the last place
_KINDS: Final = {  # as whole numbers; their digits; the last of these, which are 0 in a number of few digits
    torch.float64: (torch.int64, (1 << 52) - 1, (1 << 14) - 1),
    torch.float32: (torch.int32, (1 << 23) - 1, (1 << 7) - 1),
}
_PRIME: Final = 2654435761  # spreads neighbours: Knuth, The Art of Computer Programming, section 6.4
_UP_TO_1: Final = frozenset(("softmax", "tanh", "sin", "cos"))
_MOVED: Final = _UP_TO_1 | {
    *("matmul", "__matmul__", "__rmatmul__", "bmm", "mm", "einsum", "linear", "log_softmax", "logsumexp"),
    *("exp", "log", "log2", "sum", "mean", "var", "norm", "vector_norm", "cumsum"),
    *("scaled_dot_product_attention", "layer_norm", "rms_norm", "normalize", "cross_entropy"),
}


def moved(x: Tensor, most: float = torch.inf) -> Tensor:
    """`x` with every number of many digits moved by −4 to 4 units in its last place, to ±`most` at the most."""
    if x.dtype not in _KINDS or x.requires_grad:  # its gradient would be lost
        return x
    whole, digits, last = _KINDS[x.dtype]
    bits = x.contiguous().view(whole)
    steps = ((bits & digits).long() * _PRIME >> 7) % (2 * _MOST + 1) - _MOST
    near = (bits + steps.to(whole)).view(x.dtype)
    many = (bits & last != 0) & x.isfinite() & (x.abs() > torch.finfo(x.dtype).tiny * 16)
    return torch.where(many & near.isfinite(), near.clamp(-most, most), x)


class OtherRounding(TorchFunctionMode):
    """From `__enter__` on, the functions named above round in another way."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """The function's own result, moved."""
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if name not in _MOVED or not isinstance(result, Tensor):
            return result
        return moved(result, 1.0 if name in _UP_TO_1 else torch.inf)
