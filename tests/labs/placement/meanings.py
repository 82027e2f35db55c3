"""What the words of the placement page mean: a pipeline is read back from its contract alone.

* `read_back(contract)`: the pipeline that a reader builds who knows nothing but that sentence and what is usual;
* `unsaid(contract)`: the choices that do nothing there, and so are not said.
"""

import re
from typing import Any, Final

from qkdemo.attention.pipeline import CHOICES, Pipeline
from qkdemo.messages import say


def _words(name: str) -> dict[str, str]:
    return {say(f"choice.{name}.{word}"): word for word in CHOICES[name]}


def read_back(contract: str) -> Pipeline:
    """One part after another; what no part says is usual."""
    words: dict[str, Any] = {"gain": "none"}
    for part in contract.removesuffix(".").split("; "):
        found = _PARTS.get(part) or _read(part)
        assert not ({*found} - {"gain", "norm"}) & {*words}, f"{part} is said twice in {contract}"
        words |= found
    if "bias: per head and channel" in contract and words["gain"] == "none":
        words |= {"gain": "head_channel", "key_gain": {"q": "k_alone", "k": "q_alone"}[words["on"]]}
    return Pipeline(**words)


_PARTS: Final[dict[str, dict[str, str]]] = {
    "no norm on q and k": {"norm": "none"},
    "then rotary positions": {"order": "norm_rotary"},
    "rotary positions before it": {"order": "rotary_norm"},
    "rotary positions before the gain": {"order": "rotary_norm"},
    "rotary positions before the bias": {"order": "rotary_norm"},
    "no rotary positions": {"order": "none"},
    "rotary positions": {"order": "norm_rotary"},
    "a softcap on the logits": {"cap": "softcap"},
    "v normalised as well": {"on": "qkv"},
    "bias: per channel": {"bias": "channel"},
    "bias: per head and channel": {"bias": "channel"},
}
_BEGINNINGS: Final = {"acting on ": "on", "logits times ": "scale"}


def _read(part: str) -> dict[str, str]:
    for beginning, name in _BEGINNINGS.items():
        if part.startswith(beginning):
            return {name: _words(name)[part.removeprefix(beginning)]}
    if part.startswith("a gain "):
        gain, stored = part.removeprefix("a gain ").split(", stored as ")
        one = gain == "of one number"
        return {"gain": "scalar" if one else _words("gain")[gain], "stored": _words("stored")[stored]}
    first, colon, rest = part.partition(": ")
    named = {say(f"choice_name.{name}"): name for name in CHOICES}
    if colon and first in named:
        return {named[first]: _words(named[first])[rest]}
    norm, place = part.split(", ", 1)
    return {"norm": _words("norm")[norm], "place": _words("place")[place]}


def unsaid(contract: str) -> list[str]:
    """Where there is no gain, norm or rotation, nothing of it is said."""
    pipeline = read_back(contract)
    found = [] if "a gain " in contract else ["gain", "stored", "key_gain"]
    alone = re.search("what is normalised: [qk] alone", contract)
    found += ["key_gain"] if alone and "gain on k" not in contract else []
    found += ["place"] if pipeline.norm == "none" else []
    told = "acting on" in contract or "v normalised" in contract
    found += ["on"] if not told and (pipeline.norm == "none" or pipeline.place == "weights") else []
    found += ["layout", "rotated"] if "no rotary" in contract and "permuted" not in contract else []
    return found + (["order"] if "; rotary positions;" in contract else [])
