"""The table of models in words.

* `finding(result)`, `explain(result)`: how many rows pass, and how they are spread;
* `beside(left, right)`: what sets two models apart; `corrections()`: what is often told wrongly."""

from collections.abc import Iterable
from typing import Final

from qkdemo.facts.models import MODELS, Model, differing, named
from qkdemo.facts.nearest import own_number
from qkdemo.labs.models.lab import Result, counts
from qkdemo.messages import say
from qkdemo.notation import written

_MAY_BE_SQUARED: Final = {("rotary_norm", "q_alone"), ("rotary_norm", "of_q")}


def finding(result: Result) -> str:
    """How many rows pass, and how many different functions those with QK norm are at least."""
    values = {"found": len(result.models), "all": len(MODELS)}
    if not result.models:
        return say("models.none", **values)
    if len(result.models) == 1:
        return say("models.one", name=result.models[0].model, **values)
    normed = [model for model in result.models if model.qk_norm == "yes"]
    if (ways := len(_kinds(normed))) > 1:
        return say("models.ways", normed=len(normed), ways=ways, **values)
    read = all(model.pipeline is not None and not model.unread for model in result.models)
    alike = read and not any(_differing(result.models[0], other) for other in result.models)
    return say("models.alike_all" if alike else "models.found", **values)


def _kinds(models: Iterable[Model]) -> list[Model]:
    """One of each function among those whose every choice is known."""
    kinds: list[Model] = []
    known = (model for model in models if model.pipeline is not None)
    for model in sorted(known, key=lambda one: len(one.unread)):  # what was read most tells most apart
        if all(_apart(model, other) for other in kinds):
            kinds.append(model)
    return kinds


def _apart(left: Model, right: Model) -> bool:
    """Whether two models are surely different functions.

    Behind rotary, a gain on q alone can be the square of one on both; a constant scale can be 1/√d.
    """
    found = _differing(left, right)
    pipelines = [model.pipeline for model in (left, right) if model.pipeline is not None]
    squared = {(pipeline.order, pipeline.key_gain) for pipeline in pipelines} == _MAY_BE_SQUARED
    own = any(one.pipeline and own_number(one.pipeline, other, found) for one, other in ((left, right), (right, left)))
    return bool(found) and not (found == ["key_gain"] and squared) and not own


def _differing(left: Model, right: Model) -> list[str]:
    """In which choices two models with a pipeline differ, as far as both were read."""
    assert left.pipeline is not None
    assert right.pipeline is not None
    return differing(left.pipeline, right.pipeline, left.unread | right.unread)


def explain(result: Result) -> list[str]:
    """How many rows pass, and how they are spread."""
    sentences = [finding(result)]
    for column in ("kind", "norm", "place", "order", "verified") if result.models else ():
        parts = [f"{_word(column, word)} {count}" for word, count in counts(result.models, column)]
        sentences.append(say("models.spread", column=say(f"column.{column}"), parts="; ".join(parts)))
        if column == "kind":
            sentences.append(say("models.counted"))
    return sentences


def _word(column: str, word: str) -> str:
    return say("models.without") if word == "none" else say(f"choice.{column}.{word}")


def beside(left: Model, right: Model) -> list[str]:
    """In which choices two models differ, and who does exactly what each does. Both must have a pipeline."""
    apart = [say(f"choice_name.{name}") for name in _differing(left, right)]
    names = {"left": left.model, "right": right.model}
    same = "same_as_read" if left.unread | right.unread else "same"
    sentences = [say("models.apart", choices=", ".join(apart), **names) if apart else say(f"models.{same}", **names)]
    for model in (left, right):
        others = [other for other in MODELS if other.id != model.id and other.pipeline and not _differing(model, other)]
        known = not model.unread and not any(other.unread for other in others)
        key = ("models.others" if known else "models.others_as_read") if others else "models.alone"
        sentences.append(say(key, name=model.model, names=named(others, "; ") if others else ""))
    return sentences


def corrections() -> list[str]:
    """What is often told wrongly, each with the numbers of its row."""
    gemma = next(model for model in MODELS if model.id == "gemma-2-transformers")
    assert gemma.softcap is not None
    assert gemma.output_softcap is not None
    caps = {"attention": written(gemma.softcap), "output": written(gemma.output_softcap)}
    names = ("gemma_2", "qwen_2", "command_r", "olmo_2", "llama_4", "deepseek")
    return [say(f"models.correction.{name}", **caps) for name in names]
