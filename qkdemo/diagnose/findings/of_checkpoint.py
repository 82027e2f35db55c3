"""What is found in a checkpoint."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from qkdemo.diagnose.curves import causes
from qkdemo.diagnose.findings.finding import Finding, Level, Report, by_level
from qkdemo.diagnose.readers.inputs import some
from qkdemo.diagnose.weights import layers as attention
from qkdemo.diagnose.weights.layer import Layer
from qkdemo.messages import say
from qkdemo.notation import at_most, written


def of_checkpoint(result: attention.Result, name: str, unread: str = "") -> Report:
    """What is found in a checkpoint. `unread`: the config beside it, if that is there and cannot be read."""
    rows = [
        {
            "layer": _shown(layer.name),
            "heads": layer.heads,
            "kv_heads": layer.kv_heads,
            "d_head": layer.d_head,
            "scale": (shown := _shown_of(layer, result)).scale,
            "scale_is": "turn_left_out" if shown is not layer else layer.scaling.known,
            "spectral_norm": None if layer.unscaled else float(layer.spectral.max()),
            "worst_head": None if layer.unscaled else int(layer.spectral.argmax()),
            "gains": layer.reading,
            "norm": layer.place,
            "bound_gamma": None if layer.name in result.biased else layer.bound("gamma"),
            "bound_one_plus_gamma": None if layer.name in result.biased else layer.bound("one_plus_gamma"),
            "dtype": layer.dtype,
        }
        for layer in result.layers
    ]
    lost = [Finding("watch", "config_unread", {"name": unread})] if unread else []
    findings = by_level([*lost, *map(_named, _of_checkpoint(result))])
    return Report(kind="checkpoint", name=name, findings=findings, tables={"layers": rows})


def _named(finding: Finding) -> Finding:
    """With the name of its layer as it is shown."""
    layer = finding.values.get("layer")
    return finding if layer is None else replace(finding, values={**finding.values, "layer": _shown(str(layer))})


def _shown(layer: str) -> str:
    """A layer's name; a module that was saved alone has none."""
    return layer or say("finding.alone")


def _of_checkpoint(result: attention.Result) -> Iterator[Finding]:
    if result.missing:
        yield Finding("watch", "shards" if result.placed else "shards_by_name", {"names": some(result.missing)})
    yield from _of_architecture(result)
    yield from _of_groups(result)
    if guessed := [layer for layer in result.layers if layer.guessed]:
        first = guessed[0]
        shape = {"layer": first.name, "heads": first.heads, "d": first.d_head}
        yield Finding("watch", "heads_guessed", {"count": len(guessed), **shape})
    sound = [layer for layer in result.layers if layer.finite and bool(layer.spectral.any())]
    normed = [layer for layer in sound if layer.name not in result.unnormed]
    if normed and result.unnormed:
        yield Finding("watch", "some_unnormed", {"count": len(result.unnormed), "all": len(result.layers)})
    plain = [layer for layer in sound if layer.name in result.unnormed and not layer.unscaled]
    if unheaded := [layer for layer in normed if layer.guessed]:
        yield Finding("watch", "gains_unheaded", {"count": len(unheaded), "layer": unheaded[0].name})
    if unplaced := [layer for layer in normed if not layer.place and not layer.guessed]:
        yield Finding("watch", "gains_differ", {"count": len(unplaced), "layer": unplaced[0].name})
    if biased := [layer for layer in normed if layer.name in result.biased]:
        yield Finding("good", "gains_biased", {"count": len(biased), "layer": biased[0].name})
    if placed := [layer for layer in normed if layer.place and layer.name not in result.biased]:
        yield from map(_of_normed, _by_scale(placed))
    normed_too = {*result.normed, *result.cosine, *result.without_gain}
    bare = [layer for layer in plain if layer.name not in normed_too]
    if in_part := [layer for layer in bare if not layer.scaling.turn.whole]:
        yield Finding("watch", "turn_left_out", {"count": len(in_part), "layer": in_part[0].name})
    yield from map(_of_plain, _by_scale([layer if layer.scaling.turn.whole else _unturned(layer) for layer in bare]))
    if growing := [layer for layer in (*placed, *bare) if layer.scaling.grows]:
        yield Finding("watch", "scale_grows", {"count": len(growing), "layer": growing[0].name})


def _unturned(layer: Layer) -> Layer:
    """A layer without what rotary positions multiply a part of each head by: how its parts cancel is not known."""
    return replace(layer, scaling=layer.scaling.unturned)


def _shown_of(layer: Layer, result: attention.Result) -> Layer:
    """A layer with the scale that is shown: of one without gains that of which a sentence speaks."""
    return layer if layer.scaling.turn.whole or layer.name not in result.unnormed else _unturned(layer)


def _by_scale(layers: Sequence[Layer]) -> Iterator[list[Layer]]:
    """Those with the scale 1/√d, for all that is known; those with one of their own; those that rotation multiplies."""
    groups: dict[tuple[bool, bool, bool], list[Layer]] = {}
    for layer in layers:
        scaling = layer.scaling
        key = scaling.turned, not scaling.turn.known, scaling.base is not None and not scaling.turned
        groups.setdefault(key, []).append(layer)
    for key in sorted(groups):
        yield groups[key]


def _of_architecture(result: attention.Result) -> Iterator[Finding]:
    """What its norm of q and k is, where the config or the names of tensors tell more than their sizes."""
    if result.without_gain:
        values = {"flag": "use_qk_norm", "count": len(result.without_gain), "layer": result.without_gain[0]}
        yield Finding("good", "promised_without", values)
    elif result.promised:
        yield Finding("watch", "promised", {"flag": result.flags[0]})
    if result.before:
        yield Finding("watch", "gains_before", {"count": len(result.before), "layer": result.before[0]})
    if result.normed:
        yield Finding("good", "normed_otherwise", {"count": len(result.normed), "layer": result.normed[0]})
    if result.cosine:
        worst = max(result.cosine, key=lambda layer: result.cosine[layer])
        level: Level = "watch" if result.cosine[worst] > causes.CALM else "good"
        bound = at_most(result.cosine[worst])
        yield Finding(level, "cosine", {"count": len(result.cosine), "layer": worst, "bound": bound})
    if result.latent:
        yield Finding("watch", "latent", {"count": len(result.latent), "layer": result.latent[0]}, ("mla", {}))


def _of_groups(result: attention.Result) -> Iterator[Finding]:
    """Layers that were not measured, or whose numbers mean less than they seem to."""
    whole = [layer for layer in result.layers if layer.finite]
    groups: dict[str, tuple[Level, Sequence[str]]] = {
        "packed": ("watch", result.packed),
        "unread": ("watch", result.unread),
        "keyless": ("watch", result.keyless),
        "convolved": ("watch", result.convolved),
        "unlike": ("watch", result.unlike),
        "joined": ("watch", result.joined),
        "unshared": ("bad", result.unshared),
        "weights_unscaled": ("watch", [layer.name for layer in result.layers if layer.unscaled]),
        "weights_lost": ("bad", [layer.name for layer in result.layers if not layer.finite]),
        "query_zero": ("watch", [layer.name for layer in whole if layer.at_start]),
        "weights_zero": ("bad", [layer.name for layer in whole if not (layer.spectral.any() or layer.at_start)]),
    }
    if result.second:
        further = list(dict.fromkeys(name for words in result.second.values() for name in words))
        values = {"names": some(further), "count": len(result.second), "layer": next(iter(result.second))}
        yield Finding("watch", "second", values)
    for key, (level, names) in groups.items():
        if names:
            yield Finding(level, key, {"count": len(names), "layer": names[0]})


def _of_normed(layers: list[Layer]) -> Finding:
    """The bound that the gains leave, in the reading for which there is evidence, or in both."""
    readings = {layer.reading for layer in layers}
    reading = readings.pop() if len(readings) == 1 else "unclear"
    bounds = {name: max(layer.bound(name) or 0.0 for layer in layers) for name in ("gamma", "one_plus_gamma")}
    values: dict[str, object] = {name: at_most(bound) for name, bound in bounds.items()} | {"count": len(layers)}
    turned = layers[0].scaling.turned
    values |= {"scale": _scale(layers), "positions": say(f"finding.positions_{'equal' if turned else 'none'}")}
    if reading == "unclear":
        return Finding("watch", "gains_unclear", values)
    worst = max(layers, key=lambda layer: layer.bound(reading) or 0.0)  # whose bound it is
    known = all(layer.by_class for layer in layers)
    values["why"] = say(f"finding.reading.{'by_class' if known else reading}")
    usual = worst.scaling.base is None and not worst.scaling.turned
    formula = f"finding.bound.{worst.place}{'' if usual else '_scaled'}"
    values |= {"layer": worst.name, "formula": say(formula, d=worst.d_head, scale=_scale_of(worst))}
    return Finding(
        "watch" if bounds[reading] > causes.CALM else "good",
        f"gains_{reading}",
        values | {"bound": at_most(bounds[reading])},
    )


def _scale_of(layer: Layer) -> str:
    """Rounded up if it is the most that it can be."""
    return written(layer.scale) if layer.scaling.turn.known else at_most(layer.scale)


def _scale(layers: list[Layer]) -> str:
    """That of layers that have it from one source, in words: 1/√d, or the numbers of their own."""
    first = layers[0].scaling
    if first.base is None and not first.turned:
        return say("finding.scale_supposed")
    if not first.turn.known:
        return say("finding.scale_at_most", scale=_scale_of(max(layers, key=lambda layer: layer.scale)))
    own = sorted({written(layer.scale) for layer in layers})
    word = "turned" if first.turned else "known"
    return say(f"finding.scale_{word if len(own) == 1 else f'{word}_each'}", scale=some(own))


def _of_plain(layers: list[Layer]) -> Finding:
    """The largest logit of inputs of length 1."""
    most = {layer: float(layer.spectral.max()) * layer.scale for layer in layers}
    worst, logit = max(most.items(), key=lambda each: each[1])
    norm = float(worst.spectral.max())
    values = {"layer": worst.name, "head": int(worst.spectral.argmax()), "norm": written(norm), "d": worst.d_head}
    values["scale"] = _scale_of(worst)
    if worst.scaling.turned:
        key = "spectral_turned" if worst.scaling.turn.known else "spectral_at_most"
    else:
        key = "spectral" if worst.scaling.base is None else "spectral_scaled"
    return Finding("watch" if logit > causes.CALM else "good", key, values | {"logit": at_most(logit)})
