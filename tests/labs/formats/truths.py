"""When each sentence of the formats lab that depends on a result is true, told from the entries of every stage."""

from functools import cached_property
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from qkdemo.attention.norms import NormWord
from qkdemo.labs.formats import Settings, choices_of, recipe_of
from qkdemo.labs.formats.lab import inputs_of
from qkdemo.labs.formats.stages.exact import exactly
from qkdemo.labs.formats.stages.kinds import OVER_KEYS, STAGES, StageWord, StoredWord
from qkdemo.labs.formats.stages.rounded import follow
from qkdemo.messages import say
from qkdemo.notation import read
from tests.labs.told import Truth

NAMES: Final = (
    r"variant\..*|stage\..*|dial\..*|exhibit\..*|number\..*"
    r"|formats\.(begin|of|corner|row|twin_row|first|predict|tile|fold|cell|axis|place|ladder|count|table)\b.*"
    r"|formats\.panel\.(grid|heat|ladder|counts|no_counts|worn)"
)
FROM_NORM: Final = STAGES[STAGES.index("q_entering") :]
POSITIVE: Final = ("exp", "sum", "weight")  # exactly above zero, though float64 may hold 0


class Entries:
    """One side in one format at one weight scale: every entry as held and exactly."""

    def __init__(self, settings: Settings, variant: NormWord, word: StoredWord, scale: float) -> None:
        self.settings, self.variant, self.word, self.scale = settings, variant, word, scale
        inputs = inputs_of(recipe_of(settings), settings.causal)
        choices, at = choices_of(settings, variant), torch.tensor([scale], dtype=torch.float64)
        self.visible = None if inputs.visible is None else inputs.visible.numpy()
        self.held = follow(inputs, at[None], choices, [word])
        self.exact = {stage: x[0].numpy() for stage, x in exactly(inputs, at, choices).items()}

    def seen(self, stage: StageWord, x: NDArray[np.generic]) -> NDArray[np.generic]:
        return x[self.visible] if stage in OVER_KEYS and self.visible is not None else x.ravel()

    def values(self, stage: StageWord) -> NDArray[np.float64]:
        return np.asarray(self.seen(stage, self.held[stage].values[0, 0].numpy()))

    def n(self, stage: StageWord) -> int:
        return self.values(stage).size if stage in self.held else 0

    def lost(self, stage: StageWord) -> int:
        if stage not in self.held:
            return 0
        beyond = self.seen(stage, self.held[stage].beyond[0, 0].numpy())
        return int((beyond.astype(bool) | ~np.isfinite(self.values(stage))).sum())

    def infinite(self, stage: StageWord) -> int:
        return int(np.isinf(self.values(stage)).sum())

    def nan(self, stage: StageWord) -> int:
        return int(np.isnan(self.values(stage)).sum())

    def zero(self, stage: StageWord) -> int:
        exact = self.seen(stage, self.exact[stage])
        return int(((self.values(stage) == 0) & ((exact != 0) | (stage in POSITIVE))).sum())

    def merged(self, stage: StageWord) -> int:
        """Finite entries, not zero, equal to the next one of their row by exact size, from which they differ.

        By more than sums in float64 can be off.
        """
        count = 0
        over_keys = stage in OVER_KEYS
        truth = self.exact["masked" if over_keys else stage]
        for at, (row, exact) in enumerate(zip(self.held[stage].values[0, 0].numpy(), truth, strict=True)):
            seen = self.visible[at] if over_keys and self.visible is not None else slice(None)
            order = np.argsort(exact[seen], kind="stable")
            value, place = row[seen][order], exact[seen][order]
            told = place[1:] - place[:-1] > 1e-12 * np.abs(place[np.isfinite(place)]).max(initial=0)
            same = (value[1:] == value[:-1]) & told & (value[1:] != 0) & np.isfinite(value[1:])
            count += int((np.append(same, [False]) | np.append([False], same)).sum())
        return count

    @cached_property
    def first_lost(self) -> StageWord | None:
        return next((stage for stage in STAGES if self.lost(stage)), None)

    @property
    def error(self) -> float:
        """The largest relative error of a weight that is finite and vanished neither here nor exactly."""
        held, exact = self.values("weight"), np.asarray(self.seen("weight", self.exact["weight"]), dtype=np.float64)
        told = np.isfinite(held) & (held != 0) & (exact >= np.finfo(np.float64).tiny)
        return float(np.abs(held[told] / exact[told] - 1).max(initial=0))

    @property
    def rows_without(self) -> int:
        """Queries of which a weight is no number."""
        weights = self.held["weight"].values[0, 0].numpy()
        return int((np.isnan(weights) & (True if self.visible is None else self.visible)).any(-1).sum())

    @property
    def leaked(self) -> int:
        if self.visible is None:
            return 0
        return int(((self.held["weight"].values[0, 0].numpy() > 0) & ~self.visible).sum())

    def stage(self, name: str) -> StageWord:
        return next(stage for stage in STAGES if say(f"stage.{stage}.name") == name)

    @property
    def overflows(self) -> bool:
        return self.first_lost is not None


class About:
    """Settings, and the entries of whichever side and format a sentence names."""

    def __init__(self, settings: Settings, scale: float, side: str = "") -> None:
        self.settings, self.scale, self.which = settings, scale, side
        self._kept: dict[tuple[str, str], Entries] = {}

    def of(self, v: dict[str, str]) -> Entries:
        plain = self.which == "plain" if self.which else v.get("side") == say("variant.none.name")
        variant: NormWord = "none" if plain else self.settings.variant
        word = v.get("format", self.settings.storage)
        if (variant, word) not in self._kept:
            self._kept[variant, word] = Entries(self.settings, variant, word, self.scale)  # type: ignore[arg-type]
        return self._kept[variant, word]


def part(it: Entries, v: dict[str, str], count: int) -> bool:
    stage = it.stage(v["stage"])
    return (int(v["part"]), int(v["of"])) == (count, it.n(stage)) and count > 0


def lost(it: Entries, v: dict[str, str]) -> bool:
    return it.first_lost is not None and it.stage(v["stage"]) == it.first_lost and part(it, v, it.lost(it.first_lost))


def since(it: Entries, v: dict[str, str]) -> bool:
    """About that weight scale the stage loses some, and so it does where the scale is much larger."""
    start, stage = read(v["since"]), it.stage(v["stage"])

    def loses(scale: float) -> bool:
        return Entries(it.settings, it.variant, it.word, scale).lost(stage) > 0

    about_it = any(loses(start * nudge) for nudge in (1, 1.003, 1.01, 1.03))
    return lost(it, v) and about_it and all(loses(scale) for scale in (3e2, 1e3, 1e5) if scale > 3 * start)


def vanished(it: Entries, v: dict[str, str]) -> bool:
    return not it.overflows and (int(v["vanished"]), int(v["weights"])) == (it.zero("weight"), it.n("weight"))


def merged(it: Entries, v: dict[str, str]) -> bool:
    return (int(v["merged"]), int(v["logits"])) == (it.merged("scaled"), it.n("scaled"))


def whole(it: Entries) -> bool:
    """No entry overflows, no weight vanishes, no logits merge."""
    return not it.overflows and not it.zero("weight") and not it.merged("scaled")


def moved(it: Entries, v: dict[str, str]) -> bool:
    return (
        whole(it)
        and not it.leaked
        and (99.9 * it.error <= read(v["error"]) <= 111 * it.error or abs(read(v["error"]) / 100 - it.error) < 1e-9)
    )


def leaked(it: Entries, v: dict[str, str]) -> bool:
    return int(v["leaked"]) == it.leaked > 0 and v["mask"].replace("−", "-").replace("∞", "inf") == it.settings.mask


def beginning(about: About, v: dict[str, str]) -> bool:
    """Each of the stages loses entries about its scale and well above it, and, unless that is told, none well below."""
    here = about.of(v)

    def loses(name: str, scale: float) -> bool:
        it = Entries(here.settings, here.variant, here.word, scale)
        return it.lost(it.stage(name)) > 0

    for told in v["listed"].split("; "):
        name, _, text = told.rpartition(" at ")
        scale = read(text)
        if name.endswith(" already") != (scale == 0.01):
            return False
        name = name.removesuffix(" already")
        about_it = any(loses(name, scale * nudge) for nudge in (1.0005, 1.001, 1.003, 1.01))
        if not about_it or (scale < 3e37 and not loses(name, 3 * scale)) or (scale > 0.02 and loses(name, scale / 2)):
            return False
    return True


def early(about: About, v: dict[str, str]) -> bool:
    """That stage loses some at one of the swept scales."""
    here = about.of(v)
    scales = np.geomspace(0.01, 1000, 51)
    found = [Entries(here.settings, here.variant, here.word, float(x)).lost(here.stage(v["early"])) > 0 for x in scales]
    return any(found)


def never(about: About, v: dict[str, str]) -> bool:
    here = about.of(v)
    return not any(
        Entries(here.settings, here.variant, here.word, x).overflows for x in (0.01, 1.0, 1e3, 1e6, 1e12, 1e24, 9e37)
    )


def titled(about: About, v: dict[str, str], *, loses: bool) -> bool:
    """Of the shown stage, on either side, just above the scale of the title."""
    settings = about.settings
    scale = read(v["scale"]) if loses else 0.0
    found = []
    for x in [scale * nudge for nudge in (1.0005, 1.001, 1.003, 1.01)] if loses else (0.01, 1.0, 1e3):
        sides = (Entries(settings, variant, v["format"], x) for variant in ("none", settings.variant))  # type: ignore[arg-type]
        found.append(any(side.lost(settings.stage) for side in sides))
    return any(found) == loses


def shown(about: About, word: str) -> bool:
    """Either side has the shown stage."""
    settings = about.settings
    sides = (Entries(settings, variant, word, 1.0) for variant in ("none", settings.variant))  # type: ignore[arg-type]
    return any(side.n(settings.stage) for side in sides)


def cell(it: Entries, stage: StageWord, text: str) -> bool:
    """A cell of the grid names the one kind of loss that there is, or the number of all."""
    lost = it.lost(stage)
    if not lost:
        return not any(kind in text for kind in ("∞", "NaN", "↑", "lost"))
    kinds = {"∞": it.infinite(stage), "NaN": it.nan(stage), "lost": lost}
    if text == "NaN":
        return it.nan(stage) == it.n(stage)
    count, kind = text.split(" ")
    kinds["↑"] = lost - kinds["∞"] - kinds["NaN"]
    return int(count) == lost == kinds[kind] and (kind != "lost" or lost not in (kinds["∞"], kinds["NaN"], kinds["↑"]))


def rises(about: About, word: str) -> bool:
    """The shown stage loses entries at some scale of the dial."""
    settings, stops = about.settings, np.geomspace(0.01, 1000, 51)
    sides = (Entries(settings, variant, word, float(x)) for x in stops for variant in ("none", settings.variant))  # type: ignore[arg-type]
    return any(side.lost(settings.stage) for side in sides)


FATES: Final = {
    "lost": lost,
    "vanished": vanished,
    "flushed": lambda it, v: not it.overflows and not it.zero("weight") and part(it, v, it.zero(it.stage(v["stage"]))),
    "merged": lambda it, v: not it.overflows and not it.zero("weight") and merged(it, v) and it.merged("scaled") > 0,
    "blurred": lambda it, v: (
        not it.overflows
        and not it.zero("weight")
        and not it.merged("scaled")
        and part(it, v, it.merged(it.stage(v["stage"])))
    ),
    "off": lambda it, v: moved(it, v) and it.error > 0.1,
    "visible": lambda it, v: whole(it) and it.leaked > 0,
    "safe": lambda it, v: moved(it, v) and it.error <= 0.1 + 1e-9,
    "leaked": leaked,
}
SAID: Final = {
    "lost": lambda it, v: lost(it, v) and not it.nan("weight") and not it.nan("sum"),
    "undefined": lambda it, v: lost(it, v) and (int(v["undefined"]), int(v["rows"])) == (it.rows_without, it.n("sum")),
    "undefined_weights": lambda it, v: (
        lost(it, v) and (int(v["nan"]), int(v["weights"])) == (it.nan("weight"), it.n("weight"))
    ),
    "vanished_alone": lambda it, v: vanished(it, v) and not it.merged("scaled"),
    "vanished": lambda it, v: vanished(it, v) and merged(it, v),
}
TRUTHS: Final[dict[str, Truth]] = {
    **{
        f"formats.finding.{side}.{name}": lambda about, v, holds=holds: holds(about.of(v), v)
        for side in ("plain", "twin")
        for name, holds in (FATES | {"lost_since": since}).items()
    },
    **{
        f"formats.{name}": lambda about, v, holds=holds: holds(about.of(v), v) for name, holds in (FATES | SAID).items()
    },
    "formats.beginning": beginning,
    "formats.beginning_early": early,
    "formats.never": never,
    "formats.never_early": early,
    "formats.rule.overflow": lambda about, v: about.settings.fp8_cast == "overflow",
    "formats.rule.saturate": lambda about, v: about.settings.fp8_cast == "saturate",
    **{
        f"formats.panel.{name}{more}": lambda about, v: titled(about, v, loses=True)
        for name in ("losing", "later")
        for more in ("", "_early")
    },
    "formats.panel.losing_already": lambda about, v: titled(about, v, loses=True) and v["scale"] == "0.01",
    "formats.panel.never": lambda about, v: titled(about, v, loses=False) and shown(about, v["format"]),
    "formats.panel.absent": lambda about, v: not shown(about, v["format"]),
    "formats.panel.never_early": lambda about, v: rises(about, v["format"]),
}
