"""Claims about who does what: verdicts read in the table of implementations, and in dated readings of kernels."""

from collections.abc import Iterable
from typing import Final

import torch

from qkdemo.attention.variants import VARIANTS, Parameters, scores
from qkdemo.facts.models import MODELS, Model
from qkdemo.facts.softcap import READINGS, Reading, latest
from qkdemo.labs import models
from qkdemo.notation import at_most, written
from qkdemo.tracks.claims.verdict import claim
from qkdemo.tracks.stop import Evidence, Read, only

_MANY_HEADS: Final = 32
_WIDE_HEAD: Final = 128


def _gemma_2(found: models.Result) -> Evidence:
    two, three, grok = _row("gemma-2-transformers"), _row("gemma-3-transformers"), _row("grok-1-grok-1")
    told = two in found.models and three in found.models and three.norm == "rms" and three.softcap is None
    swapped = two.softcap == 50 and two.output_softcap == 30 == grok.softcap
    return Evidence(
        only(true=two.norm != "none", false=two.norm == "none" and told and swapped and two.verified == "conformance"),
        {
            "rows": str(len(found.models)),
            "cap": _cap(two.softcap),
            "output": _cap(two.output_softcap),
            "source": _source(two),
            "grok": _source(grok),
        },
        _links(two, three, grok),
    )


def _qwen_2(found: models.Result) -> Evidence:
    two, three = _row("qwen2-qwen2-5-transformers"), _row("qwen3-dense-transformers")
    newer = three in found.models and (three.norm, three.place) == ("rms", "per_head")
    return Evidence(
        only(true=two.norm == "none" and newer, false=two.norm != "none" or not newer),
        {"rows": str(len(found.models)), "source": _source(two), "newer": _source(three)},
        _links(two, three),
    )


def _command_r(found: models.Result) -> Evidence:
    row, after = _row("cohere-command-r-aya-transformers"), _row("cohere2-command-r7b-a-transformers")
    told = row in found.models and row.norm == "layernorm" and row.gain == "head_channel" and not row.default_on
    return Evidence(
        only(true=row.norm == "rms", false=told and after.norm == "none"),
        {"rows": str(len(found.models)), "source": _source(row), "after": _source(after)},
        _links(row, after),
    )


def _every_model(found: models.Result) -> Evidence:
    whole = [model for model in MODELS if model.kind == "model"]
    without = [model for model in whole if model.qk_norm == "no"]
    off = [model for model in whole if model.qk_norm == "yes" and not model.default_on]
    named = [model for model in without if model.norm == "none" and model.repo == "huggingface/transformers"]
    return Evidence(
        only(true=not without, false=len(without) > 0 and set(without) <= set(found.models)),
        {
            "without": str(len(without)),
            "bare": str(len(found.models)),
            "rows": str(len(MODELS)),
            "all": str(len(whole)),
            "off": str(len(off)),
            "capped": str(sum(model.softcap is not None for model in without)),
            "names": ", ".join(model.model for model in named),
        },
        _links(*named),
    )


def _full_width(found: models.Result) -> Evidence:
    on = [model for model in found.models if model.kind == "model" and model.default_on]
    named = [model for model in on if model.repo == "huggingface/transformers"]
    reached = _one_head_takes_all()
    per_head = VARIANTS["rms"].bound(Parameters(), _WIDE_HEAD, _MANY_HEADS)
    return Evidence(
        only(true=bool(on) and reached > per_head, false=not on),
        {
            "rows": str(len(found.models)),
            "names": ", ".join(model.model for model in named),
            "per_head": at_most(per_head),
            "reached": written(reached),
            "heads": str(_MANY_HEADS),
            "width": str(_WIDE_HEAD),
        },
        _links(*named),
    )


def _one_head_takes_all() -> float:
    """The largest logit under a norm over the full width, were all of q and of k in one head."""
    x = torch.zeros(_MANY_HEADS, 1, _WIDE_HEAD, dtype=torch.float64)
    x[0] = 1e3  # long, so that epsilon takes nothing away
    return float(scores(x, x, VARIANTS["full_width"], Parameters()).logits.max())


def _fused(found: models.Result) -> Evidence:
    """FlashAttention itself, once and now; other kernels, and frameworks that call one, beside it."""
    own = [reading for reading in READINGS if reading.kernel == "FlashAttention"]
    refused, accepted = ([one for one in own if one.accepts is accepts] for accepts in (False, True))
    now = latest().values()
    others = [one for one in now if one.kind == "kernel" and one.kernel != "FlashAttention" and one.accepts]
    frameworks = [one for one in now if one.kind == "framework"]
    assert not all(one.accepts for one in frameworks)
    turned = bool(refused) and bool(accepted) and refused[-1].date < accepted[-1].date
    return Evidence(
        only(true=not accepted, false=bool(accepted) and not refused, outdated=turned),
        {
            "refused": _listed(refused),
            "accepted": _listed(accepted),
            "others": _listed(others),
            "handing": _listed(one for one in frameworks if one.accepts),
            "dropping": _listed(one for one in frameworks if not one.accepts),
            "capped": str(len(found.models)),
        },
        {f"{one.repo}, {one.thread}": one.link for one in (*own, *others, *frameworks)},
    )


def _listed(readings: Iterable[Reading]) -> str:
    return "; ".join(f"{reading.kernel} ({reading.version}), {reading.date}" for reading in readings)


def _row(identity: str) -> Model:
    return next(model for model in MODELS if model.id == identity)


def _source(model: Model) -> str:
    return f"{model.repo}, {model.symbol}"


def _links(*models: Model) -> dict[str, str]:
    return {model.model: model.link for model in models}


def _cap(cap: float | None) -> str:
    return "–" if cap is None else written(cap)


_ROWS: Final = Read(column="model")
STOPS: Final = (
    claim("gemma_2", models.LAB, models.Settings(family="gemma"), _gemma_2, (33,), {"rows": _ROWS}),
    claim("qwen_2", models.LAB, models.Settings(family="qwen"), _qwen_2, (33,), {"rows": _ROWS}),
    claim("command_r", models.LAB, models.Settings(family="cohere"), _command_r, (12, 33), {"rows": _ROWS}),
    claim("every_model", models.LAB, models.Settings(normed="no"), _every_model, (33,), {"bare": _ROWS}),
    claim("full_width", models.LAB, models.Settings(place="full_width"), _full_width, (9, 12), {"rows": _ROWS}),
    claim("fused", models.LAB, models.Settings(capped="yes"), _fused, (19,), {"capped": _ROWS}),
)
