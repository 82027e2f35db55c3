"""What is said of a file that somebody brought: findings, the worst first, and the tables behind them.

* `examine(data, name)`: a file of any kind that is read here, from its bytes; `examine_path(path)`: from a path, where
  only a part of a large checkpoint is read;
* `Report`: findings and tables; `healthy`: nothing to mend.

A finding is a key of say("finding.…") with its numbers; its sentence is formed where it is shown.
"""

import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from qkdemo.diagnose import causes, checkpoint, tensors
from qkdemo.diagnose.arrays import read_arrays
from qkdemo.diagnose.inputs import MOST_BYTES, InputError, sized
from qkdemo.diagnose.logs import Log, read_logs
from qkdemo.diagnose.safetensors import Safetensors
from qkdemo.messages import has, say
from qkdemo.notation import written

Level: TypeAlias = Literal["bad", "watch", "good"]
Row: TypeAlias = dict[str, Any]

LEVELS: Final[tuple[Level, ...]] = ("bad", "watch", "good")
_ARRAYS: Final = (b"\x93NUMPY", b"PK")
_CAUSES: Final[Mapping[str, Level]] = {
    "healthy": "good",
    "small_spikes": "good",
    "no_loss": "watch",
    "growing_logits": "watch",
    "large_logits": "watch",
}


@dataclass(frozen=True)
class Finding:
    """One thing that was found. `look`: the lab that shows it, and its dials, for a link."""

    level: Level
    key: str
    values: Mapping[str, object] = field(default_factory=dict)
    look: tuple[str, Mapping[str, str]] | None = None

    @property
    def sentence(self) -> str:
        """What is said."""
        return say(f"finding.{self.key}", **self.values)

    @property
    def advice(self) -> str:
        """What to try; empty where there is nothing to."""
        key = f"advice.{self.key}"
        return say(key, **self.values) if has(key) else ""


@dataclass(frozen=True)
class Report:
    """Everything about one file."""

    kind: Literal["tensors", "checkpoint", "log"]
    name: str
    findings: tuple[Finding, ...]
    tables: Mapping[str, Sequence[Row]]
    curves: Mapping[str, Log] = field(default_factory=dict)

    @property
    def healthy(self) -> bool:
        """Whether there is nothing to mend."""
        return all(finding.level == "good" for finding in self.findings)


def examine(data: bytes, name: str, **options: Any) -> Report:
    """A file from its bytes. `options` are those of `tensors.pair_of`, and `columns`, which corrects a log's roles.

    Raises InputError.
    """
    if len(data) > MOST_BYTES:
        raise InputError("large_upload", name=name, size=sized(len(data)), most=sized(MOST_BYTES))
    columns = options.pop("columns", None)
    if data.startswith(_ARRAYS):
        return of_tensors(tensors.run(tensors.pair_of(read_arrays(io.BytesIO(data), name), **options)), name)
    if name.endswith(".safetensors"):
        file = Safetensors(io.BytesIO(data), name)
        try:
            opened = checkpoint.Checkpoint({name: file}, dict.fromkeys(file.entries, name), ())
            return of_checkpoint(checkpoint.run(opened), name)
        except InputError as error:
            if error.key != "no_attention":
                raise
        return of_tensors(tensors.run(tensors.pair_of(read_arrays(io.BytesIO(data), name), **options)), name)
    return of_logs([causes.run(log, columns) for log in read_logs(data, name)], name)


def examine_path(path: Path, config: Path | None = None, **options: Any) -> Report:
    """A file, or a folder of shards, from a path: of a checkpoint only what is needed is read. Raises InputError."""
    if path.is_dir() or path.name.endswith(".safetensors.index.json"):
        return _checkpoint_at(path, config)
    if path.suffix == ".safetensors":
        try:
            return _checkpoint_at(path, config)
        except InputError as error:
            if error.key != "no_attention":
                raise
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise InputError("large_file", name=path.name, size=sized(size), most=sized(MOST_BYTES))
        data = path.read_bytes()
    except OSError as error:
        raise InputError("unopened", name=path.name, reason=error.strerror or "") from None
    return examine(data, path.name, **options)


def _checkpoint_at(path: Path, config: Path | None) -> Report:
    beside = (path if path.is_dir() else path.parent) / "config.json"
    with checkpoint.open_checkpoint(path) as opened:
        return of_checkpoint(checkpoint.run(opened, _config(config or beside, asked=config is not None)), path.name)


def _config(path: Path, *, asked: bool) -> Mapping[str, Any]:
    try:
        loaded = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        if asked:
            raise InputError("bad_config", name=path.name) from None
        return {}
    return loaded if isinstance(loaded, dict) else {}


# ---- each kind


def of_tensors(result: tensors.Result, name: str) -> Report:
    """What is found in q and k."""
    return Report(
        kind="tensors",
        name=name,
        findings=_sorted(_of_tensors(result)),
        tables={"heads": result.heads, "variants": result.variants, "formats": result.formats},
    )


def _of_tensors(result: tensors.Result) -> Iterator[Finding]:
    pair, worst = result.pair, result.heads[0]
    logit, seen = abs(worst["max_logit"]), f"[{', '.join(map(str, pair.q.shape))}]"
    values = {"head": worst["head"], "logit": written(logit), "cosine": written(worst["cosine"], 2)}
    values |= {"times": written(_beyond_usual(worst), 2)}
    if pair.axes == "ambiguous":
        yield Finding("watch", "axes", {"shape": seen})
    if not math.isfinite(logit):
        yield Finding("bad", "infinite", values)
    elif logit >= causes.LARGE:
        yield Finding("bad", f"large_{worst['grown_by']}", values)
    elif logit > causes.CALM:
        yield Finding("watch", f"large_{worst['grown_by']}", values)
    else:
        yield Finding("good", "calm", values)
    gone = [row for row in result.heads if row["entropy_fraction"] < causes.COLLAPSED]
    if gone:
        yield Finding("bad", "one_hot", {"count": len(gone), "of": len(result.heads)})
    sinks = [row for row in result.heads if row["first_key"] > 0.5]
    if sinks:
        yield Finding("watch", "sink", {"count": len(sinks), "of": len(result.heads)})
    for row in result.formats:
        if row["scores_lost"]:
            lost = {"format": row["format"], "lost": row["scores_lost"], "all": row["of"]}
            yield Finding("bad" if row["format"] != "float16" or pair.q.itemsize == 2 else "watch", "format", lost)


def _beyond_usual(row: Row) -> float:
    usual = row["q_norm_median"] * row["k_norm_median"]
    return float(row["q_norm_max"] * row["k_norm_max"] / usual) if usual else math.inf


def of_checkpoint(result: checkpoint.Result, name: str) -> Report:
    """What is found in a checkpoint."""
    rows = [
        {
            "layer": layer.name,
            "heads": layer.heads,
            "kv_heads": layer.kv_heads,
            "d_head": layer.d_head,
            "spectral_norm": float(layer.spectral.max()),
            "worst_head": int(layer.spectral.argmax()),
            "gains": layer.reading,
            "bound_gamma": layer.bound("gamma"),
            "bound_one_plus_gamma": layer.bound("one_plus_gamma"),
            "dtype": layer.dtype,
        }
        for layer in result.layers
    ]
    return Report(kind="checkpoint", name=name, findings=_sorted(_of_checkpoint(result)), tables={"layers": rows})


def _of_checkpoint(result: checkpoint.Result) -> Iterator[Finding]:
    if result.missing:
        yield Finding("watch", "shards", {"names": ", ".join(result.missing), "count": len(result.missing)})
    if result.promised:
        yield Finding("bad", "promised", {"flag": result.flags[0]})
    if result.latent:
        yield Finding("watch", "latent", {"count": len(result.latent)}, ("mla", {}))
    normed = [layer for layer in result.layers if layer.name not in result.unnormed]
    if normed and result.unnormed:
        yield Finding("watch", "some_unnormed", {"count": len(result.unnormed), "all": len(result.layers)})
    for layers, sentence in (
        (normed, _of_normed),
        ([x for x in result.layers if x.name in result.unnormed], _of_plain),
    ):
        if layers:
            yield sentence(layers)


def _of_normed(layers: list[checkpoint.Layer]) -> Finding:
    """The bound that the gains leave, in the reading for which there is evidence, or in both."""
    readings = {layer.reading for layer in layers}
    reading = readings.pop() if len(readings) == 1 else "unclear"
    bounds = {
        name: max((bound for layer in layers if (bound := layer.bound(name)) is not None), default=math.nan)
        for name in ("gamma", "one_plus_gamma")
    }
    values = {name: written(bound) for name, bound in bounds.items()} | {"d": layers[0].d_head}
    if math.isnan(bounds["gamma"]):
        return Finding("watch", "gains_differ", values)
    if reading == "unclear":
        return Finding("watch", "gains_unclear", values)
    return Finding(
        "watch" if bounds[reading] > causes.LARGE else "good",
        f"gains_{reading}",
        values | {"bound": written(bounds[reading])},
    )


def _of_plain(layers: list[checkpoint.Layer]) -> Finding:
    worst = max(layers, key=lambda layer: float(layer.spectral.max()))
    norm = float(worst.spectral.max())
    values = {"layer": worst.name, "head": int(worst.spectral.argmax()), "norm": written(norm), "d": worst.d_head}
    values["logit"] = written(norm / math.sqrt(worst.d_head))
    return Finding("watch" if norm / math.sqrt(worst.d_head) > causes.CALM else "good", "spectral", values)


def of_logs(results: Sequence[causes.Result], name: str) -> Report:
    """What is found in a log, run by run."""
    found = [finding for result in results for finding in _of_log(result, several=len(results) > 1)]
    events = [
        {
            "run": result.log.run,
            "kind": event.kind,
            "from": result.log.step[event.start],
            "to": result.log.step[event.stop],
        }
        for result in results
        for event in result.events
    ]
    matched = [
        {"run": result.log.run, "role": role, "column": column}
        for result in results
        for role, column in result.roles.items()
    ]
    return Report(
        kind="log",
        name=name,
        findings=_sorted(found),
        tables={"columns": matched} | ({"events": events} if events else {}),
        curves={result.log.run: result.log for result in results},
    )


def _of_log(result: causes.Result, *, several: bool) -> Iterator[Finding]:
    run = say("finding.run", run=result.log.run) if several else ""
    for at, cause in enumerate(result.causes):
        if at and cause.key == "healthy":
            continue
        values: dict[str, object] = {name: written(number) for name, number in cause.numbers.items()}
        if result.worst is not None:
            step = written(result.log.step[result.worst.start])
            values["what"] = say(f"finding.event.{result.worst.kind}", step=step)
        level = _CAUSES.get(cause.key, "bad" if at == 0 else "watch")
        yield Finding(level, cause.key, values | {"run": run}, _LABS.get(cause.key))
    if result.growth is not None and result.growth.grows:
        grown = result.growth
        doubled = {"steps": grown.rate, "low": grown.high, "high": grown.low}
        values = {
            **{name: written(math.log(2) / rate, 3) for name, rate in doubled.items()},
            "run": run,
            "by": "" if grown.by == "unknown" else say(f"finding.by.{grown.by}"),
        }
        growing = any(cause.key in _GROWING for cause in result.causes)
        yield Finding("watch" if growing else "good", "growth", values)
    if result.log.sampled:
        yield Finding("good", "sampled", {"run": run})


_GROWING: Final = ("growing_logits", "large_logits", "attention_max_logit")
_LABS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "attention_max_logit": ("training", {}),
    "attention_entropy": ("drift", {"scale": "16"}),
    "not_attention": ("sensitivity", {}),
    "growing_logits": ("drift", {}),
    "large_logits": ("drift", {"scale": "8"}),
    "gradient_overflow": ("formats", {}),
}


def _sorted(findings: Iterator[Finding] | Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: LEVELS.index(finding.level)))
