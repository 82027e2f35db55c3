"""Somebody's q and k in the drift lab: the same logits as in the file, also from the program that it hands out."""

import gc
import json
import math
import subprocess
import sys
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from qkdemo.attention.inputs import Inputs
from qkdemo.diagnose.drift import MOST_HEADS, MOST_POSITIONS, in_words, opened
from qkdemo.diagnose.pair import Pair
from qkdemo.diagnose.readers.inputs import InputError
from qkdemo.diagnose.tensors import pair_of, run
from qkdemo.labs.drift import LAB
from qkdemo.labs.drift import run as drift
from qkdemo.labs.drift.lab import Settings, on, sharpness
from qkdemo.labs.drift.program import OWN_FILE, snippet
from qkdemo.labs.drift.view import drift_exhibit


def drawn(heads: int = 2, positions: int = 9, width: int = 16, kv_heads: int | None = None, **more: object) -> Pair:
    generator = torch.Generator().manual_seed(3)
    q = torch.randn(1, heads, positions, width, generator=generator, dtype=torch.float64)
    k = torch.randn(1, kv_heads or heads, positions, width, generator=generator, dtype=torch.float64)
    return Pair(q=q, k=k, **({"scale": width**-0.5} | more))  # type: ignore[arg-type]


def settings_on(pair: Pair, **dials: object) -> Settings:
    found = opened(pair)
    values = {name: Settings.from_text(name, text) for name, text in found.dials.items()}
    return on(Settings(**(values | {"variant": "rms"} | dials)), found.inputs)  # type: ignore[arg-type]


def test_the_mask_of_the_sequence_that_is_taken_is_the_one_that_is_looked_at() -> None:
    """A padded batch, whose sequence of the largest logit has no padding."""
    visible = torch.ones(2, 2, 9, 9, dtype=torch.bool).tril()
    visible[0, :, :, :3] = False
    q, k = (torch.randn(2, 2, 9, 16, generator=torch.Generator().manual_seed(at)) for at in (0, 1))
    for taken, causal, left_out in ((1, "1", ["sequences"]), (0, "1", ["mask_causal", "sequences"])):
        longer = q.clone()
        longer[taken] *= 30
        found = opened(Pair(q=longer, k=k, scale=0.25, visible=visible))
        assert (found.dials["causal"], found.left_out) == (causal, left_out)


def test_numbers_that_are_added_to_another_sequence_are_not_left_out_of_the_one_that_is_taken() -> None:
    """A batch of which one sequence alone has numbers beside those that hide; and numbers on hidden pairs alone."""
    later = torch.ones(9, 9, dtype=torch.bool).triu(1)
    mask = torch.zeros(2, 1, 9, 9).masked_fill(later, -math.inf)
    mask[0] += 0.5 * torch.rand(9, 9, generator=torch.Generator().manual_seed(0))
    q, k = (torch.randn(2, 2, 9, 16, generator=torch.Generator().manual_seed(at)) for at in (0, 1))
    for taken, words in ((0, ["mask_numbers", "sequences"]), (1, ["sequences"])):
        longer = q.clone()
        longer[taken] *= 30
        assert opened(pair_of({"q": longer, "k": k, "mask": mask})).left_out == words
    unseen = torch.zeros(9, 9).masked_fill(later, -5.0)
    assert opened(pair_of({"q": q[:1], "k": k[:1], "mask": unseen}, causal=True)).left_out == []


def test_of_a_mask_that_hides_as_the_labs_only_its_numbers_are_left_out() -> None:
    """ALiBi, added with the causal mask."""
    away = (torch.arange(9) - torch.arange(9)[:, None]).float()
    later = torch.ones(9, 9, dtype=torch.bool).triu(1)
    window = later | (away < -3)
    for hidden, causal, word in (
        (later, "1", "mask_numbers"),
        (window, "1", "mask_causal"),
        (away < -3, "0", "mask"),
        (later & False, "0", "bias"),
    ):
        arrays = {"q": drawn().q, "k": drawn().k, "attn_bias": away.masked_fill(hidden, -math.inf)}
        found = opened(pair_of(arrays))
        assert (found.dials["causal"], found.left_out) == (causal, [word])
        kept = "The numbers that the array attn_bias adds are left out; what it hides is kept." in in_words(found, "x")
        assert kept is (word == "mask_numbers")


@pytest.mark.parametrize("kv_heads", [4, 2])
@pytest.mark.parametrize("causal", [False, True])
def test_at_weight_scale_1_the_lab_has_the_logits_of_the_file(*, causal: bool, kv_heads: int) -> None:
    pair = drawn(heads=4, kv_heads=kv_heads, causal=causal, scale=0.7)
    settings = settings_on(pair)
    assert settings.causal == causal
    result = drift(settings, [1.0])
    (plain, _) = (row for row in run(pair).variants if row["variant"] in ("none", "rms"))
    (normed,) = (row for row in run(replace(pair, scale=1 / 4)).variants if row["variant"] == "rms")  # as is said there
    assert result.plain.max_abs_logit[0] == pytest.approx(plain["max_abs_logit"], rel=1e-9)
    assert result.plain.entropy_fraction[0] == pytest.approx(plain["entropy_fraction"], rel=1e-9)
    assert result.twin.max_abs_logit[0] == pytest.approx(normed["max_abs_logit"], rel=1e-5)
    assert abs(result.plain.logit[0]) == pytest.approx(plain["max_abs_logit"], rel=1e-9)  # of the pair that is shown
    assert drift(settings, [3.0]).plain.max_abs_logit[0] == pytest.approx(9 * plain["max_abs_logit"], rel=1e-9)


def test_of_many_heads_and_positions_the_worst_are_taken() -> None:
    pair = drawn(heads=8, positions=700)
    pair.q[0, 5, 333] *= 40
    found = opened(pair)
    assert found.heads[0] == 5
    assert found.inputs.q.shape == (MOST_HEADS, MOST_POSITIONS, 16)
    worst = max(abs(row["max_logit"]) for row in run(pair).heads)
    result = drift(on(Settings(variant="rms"), found.inputs), [1.0])
    assert result.plain.max_abs_logit[0] == pytest.approx(worst, rel=1e-6)
    told = in_words(found, "a.npz")
    assert "the worst; in its order they are: 5" in told
    assert f"Of 700 positions it takes {MOST_POSITIONS}" in told


def test_what_the_lab_cannot_take_along_is_said() -> None:
    own_mask = torch.ones(1, 2, 9, 9, dtype=torch.bool)
    own_mask[..., 3] = False
    arrays = {"q": drawn().q, "k": drawn().k, "attn_mask": own_mask, "gamma_q": torch.ones(16)}
    told = in_words(opened(pair_of(arrays, scale=1.0)), "a.npz")
    for part in (
        "The array attn_mask is left out",
        "The gains are left out",
        "A norm undoes that: behind it the scale is 1/√d",
    ):
        assert part in told
    causal = torch.ones(9, 9, dtype=torch.bool).tril().expand(1, 2, 9, 9)
    found = opened(drawn(visible=causal))
    assert found.dials["causal"] == "1"
    assert "left out" not in in_words(found, "a.npz")


@pytest.mark.parametrize(
    ("q", "k", "sentence"),
    [
        ((1, 2, 1, 8), (1, 2, 9, 8), "as many queries as keys"),
        ((1, 2, 9, 3), (1, 2, 9, 3), "a head width from 4 to 256, but this one is 3"),
        ((1, 2, 9, 512), (1, 2, 9, 512), "but this one is 512"),
    ],
)
def test_what_the_lab_cannot_take_gets_its_sentence(q: tuple[int, ...], k: tuple[int, ...], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        opened(pair_of({"q": torch.ones(q), "k": torch.ones(k)}))
    pair = drawn()
    pair.k[0, 0, 0, 0] = math.inf
    with pytest.raises(InputError, match="finite"):
        opened(pair)


def test_the_program_computes_the_same_from_the_file(tmp_path: Path) -> None:
    settings = settings_on(drawn(), scale=2.0, format="float32")
    assert settings.own is not None
    np.savez(tmp_path / OWN_FILE, q=settings.own.q.numpy(), k=settings.own.k.numpy())
    (tmp_path / "program.py").write_text(snippet(settings), encoding="utf-8")
    command = [sys.executable, "program.py"]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    result = drift(settings, [2.0])
    for name, value in json.loads(printed).items():
        assert getattr(result.twin, name)[0] == pytest.approx(value, rel=1e-4), name


def test_nothing_is_left_of_them_when_they_are_let_go() -> None:
    settings = settings_on(drawn(), variant="l2")
    assert settings.own is not None
    result = LAB.run(settings)
    drift_exhibit(result)
    sharpness(settings)
    LAB.explain(result)
    gone = weakref.ref(settings.own.q)
    assert LAB.run(settings).twin is result.twin  # kept, as long as they are
    del settings, result
    gc.collect()
    assert gone() is None


def test_no_more_is_kept_with_them_than_was_made_last() -> None:
    inputs, made = Inputs(torch.ones(1, 2, 4), torch.ones(1, 2, 4)), []
    for key in (*range(40), 39, 0):
        inputs.once(key, lambda key=key: made.append(key))  # type: ignore[misc]
    assert made == [*range(40), 0]


def test_the_largest_logit_is_found_also_where_its_query_is_among_the_shortest() -> None:
    q, k = torch.full((1, 1, 1200, 8), 10.0), torch.full((1, 1, 1200, 8), 0.01)
    q[..., 0], k[..., 0] = 0, 0
    q[0, 0, 3], k[0, 0, 2] = 0, 0
    q[0, 0, 3, 0], k[0, 0, 2, 0] = 9.0, 5.0
    found = opened(pair_of({"q": q[0], "k": k[0]}))
    query, key = int(found.dials["query"]), int(found.dials["key"])
    assert float(found.inputs.q[0, query].norm()) == pytest.approx(9.0)
    assert float(found.inputs.k[0, key].norm()) == pytest.approx(5.0)
