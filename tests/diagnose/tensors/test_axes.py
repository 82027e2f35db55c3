"""How the axes of q and k are read: heads, positions, which array is which, and that it is said."""

import pytest
import torch

from qkdemo.diagnose.findings.of_tensors import of_tensors
from qkdemo.diagnose.readers.inputs import InputError
from qkdemo.diagnose.tensors import pair_of, run
from tests.diagnose.tensors.drawn import drawn


@pytest.mark.parametrize("shape", [(6, 8), (3, 6, 8), (2, 3, 6, 8)])
def test_two_to_four_axes_are_read(shape: tuple[int, ...]) -> None:
    pair = pair_of({"q": drawn(*shape), "k": drawn(*shape, seed=1)})
    assert pair.q.dim() == 4
    assert pair.q.shape[-3:] == ((1,) * 3 + shape)[-3:]
    assert pair.scale == 8**-0.5


def test_positions_before_heads_are_recognised_where_only_that_fits() -> None:
    grouped = pair_of({"q": drawn(1, 20, 4, 8), "k": drawn(1, 20, 2, 8)})
    assert (grouped.axes, tuple(grouped.q.shape)) == ("positions", (1, 4, 20, 8))
    assert pair_of({"q": drawn(1, 8, 8, 4), "k": drawn(1, 8, 8, 4)}).axes == "ambiguous"
    one, other = (
        run(pair_of({"q": drawn(1, 8, 8, 4), "k": drawn(1, 8, 8, 4, seed=1)}, swapped=s)) for s in (False, True)
    )
    assert one.heads[0]["max_logit"] != other.heads[0]["max_logit"]


@pytest.mark.parametrize(
    ("q", "k", "ambiguous"),
    [
        ((1, 12, 8, 16), (1, 12, 8, 16), True),  # 12 heads of 8 positions, or 12 positions of 8 heads
        ((12, 8, 16), (12, 8, 16), True),
        ((1, 8, 12, 16), (1, 8, 12, 16), False),
        ((1, 12, 8, 16), (1, 6, 8, 16), False),  # as positions, 6 keys for 12 queries
        ((1, 32, 1, 16), (1, 32, 77, 16), False),  # one query beside a cache
        ((12, 16), (12, 16), False),
    ],
)
def test_axes_are_asked_about_where_both_orders_fit(q: tuple[int, ...], k: tuple[int, ...], ambiguous: bool) -> None:
    arrays = {"q": drawn(*q), "k": drawn(*k, seed=1)}
    said = {finding.key: finding.sentence for finding in of_tensors(run(pair_of(arrays)), "x").findings}
    assert ("axes" in said) is ambiguous
    swapped = of_tensors(run(pair_of(arrays, swapped=True)), "x").findings if ambiguous else ()
    assert "axes" not in {finding.key for finding in swapped}


def test_the_shape_that_is_told_is_named_as_it_was_read() -> None:
    """A file of three axes has no batch: what is axis 1 of the four is its axis 0."""
    report = of_tensors(run(pair_of({"q": drawn(8, 8, 4), "k": drawn(8, 8, 4, seed=1)})), "x")
    (sentence,) = (each.sentence for each in report.findings if each.key == "axes")
    assert "Read as [batch, heads, positions, d_head] = [1, 8, 8, 4], q has" in sentence
    assert "xis 1" not in sentence


def test_heads_of_more_queries_than_keys_are_not_taken_for_positions_without_a_word() -> None:
    """8 heads, 64 queries, 32 keys of an encoder; or 8 positions, of which 64 heads of q share 32 of k."""
    doubtful = of_tensors(run(pair_of({"q": drawn(1, 8, 64, 16), "k": drawn(1, 8, 32, 16, seed=1)})), "x").findings
    (sentence,) = (each.sentence for each in doubtful if each.key == "axes_supposed")
    assert "q has 64 heads and k 32." in sentence
    usual = of_tensors(run(pair_of({"q": drawn(1, 64, 8, 16), "k": drawn(1, 64, 2, 16, seed=1)})), "x")
    assert "axes_supposed" not in {each.key for each in usual.findings}
    saved = pair_of({"q": drawn(1, 64, 8, 16), "k": drawn(1, 32, 8, 16, seed=1)}, swapped=True)
    assert saved.q.shape[1:3] == (8, 64)  # what the advice leads to


@pytest.mark.parametrize("names", [("k", "v"), ("q", "v"), ("past_k", "past_v"), ("q", "mask")])
def test_values_are_taken_neither_for_q_nor_for_k(names: tuple[str, str]) -> None:
    with pytest.raises(InputError, match="q and k are not both among the arrays"):
        pair_of(dict.fromkeys(names, drawn(2, 6, 8)))


def test_a_head_wider_than_usual_is_said_to_be_perhaps_all_heads() -> None:
    for shape, said in (
        ((1, 6, 512), True),
        ((6, 512), True),
        ((1, 6, 256), True),
        ((6, 128), False),
        ((1, 1, 6, 512), False),
    ):
        found = of_tensors(run(pair_of({"q": drawn(*shape), "k": drawn(*shape, seed=1)})), "x").findings
        assert ("all_heads" in {finding.key for finding in found}) is said, shape
    shared = of_tensors(run(pair_of({"q": drawn(4, 6, 256), "k": drawn(2, 6, 256, seed=1)})), "x").findings
    assert "all_heads" not in {finding.key for finding in shared}


def test_where_shapes_do_not_tell_heads_from_positions_it_is_said() -> None:
    """A short prompt of a model whose positions come first is as long as heads may be many."""
    for q, k, untold in (
        ((1, 5, 32, 16), (1, 5, 32, 16), True),
        ((1, 5, 32, 16), (1, 5, 40, 16), False),  # a cache of keys: these are positions
        ((1, 8, 32, 16), (1, 2, 32, 16), False),  # shared keys
        ((1, 8, 300, 16), (1, 8, 300, 16), False),  # no model has as many heads
        ((6, 16), (6, 16), False),
    ):
        found = of_tensors(run(pair_of({"q": drawn(*q), "k": drawn(*k, seed=1)})), "x").findings
        (read,) = (each.sentence for each in found if each.key == "tensors_read")
        assert ("do not tell heads from positions" in read) is untold, (q, k)


@pytest.mark.parametrize(
    ("q", "k", "key"),
    [
        ((1, 8, 5, 64), (1, 8, 5, 64), "axes"),
        ((1, 8, 5, 256), (1, 8, 5, 256), "axes"),
        ((1, 8, 1, 64), (1, 8, 1, 64), "axes"),
        ((1, 5, 8, 64), (1, 5, 8, 64), "untold"),
        ((1, 5, 8, 256), (1, 5, 8, 256), "untold"),
        ((1, 1, 8, 64), (1, 1, 8, 64), "untold"),  # one token of 8 heads, or 8 of one
        ((1, 1, 8, 64), (1, 1, 2, 64), "untold"),
        ((1, 5, 8, 64), (1, 5, 2, 64), "axes_supposed"),
        ((1, 8, 5, 64), (1, 2, 5, 64), ""),  # shared keys tell heads
        ((1, 5, 64), (1, 5, 64), ""),  # of three axes the first holds heads or sequences
    ],
)
def test_of_a_few_tokens_it_is_said_how_their_axes_were_read(q: tuple[int, ...], k: tuple[int, ...], key: str) -> None:
    found = {
        each.key: each.sentence
        for each in of_tensors(run(pair_of({"q": drawn(*q), "k": drawn(*k, seed=1)})), "x").findings
    }
    assert ({"axes", "axes_supposed"} & found.keys()) == ({key} - {"untold", ""})
    assert ("do not tell heads from positions" in found["tensors_read"]) is (key == "untold")
    if key == "axes":
        assert f"Read as [batch, heads, positions, d_head] = {list(q)}" in found["axes"]
    assert "all_heads" not in found


@pytest.mark.parametrize(
    "names", [("q_proj", "k_proj"), ("query_layer", "key_layer"), ("a.0.q_proj.out", "a.0.k_proj.out"), ("x_q", "x_k")]
)
def test_of_two_arrays_the_one_named_for_queries_is_q_in_any_order(names: tuple[str, str]) -> None:
    """A .safetensors file holds names of one format by the alphabet, where k comes before q."""
    q, k = drawn(2, 6, 8), drawn(2, 6, 8, seed=1)
    arrays = dict(zip(names, (q, k), strict=True))
    for each in (arrays, dict(reversed(arrays.items()))):
        pair = pair_of(each)
        assert torch.equal(pair.q[0], q)
        assert torch.equal(pair.k[0], k)


@pytest.mark.parametrize(
    ("causal", "mask", "seen"),
    [
        (False, False, "every query is taken to see every key."),
        (True, False, "every query is taken to see no later key."),
        (False, True, "every query is taken to see what the mask shows."),
        (True, True, "every query is taken to see what the mask shows, and no later key."),
    ],
)
def test_how_q_was_read_is_always_said(*, causal: bool, mask: bool, seen: str) -> None:
    """As saved before the transpose, and as Megatron has it: neither can be told by its shape."""
    for shape in ((1, 6, 12, 64), (64, 2, 8, 64)):
        arrays = {"q": drawn(*shape), "k": drawn(*shape, seed=1)}
        arrays |= {"mask": torch.ones(shape[2], shape[2], dtype=torch.bool)} if mask else {}
        found = of_tensors(run(pair_of(arrays, causal=causal)), "x").findings
        (read,) = (each for each in found if each.key == "tensors_read")
        assert f"q was read as [batch, heads, positions, d_head] = {list(shape)}; {seen}" in read.sentence
        assert read.level == "good"


def test_of_fewer_queries_than_keys_it_is_said_where_the_last_one_stands() -> None:
    for queries, causal in ((3, True), (8, True), (3, False)):
        pair = pair_of({"q": drawn(2, queries, 16), "k": drawn(2, 8, 16, seed=1)}, causal=causal)
        (read,) = (each for each in of_tensors(run(pair), "x").findings if each.key == "tensors_read")
        assert ("the last query stands with the last key" in read.sentence) is (causal and queries < 8)
