"""A latent-attention result in words.

* `findings(result)`: a headline per context; `explain(result)`: the context chosen; `size_text(count)`: bytes;
* `other_ways(result)`, `explain_other_ways(result)`: what is done instead of QK norm."""

from typing import Final

from qkdemo.charts.columns import gap_in_words
from qkdemo.floats.formats import noise
from qkdemo.labs.mla.costs import Cost
from qkdemo.labs.mla.lab import LIVE_HEADS, Result
from qkdemo.messages import say
from qkdemo.notation import at_most, counted, digits_apart, written

_ALIKE: Final = 1.05  # within a twentieth, two costs are called alike


def findings(result: Result) -> list[str]:
    """What each context says, one sentence per context."""
    pairs = zip(result.by_context["naive"], result.by_context["absorbed"], strict=True)
    return [_finding(naive, absorbed) for naive, absorbed in pairs]


def _finding(naive: Cost, absorbed: Cost) -> str:
    factor = naive.flops / absorbed.flops
    word = "dearer" if factor > _ALIKE else "cheaper" if factor < 1 / _ALIKE else "alike"
    values = {
        "context": counted(naive.context),
        "factor": written(max(factor, 1 / factor), 3),
        "formed": size_text(naive.formed_bytes),
    }
    return say(f"mla.finding.{word}", **values)


def size_text(count: int) -> str:
    """Bytes as a visitor reads them."""
    power = min(3, (max(count, 1).bit_length() - 1) // 10)
    return say(f"mla.unit.{power}", x=written(count / 1024**power))


def explain(result: Result) -> list[str]:
    """What the context says, whether both readings agree, what each costs here, and what else is done."""
    settings = result.settings
    costs = {item.reading: item for item in result.costs}
    values = {
        "difference": gap_in_words(result.relative_difference, noise(settings.format), 2),
        "without": written(result.without_norm_difference, 3),
        "more": (costs["absorbed"].cache_bytes - costs["without_norm"].cache_bytes) // (2 * settings.context),
        "live": min(settings.n_heads, LIVE_HEADS),
        "format": settings.format,
        "share": written(100 * (costs["absorbed"].cache_bytes / costs["without_norm"].cache_bytes - 1), 3),
        "cache": size_text(costs["absorbed"].cache_bytes),
        "full": size_text(costs["full_keys"].cache_bytes),
        "formed": size_text(costs["naive"].formed_bytes),
        "d_rotary": settings.d_rotary,
        "apart": 2 * settings.d_rotary,
    }
    gain = "rotary_gain" if settings.n_heads > 1 else "rotary_gain_one"
    names = ("agree", "naive", f"absorbed_{settings.statistic}", f"rotary_{settings.statistic}", gain)
    return [_finding(costs["naive"], costs["absorbed"]), *(say(f"mla.{name}", **values) for name in names)]


def other_ways(result: Result) -> list[str]:
    """What each scale of the projections says about the other ways, one sentence per scale."""
    found, settings = result.alternatives, result.settings
    return [
        say(
            "other_ways.finding",
            scale=written(scale),
            threshold=written(settings.clip_threshold),
            **{word: written(column[at].item(), 3) for word, column in found.largest.items()},
        )
        for at, scale in enumerate(found.scales.tolist())
    ]


def explain_other_ways(result: Result) -> list[str]:
    """What each of the other ways bounds at the chosen scale, and what it does not."""
    found, settings = result.alternatives, result.settings
    at = found.scales.tolist().index(settings.projections)
    clipped, grown = found.factors[at] < 1, found.moved["rates"][found.scales >= 1]
    numbers = {f"moved_{word}": written(column[at].item(), 2) for word, column in found.moved.items()}
    numbers["moved_qk_norm"] = at_most(found.moved["qk_norm"][at].item(), 2)
    numbers |= {f"largest_{word}": written(column[at].item(), 3) for word, column in found.largest.items()}
    values = numbers | {
        "threshold": written(settings.clip_threshold),
        "unseen": written(found.unseen["qk_clip"][at].item(), 3),
        "clipped": int(clipped.sum()),
        "live": len(clipped),
        "factor": _short_of_one(found.factors[at].min().item()),
        "off": written(100 * found.shared_key[at].item(), 2),
        "bound": at_most(found.bound, 3),
        "moved_range": _range(written(grown.min().item(), 2), written(grown.max().item(), 2)),
    }
    names = ["latent_norm", "qk_clip", "clipped" if clipped.any() else "unclipped"]
    names += ["shared_key"] if clipped.any() and not clipped.all() else []
    return [say(f"other_ways.{name}", **values) for name in (*names, "rates", "qk_norm")]


def _range(low: str, high: str) -> str:
    """From one number to another, or one alone where both are written alike."""
    return say(f"other_ways.range.{'alike' if low == high else 'apart'}", low=low, high=high)


def _short_of_one(x: float) -> str:
    """In two digits, or in as many as tell it from 1: what is clipped is not left as it was."""
    return written(x, digits_apart(x, [1.0], least=2))
