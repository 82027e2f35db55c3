"""Which public implementation does what?

A hundred of them, each read in its source. QK norm names a placement, and every team chose its own. Filter the
table by any choice, look how a row was verified, follow its link to the line. From a row two models can be opened
beside each other in the placement lab; and from any state of that lab one can ask which models do exactly this.

* `Settings`, `PRESETS`: a filter for each column, and the rows behind common errors;
* `run(settings)`: the rows that pass; `searched(result, text)`: those that mention a text;
* `counts(models, column)`: how many rows have which word; `families(result)`: the rows, family by family;
* `finding`, `explain`, `corrections`, `beside`, `rows`, `family_rows`, `report`: the result in words and as tables.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from qkdemo.dials import Choice, Dials, Value
from qkdemo.facts.models import MODELS, Model, filtered, search

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
        Literal["any", "none", "scalar", "head", "channel", "head_channel", "input_channel", "configurable"],
        Choice(use="read"),
    ] = "any"
    stored: Annotated[Literal["any", "none", "gamma", "one_plus", "configurable"], Choice()] = "any"
    order: Annotated[
        Literal["any", "norm_rotary", "rotary_norm", "rotary_only", "no_rotary", "configurable", "not_read"], Choice()
    ] = "any"
    scaled: Annotated[
        Literal["any", "inverse_root", "one", "root", "inverse", "learned", "constant", "not_read"], Choice()
    ] = "any"
    cached: Annotated[
        Literal["any", "finished", "normalised", "rotated", "raw", "latent", "none", "not_read"], Choice(more=True)
    ] = "any"
    key_gain: Annotated[Literal["any", "none", "own", "of_q", "q_alone", "k_alone"], Choice(more=True)] = "any"
    layout: Annotated[
        Literal["any", "none", "half_split", "half_split_swapped", "interleaved", "not_read"], Choice(more=True)
    ] = "any"
    rotated: Annotated[
        Literal["any", "none", "all", "half", "quarter", "last_eighth", "not_read"], Choice(more=True)
    ] = "any"
    capped: Annotated[_YesNo, Choice()] = "any"
    output_capped: Annotated[_YesNo, Choice(more=True)] = "any"
    biased: Annotated[Literal["any", "none", "channel", "configurable"], Choice(more=True)] = "any"
    epsilon_set: Annotated[Literal["any", "1e-5", "1e-6", "1e-12", "0", "elsewhere"], Choice(more=True)] = "any"
    epsilon_stands: Annotated[
        Literal["any", "inside", "floor", "absent", "none", "configurable", "not_read"], Choice(more=True)
    ] = "any"
    cast_back: Annotated[
        Literal["any", "gain_first", "cast_first", "model_dtype", "none", "configurable", "not_read"], Choice(more=True)
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
COLUMNS: Final = {
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


EPSILONS: Final = {"elsewhere": None, "0": 0.0, "1e-12": 1e-12, "1e-6": 1e-6, "1e-5": 1e-5}
CAPS: Final = {"capped": "softcap", "output_capped": "output_softcap"}


@dataclass(frozen=True, eq=False)
class Result:
    """The rows that pass every filter."""

    settings: Settings
    models: tuple[Model, ...]


def run(settings: Settings) -> Result:
    """The rows that pass every filter, in the order of the table."""
    found = filtered(MODELS, **wanted_of(settings))
    for dial, column in CAPS.items():
        word = getattr(settings, dial)
        found = [one for one in found if word in ("any", "no" if getattr(one, column) is None else "yes")]
    if settings.on_by_default != "any":
        found = filtered(found, default_on=settings.on_by_default == "yes")
    return Result(settings, tuple(found))


def wanted_of(settings: Settings) -> dict[str, Any]:
    """What a row must hold, by column."""
    words = {column: getattr(settings, dial) for dial, column in COLUMNS.items()}
    wanted = {column: word for column, word in words.items() if word != "any"}
    return wanted | ({} if settings.epsilon_set == "any" else {"epsilon": EPSILONS[settings.epsilon_set]})


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
