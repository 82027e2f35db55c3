"""Statements found in tutorials, issues and interviews, put to the test: those of all topics, in turn.

Each topic has a module of its own: `on_models`, `on_bounds`, `on_sharpness`, `on_formats`, `on_contracts`.
Topics and verdicts are mixed, so that the next one cannot be told from the last.
"""

from typing import Final

from qkdemo.tracks.claims import on_bounds as claims_on_bounds
from qkdemo.tracks.claims import on_contracts as claims_on_contracts
from qkdemo.tracks.claims import on_formats as claims_on_formats
from qkdemo.tracks.claims import on_models as claims_on_models
from qkdemo.tracks.claims import on_sharpness as claims_on_sharpness
from qkdemo.tracks.stop import Stop, in_slots

_ORDER: Final = (
    *("root_width", "raw_cache", "commute", "fused", "entropy", "layernorm"),
    *("always_bounded", "fresh_test", "uniform", "bfloat16_exp", "latent", "row_maximum"),
    *("every_model", "free", "collapsed", "command_r", "longer_text", "twice"),
    *("gained_bound", "scaled_float16", "softcap_place", "before_projection", "half_precision", "confidence"),
    *("gemma_2", "no_nan", "rounding", "qwen_2", "scale_free", "epsilon"),
    *("full_width", "always_helps"),
)
_BY_NAME: Final = {
    stop.name: stop
    for topic in (claims_on_models, claims_on_bounds, claims_on_sharpness, claims_on_formats, claims_on_contracts)
    for stop in topic.STOPS
}
_SLOTS: Final = (
    *("root_width", "gemma_2", "commute", "entropy", "bfloat16_exp", "full_width", "gained_bound", "fused"),
    *("row_maximum", "confidence", "before_projection", "collapsed", "qwen_2", "free", "epsilon", "softcap_place"),
    *("scaled_float16", "layernorm", "uniform", "latent", "command_r", "no_nan", "every_model", "always_helps"),
    *("scale_free", "half_precision", "raw_cache", "fresh_test", "twice", "longer_text", "always_bounded", "rounding"),
)
STOPS: Final[tuple[Stop, ...]] = in_slots(_SLOTS, *(_BY_NAME[name] for name in _ORDER))
