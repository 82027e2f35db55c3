"""Who does what: public implementations of QK norm and its neighbours, each read in its source.

* `MODELS`: every row of `models.json`, in the order of the file;
* `search(text)`, `filtered(...)`: rows that mention a text, rows with given words;
* `alike(pipeline)`: which models do exactly this; `nearest` knows which come closest;
* `Model.pipeline`, `Model.choices(side)`: a row as a pipeline, and as the words of one side of a comparison;
* `named(models)`: their names, and of which of them the source was read alone.

A row says how it was verified: held against the class itself by a test of this project, or read in the source and
not run. A released checkpoint may set flags differently from the default of its code. What a row does not say was
not read, and says so: two rows are not told apart by it.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache, reduce
from pathlib import Path
from typing import Any, Final

from qkdemo.attention.pipeline import CHOICES, KEY_GAINS, Pipeline
from qkdemo.attention.rotary import other_layout
from qkdemo.facts.cells import cell
from qkdemo.messages import in_each_language, say

VERIFIED: Final = ("conformance", "source")  # the strongest first
# The choices by which two pipelines are told apart in exact arithmetic.
COMPARED: Final = tuple(name for name in CHOICES if name != "cast")


@dataclass(frozen=True, kw_only=True)
class Model:
    """One implementation. Words are those of `Pipeline`, or configurable, none and not_read."""

    id: str
    model: str
    family: str
    kind: str  # model; port: a model of another row again, in other code or another part of it; library; kernel
    norm: str
    place: str  # also latent: on DeepSeek's latents
    values: bool  # v is normalised too
    gain: str  # also input_channel: of a norm before the projection
    stored: str
    key_gain: str
    bias: str
    epsilon: float | None  # None: set by a configuration, or by the number format
    rule: str
    cast: str
    order: str  # also no_rotary, rotary_only
    layout: str
    rotated: str  # also last_eighth
    scale: str  # also constant: a number that is neither learned nor a power of d_head
    softcap: float | None  # on attention logits
    output_softcap: float | None  # on the logits of the vocabulary
    cache: str  # finished, normalised, rotated, raw, latent
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

    @property
    def qk_norm(self) -> str:
        """Whether q and k themselves are normalised: a norm before the projection, or on a latent, is no QK norm."""
        return "no" if self.norm == "none" or self.place in ("input", "latent") else "yes"

    @cached_property
    def pipeline(self) -> Pipeline | None:
        """The row as a pipeline; None if one of its choices is configurable, unread, or beyond a pipeline."""
        words: dict[str, Any] = {
            "norm": self.norm,
            "place": "per_head" if self.norm == "none" else self.place,
            "on": "qkv" if self.values else "qk",
            "gain": "none" if self.gain == "input_channel" else self.gain,  # W takes it in
            "stored": "gamma" if self.stored == "none" else self.stored,
            "key_gain": "own" if self.key_gain == "none" else self.key_gain,
            "bias": self.bias,
            "order": _ORDERS.get(self.order, self.order),
            "scale": "learned" if self.scale == "constant" else self.scale,
            "cap": "none" if self.softcap is None else "softcap",
        }
        turns = {name: getattr(self, name) for name in ("layout", "rotated")}
        words |= {name: word for name, word in turns.items() if word not in ("none", "not_read")}
        if self.cast in CHOICES["cast"]:
            words["cast"] = self.cast
        if any(word not in CHOICES[name] for name, word in words.items()):
            return None
        return Pipeline(**words)

    @cached_property
    def unread(self) -> frozenset[str]:
        """The choices that the row does not tell; its pipeline has the usual ones in their place."""
        return frozenset(name for name in ("layout", "rotated") if getattr(self, name) == "not_read")

    @property
    def known(self) -> str:
        """How it is known: tested, read, or read_in_part."""
        return "tested" if self.verified == "conformance" else "read_in_part" if self.unread else "read"

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
    """Rows in which every word of `text` occurs, in any column, as it is stored or as it is read, whatever its case.

    >>> [model.model for model in search("LayerNorm idefics") + search("swin conformance-tested")]
    ['IDEFICS 1 (perceiver)', 'Swin v2']
    """
    words = text.casefold().split()
    return [model for model in models if all(word in _text(model) for word in words)]


@in_each_language(None)
def _text(model: Model) -> str:
    values = {column: getattr(model, column) for column in COLUMNS} | {"qk_norm": model.qk_norm}
    stored = [str(value).replace("e-0", "e-") for value in values.values()]
    return " ".join([*stored, *(cell(column, value) for column, value in values.items())]).casefold()


def filtered(models: Iterable[Model] = MODELS, **words: str | bool | float | None) -> list[Model]:
    """Rows that have each of these words in the column of its name.

    >>> [model.model for model in filtered(place="full_width", norm="layernorm")]
    ['ESM-C']
    """
    return [model for model in models if all(getattr(model, column) == word for column, word in words.items())]


@lru_cache(maxsize=512)
def same_function(pipeline: Pipeline) -> Pipeline:
    """One pipeline for all that are the same function in exact arithmetic, as far as `COMPARED` tells.

    Without a gain, or with one that is the same for a whole head, RMSNorm and L2 do not mind whether rotary comes
    first; without a gain there is nothing to store; without rotary there is no layout. Dividing inside the product is
    dividing each side. What was carried over from another layout, its gain included, is that layout.

    >>> gainless = Pipeline(gain="none", order="rotary_norm")
    >>> same_function(gainless) == same_function(gainless.but(order="norm_rotary", stored="one_plus"))
    True
    """
    changes = acting_gain(pipeline)
    pipeline = pipeline.but(**changes)
    no_affine = pipeline.gain == pipeline.bias == "none"
    even = pipeline.gain in ("none", "scalar", "head") and pipeline.bias == "none"
    if pipeline.gain == "none":
        changes |= {"stored": "gamma", "key_gain": "own"}
    if pipeline.place == "in_product":
        changes["place"] = "per_head"
    if pipeline.norm in ("none", "rms", "l2") and even and pipeline.order == "rotary_norm":
        changes["order"] = "norm_rotary"
    if pipeline.norm == "none":
        changes |= {"place": "per_head"} | ({"on": "qk"} if pipeline.on == "qkv" or no_affine else {})
    if pipeline.place == "weights" and pipeline.on != "qkv" and no_affine:
        changes["on"] = "qk"
    if pipeline.order == "none" and (even or pipeline.conversion != "weights"):  # rows are permuted to a layout, too
        changes |= {"layout": "half_split", "rotated": "all"}
    if pipeline.conversion == "weights_and_gain" or (even and pipeline.conversion == "weights"):
        carried = {} if pipeline.order == "none" else {"layout": other_layout(pipeline.layout)}
        changes |= {"conversion": "none"} | carried
    return pipeline.but(**changes)


def acting_gain(pipeline: Pipeline) -> dict[str, Any]:
    """What to change so that a gain is named only where it multiplies: a side that is not normalised gets none.

    >>> acting_gain(Pipeline(on="q", key_gain="of_q")), acting_gain(Pipeline(on="k", key_gain="q_alone"))
    ({'key_gain': 'own'}, {'gain': 'none', 'key_gain': 'own'})
    >>> acting_gain(Pipeline(norm="none", on="q"))  # without a norm the word says alone which side has a gain
    {'on': 'qk', 'key_gain': 'q_alone'}
    """
    if pipeline.gain == "none" or pipeline.on not in ("q", "k"):
        return {}
    by_head = pipeline.bias != "none" and pipeline.gain == "head_channel"  # the word also says that biases are by head
    if not pipeline.multiplied:
        return {} if by_head else {"gain": "none", "key_gain": "own"}
    if KEY_GAINS[pipeline.key_gain][pipeline.on] != pipeline.on:
        return {}
    if pipeline.bias == "none" and (pipeline.norm == "none" or pipeline.place == "weights"):
        return {"on": "qk", "key_gain": f"{pipeline.on}_alone"}
    return {"key_gain": "own"}


def _forms(pipeline: Pipeline) -> list[Pipeline]:
    """The same function in words that may differ: unit vectors times √d are what RMSNorm makes."""
    one = same_function(pipeline)
    over_heads = one.place == "per_head" and one.on == "qk" and one.bias == "none"
    if one.norm == "l2" and over_heads and one.scale in _OF_UNIT:
        return [one, one.but(norm="rms", scale=_OF_UNIT[one.scale])]
    return [one]


_OF_UNIT: Final[dict[str, Any]] = {"root": "inverse_root", "one": "inverse"}


def differing(one: Pipeline, other: Pipeline, unread: Collection[str] = ()) -> list[str]:
    """The choices of `COMPARED` in which two pipelines are different functions; in `unread` ones they are not.

    >>> differing(Pipeline(norm="l2", scale="root"), Pipeline()), differing(Pipeline(norm="l2"), Pipeline())
    ([], ['norm'])
    """
    names = [name for name in COMPARED if name not in unread]
    found = [
        [name for name in names if getattr(left, name) != getattr(right, name)]
        for left in _forms(one)
        for right in _forms(other)
    ]
    return min(found, key=len)


@lru_cache(maxsize=512)
def alike(pipeline: Pipeline) -> list[Model]:
    """The models that do exactly this, as far as they were read."""
    return [model for model in MODELS if model.pipeline and not differing(pipeline, model.pipeline, model.unread)]


def named(models: Sequence[Model], between: str = ", ", *, perhaps: bool = True) -> str:
    """Their names: first those that a test of this project holds against their class, then those only read.

    `perhaps`: say so of those that were read in part; the sentence around the names may have said it.
    """
    groups: dict[str, list[str]] = {"tested": [], "read": [], "read_in_part": []}
    for one in models:
        groups[one.known].append(one.model)
    said = []
    for word, names in groups.items():
        if names:
            key = f"models.{word}" if word == "tested" or len(names) == 1 else f"models.{word}_several"
            told = say(key, names=between.join(names), count=len(names))
            said.append(say("models.perhaps", names=told) if perhaps and word == "read_in_part" else told)
    return reduce(lambda head, last: say("models.and_in", head=head, last=last), said)
