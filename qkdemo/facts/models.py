"""Who does what: public implementations of QK norm and its neighbours, each read in its source.

* `MODELS`: every row of `models.json`, in the order of the file;
* `search(text)`, `filtered(...)`: rows that mention a text, rows with given words;
* `alike(pipeline)`, `closest(pipeline)`, `in_words(pipeline)`: which models do exactly this, or come nearest;
* `Model.pipeline`, `Model.choices(side)`: a row as a pipeline, and as the words of one side of a comparison.

A row says how it was verified: read in the source, read and run, or held against the class itself by a test of
this project. A released checkpoint may set flags differently from the default of its code. What a row does not
say was not read, and says so.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

from qkdemo.attention.pipeline import CHOICES, Pipeline
from qkdemo.messages import say

VERIFIED: Final = ("conformance", "source_and_run", "source")  # the strongest first
# The choices by which two pipelines are told apart; the others are not known of most models.
COMPARED: Final = ("norm", "place", "on", "gain", "stored", "bias", "order", "scale", "cap")


@dataclass(frozen=True, kw_only=True)
class Model:
    """One implementation. Words are those of `Pipeline`, or configurable, none and not_read."""

    id: str
    model: str
    family: str
    kind: str  # model, library or kernel
    norm: str
    place: str  # also latent: on DeepSeek's latents
    values: bool  # v is normalised too
    gain: str
    stored: str
    bias: str
    epsilon: float | None  # None: set by a configuration, or by the number format
    rule: str
    cast: str
    order: str  # also no_rotary, rotary_only
    layout: str | None  # None: not read
    scale: str  # also constant: a number that is neither learned nor a power of d_head
    softcap: float | None  # on attention logits
    output_softcap: float | None  # on the logits of the vocabulary
    cache: str  # finished, normalised, rotated, latent
    default_on: bool
    verified: str
    repo: str
    path: str
    symbol: str
    line: int
    version: str
    note: str

    @property
    def link(self) -> str:
        """Where it stands in the repository."""
        return f"https://github.com/{self.repo}/blob/{self.version}/{self.path}#L{self.line}"

    @cached_property
    def pipeline(self) -> Pipeline | None:
        """The row as a pipeline; None if one of its choices is configurable, unread, or beyond a pipeline."""
        words: dict[str, Any] = {
            "norm": self.norm,
            "place": "per_head" if self.norm == "none" else self.place,
            "on": "qkv" if self.values else "qk",
            "gain": self.gain,
            "stored": "gamma" if self.stored == "none" else self.stored,
            "bias": self.bias,
            "order": _ORDERS.get(self.order, self.order),
            "scale": "learned" if self.scale == "constant" else self.scale,
            "cap": "none" if self.softcap is None else "softcap",
        }
        if self.layout is not None:
            words["layout"] = self.layout
        if self.cast in CHOICES["cast"]:
            words["cast"] = self.cast
        if any(word not in CHOICES[name] for name, word in words.items()):
            return None
        return Pipeline(**words)

    def choices(self, side: str) -> dict[str, str]:
        """The words of one side of the placement lab, by the names of its dials; empty without a pipeline."""
        made = self.pipeline
        return {} if made is None else {f"{side}_{name}": getattr(made, name) for name in CHOICES}


_ORDERS: Final = {"no_rotary": "none", "rotary_only": "norm_rotary"}


def _read() -> tuple[Model, ...]:
    rows = json.loads((Path(__file__).parent / "models.json").read_text(encoding="utf-8"))
    return tuple(Model(**row) for row in rows)


MODELS: Final = _read()
COLUMNS: Final = tuple(field.name for field in fields(Model))


def search(text: str, models: Iterable[Model] = MODELS) -> list[Model]:
    """Rows in which every word of `text` occurs, in any column, whatever its case.

    >>> [model.model for model in search("LayerNorm idefics")]
    ['IDEFICS 1 (perceiver)']
    """
    words = text.casefold().split()
    return [model for model in models if all(word in _text(model) for word in words)]


def _text(model: Model) -> str:
    return " ".join(str(getattr(model, column)) for column in COLUMNS).casefold()


def filtered(models: Iterable[Model] = MODELS, **words: str | bool | float | None) -> list[Model]:
    """Rows that have each of these words in the column of its name.

    >>> [model.model for model in filtered(place="full_width", norm="layernorm")]
    ['ESM-C']
    """
    return [model for model in models if all(getattr(model, column) == word for column, word in words.items())]


@lru_cache(maxsize=512)
def same_function(pipeline: Pipeline) -> Pipeline:
    """One pipeline for all that are the same function in exact arithmetic, as far as `COMPARED` tells.

    Without a gain, or with a scalar one, RMSNorm and L2 do not mind whether rotary comes first, and without a
    gain there is nothing to store. Dividing inside the product is dividing each side.

    >>> gainless = Pipeline(gain="none", order="rotary_norm")
    >>> same_function(gainless) == same_function(gainless.but(order="norm_rotary", stored="one_plus"))
    True
    """
    changes: dict[str, Any] = {}
    if pipeline.gain == "none":
        changes["stored"] = "gamma"
    if pipeline.place == "in_product":
        changes["place"] = "per_head"
    turns_alike = pipeline.norm in ("none", "rms", "l2") and pipeline.bias == "none"
    if turns_alike and pipeline.gain in ("none", "scalar") and pipeline.order == "rotary_norm":
        changes["order"] = "norm_rotary"
    if pipeline.norm == "none":
        changes["place"], changes["on"] = "per_head", "qk"
    return pipeline.but(**changes)


def differing(one: Pipeline, other: Pipeline) -> list[str]:
    """The choices of `COMPARED` in which two pipelines are different functions."""
    one, other = same_function(one), same_function(other)
    return [name for name in COMPARED if getattr(one, name) != getattr(other, name)]


def alike(pipeline: Pipeline) -> list[Model]:
    """The models that do exactly this, in every choice of `COMPARED`."""
    return [model for model in MODELS if model.pipeline is not None and not differing(pipeline, model.pipeline)]


def closest(pipeline: Pipeline) -> tuple[Model, list[str]]:
    """The model that differs in the fewest choices, and those choices; among equals the best verified, then the
    first of the table."""
    known = [(model, differing(pipeline, model.pipeline)) for model in MODELS if model.pipeline is not None]
    return min(known, key=lambda found: (len(found[1]), VERIFIED.index(found[0].verified)))


@lru_cache(maxsize=512)
def in_words(pipeline: Pipeline) -> str:
    """Which models do exactly this; or the closest one, and in what it differs."""
    found = alike(pipeline)
    if found:
        return say("models.alike", names=", ".join(model.model for model in found))
    model, names = closest(pipeline)
    return say("models.closest", name=model.model, differing=", ".join(say(f"choice_name.{name}") for name in names))
