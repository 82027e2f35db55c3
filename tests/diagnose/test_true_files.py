"""Every sentence about a checkpoint, and about a port beside its reference, is true of what was drawn from a seed."""

import io
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import safetensors.torch
import torch

from qkdemo.diagnose import port
from qkdemo.diagnose.findings.finding import Report
from qkdemo.diagnose.findings.of_checkpoint import of_checkpoint
from qkdemo.diagnose.findings.of_port import of_port
from qkdemo.diagnose.readers.safetensors import Safetensors
from qkdemo.diagnose.weights import layers
from qkdemo.diagnose.weights.checkpoint import Checkpoint
from tests.oracles import NOTHING, Oracle, Said, heard, hold, keys, near

DRAWN: Final = 300


class Layer:
    """What was drawn for one layer, in float64."""

    def __init__(self, rng: np.random.Generator, name: str) -> None:
        self.name, self.d, self.guessed = name, int(rng.choice([2, 4, 8])), False
        self.kv = int(rng.choice([1, 2, 3]))
        self.heads = self.kv * int(rng.choice([1, 1, 2])) + int(rng.random() < 0.05)
        width = int(rng.choice([3, 16]))
        self.q, self.k = (rng.standard_normal((h * self.d, width)) for h in (self.heads, self.kv))
        for x in (self.q, self.k):
            x[:] *= rng.choice([0, 1, 1, 1, 1, 30, 1e-170, 1e170], p=[0.05, 0.2, 0.2, 0.2, 0.2, 0.1, 0.025, 0.025])
            if rng.random() < 0.05:
                x[int(rng.integers(len(x))), 0] = rng.choice([np.nan, np.inf])
        if rng.random() < 0.05:  # what one reads the other does not
            self.q[:, 1:], self.k[:, 0] = 0, 0
        self.told: float | None = None  # what is said to multiply q · k
        self.turned, self.known, self.part, self.grows = 1.0, True, False, False  # by its rotation; by its position
        self.gains: dict[str, np.ndarray[Any, Any]] = {}
        full = rng.random() < 0.3
        centre = rng.choice([0.0, 0.1, 0.4, 0.5, 0.6, 1.0, 2.0, 8.0, -3.0, 1e200], p=[0.11] * 9 + [0.01])
        for side, heads in (("q", self.heads), ("k", self.kv)):
            if rng.random() < 0.6:
                count = rng.choice([heads * self.d if full else self.d, 1, 3], p=[0.9, 0.05, 0.05])
                self.gains[side] = centre + 0.05 * rng.standard_normal(count)

    @property
    def shared(self) -> bool:
        return self.heads % self.kv == 0

    def spectral(self) -> list[float]:
        """Of W_qᵀ W_k, by head."""
        own = self.heads // self.kv
        products = [
            self.q[h * self.d : (h + 1) * self.d].T @ self.k[h // own * self.d : (h // own + 1) * self.d]
            for h in range(self.heads)
        ]
        return [float(np.linalg.norm(x, 2)) if np.isfinite(x).all() else math.inf for x in products]

    @property
    def scale(self) -> float:
        return self.bare * self.turned

    @property
    def bare(self) -> float:
        """Without what its rotation multiplies by."""
        return self.d**-0.5 if self.told is None else self.told

    @property
    def source(self) -> str:
        """Where its scale is from."""
        if self.turned != 1 or not self.known:
            return "turned" if self.known else "at_most"
        return "usual" if math.isclose(self.scale, self.d**-0.5) else "own"

    @property
    def unturned(self) -> tuple[float, str]:
        """Its scale, and where that is from, if a rotation of a part is left out."""
        if not self.part:
            return self.scale, self.source
        return self.bare, "usual" if math.isclose(self.bare, self.d**-0.5) else "own"

    @property
    def whole(self) -> bool:
        gains = [x for x in self.gains.values() if not np.isfinite(x).all()]
        bounds = [self.bound(add) or 0 for add in (0, 1)]
        return self.shared and np.isfinite(self.spectral()).all() and not gains and bool(np.isfinite(bounds).all())

    @property
    def sound(self) -> bool:
        return self.whole and max(self.spectral()) > 0

    def bound(self, add: int) -> float | None:
        """What gains, with 0 or 1 added, leave; None where their sizes fit no place, or the heads are a guess."""
        if self.gains.keys() != {"q", "k"} or self.guessed:
            return None
        q, k = (np.abs(self.gains[side] + add) for side in "qk")
        with np.errstate(over="ignore"):
            if len(q) == len(k) == self.d:
                return self.d * self.scale * float((q * k).max())
            if (len(q), len(k)) == (self.heads * self.d, self.kv * self.d):
                return math.sqrt(self.heads * self.kv) * self.d * self.scale * float(q.max()) * float(k.max())
        return None


class Told:
    """A checkpoint that was drawn, and its config."""

    def __init__(self, rng: np.random.Generator) -> None:
        word = rng.choice(["self_attn", "SelfAttention"], p=[0.8, 0.2])  # the second is T5's
        names = [f"model.layers.{at}.{word if at else 'self_attn'}" for at in range(int(rng.choice([1, 2, 4])))]
        self.layers = [Layer(rng, name) for name in names]
        self.unread = "config.json" if rng.random() < 0.1 else ""
        self.config: dict[str, Any] = {"use_qk_norm": True} if rng.random() < 0.3 else {}
        if rng.random() < 0.5:
            self.config["num_attention_heads"] = self.layers[0].heads
        if rng.random() < 0.3:
            self.config |= {str(rng.choice(["query_pre_attn_scalar", "attention_multiplier"])): 4}
        for layer in self.layers:
            of_config = {"query_pre_attn_scalar": 0.5, "attention_multiplier": 4.0}
            told = next((scale for key, scale in of_config.items() if key in self.config), None)
            layer.told = 1.0 if layer.name.endswith("SelfAttention") else told
        self.turn(rng)
        tensors = {}
        self.added = [layer.name for layer in self.layers if rng.random() < 0.1]
        for layer in self.layers:
            if layer.name in self.added:
                tensors[f"{layer.name}.add_k_proj.weight"] = layer.k
            tensors |= {f"{layer.name}.{side}_proj.weight": x for side, x in (("q", layer.q), ("k", layer.k))}
            tensors |= {f"{layer.name}.{side}_norm.weight": x for side, x in layer.gains.items()}
        self.keyless = rng.random() < 0.1
        if self.keyless:
            tensors["model.layers.9.self_attn.q_proj.weight"] = self.layers[0].q
        data = safetensors.torch.save({name: torch.tensor(x) for name, x in tensors.items()})
        file = Safetensors(io.BytesIO(data), "x.safetensors")
        self.result = layers.run(Checkpoint({"x": file}, dict.fromkeys(file.entries, "x"), ()), self.config)
        # Without heads in the config these are told by gains or guessed: the oracles take the shapes as they were read.
        read = {layer.name: layer for layer in self.result.layers}
        for layer in self.layers:
            if layer.name in read:
                layer.heads, layer.kv, layer.d = (getattr(read[layer.name], x) for x in ("heads", "kv_heads", "d_head"))
                layer.guessed = read[layer.name].guessed
        self.measured = [layer for layer in self.layers if layer.name in read]

    def turn(self, rng: np.random.Generator) -> None:
        """YaRN, in layers that are known or not, or a scale that grows."""
        if rng.random() < 0.1:
            self.config["rope_scaling"] = {"rope_type": "default", "llama_4_scaling_beta": 0.1}
            for layer in self.layers:
                layer.grows = True
        if rng.random() < 0.3:
            factor = float(rng.choice([0.5, 1.5]))
            rope = self.config.get("rope_scaling", {}) | {"rope_type": "yarn", "attention_factor": factor}
            kind = str(rng.choice(["", "qwen2", "smollm3"]))
            self.config |= {"rope_scaling": rope, "model_type": kind, "no_rope_layers": [1, 0, 1, 0]}
            for at, layer in enumerate(self.layers):
                layer.known = bool(kind) and not layer.name.endswith("SelfAttention")
                layer.part = not kind
                acts = kind == "qwen2" or at % 2 == 0
                layer.turned = (factor**2 if acts else 1) if layer.known else max(1.0, factor**2)

    def named(self, said: Said) -> Layer:
        return next(layer for layer in self.layers if layer.name == said.values["layer"])

    def headed(self) -> list[Layer]:
        """Those with both gains whose heads are no guess."""
        return [layer for layer in self.normed() if not layer.guessed]

    def plain(self) -> list[Layer]:
        return [layer for layer in self.measured if layer.sound and layer.gains.keys() != {"q", "k"}]

    def growing(self) -> list[Layer]:
        placed = [layer for layer in self.headed() if layer.bound(0) is not None]
        return [layer for layer in (*placed, *self.plain()) if layer.grows]

    def normed(self) -> list[Layer]:
        return [layer for layer in self.measured if layer.sound and layer.gains.keys() == {"q", "k"}]


def of_layers(right: Any) -> Oracle:
    """How many layers are so, and the first of them."""

    def holds(said: Said, told: Told) -> bool:
        found = [layer for layer in told.measured if right(layer)]
        return len(found) == said.number("count") and found[0].name == said.values["layer"]

    return holds


def spectral(source: str) -> Oracle:
    """The largest logit of layers without a norm, whose it is, and in which head; of scales that are known alike."""

    def holds(said: Said, told: Told) -> bool:
        plain = [layer for layer in told.plain() if layer.unturned[1] == source]
        layer, head = told.named(said), int(said.number("head"))
        most = max(max(each.spectral()) * each.unturned[0] for each in plain)
        right = (
            near(said.number("logit"), most)
            and said.number("d") == layer.d
            and near(said.number("scale"), layer.unturned[0])
        )
        return right and near(said.number("norm"), layer.spectral()[head]) and layer in plain

    return holds


def of_scale(said: Said, told: Told) -> list[Layer]:
    """Those with gains and a scale as it is said: 1/√d, or their own, which is named; and as many."""
    words = str(said.values["scale"])
    word = "turned" if "cos" in words else "own"
    source = "usual" if words == "1/√d" else "at_most" if "or less" in words else word
    placed = [layer for layer in told.headed() if layer.bound(0) is not None and layer.source == source]
    assert said.number("count") == len(placed)
    assert ("same position" in str(said.values["positions"])) == (source in ("turned", "at_most"))
    if source == "at_most":
        assert near(float(words.split(maxsplit=1)[0]), max(layer.scale for layer in placed))
    else:
        assert source == "usual" or all(f"{layer.scale:.4g}" in words for layer in placed)
    return placed


def gains(add: int) -> Oracle:
    """The bound of all layers, whose it is, its formula, and the side on which their mean lies."""

    def holds(said: Said, told: Told) -> bool:
        placed = of_scale(said, told)
        most = [max(layer.bound(each) or 0 for layer in placed) for each in (0, 1)]
        other = said.number("gamma" if add else "one_plus_gamma")
        own = told.named(said).bound(add) or 0
        means = [float(np.concatenate(list(layer.gains.values())).mean()) for layer in placed]
        sided = all((abs(mean) < abs(mean - 1)) == bool(add) for mean in means)
        full = "heads" in str(said.values["formula"])
        per_head = len(told.named(said).gains["q"]) == told.named(said).d
        return (
            near(said.number("bound"), most[add])
            and near(own, most[add])
            and near(other, most[1 - add])
            and sided
            and (full != per_head or told.named(said).heads == 1)
        )

    return holds


def unclear(said: Said, told: Told) -> bool:
    placed = of_scale(said, told)
    most = [max(layer.bound(add) or 0 for layer in placed) for add in (0, 1)]
    return near(said.number("gamma"), most[0]) and near(said.number("one_plus_gamma"), most[1])


CHECKPOINT: Final[Mapping[str, Oracle]] = {
    "promised": lambda said, told: "use_qk_norm" in told.config and not any(layer.gains for layer in told.layers),
    "heads_guessed": lambda said, told: (
        said.number("heads") * said.number("d") == len(told.named(said).q)
        and said.number("count") == sum(layer.guessed for layer in told.result.layers)
    ),
    "second": lambda said, told: (
        said.values["names"] == "add_k_proj"
        and next(each.name for each in told.measured if each.name in told.added) == said.values["layer"]
        and said.number("count") == sum(each.name in told.added for each in told.measured)
    ),
    "keyless": lambda said, told: (
        told.keyless and said.number("count") == 1 and said.values["layer"] == "model.layers.9.self_attn"
    ),
    "unshared": lambda said, told: said.number("count") == len(told.layers) - len(told.measured),
    "weights_lost": of_layers(lambda layer: not layer.whole),
    "weights_zero": of_layers(
        lambda layer: layer.whole and max(layer.spectral()) == 0 and (layer.q.any() or not layer.k.any())
    ),
    "query_zero": of_layers(lambda layer: layer.whole and not layer.q.any() and layer.k.any()),
    "some_unnormed": lambda said, told: (
        said.number("count") == sum(layer.gains.keys() != {"q", "k"} for layer in told.measured)
        and said.number("all") == len(told.measured)
    ),
    "gains_differ": lambda said, told: (
        said.number("count") == sum(layer.bound(0) is None for layer in told.headed())
        and told.named(said).bound(0) is None
    ),
    "gains_unheaded": lambda said, told: said.number("count") == sum(layer.guessed for layer in told.normed()),
    "gains_gamma": gains(0),
    "gains_one_plus_gamma": gains(1),
    "gains_unclear": unclear,
    "spectral": spectral("usual"),
    "spectral_scaled": spectral("own"),
    "spectral_turned": spectral("turned"),
    "spectral_at_most": spectral("at_most"),
    "turn_left_out": lambda said, told: (
        said.number("count") == sum(layer.part for layer in told.plain()) and told.named(said).part
    ),
    "scale_grows": lambda said, told: (
        said.number("count") == len(told.growing()) and told.growing()[0] is told.named(said)
    ),
    "config_unread": lambda said, told: said.values["name"] == told.unread,
    "reading.gamma": NOTHING,  # held with the sentence that it stands in
    "reading.one_plus_gamma": NOTHING,
    "bound.per_head": NOTHING,  # formulas of the sentence that they stand in
    "bound.full_width": NOTHING,
    "bound.per_head_scaled": NOTHING,
    "bound.full_width_scaled": NOTHING,
    "scale_known": NOTHING,
    "scale_known_each": NOTHING,
    "scale_supposed": NOTHING,
    "scale_turned": NOTHING,
    "scale_turned_each": NOTHING,
    "scale_at_most": NOTHING,
    "positions_none": NOTHING,
    "positions_equal": NOTHING,
}


def drawn_port(rng: np.random.Generator) -> port.Port:
    """Logits of a port and of its reference, with nothing else."""
    heads, queries, n_keys = (int(rng.choice([1, 1, 2, 60])) if at else 2 for at in range(3))
    reference = rng.standard_normal((heads, queries, n_keys)) * rng.choice([0, 1, 1, 1, 1, 1e-200, 1e200])
    mine = reference * rng.choice([0, 1, 1.0001, 4, 8, 0.125, 64, 1 / 64, 1.7, -8])
    if rng.random() < 0.3:
        mine = mine + 0.1 * rng.standard_normal(mine.shape)
    for x in (mine, reference):
        if rng.random() < 0.2:
            x[..., int(rng.integers(n_keys))] = rng.choice([np.nan, np.inf, -np.inf, -1e9])
    if rng.random() < 0.05:
        mine[:], reference[:] = -np.inf, -np.inf
    if rng.random() < 0.4:
        return port.port_of(_rounded(rng))
    return port.port_of({"mine": torch.tensor(mine), "reference": torch.tensor(reference)})


def _rounded(rng: np.random.Generator) -> dict[str, torch.Tensor]:
    """The same logits but for errors of about a format's size, or for one row; stored in it, or wider."""
    word = str(rng.choice(list(ROUNDOFF)))
    exact = rng.standard_normal((2, int(rng.choice([4, 60])), int(rng.choice([4, 60]))))
    moved = exact * (1 + rng.choice([0, 1, 3, 12]) * ROUNDOFF[word] * rng.standard_normal(exact.shape))
    if rng.random() < 0.3:
        moved[1, -1] += rng.choice([0.3, 0.05]) * rng.standard_normal(exact.shape[2])
    wide = torch.float64 if rng.random() < 0.5 else getattr(torch, word)
    kind = getattr(torch, word)
    return {name: torch.tensor(x).to(kind).to(wide) for name, x in (("mine", moved), ("reference", exact))}


def both(made: port.Port) -> tuple[Any, Any, Any]:
    """Where both are seen, of both."""
    seen = made.visible.numpy()
    return seen, made.mine.numpy()[:, seen], made.reference.numpy()[:, seen]


def broken(logits: torch.Tensor) -> int:
    x = logits.numpy()
    return int((np.isnan(x) | (x == np.inf)).sum())


def misfit(mine: Any, reference: Any) -> float:
    scale = max(np.abs(mine).max(), np.abs(reference).max())
    difference, size = (float(np.linalg.norm(x / scale)) for x in (mine - reference, reference))
    return difference / size if size else math.inf


def port_ratio(said: Said, made: port.Port) -> bool:
    _, mine, reference = both(made)
    return misfit(mine, said.number("ratio") * reference) < 2e-3


ROUNDOFF: Final = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24}


def holds_them(said: Said, made: port.Port) -> bool:
    """Whether both arrays hold numbers of this format alone; of wider ones float32 is said."""
    kind = getattr(torch, str(said.values["format"]))
    numbers = [torch.tensor(x) for x in both(made)[1:]]
    return kind is torch.float32 or all(bool((x.to(kind).to(x) == x).all()) for x in numbers)


def by_row(made: port.Port) -> Any:
    """[heads, queries]: by how much both differ, of the size of that row's logits, or of its head's if that is more."""
    seen, mine, reference = made.visible.numpy(), made.mine.numpy(), made.reference.numpy()
    found = np.zeros(mine.shape[:2])
    for head, query in np.ndindex(*found.shape):
        at = seen[query]
        if not at.any() or not (mine[head] != reference[head])[query, at].any():
            continue
        row, whole = reference[head, query, at], reference[head][seen]
        size = max(np.sqrt(np.mean(row**2)), np.sqrt(np.mean(whole**2)))
        found[head, query] = np.sqrt(np.mean((mine[head, query, at] - row) ** 2)) / size
    return found


def port_same(said: Said, made: port.Port) -> bool:
    """No more than one rounding, which bounds each entry's error by twice the roundoff, and most by far less."""
    _, mine, reference = both(made)
    if not (mine != reference).any():
        return bool(both(made)[0].any())
    roundoff = ROUNDOFF[str(said.values["format"])] + 256 * 2.0**-24
    near_it = misfit(mine, reference) <= 1.001 * roundoff and by_row(made).max() <= 2.001 * roundoff
    return holds_them(said, made) and near_it and near(said.number("error"), misfit(mine, reference), 0.06)


def port_near(said: Said, made: port.Port) -> bool:
    _, mine, reference = both(made)
    roundoff, error = ROUNDOFF[str(said.values["format"])], misfit(mine, reference)
    beyond = error > roundoff or by_row(made).max() > 2 * roundoff
    within = error <= 2.65 * roundoff + 320 * 2.0**-24 and by_row(made).max() <= 5.3 * roundoff + 640 * 2.0**-24
    return holds_them(said, made) and beyond and within and near(said.number("error"), 100 * error, 0.06)


def port_row(said: Said, made: port.Port) -> bool:
    _, mine, reference = both(made)
    rows = by_row(made)
    at = int(said.number("head")), int(said.number("query"))
    found = near(said.number("worst"), 100 * rows[at], 0.06) and near(rows[at], rows.max(), 0.01)
    return found and rows[at] > 5 * misfit(mine, reference) / np.sqrt(rows.size) and rows[at] > 2 * 2.0**-24


PORT: Final[Mapping[str, Oracle]] = {
    "port_nothing": lambda said, made: not both(made)[0].any(),
    "port_lost_reference": lambda said, made: said.number("count") == broken(made.reference),
    "port_lost": lambda said, made: said.number("count") == broken(made.mine),
    "port_mask": lambda said, made: said.number("count") > 0 and made.masked_otherwise == said.number("count"),
    "port_same": port_same,
    "port_near": port_near,
    "port_row": port_row,
    "port_zero": lambda said, made: not both(made)[1].any() and both(made)[2].any(),
    "port_zero_reference": lambda said, made: not both(made)[2].any() and both(made)[1].any(),
    "port_steps": lambda said, made: 1e-4 < misfit(*both(made)[1:]) < 0.1,
    "port_pattern": lambda said, made: near(said.number("error"), 100 * misfit(*both(made)[1:]), 0.06),
    "port_ratio": port_ratio,
    "port_ratio_near_one": lambda said, made: abs(fitted_ratio(made) - 1) < 2.0**-8,
    "port_ratio_scale_one": lambda said, made: near(ratio_of(made), math.sqrt(said.number("d")), 0.01),
    "port_ratio_scale_twice": lambda said, made: near(ratio_of(made), said.number("d") ** -0.5, 0.01),
    "port_ratio_scale_root": lambda said, made: near(ratio_of(made), said.number("d"), 0.01),
    "port_ratio_unit_vectors": lambda said, made: near(ratio_of(made), 1 / said.number("d"), 0.01),
    "port_needs": NOTHING,
}


def fitted_ratio(made: port.Port) -> float:
    """By least squares."""
    _, mine, reference = both(made)
    mine, reference = (x / np.abs(reference).max() for x in (mine, reference))
    return float((mine * reference).sum() / (reference * reference).sum())


def ratio_of(made: port.Port) -> float:
    _, mine, reference = both(made)
    at = np.unravel_index(np.abs(reference).argmax(), reference.shape)
    return float(mine[at] / reference[at])


ORACLES: Final = {f"finding.{key}": oracle for key, oracle in (CHECKPOINT | PORT).items()} | dict.fromkeys(
    keys("advice.", "finding.act."), NOTHING
)


def _asked(report: Callable[[Any], Report], state: Any, seed: int) -> set[str]:
    with heard() as said:
        for finding in report(state).findings:
            _ = finding.sentence, finding.advice
    return hold(said, ORACLES, state, f"seed {seed}")


def search(seeds: range) -> set[str]:
    """Which keys were said of the files of these seeds."""
    asked: set[str] = set()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        made = drawn_port(rng)
        with np.errstate(all="ignore"):
            told = Told(rng)
            asked |= _asked(lambda made: of_port(port.run(made), "x"), made, seed)
        asked |= _asked(lambda told: of_checkpoint(told.result, "x", told.unread), told, seed)
    return asked


def test_every_sentence_about_a_checkpoint_or_a_port_is_true_of_it() -> None:
    asked = search(range(DRAWN))
    assert {f"finding.{key}" for key in CHECKPOINT | PORT} - asked == set()
