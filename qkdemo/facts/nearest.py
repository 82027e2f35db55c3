"""Which model of the table a pipeline is, or which one it is closest to.

* `in_words(pipeline)`: the models that do exactly this; or the closest one, and in what it differs;
* `closest(pipeline)`, `changes(one, other)`: that model, and what has to be changed to get its function.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from qkdemo.attention.pipeline import Pipeline
from qkdemo.facts.models import COMPARED, MODELS, VERIFIED, Model, acting_gain, alike, differing, named, same_function
from qkdemo.messages import in_each_language, say


@in_each_language(512)
def in_words(pipeline: Pipeline) -> str:
    """Which models do exactly this; or the closest one, and in what it differs."""
    found = alike(pipeline)
    if found:
        perhaps = all(model.known == "read_in_part" for model in found)
        words = say(f"models.{'perhaps_' if perhaps else ''}alike", names=named(found, perhaps=not perhaps))
        numbers = [name for name, word in (("scale", "learned"), ("cap", "softcap")) if getattr(pipeline, name) == word]
        return " ".join([words, *(say(f"models.own_{name}") for name in numbers)])
    model, names = closest(pipeline)
    if own_number(pipeline, model, names):
        return say("models.closest_number", name=named([model]))
    choices = ", ".join(say(f"choice_name.{name}") for name in names)
    return say("models.closest", name=named([model]), differing=choices)


def closest(pipeline: Pipeline) -> tuple[Model, list[str]]:
    """The model for which the fewest choices have to be changed, and those choices; among equals the one that has the
    fewest other words, then the best verified, then one that was read whole, then one whose scale may be this one."""
    apart = [(model, len(differing(pipeline, model.pipeline, model.unread))) for model in MODELS if model.pipeline]
    near = min(count for _, count in apart) + 1
    known = [
        (model, changes(pipeline, model.pipeline, model.unread))
        for model, count in apart
        if model.pipeline and count <= near
    ]

    def order(found: tuple[Model, list[str]]) -> tuple[int, ...]:
        model, names = found
        words = model.choices("")
        others = sum(words[f"_{name}"] != getattr(pipeline, name) for name in COMPARED if name not in model.unread)
        rank = VERIFIED.index(model.verified)
        return len(names), others, rank, len(model.unread), not own_number(pipeline, model, names)

    return min(known, key=order)


def own_number(pipeline: Pipeline, model: Model, names: Sequence[str]) -> bool:
    """Whether nothing but the scale differs, and 1/√d may be the number that the model has in its place."""
    return list(names) == ["scale"] and model.scale == "constant" and pipeline.scale == "inverse_root"


def changes(one: Pipeline, other: Pipeline, unread: Collection[str] = ()) -> list[str]:
    """The choices of `one` that have to be changed for the function of `other`; one that does nothing is not counted.

    What a gain is read from may do nothing in `one` as it stands, and be right already once `other` is reached.

    >>> changes(Pipeline(gain="scalar", order="rotary_norm"), Pipeline())
    ['gain', 'order']
    """
    return min((_changes(form, other, unread) for form in dict.fromkeys((one.but(**acting_gain(one)), one))), key=len)


def _changes(one: Pipeline, other: Pipeline, unread: Collection[str]) -> list[str]:
    one = _idle_as_in(other, one)
    names = [name for name in COMPARED if name not in unread and getattr(one, name) != getattr(other, name)]
    for spared in (*_TOGETHER, *((name,) for name in names)):
        fewer = [name for name in names if name not in spared]
        if fewer != names and not differing(_with(one, other, fewer), other, unread):
            names = fewer
    none = not one.multiplied and not other.multiplied  # the word may still say that a bias is by head
    return [name for name in names if name != "gain" or not none]


_TOGETHER: Final = (("layout", "conversion"), ("norm", "scale"))  # which may be one function in other words


def _with(one: Pipeline, other: Pipeline, names: Iterable[str]) -> Pipeline:
    changed = {name: word for name in names if (word := getattr(other, name)) != getattr(one, name)}
    return one.but(**changed) if changed else one


def _idle_as_in(other: Pipeline, one: Pipeline) -> Pipeline:
    """`one`, but what does nothing in it, and is not told, is as in `other`."""
    affine = one.bias != "none" or one.gain != "none"
    idle = [] if one.gain != "none" else ["stored", "key_gain"]
    idle += ["place"] if one.norm == "none" else []
    idle += ["on"] if one.norm == "none" or one.place == "weights" else []
    idle += ["order"] if other.order != "none" and not affine and one.norm == "none" else []
    idle += ["layout", "rotated"] if one.order == one.conversion == "none" else []
    for name in idle:
        if (found := _with(one, other, [name])) is not one and same_function(found) == same_function(one):
            one = found
    return one
