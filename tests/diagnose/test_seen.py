"""Which keys a query sees under a causal mask, where there are more keys than queries, is one rule for all that ask."""

import pytest
import torch

from qkdemo.diagnose import drift, otherwise, tensors
from qkdemo.diagnose.findings import of_tensors
from qkdemo.diagnose.pair import Pair
from qkdemo.diagnose.watching.heads import keys_seen, measure

QUERIES, KEYS = 3, 5
SEEN = [[True, True, True, False, False], [True, True, True, True, False], [True] * 5]  # the last sees the last


def pair(visible: torch.Tensor | None = None) -> Pair:
    """Two heads of ordinary vectors."""
    dice = torch.Generator().manual_seed(0)
    q, k = (torch.randn(1, 2, n, 4, generator=dice) for n in (QUERIES, KEYS))
    return Pair(q=q, k=k, scale=0.5, visible=visible, causal=True)


def test_the_last_query_sees_the_last_key() -> None:
    assert keys_seen(torch.arange(QUERIES), QUERIES, KEYS).tolist() == SEEN
    assert keys_seen(torch.tensor([2, 0]), QUERIES, KEYS).tolist() == [SEEN[2], SEEN[0]]
    assert keys_seen(torch.arange(3), 3, 2).tolist() == [[False, False], [True, False], [True, True]]
    assert torch.equal(keys_seen(torch.arange(4), 4, 4), torch.ones(4, 4, dtype=torch.bool).tril())


@pytest.mark.parametrize("query", range(QUERIES))
@pytest.mark.parametrize("key", range(KEYS))
def test_a_logit_counts_where_its_key_is_seen(query: int, key: int) -> None:
    given = pair()
    given.q[0, 0, query], given.k[0, 0, key] = 40.0, 40.0
    logits = (given.q[0, 0] @ given.k[0, 0].T * given.scale).masked_fill(~torch.tensor(SEEN), 0)
    largest = float(logits.abs().max())
    assert float(measure(given.call)["max_logit"].abs()[0]) == pytest.approx(largest, rel=1e-5)
    assert (largest > 1000) is SEEN[query][key]
    if SEEN[query][key]:
        assert drift._largest(given, 0) == (0, query, key)


def test_as_many_keys_are_counted_as_are_seen() -> None:
    hidden = torch.ones(1, 2, QUERIES, KEYS, dtype=torch.bool)
    hidden[..., 1] = False
    for given, of in ((pair(), 12), (pair(hidden), 9)):
        seen = torch.tensor(SEEN) & (hidden[0, 0] if given.visible is not None else True)
        assert of_tensors._keys_seen(given).tolist() == [[seen.sum(-1).tolist()] * 2]
        assert {row["of"] for row in otherwise.formats(given)} == {2 * of}
        for query in range(QUERIES):
            assert drift._seen(given, 0, 0, torch.tensor([query])).tolist() == [seen[query].tolist()]


def test_some_of_the_queries_see_what_they_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "_MOST_SCORES", 2 * 2 * KEYS)
    part = tensors.part_of(pair(), query=2)
    assert part.q.shape[2] == 2
    assert part.visible is not None
    assert part.visible[0, 0].tolist() == [SEEN[0], SEEN[2]]
