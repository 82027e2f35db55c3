"""Names under which quantisers store codes instead of a weight.

* `as_weight(name)`: that of the weight.
"""

import re
from typing import Final

_CODES: Final = re.compile(  # instead of a weight
    r"\.(qweight|q_weight|weight_packed|weight\._data"  # GPTQ and AWQ; EXL2; compressed-tensors; quanto
    r"|_weight_qdata|W_q|codes|indices|trellis)"  # torchao; HQQ; AQLM; VPTQ; EXL3
)


def as_weight(name: str) -> str:
    """The name of a weight, where that of its codes is given; any other name as it is.

    >>> as_weight("l.0.q_proj.qweight"), as_weight("l.0.q_proj.weight")
    ('l.0.q_proj.weight', 'l.0.q_proj.weight')
    """
    match = _CODES.search(name)
    return f"{name[: match.start()]}.weight" if match and match.end() == len(name) else name
