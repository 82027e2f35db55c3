"""Every sentence about the table of models is true of its rows: filters drawn from a seed, and every pair of some."""

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from qkdemo.attention.blocks import BlockRecipe, draw_block
from qkdemo.attention.pipeline import Pipeline, trace
from qkdemo.dials import declarations
from qkdemo.facts.models import MODELS, Model, differing
from qkdemo.labs.models.lab import Settings, run
from qkdemo.labs.models.words import beside, explain
from tests.oracles import NOTHING, Oracle, Said, heard, hold, keys

DRAWN: Final = 150
_EVEN: Final = draw_block(BlockRecipe(n_heads=4, n_kv_heads=2, d_head=8, n_keys=6))
# Inputs of one size would hide a norm that stands before the projection.
BLOCK: Final = dataclasses.replace(_EVEN, x=_EVEN.x * torch.linspace(0.5, 2, 6, dtype=_EVEN.x.dtype)[:, None])


def drawn(rng: np.random.Generator) -> Settings:
    """Up to three filters at once."""
    dials = [dial for dial in declarations(Settings) if dial.allowed_words()]
    chosen = rng.choice(len(dials), int(rng.choice([0, 1, 1, 2, 3])), replace=False)
    return Settings(**{dials[at].name: str(rng.choice(dials[at].allowed_words())) for at in chosen})


@cache
def logits(pipeline: Pipeline) -> Tensor:
    return trace(pipeline, BLOCK).logits


@cache
def apart(one: Model, other: Model) -> tuple[str, ...]:
    """In which choices two rows differ, of those that both were read in."""
    assert one.pipeline is not None
    assert other.pipeline is not None
    found = differing(one.pipeline, other.pipeline, one.unread | other.unread)
    if not one.unread | other.unread:  # then their logits on one block say it, too
        same = torch.allclose(logits(one.pipeline), logits(other.pipeline), rtol=1e-6, atol=1e-9)
        assert bool(found) != same, f"{one.model}, {other.model}: {found}"
    return tuple(found)


def functions(models: list[Model]) -> int:
    """Of how many rows no two are the same, taken as they come: at least so many functions."""
    kinds: list[Model] = []
    for model in models:
        if model.pipeline is not None and all(apart(model, other) for other in kinds):
            kinds.append(model)
    return len(kinds)


class Told:
    """The rows that pass."""

    def __init__(self, settings: Settings) -> None:
        self.models = list(run(settings).models)
        self.normed = [model for model in self.models if model.qk_norm == "yes"]

    def counted(self, said: Said) -> bool:
        return said.number("all") == len(MODELS) and said.number("found") == len(self.models)


def ways(said: Said, told: Told) -> bool:
    """At least as many functions as are said: some that differ pairwise are found, whatever the order."""
    found = max(functions(told.normed), functions(sorted(told.normed, key=lambda model: len(model.unread))))
    return told.counted(said) and said.number("normed") == len(told.normed) and 1 < said.number("ways") <= found


def spread(said: Said, told: Told) -> bool:
    """The counts of a column add up to the rows."""
    numbers = [int(part.rpartition(" ")[2]) for part in str(said.values["parts"]).split("; ")]
    return sum(numbers) == len(told.models)


TABLE: Final[Mapping[str, Oracle]] = {
    "models.none": lambda said, told: not told.models and said.number("all") == len(MODELS),
    "models.one": lambda said, told: [model.model for model in told.models] == [said.values["name"]],
    "models.found": lambda said, told: told.counted(said) and len(told.models) > 1,
    "models.ways": ways,
    "models.alike_all": lambda said, told: (
        told.counted(said)
        and all(model.pipeline is not None and not model.unread for model in told.models)
        and not any(apart(told.models[0], other) for other in told.models)
    ),
    "models.spread": spread,
    **dict.fromkeys({"models.counted", "models.without"} | keys("choice.", "column."), NOTHING),
}


def alike(said: Said, pair: tuple[Model, Model]) -> bool:
    return not apart(*pair) and (said.key == "models.same") == (not (pair[0].unread | pair[1].unread))


def others(said: Said, pair: Any) -> bool:
    """Each that is named does the same, none that does is left out, and “exactly” is said of what was read whole."""
    model = next(one for one in pair if one.model == said.values["name"])
    same = [one for one in MODELS if one.id != model.id and one.pipeline and not apart(model, one)]
    if said.key == "models.alone":
        return not same
    whole = not model.unread and not any(one.unread for one in same)
    stems = {one.model for one in same}
    named = str(said.values["names"])
    return bool(same) and (said.key == "models.others") == whole and all(_named(stem, named) for stem in stems)


def _named(model: str, names: str) -> bool:
    """Models of one maker are joined: of each its own words stand there."""
    return any(word in names for word in model.split())


def how_known(said: Said, pair: Any) -> bool:
    """Of every name how it was verified is right, and where it is said of several, of how many."""
    found = [next(one for one in MODELS if one.model == name) for name in str(said.values["names"]).split("; ")]
    several = said.key.endswith("_several")
    return (
        {one.verified == "conformance" for one in found} == {said.key == "models.tested"}
        and {bool(one.unread) for one in found} == {"in_part" in said.key}
        and (said.key == "models.tested" or several == (len(found) > 1))
        and (not several or said.number("count") == len(found))
    )


def perhaps(said: Said, pair: Any) -> bool:
    """Of each of these a choice was not read."""
    names = str(said.values["names"]).rsplit(" (", 1)[0].split("; ")
    return all(one.unread for one in MODELS if one.model in names)


PAIRS: Final[Mapping[str, Oracle]] = {
    "models.apart": lambda said, pair: len(apart(*pair)) == len(str(said.values["choices"]).split(", ")) > 0,
    "models.same": alike,
    "models.same_as_read": alike,
    "models.others": others,
    "models.others_as_read": others,
    "models.alone": others,
    "models.tested": how_known,
    "models.read": how_known,
    "models.read_several": how_known,
    "models.read_in_part": how_known,
    "models.read_in_part_several": how_known,
    "models.perhaps": perhaps,
    **dict.fromkeys(keys("choice_name.") | {"models.and_in"}, NOTHING),
}
ORACLES: Final = TABLE | PAIRS


def search(seeds: range) -> set[str]:
    """Which keys were said of the filters, and of the pairs, of these seeds."""
    asked: set[str] = set()
    whole = [model for model in MODELS if model.pipeline is not None]
    for seed in seeds:
        rng = np.random.default_rng(seed)
        settings = drawn(rng)
        with heard() as said:
            explain(run(settings))
        asked |= hold(said, TABLE, Told(settings), f"seed {seed}: {settings}")
        left, right = (whole[int(rng.integers(len(whole)))] for _ in "lr")
        with heard() as said:
            beside(left, right)
        asked |= hold(said, PAIRS, (left, right), f"{left.model}, {right.model}")
    return asked


def test_every_sentence_about_the_table_of_models_is_true_of_its_rows() -> None:
    asked = search(range(DRAWN))
    assert {key for key in ORACLES if key.startswith("models.")} - asked <= {"models.and_in", "models.alike_all"}
