"""The measures of one call against loops in NumPy, one row at a time."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkdemo.diagnose.watching.heads import BATCH, MEASURES, Call, measure

WIDTH, QUERIES, KEYS = 6, 5, 7


def drawn(seed: int, heads: int = 4, kv_heads: int = 2, size: float = 2.0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shape = {"generator": generator, "dtype": torch.float64}
    return size * torch.randn(2, heads, QUERIES, WIDTH, **shape), torch.randn(2, kv_heads, KEYS, WIDTH, **shape)


def pairs_of(call: Call, head: int) -> list[list[tuple[float, float, float]]]:
    """Logit, q·k and cosine of every visible pair, a list per query of every sequence."""
    q, k = call.q.double().numpy()[:, head], call.k.double().numpy()
    k = k[:, head * k.shape[1] // call.q.shape[1]]
    shape = (len(q), call.q.shape[1], q.shape[1], k.shape[1])
    visible = np.ones(shape, bool) if call.visible is None else call.visible.expand(shape).numpy()
    bias = np.zeros(shape) if call.bias is None else call.bias.expand(shape).numpy()
    rows = []
    for b, i in itertools.product(range(len(q)), range(q.shape[1])):
        place, row = i + k.shape[1] - q.shape[1], []
        for j in range(k.shape[1]):
            hidden = (call.causal and j > place) or (call.window is not None and j <= place - call.window)
            if hidden or not visible[b, head, i, j]:
                continue
            raw = float(q[b, i] @ k[b, j])
            logit = raw * call.scale
            logit = logit if call.softcap is None else call.softcap * math.tanh(logit / call.softcap)
            cosine = raw / float(np.linalg.norm(q[b, i]) * np.linalg.norm(k[b, j]))
            row.append((logit + float(bias[b, head, i, j]), raw, cosine))
        rows.append(row)
    return rows


def by_hand(call: Call) -> dict[str, list[float]]:
    """Every measure per head."""
    found: dict[str, list[float]] = {name: [] for name in MEASURES}
    for head in range(call.q.shape[1]):
        rows = pairs_of(call, head)
        pairs = [pair for row in rows for pair in row]
        top = max(pairs, key=lambda pair: abs(pair[0]))
        logits = [np.array([logit for logit, _, _ in row]) for row in rows]
        weights = [np.exp(row - row.max()) / np.exp(row - row.max()).sum() for row in logits if len(row)]
        choosing = [p for p in weights if len(p) > 1]
        entropies = [float(-(p * np.log(p)).sum()) for p in choosing]
        rests = [p[1:] / p[1:].sum() for p in choosing]
        k = call.k.double().numpy()[:, head * call.k.shape[1] // call.q.shape[1]]
        numbers = {
            "max_logit": top[0],
            "cosine": top[2],
            "beyond_float16": np.mean([abs(raw) > 65504 for _, raw, _ in pairs]),
            "beyond_e4m3": np.mean(np.abs(k) > 448),
            "beyond_e5m2": np.mean(np.abs(k) > 57344),
            "entropy": np.mean(entropies),
            "entropy_fraction": np.mean([h / math.log(len(p)) for h, p in zip(entropies, choosing, strict=True)]),
            "entropy_without_first": np.mean([-(p * np.log(p)).sum() for p in rests]),
            "softmax_slope": np.concatenate([p * (1 - p) for p in weights]).mean(),
            "first_key": np.mean([p[0] for p in choosing]),
            "undefined_rows": 0.0,
        }
        for name, x in (("q", call.q.double().numpy()[:, head]), ("k", k)):
            lengths = np.sort(np.linalg.norm(x, axis=-1).ravel())
            numbers[f"{name}_norm_median"] = lengths[(len(lengths) - 1) // 2]  # as torch: the lower of two
            numbers[f"{name}_norm_max"] = lengths[-1]
        for name, number in numbers.items():
            found[name].append(float(number))
    return found


VARIATIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"causal": True},
    "window": {"causal": True, "window": 3},
    "softcap": {"softcap": 2.0},
    "mask": {"visible": torch.ones(1, 1, QUERIES, KEYS, dtype=torch.bool).tril(1)},
    "mask of two axes": {"visible": torch.ones(QUERIES, KEYS, dtype=torch.bool).tril(2)},
    "bias": {"bias": torch.linspace(-2, 2, 4 * KEYS, dtype=torch.float64).reshape(1, 4, 1, KEYS)},
}


@pytest.mark.parametrize("name", VARIATIONS)
def test_every_measure_is_what_loops_find(name: str) -> None:
    q, k = drawn(3)
    call = Call(q=q, k=k, scale=WIDTH**-0.5, **VARIATIONS[name])
    found, wanted = measure(call), by_hand(call)
    assert found.keys() == wanted.keys() == MEASURES.keys()
    for measured in MEASURES:
        assert found[measured].tolist() == pytest.approx(wanted[measured], rel=1e-9, abs=1e-12), measured


def test_a_mask_written_into_a_bias_hides_and_is_no_logit() -> None:
    q, k = drawn(4)
    seen = torch.ones(QUERIES, KEYS, dtype=torch.bool).tril(2)
    bias = torch.zeros(QUERIES, KEYS, dtype=torch.float64).masked_fill(~seen, torch.finfo(torch.float64).min)
    one, other = (measure(Call(q=q, k=k, scale=1.0, **mask)) for mask in ({"visible": seen}, {"bias": bias}))
    for name in MEASURES:
        assert one[name].tolist() == pytest.approx(other[name].tolist(), rel=1e-12), name
    infinite = measure(Call(q=q, k=k, scale=1.0, bias=bias.masked_fill(~seen, -math.inf)))
    assert infinite["max_logit"].tolist() == one["max_logit"].tolist()


def test_the_largest_logit_is_found_also_where_rows_are_sampled() -> None:
    q, k = torch.ones(1, 1, 500, 4), torch.ones(1, 1, 500, 4)
    q[0, 0, 237] = -100.0  # no row that is sampled
    found = measure(Call(q=q, k=k, scale=1.0), rows=4)
    assert found["max_logit"].item() == -400
    assert found["cosine"].item() == pytest.approx(-1)


def test_an_infinite_logit_is_said_and_its_row_counted() -> None:
    q, k = drawn(5, heads=1, kv_heads=1)
    k[0, 0, 2] = math.inf
    found = measure(Call(q=q.abs(), k=k, scale=1.0))
    assert math.isinf(found["max_logit"].item())
    assert found["undefined_rows"].item() == 0.5  # all rows of the first of two sequences
    assert math.isfinite(found["entropy"].item())


def test_the_entropy_of_logits_in_the_thousands_is_right_in_float32() -> None:
    """Two keys that win alike over a third, whatever the logits: ln 2, and ln 2 without the first key that lost."""
    q = torch.full((1, 1, 1, 2), 1.0)
    for top in (10.1, 6516.7, 123456.7):
        k = torch.tensor([[[[0.0, 0.0], [top, 0.0], [top, 0.0]]]])
        found = measure(Call(q=q, k=k, scale=1.0))
        for name in ("entropy", "entropy_without_first"):
            assert found[name].item() == pytest.approx(math.log(2), rel=3e-6 if top > 100 else 2e-3), (name, top)


def test_a_query_that_sees_one_key_or_none_has_no_say_in_entropy() -> None:
    q, k = drawn(6)
    one = torch.zeros(QUERIES, KEYS, dtype=torch.bool)
    one[1:, 0] = True  # the first query sees none, the others one
    found = measure(Call(q=q, k=k, scale=1.0, visible=one))
    assert all(math.isnan(x) for x in found["entropy"].tolist())
    assert found["softmax_slope"].tolist() == pytest.approx([0] * 4)


@given(gain=st.floats(0.1, 10))
def test_unit_vectors_never_pass_their_bound(gain: float) -> None:
    q, k = (torch.nn.functional.normalize(x, dim=-1) for x in drawn(7))
    found = measure(Call(q=q, k=k, scale=gain))
    assert found["max_logit"].abs().max().item() <= gain * (1 + 1e-12)
    assert found["max_logit"].tolist() == pytest.approx((gain * found["cosine"]).tolist(), rel=1e-9)


def test_nothing_random_and_no_gradient_is_touched() -> None:
    q, k = (x.requires_grad_() for x in drawn(8))
    before = torch.random.get_rng_state()
    found = measure(Call(q=q, k=k, scale=1.0))
    assert torch.equal(before, torch.random.get_rng_state())
    assert not any(values.requires_grad for values in found.values())


def test_a_large_batch_is_read_in_part() -> None:
    q = torch.zeros(BATCH + 1, 1, 2, 2)
    q[BATCH] = 100.0
    assert measure(Call(q=q, k=torch.ones(BATCH + 1, 1, 2, 2), scale=1.0))["q_norm_max"].item() == 0


@pytest.mark.parametrize(
    ("q", "k", "sentence"),
    [
        ((2, 4, 5, 6), (2, 4, 5), r"four axes.*q is \(2, 4, 5, 6\) and k is \(2, 4, 5\)"),
        ((2, 4, 5, 6), (2, 4, 5, 8), r"same head width, but q is \(2, 4, 5, 6\) and k is \(2, 4, 5, 8\)"),
        ((2, 4, 5, 6), (2, 3, 5, 6), "4 query heads cannot share 3 key heads evenly"),
    ],
)
def test_tensors_that_do_not_fit_get_a_sentence(q: tuple[int, ...], k: tuple[int, ...], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Call(q=torch.zeros(q), k=torch.zeros(k), scale=1.0)
