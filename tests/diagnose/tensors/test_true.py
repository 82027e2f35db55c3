"""Every sentence about q and k is true of them: tensors drawn from a seed, each claim worked out anew in float64."""

import math
from collections.abc import Mapping
from typing import Any, Final
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray

from qkdemo.diagnose import otherwise, tensors
from qkdemo.diagnose.drift import in_words, opened
from qkdemo.diagnose.findings.of_tensors import of_tensors
from qkdemo.diagnose.pair import Pair
from qkdemo.diagnose.readers.inputs import InputError
from qkdemo.floats.formats import FORMATS, rounded
from tests.oracles import NOTHING, Oracle, Said, heard, hold, keys, near

DRAWN: Final = 400
WIDE: Final = 0.02  # as far as two digits are written


def drawn(rng: np.random.Generator) -> Pair | None:
    """q and k at an edge; None where they cannot be read."""
    group, kv = rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2])
    batch, queries = rng.choice([1, 1, 2, 5]), rng.choice([1, 2, 3, 8, 70])
    n_keys, d = (
        queries + rng.choice([0, 0, 0, 1, 5]),
        rng.choice([1, 2, 4, 16, 64, 1024], p=[0.1, 0.2, 0.3, 0.2, 0.15, 0.05]),
    )
    q, k = (rng.standard_normal((batch, h, n, d)) for h, n in ((group * kv, queries), (kv, n_keys)))
    q, k = q * rng.choice([0, 1e-3, 1, 1, 4, 30, 300]), k * rng.choice([0, 1, 1, 1, 4, 500])
    for x in (q, k):
        _to_an_edge(rng, x)
    if rng.random() < 0.2 and q.shape[2] == k.shape[2]:
        k = q[:, :kv].copy()  # as where both are one projection
    if d == 1024 and q.shape[2] == k.shape[2]:  # wide enough for a large logit of vectors of the usual length
        q = rng.standard_normal(q.shape) * 1.3
        k = q[:, :kv].copy()
    if rng.random() < 0.05:
        q, k = q * 1e200, k * rng.choice([1e200, 1e-200])
    kind = rng.choice(["float64", "float64", "float32", "float16", "bfloat16"])
    with np.errstate(over="ignore"):
        arrays = {name: torch.tensor(x).to(getattr(torch, str(kind))) for name, x in (("q", q), ("k", k))}
    if rng.random() < 0.3:
        hidden = rng.random((queries, n_keys)) < rng.choice([0.3, 0.9, 1.0])
        arrays["mask"] = torch.tensor(~hidden)
    if rng.random() < 0.2:
        arrays["scale"] = torch.tensor(float(rng.choice([1.0, -0.5, 1e30, 1e-30])), dtype=torch.float64)
    if rng.random() < 0.05 and arrays["q"].isfinite().all() and arrays["k"].isfinite().all():
        narrow = torch.float8_e4m3fn, torch.float8_e5m2, torch.int8
        arrays["k"] = arrays["k"].clamp(-127, 127).to(narrow[int(rng.integers(3))])
    swapped = bool(rng.random() < 0.1)
    try:
        return tensors.pair_of(arrays, causal=bool(rng.random() < 0.4), swapped=swapped)
    except InputError:
        return None


def _to_an_edge(rng: np.random.Generator, x: NDArray[Any]) -> None:
    """Now and then one vector that is long, vectors that are equal, 0 or not finite."""
    head, at = int(rng.integers(x.shape[1])), int(rng.integers(x.shape[2]))
    x[:, head, at] *= rng.choice([1, 1, 1, 0, 12, 1e3])
    if rng.random() < 0.2:
        x[:, head] = x[:, head, :1]  # equal vectors
    if rng.random() < 0.15:
        x[:, head, : x.shape[2] * 2 // 3] = 0
    if rng.random() < 0.15:
        x[:, head] = 0
    if rng.random() < 0.12:
        x[int(rng.integers(len(x))), head, at, int(rng.integers(x.shape[3]))] = rng.choice([np.inf, -np.inf, np.nan])


class Told:
    """q and k as an oracle reads them: float64, every head's own keys."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.q = pair.q.double().numpy()
        own = pair.k.double().numpy()
        self.own, self.k = own, own.repeat(self.q.shape[1] // own.shape[1], 1)
        self.seen = np.ones((*self.q.shape[:3], own.shape[2]), bool)
        if pair.causal:
            queries, n_keys = self.seen.shape[-2:]
            self.seen &= np.arange(n_keys) <= np.arange(queries)[:, None] + n_keys - queries
        if pair.visible is not None:
            self.seen = self.seen & pair.visible.numpy()
        with np.errstate(all="ignore"):
            self.raw = np.einsum("bhqd,bhkd->bhqk", self.q, self.k)
            self.logits = np.where(self.seen, self.raw * pair.scale, np.nan)

    def lengths(self, head: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """[batch, positions] of the queries and the keys of a head."""
        a, b = (
            [np.linalg.norm(x / s) * s for x in side.reshape(-1, side.shape[-1]) for s in [_size(x)]]
            for side in (self.q[:, head], self.k[:, head])
        )
        return np.array(a).reshape(self.q.shape[0], -1), np.array(b).reshape(self.k.shape[0], -1)

    def at_usual(self, head: int) -> float:
        """The largest |logit| of a head, its vectors cut to the lower of both middle lengths."""
        cut = []
        for x, lengths in zip((self.q[:, head], self.k[:, head]), self.lengths(head), strict=True):
            factor = np.minimum(1, _middles(lengths)[0] / np.where(lengths > 0, lengths, 1))
            cut.append(x * factor[..., None])
        logits = np.einsum("bqd,bkd->bqk", *cut) * self.pair.scale
        return float(np.nanmax(np.abs(np.where(self.seen[:, head], logits, np.nan))))

    def places(self, head: int, size: float) -> NDArray[Any]:
        """Where a logit of a head has about this size."""
        with np.errstate(invalid="ignore"):
            return np.argwhere(np.abs(np.abs(self.logits[:, head]) - size) <= 2e-3 * size)

    def softmax(self, head: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Weights of the queries that see two keys or more and have a softmax; and how many keys each sees."""
        rows, counts = [], []
        for b, q in np.ndindex(min(4, self.logits.shape[0]), self.logits.shape[2]):  # of which these are taken
            seen = self.logits[b, head, q][self.seen[b, head, q]]
            if len(seen) > 1 and not np.isnan(seen).any() and seen.max() != np.inf:
                weights = np.exp(seen - seen.max()) if np.isfinite(seen.max()) else np.full(len(seen), np.nan)
                rows.append(weights / weights.sum())
                counts.append(len(seen))
        return np.array(rows, dtype=object), np.array(counts)


def _size(x: NDArray[Any]) -> float:
    largest = float(np.abs(x).max())
    return largest if 0 < largest < math.inf else 1.0


def large(said: Said, told: Told) -> bool:
    """The size of the largest logit, and of one pair of that size its cosine and its lengths beside the usual."""
    head, logit = int(said.number("head")), said.number("logit")
    largest = np.nanmax(np.abs(told.logits))
    if not near(logit, largest, WIDE):
        return False
    q_lengths, k_lengths = told.lengths(head)
    usual = _middles(q_lengths)[0], _middles(k_lengths)[0]
    for b, i, j in told.places(head, logit)[:200]:
        lengths = q_lengths[b, i], k_lengths[b, j]
        cosine = float((told.q[b, head, i] / lengths[0]) @ (told.k[b, head, j] / lengths[1]))
        if not near(said.number("cosine"), cosine, WIDE, 0.02):
            continue
        if said.key.endswith("unusual"):
            return not all(usual) or not np.isfinite(usual).all()
        with np.errstate(over="ignore"):
            times = [lengths[0] / u * (lengths[1] / v) for u in _middles(q_lengths) for v in _middles(k_lengths)]
        if min(times) * (1 - 0.05) <= said.number("times") <= max(times) * 1.05:
            long, aligned = said.number("times") > 1.9, abs(cosine) > 0.49
            kind = said.key.rpartition("_")[2]
            right = {"length": long and abs(cosine) < 0.51, "both": long and aligned}
            short = said.number("times") < 2.1
            left = told.at_usual(head)
            most = left >= 99 or left > 0.99 * max(50, logit / 2)
            less = left < 101 and left < 1.01 * max(50, logit / 2)
            right = {kind: fits and less for kind, fits in right.items()}
            right["usual"] = long and most and near(said.number("usual"), left, WIDE)
            right |= {"alignment": short and aligned, "throughout": short and aligned, "neither": short}
            return bool(right[kind])
    return False


def _middles(lengths: NDArray[Any]) -> list[float]:
    """Both middle ones of an even number, of which a median may be either."""
    ordered = np.sort(lengths[~np.isnan(lengths)])
    return [float(ordered[(len(ordered) - 1) // 2]), float(ordered[len(ordered) // 2])]


def throughout(said: Said, told: Told) -> bool:
    normed = abs(said.number("cosine")) * math.sqrt(told.q.shape[-1])
    head = int(said.number("head"))
    usual = math.prod(max(_middles(side)) for side in told.lengths(head))
    long = usual > math.sqrt(told.q.shape[-1] * 0.8) ** 2 or abs(told.pair.scale) > 0.9 / math.sqrt(told.q.shape[-1])
    return large(said, told) and near(said.number("normed"), normed, WIDE, 0.05) and long


def calm(said: Said, told: Told) -> bool:
    head = int(said.number("head"))
    sizes = np.abs(told.logits)
    size = np.nanmax(sizes)
    return (
        near(said.number("logit"), size, WIDE, 1e-30)
        and near(np.nanmax(sizes[:, head]), size, WIDE, 1e-30)
        and size <= 51
    )


def not_finite(said: Said, told: Told) -> bool:
    x = told.q if said.values["side"] == "q" else told.own
    lost = ~np.isfinite(x)
    _, head, at, _ = np.argwhere(lost)[0]
    return [said.number(name) for name in ("count", "all", "head", "at")] == [lost.sum(), x.size, head, at]


def zeros(said: Said, told: Told) -> bool:
    count = 0
    for head in range(told.q.shape[1]):
        finite = np.isfinite(told.raw[:, head]).all()
        count += bool(finite and (not told.q[:, head].any() or not told.k[:, head].any()))
    return count == said.number("count") and said.number("of") == told.q.shape[1]


def spread(said: Said, told: Told) -> bool:
    """How many heads give their attention to one key, and which; a head near a limit may be counted or not."""
    least = most = 0
    kind = said.key.split(".")[1]
    for head in range(told.q.shape[1]):
        rows, counts = told.softmax(head)
        if not len(rows):
            continue
        shares = [
            -sum(p * math.log(p) for p in row if p > 0) / math.log(n) for row, n in zip(rows, counts, strict=True)
        ]
        low, first = float(np.mean(shares)), float(np.mean([row[0] for row in rows]))
        wanted = {"one_hot": (True, False), "one_hot_sink": (True, True), "sink": (False, True)}[kind]
        seen = told.seen[:, head].sum(-1)
        limit = (1 + float((1 / seen[seen > 1]).mean())) / 2  # between an even share and all
        sure = abs(low - 0.05) > 0.01 and abs(first - limit) > 0.01
        right = (low < 0.05, first > limit) == wanted
        least, most = least + (sure and right), most + (right or not sure)
    return least <= said.number("count") <= most and said.number("of") == told.q.shape[1]


def lost(said: Said, told: Told) -> bool:
    kind = FORMATS[said.values["format"]]  # type: ignore[index]
    q, k = (rounded(torch.tensor(x), kind).numpy() for x in (told.q, told.k))
    with np.errstate(all="ignore"):
        raw = np.einsum("bhqd,bhkd->bhqk", q, k)
    beyond = ~np.isfinite(rounded(torch.tensor(raw), kind).numpy()) & told.seen & np.isfinite(told.raw)
    return bool(said.number("lost") == beyond.sum() and said.number("all") == told.seen.sum())


def beyond_e4m3(said: Said, told: Told) -> bool:
    shares = [float((np.abs(told.own[:, head]) > 448).mean()) for head in range(told.own.shape[1])]
    return near(said.number("share"), 100 * max(shares), 0.06)


SEEN: Final[Mapping[str, Oracle]] = {
    "every": lambda said, told: told.pair.visible is None and bool(told.seen.all()),
    "causal": lambda said, told: told.pair.visible is None and told.pair.causal,
    "mask": lambda said, told: told.pair.visible is not None and not told.pair.causal,
    "mask_causal": lambda said, told: told.pair.visible is not None and told.pair.causal,
    "bias": NOTHING,  # see test_axes.py and test_beside.py
    "bias_causal": NOTHING,
}
WITHOUT_SCALE: Final = {
    "tensors_unscaled",
    "whole_numbers",
    "tensors_read",
    *(f"seen.{key}" for key in SEEN),
    "axes",
    "axes_untold",
    "scale_untold",
    "last_with_last",
    "axes_supposed",
    "of_sequence",
    "mask_added",
    "masks_unread",
    "all_heads",
    "mask_axes_queries",
    "mask_axes_heads",
    "not_finite",
    "infinite",
    "zeros",
    "no_key",
    "one_key",
}
LARGE: Final = ("length", "at_usual", "alignment", "both", "neither", "unusual")
FINDINGS: Final[Mapping[str, Oracle]] = {
    "tensors_read": lambda said, told: said.values["shape"] == str(list(told.q.shape)),
    **{f"seen.{key}": oracle for key, oracle in SEEN.items()},
    "axes": lambda said, told: (
        str(list(told.q.shape)) == said.values["shape"]
        and told.q.shape[1] >= told.q.shape[2]
        and told.q.shape[1] == told.own.shape[1]
        and told.pair.axes != "swapped"
    ),
    "axes_supposed": lambda said, told: (
        told.q.shape[1:3] == (said.number("heads"), told.own.shape[2])
        and told.own.shape[1] == said.number("kv_heads") < said.number("heads") > told.q.shape[2]
    ),
    "tensors_unscaled": lambda said, told: said.values["names"] == ", ".join(told.pair.unscaled) != "",
    "not_finite": not_finite,
    "of_sequence": NOTHING,  # of the sentence before it
    "axes_untold": lambda said, told: (
        told.q.shape[2] > 1
        and (told.pair.q.shape == told.pair.k.shape or told.q.shape[1] == told.own.shape[1] == 1)
        and told.q.shape[2] % told.own.shape[2] == 0
    ),
    "whole_numbers": lambda said, told: said.values["names"] == "k (int8)" and "k" in told.pair.unscaled,
    "gains_read": NOTHING,  # see test_axes.py and test_beside.py
    "gains_like_less_one": NOTHING,
    "scale_untold": lambda said, told: math.isclose(told.pair.scale * math.sqrt(told.q.shape[-1]), 1),
    "last_with_last": lambda said, told: told.pair.causal and told.q.shape[2] != told.own.shape[2],
    "softcap_unread": NOTHING,  # see test_axes.py and test_beside.py
    "scale_unread": NOTHING,  # see there, too
    "mask_added": NOTHING,  # see test_axes.py and test_beside.py
    "masks_unread": NOTHING,  # see there, too
    "all_heads": lambda said, told: (
        told.pair.flat and told.q.shape[-1] == said.number("d") >= 256 and told.q.shape[1] == said.number("heads")
    ),
    "mask_axes_queries": lambda said, told: told.q.shape[0] == told.q.shape[2] == said.number("count") > 1,
    "mask_axes_heads": lambda said, told: told.q.shape[0] == told.q.shape[1] == said.number("count") > 1,
    "infinite": lambda said, told: (
        not np.isfinite(told.logits[:, int(said.number("head"))][told.seen[:, int(said.number("head"))]]).all()
    ),
    **{f"large_{kind}": large for kind in LARGE},
    "large_throughout": throughout,
    "calm": calm,
    **dict.fromkeys(("one_hot", "one_hot_sink", "sink"), spread),
    **dict.fromkeys(("format", "format_narrower"), lost),
    "zeros": zeros,
    "no_key": lambda said, told: said.number("count") == (told.seen.sum(-1) == 0).sum(),
    "one_key": lambda said, told: told.seen.sum(-1).max() == 1,
    "key_cache": beyond_e4m3,
    "softmax_part": lambda said, told: told.q.shape[0] > 4 or told.q.shape[2] > 64,
}


def hides_otherwise(told: Told) -> bool:
    """Whether of some sequence other pairs are seen than a causal mask leaves, or than all."""
    return bool((told.seen != np.tri(*told.seen.shape[-2:], dtype=bool)).any() and not told.seen.all())


OWN: Final[Mapping[str, Oracle]] = {
    "all": lambda said, told: len(said.values["heads"].split(", ")) == told.q.shape[1],  # type: ignore[attr-defined]
    "some": lambda said, told: (
        len(said.values["heads"].split(", ")) < told.q.shape[1] == said.number("all")  # type: ignore[attr-defined]
    ),
    "scaled": lambda said, told: not near(told.pair.scale, told.q.shape[-1] ** -0.5),
    "left_out.mask": lambda said, told: told.pair.visible is not None and hides_otherwise(told),
    "left_out.mask_causal": lambda said, told: (
        told.pair.visible is not None and hides_otherwise(told) and not told.pair.causal
    ),
    "left_out.bias": lambda said, told: told.pair.biased,
    "left_out.mask_numbers": lambda said, told: told.pair.biased and not told.seen.all(),
    "left_out.sequences": lambda said, told: told.q.shape[0] > 1,
}
ORACLES: Final = (
    {f"finding.{key}": oracle for key, oracle in FINDINGS.items()}
    | {f"own.{key}": oracle for key, oracle in OWN.items()}
    | dict.fromkeys(keys("advice.", "input.drift"), NOTHING)
)


def _nothing(*_: object) -> list[Any]:
    """Tables that no sentence is made of."""
    return []


def search(seeds: range) -> set[str]:
    """Which keys were said of the tensors of these seeds."""
    asked: set[str] = set()
    for seed in seeds:
        pair = drawn(np.random.default_rng(seed))
        if pair is None:
            continue
        with heard() as said, patch.multiple(otherwise, grown=_nothing, variants=_nothing):
            for finding in of_tensors(tensors.run(pair), "x").findings:
                _ = finding.sentence, finding.advice
            try:
                in_words(opened(pair), "x")
            except InputError as error:
                str(error)
        if pair.unscaled:  # any scale may be the right one: whatever depends on it is left out
            assert {each.key for each in said if each.key.startswith("finding.")} <= {
                f"finding.{key}" for key in WITHOUT_SCALE
            }
        asked |= hold(said, ORACLES, Told(pair), f"seed {seed}")
    return asked


def test_every_sentence_about_q_and_k_is_true_of_them() -> None:
    asked = search(range(DRAWN))
    rare = {  # of shapes that are not drawn: see test_axes.py and test_beside.py
        f"finding.{key}"
        for key in (
            "axes_supposed",
            "seen.bias",
            "seen.bias_causal",
            "gains_read",
            "gains_like_less_one",
            "softcap_unread",
            "scale_unread",
            "mask_added",
            "masks_unread",
            "mask_axes_queries",
            "mask_axes_heads",
            "all_heads",
        )
    }
    assert {f"finding.{key}" for key in FINDINGS} - asked <= rare
