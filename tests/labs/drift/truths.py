"""When each sentence of the drift lab that depends on a result is true: told from scores, and weights formed here."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from qkdemo.labs.drift import on, run, sharpness
from qkdemo.labs.drift.lab import Result, state_of
from qkdemo.labs.drift.scale_sweep import Side
from qkdemo.labs.drift.state import scores_at
from qkdemo.messages import say
from qkdemo.notation import read
from tests.labs.told import Truth, computed, reads

SMALL: Final = {"n_keys": 8, "d_head": 16}
NAMES: Final = (
    r"variant\..*|number\..*|dial\..*|exhibit\..*"
    r"|drift\.(axis|tile|over_queries|over_heads|fraction|no_fraction|logits|bound|first)\b.*"
)
NAMES_OF_PANELS: Final = r"sharpness\.panel\..*|drift\.panel\.raw_lost|drift\.panel\.(max_abs|entropy|softmax|top).*"
LOOSE: Final = 1e-3  # relative: 16-bit inputs, sums in float32


@dataclass(frozen=True)
class Seen:
    """A side at one scale: its logits as stored, and their softmax, each here in float64."""

    result: Result
    side: Side
    scale: float

    @cached_property
    def made(self) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
        """Raw scores and logits [heads, queries, keys] of visible keys, others NaN; and how many vectors became 0."""
        settings = self.result.settings.but(variant=self.side.variant)
        if self.side.variant == "none":
            settings = settings.but(norm_in_format=False)
        state = state_of(settings)
        found = scores_at(state, torch.tensor([self.scale], dtype=torch.float64))
        raw, logits = (x[0].double().numpy() for x in (found.raw, found.logits))
        zeroed = 0
        for base, entering in zip(state.base, (found.q, found.k), strict=True):
            given = base.numpy()
            if self.side.variant == "layernorm":  # of a constant vector nothing is left, but for rounding
                spread = np.ptp(given, axis=-1) > 1e-11 * np.abs(given).max(-1)
            else:
                spread = (given != 0).any(-1)
            zeroed += int((spread & (entering[0].numpy() == 0).all(-1)).sum())
        return raw, logits, zeroed

    @property
    def visible(self) -> NDArray[np.bool_]:
        n = self.result.settings.n_keys
        return np.tril(np.ones((n, n), bool)) if self.result.settings.causal else np.ones((n, n), bool)

    @cached_property
    def rows(self) -> list[NDArray[np.float64]]:
        """The logits that each query of each head sees."""
        _, logits, _ = self.made
        return [head[query][self.visible[query]] for head in logits for query in range(len(head))]

    @cached_property
    def weights(self) -> list[NDArray[np.float64]]:
        """The weights of every row that has some."""
        found = []
        for row in self.rows:
            if np.isfinite(row.max()):
                terms = np.exp(row - row.max())
                found.append(terms / terms.sum())
        return found

    @property
    def undefined(self) -> int:
        return len(self.rows) - len(self.weights)

    @property
    def choosing(self) -> list[NDArray[np.float64]]:
        return [row for row in self.weights if len(row) > 1]

    @property
    def entropies(self) -> NDArray[np.float64]:
        return np.array([-(p[p > 0] * np.log(p[p > 0])).sum() for p in self.weights])

    @property
    def fraction(self) -> float:
        """Of the most possible, mean over rows that have a choice."""
        parts = [h / math.log(len(p)) for h, p in zip(self.entropies, self.weights, strict=True) if len(p) > 1]
        return float(np.mean(parts)) if parts else math.nan

    @property
    def mean_top(self) -> float:
        return float(np.mean([p.max() for p in self.choosing]))

    @property
    def top(self) -> float:
        return max(float(p.max()) for p in (self.choosing or self.weights))

    @property
    def lost(self) -> tuple[int, int]:
        """Scores of visible keys that are infinite or no number, of how many."""
        raw, _, _ = self.made
        seen = raw[:, self.visible]
        return int((~np.isfinite(seen)).sum()), seen.size


@dataclass(frozen=True)
class About:
    """What a sentence is about: the result, and the scale of the sweep."""

    result: Result
    scale: float

    def side(self, name: str) -> Seen:
        (side,) = [
            one
            for one in self.result.sides
            if say(f"variant.{one.variant}.name")
            == name.lower().replace("l2 ", "L2 ").replace("rmsnorm", "RMSNorm").replace("layernorm", "LayerNorm")
        ]
        return Seen(self.result, side, self.scale)

    @property
    def plain(self) -> Seen:
        return Seen(self.result, self.result.plain, self.scale)

    @property
    def twin(self) -> Seen:
        return Seen(self.result, self.result.twin, self.scale)

    def at(self, scale: float) -> "About":
        return About(self.result, scale)


def close(text: str, x: float, digits: int = 4) -> bool:
    return reads(text, x, digits, LOOSE) or abs(read(text) - x) < 1e-6


def whole(found: Seen, percent: str) -> bool:
    return found.undefined == 0 and close(percent, 100 * found.fraction, 3)


def told_as_a_mean(found: Seen, over: str) -> bool:
    """Of one query alone there is no average, and no headline is told of one."""
    heads = len(found.made[1])
    return over == (f"on average over the queries of its {heads} heads" if heads > 1 else "on average")


def spread(found: Seen, percent: str) -> bool:
    return whole(found, percent) and read(percent) >= 49.9 and found.mean_top < 0.9


def narrow(found: Seen, percent: str) -> bool:
    few = np.mean([np.exp(h) / len(p) for h, p in zip(found.entropies, found.weights, strict=True) if len(p) > 1])
    return whole(found, percent) and 9.9 <= read(percent) <= 50.1 and float(few) < 0.9


def decided(found: Seen, percent: str) -> bool:
    return whole(found, percent) and found.mean_top > 0.5


def undefined(found: Seen, values: dict[str, str]) -> bool:
    return (read(values["undefined"]), read(values["rows"])) == (found.undefined, len(found.rows))


def zeroed(found: Seen, values: dict[str, str]) -> bool:
    _, logits, rows = found.made
    zeros = not np.isnan(logits).any()
    return zeros and rows > 0 and (read(values["zeroed"]), read(values["vectors"])) == (rows, 2 * len(found.rows))


def unmoved(about: About, values: dict[str, str]) -> bool:
    now, one = about.twin, about.at(1.0).twin
    return whole(now, values["percent"]) and abs(now.fraction - one.fraction) < 0.011


def measured(about: About, values: dict[str, str]) -> bool:
    found = about.side(values["side"])
    slopes = np.concatenate([p * (1 - p) for p in found.weights])
    _, logits, _ = found.made
    seen = np.abs(logits[:, found.visible])
    percent = values["fraction"]
    share = math.isnan(found.fraction) if "%" not in percent else close(percent, 100 * found.fraction, 3)
    sizes = seen[~np.isnan(seen)].max()
    return (
        share
        and reads(values["logit"], float(sizes), 4, LOOSE)
        and close(values["entropy"], float(found.entropies.mean()))
        and close(values["slope"], float(slopes.mean()))
        and close(values["top"], found.top)
    )


def first(about: About, values: dict[str, str]) -> bool:
    """Something is lost at that scale, and nothing at any smaller one of the sweep."""
    scale, side = read(values["scale"]), about.side(values["side"]).side
    here = any(Seen(about.result, side, scale * (1 + nudge)).lost[0] for nudge in (0, 1e-3))
    below = [x for x in about.result.scales if x < scale * (1 - 1e-3)]
    return here and not any(Seen(about.result, side, x).lost[0] for x in below[:: max(1, len(below) // 6)])


def lost_before(about: About, values: dict[str, str]) -> bool:
    return Seen(about.result, about.side(values["side"]).side, read(values["scale"])).lost[0] > 0


def bounded(about: About, values: dict[str, str]) -> bool:
    """What the formula gives, and no logit in exact arithmetic above it."""
    settings = about.result.settings
    d, gains = settings.d_head, settings.gamma**2
    root = math.sqrt(d) * gains
    formula = {
        "l2": settings.gain,
        "cosine": min(100.0, 1 / settings.temperature),
        "softcap": settings.softcap,
        "rms_softcap": settings.softcap * math.tanh(root / settings.softcap),
        "full_width": settings.n_heads * root,
    }.get(settings.variant, root)
    exact = settings.but(format="float64", norm_in_format=False)
    if settings.own is not None:
        exact = on(exact, settings.own)
    raw, logits, _ = Seen(run(exact, [about.scale]), about.result.twin, about.scale).made
    largest = np.abs(logits[np.isfinite(raw)]).max(initial=0)
    return reads(values["bound"], formula) and largest <= formula * (1 + 1e-9)


def rounded_above(about: About, values: dict[str, str]) -> bool:
    """One side alone has a bound."""
    _, logits, _ = about.twin.made
    seen = np.abs(logits[:, about.twin.visible])
    largest = seen[~np.isnan(seen)].max()
    return reads(values["logit"], float(largest), 4, LOOSE) and largest > about.result.twin.bound


def sharp(about: About, values: dict[str, str]) -> Seen:
    """The twin at another value of its own dial."""
    swept = sharpness(about.result.settings)
    assert swept is not None
    at = [read(values["value"]) == read(f"{x:.4g}") for x in swept.values].index(True)
    state = about.result.settings.but(**{swept.dial: float(swept.values[at])})
    return About(run(state, [about.scale]), about.scale).twin


def sharpened(about: About, values: dict[str, str]) -> bool:
    found = sharp(about, values)
    return close(values["fraction"], 100 * found.fraction, 3) and close(values["top"], found.top)


def nothing_lost(about: About, values: dict[str, str]) -> bool:
    return not any(Seen(about.result, side, x).lost[0] for side in about.result.sides for x in (0.01, 1000.0))


TWIN: Final[dict[str, Truth]] = {
    name: lambda about, v, holds=holds, name=name: (
        holds(about.twin, v["percent"]) and (name.startswith("also") or told_as_a_mean(about.twin, v["over"]))
    )
    for names, holds in (
        (("open", "still_open", "also_open"), spread),
        (("narrowing", "holding", "also_narrowing"), narrow),
        (("decided", "also_decided"), decided),
    )
    for name in names
}
ORACLES: Final[dict[str, Truth]] = {
    **{
        f"drift.plain.{name}": lambda about, v, holds=holds: (
            holds(about.plain, v["percent"]) and told_as_a_mean(about.plain, v["over"])
        )
        for name, holds in (("open", spread), ("narrowing", narrow), ("decided", decided))
    },
    "drift.plain.undefined": lambda about, v: (
        undefined(about.plain, v) and (read(v["lost"]), read(v["scores"])) == about.plain.lost and read(v["lost"]) > 0
    ),
    "drift.plain.zeroed": lambda about, v: zeroed(about.plain, v),
    **{f"drift.twin.{name}": oracle for name, oracle in TWIN.items()},
    "drift.twin.unmoved": unmoved,
    **dict.fromkeys(("drift.twin.undefined", "drift.twin.also_undefined"), lambda about, v: undefined(about.twin, v)),
    **dict.fromkeys(("drift.twin.zeroed", "drift.twin.also_zeroed"), lambda about, v: zeroed(about.twin, v)),
    "drift.measured": measured,
    "drift.undefined": lambda about, v: undefined(about.side(v["side"]), v),
    "drift.zeroed": lambda about, v: about.side(v["side"]).made[2] == read(v["zeroed"]) > 0,
    "drift.rounded_above": rounded_above,
    "drift.first_loss": first,
    "drift.lost_before": lost_before,
    "drift.one_key": lambda about, v: about.result.settings.causal,
    **dict.fromkeys(computed(r"bound\.\w+"), bounded),
    "sharpness.finding": sharpened,
    "sharpness.one_key": lambda about, v: not sharp(about, v).choosing and bool(sharp(about, v).weights),
    "sharpness.undefined": lambda about, v: not sharp(about, v).weights,
    "drift.panel.nothing_lost": nothing_lost,
}
