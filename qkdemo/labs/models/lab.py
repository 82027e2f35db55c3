"""Which public implementation does what?

A hundred of them, each read in its source. QK norm names a placement, and every team chose its own. Filter the
table by any choice, look how a row was verified, follow its link to the line. From a row two models can be opened
beside each other in the placement lab; and from any state of that lab one can ask which models do exactly this.

* `Settings`, `PRESETS`: a filter for each column, and the rows behind common errors;
* `run(settings)`: the rows that pass; `searched(result, text)`: those that mention a text;
* `counts(models, column)`: how many rows have which word; `families(result)`: the rows, family by family;
* `finding`, `explain`, `corrections`, `beside`, `rows`, `family_rows`, `report`: the result in words and as tables.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from qkdemo.dials import Choice, Dials, Value
from qkdemo.facts.models import MODELS, Model, differing, filtered, named, search
from qkdemo.messages import say
from qkdemo.notation import written

_YesNo: TypeAlias = Literal["any", "yes", "no"]
FamilyWord: TypeAlias = Literal[
    "any",
    "chameleon",
    "cohere",
    "deepseek",
    "diffusion",
    "fused_kernel",
    "gemma",
    "glm",
    "hunyuan",
    "idefics",
    "llama",
    "minimax",
    "nanochat",
    "ngpt",
    "olmo",
    "others",
    "phi",
    "qwen",
    "softcap_and_clip",
    "swin",
    "vision",
]


@dataclass(frozen=True, kw_only=True)
class Settings(Dials):
    """One filter per column; `any` lets every row pass."""

    kin: ClassVar[str] = "models"

    family: Annotated[FamilyWord, Choice()] = "any"
    normed: Annotated[_YesNo, Choice()] = "any"
    norm: Annotated[Literal["any", "none", "l2", "rms", "layernorm", "configurable"], Choice()] = "any"
    place: Annotated[Literal["any", "none", "per_head", "full_width", "input", "latent", "configurable"], Choice()] = (
        "any"
    )
    gain_kind: Annotated[
        Literal["any", "none", "scalar", "head", "channel", "head_channel", "input_channel", "configurable"], Choice()
    ] = "any"
    stored: Annotated[Literal["any", "none", "gamma", "one_plus", "configurable"], Choice()] = "any"
    order: Annotated[
        Literal["any", "norm_rotary", "rotary_norm", "rotary_only", "no_rotary", "configurable", "not_read"], Choice()
    ] = "any"
    scaled: Annotated[
        Literal["any", "inverse_root", "one", "root", "inverse", "learned", "constant", "not_read"], Choice()
    ] = "any"
    cached: Annotated[
        Literal["any", "finished", "normalised", "rotated", "latent", "none", "not_read"], Choice(more=True)
    ] = "any"
    key_gain: Annotated[Literal["any", "none", "own", "of_q", "q_alone", "k_alone"], Choice(more=True)] = "any"
    layout: Annotated[
        Literal["any", "none", "half_split", "half_split_swapped", "interleaved", "not_read"], Choice(more=True)
    ] = "any"
    rotated: Annotated[Literal["any", "none", "all", "half", "quarter", "not_read"], Choice(more=True)] = "any"
    capped: Annotated[_YesNo, Choice()] = "any"
    output_capped: Annotated[_YesNo, Choice(more=True)] = "any"
    biased: Annotated[Literal["any", "none", "channel", "configurable"], Choice(more=True)] = "any"
    epsilon_set: Annotated[Literal["any", "1e-5", "1e-6", "1e-12", "0", "elsewhere"], Choice(more=True)] = "any"
    epsilon_stands: Annotated[Literal["any", "inside", "floor", "absent", "none", "not_read"], Choice(more=True)] = (
        "any"
    )
    cast_back: Annotated[
        Literal["any", "gain_first", "cast_first", "model_dtype", "none", "not_read"], Choice(more=True)
    ] = "any"
    on_by_default: Annotated[_YesNo, Choice(more=True)] = "any"
    kind: Annotated[Literal["any", "model", "port", "library", "kernel"], Choice(more=True)] = "any"
    verified: Annotated[Literal["any", "conformance", "source"], Choice(more=True)] = "any"


PRESETS: Final[dict[str, Settings]] = {
    "all": Settings(),
    "full_width": Settings(place="full_width"),
    "rotary_first": Settings(order="rotary_norm"),
    "stored_less_one": Settings(stored="one_plus"),
    "softcap": Settings(capped="yes"),
    "layernorm": Settings(norm="layernorm"),
    "without": Settings(normed="no"),
    "conformance_tested": Settings(verified="conformance"),
}
# dial → column of the table
_COLUMNS: Final = {
    "family": "family",
    "normed": "qk_norm",
    "norm": "norm",
    "place": "place",
    "gain_kind": "gain",
    "stored": "stored",
    "key_gain": "key_gain",
    "order": "order",
    "layout": "layout",
    "rotated": "rotated",
    "scaled": "scale",
    "cached": "cache",
    "biased": "bias",
    "epsilon_stands": "rule",
    "cast_back": "cast",
    "kind": "kind",
    "verified": "verified",
}


_EPSILONS: Final = {"elsewhere": None, "0": 0.0, "1e-12": 1e-12, "1e-6": 1e-6, "1e-5": 1e-5}
_CAPS: Final = {"capped": "softcap", "output_capped": "output_softcap"}


@dataclass(frozen=True, eq=False)
class Result:
    """The rows that pass every filter."""

    settings: Settings
    models: tuple[Model, ...]


def run(settings: Settings) -> Result:
    """The rows that pass every filter, in the order of the table."""
    found = filtered(MODELS, **_wanted(settings))
    for dial, column in _CAPS.items():
        word = getattr(settings, dial)
        found = [one for one in found if word in ("any", "no" if getattr(one, column) is None else "yes")]
    if settings.on_by_default != "any":
        found = filtered(found, default_on=settings.on_by_default == "yes")
    return Result(settings, tuple(found))


def _wanted(settings: Settings) -> dict[str, Any]:
    """What a row must hold, by column."""
    words = {column: getattr(settings, dial) for dial, column in _COLUMNS.items()}
    wanted = {column: word for column, word in words.items() if word != "any"}
    return wanted | ({} if settings.epsilon_set == "any" else {"epsilon": _EPSILONS[settings.epsilon_set]})


def searched(result: Result, text: str) -> Result:
    """Of these rows those in which every word of `text` occurs."""
    return replace(result, models=tuple(search(text, result.models)))


def families(result: Result) -> dict[str, list[Model]]:
    """The rows of each family, the largest family first."""
    found: dict[str, list[Model]] = {}
    for model in result.models:
        found.setdefault(model.family, []).append(model)
    return dict(sorted(found.items(), key=lambda entry: -len(entry[1])))


def counts(models: Iterable[Model], column: str) -> list[tuple[str, int]]:
    """How many rows have which word in `column`, the most frequent first."""
    return Counter(str(getattr(model, column)) for model in models).most_common()


def finding(result: Result) -> str:
    """How many rows pass, and how many different functions they are at least."""
    values = {"found": len(result.models), "all": len(MODELS)}
    if not result.models:
        return say("models.none", **values)
    if len(result.models) == 1:
        return say("models.one", name=result.models[0].model, **values)
    known = [model for model in result.models if model.pipeline is not None]
    kinds: list[Model] = []
    for model in sorted(known, key=lambda one: len(one.unread)):  # what was read most tells most apart
        if all(_differing(model, other) for other in kinds):
            kinds.append(model)
    several = "ways_all" if len(result.models) == len(MODELS) else "ways"
    word = several if len(kinds) > 1 else "alike_all" if len(known) == len(result.models) else "found"
    return say(f"models.{word}", ways=len(kinds), **values)


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
    sentences = [say("models.apart", choices=", ".join(apart), **names) if apart else say("models.same", **names)]
    for model in (left, right):
        others = [other for other in MODELS if other.id != model.id and other.pipeline and not _differing(model, other)]
        key = "models.others" if others else "models.alone"
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


def rows(result: Result) -> list[dict[str, Value | None]]:
    """The table: one row per implementation."""
    return [{column: getattr(model, column) for column in SHOWN} | {"link": model.link} for model in result.models]


SHOWN: Final = (
    *(
        "model",
        "family",
        "kind",
        "qk_norm",
        "norm",
        "place",
        "gain",
        "stored",
        "key_gain",
        "bias",
        "epsilon",
        "rule",
        "cast",
        "order",
        "layout",
        "rotated",
        "scale",
    ),
    *("softcap", "output_softcap", "cache", "default_on", "verified", "note"),
)


def family_rows(result: Result) -> list[dict[str, Value | None]]:
    """The table by family: one row per family."""
    return [
        {
            "family": family,
            "models": len(found),
            **{column: ", ".join(word for word, _ in counts(found, column)) for column in ("norm", "place", "order")},
            "names": "; ".join(model.model for model in found),
        }
        for family, found in families(result).items()
    ]


def report(settings: Settings) -> dict[str, Any]:
    """What the command line prints: the rows that pass."""
    return {"rows": rows(run(settings))}


def snippet(settings: Settings) -> str:
    """A standalone program that holds the same table and prints which rows pass; it needs Python alone."""
    columns = [name for name in SHOWN if name != "note"]
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_text(getattr(model, name)) for name in columns] for model in MODELS)
    return _PROGRAM.format(
        table=sheet.getvalue(),
        wanted={column: _text(word) for column, word in _wanted(settings).items()},
        caps={column: getattr(settings, dial) for dial, column in _CAPS.items()},
        on={"any": None, "yes": "True", "no": "False"}[settings.on_by_default],
    )


def _text(value: Value | None) -> str:
    if value is None or isinstance(value, (bool, str)):
        return "" if value is None else str(value)
    return f"{value:g}"


_PROGRAM: Final = '''"""Which implementations pass a filter. An empty cell: set elsewhere, or there is none."""
import csv
import json

table = """{table}"""
wanted = {wanted}
caps, on_by_default = {caps}, {on!r}
found = [
    row["model"]
    for row in csv.DictReader(table.splitlines())
    if all(row[column] == word for column, word in wanted.items())
    and all(word in ("any", "yes" if row[column] else "no") for column, word in caps.items())
    and on_by_default in (None, row["default_on"])
]
print(json.dumps({{"found": len(found), "models": found}}, ensure_ascii=False))
'''
