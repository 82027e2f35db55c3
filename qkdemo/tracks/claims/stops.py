"""Statements found in tutorials, issues and interviews, put to the test: those of all topics, in turn.

Each topic has a module of its own: `claims_on_models`, `claims_on_bounds`, `claims_on_formats`, `claims_on_contracts`.
Topics alternate, so that the next verdict cannot be told from the last.
"""

from typing import Final

from qkdemo.tracks.claims import on_bounds as claims_on_bounds
from qkdemo.tracks.claims import on_contracts as claims_on_contracts
from qkdemo.tracks.claims import on_formats as claims_on_formats
from qkdemo.tracks.claims import on_models as claims_on_models
from qkdemo.tracks.stop import Stop

_ORDER: Final = (
    *("root_width", "gemma_2", "commute", "entropy", "bfloat16_exp", "full_width", "gained_bound", "fused"),
    *("row_maximum", "confidence", "before_projection", "collapsed", "qwen_2", "free", "epsilon", "softcap_place"),
    *("scaled_float16", "layernorm", "uniform", "latent", "command_r", "no_nan", "every_model", "always_helps"),
)
_BY_NAME: Final = {
    stop.name: stop
    for topic in (claims_on_models, claims_on_bounds, claims_on_formats, claims_on_contracts)
    for stop in topic.STOPS
}
STOPS: Final[tuple[Stop, ...]] = tuple(_BY_NAME[name] for name in _ORDER)
