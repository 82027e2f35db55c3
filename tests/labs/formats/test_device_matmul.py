"""A device's own float16 matmul: the path that a GPU takes, on the CPU."""

import pytest
import torch

from qkdemo.attention.inputs import Recipe
from qkdemo.labs.formats import Settings, native_rows
from qkdemo.labs.formats.stages.device_matmul import native_products
from qkdemo.labs.formats.stages.kinds import Choices, drawn
from tests.following import NORMALISERS, row


def test_a_devices_own_float16_matmul_counts_what_the_emulation_counts() -> None:
    """At 400 no rounding of the accumulator decides over ∞."""
    for variant in NORMALISERS:
        plain, twin = native_rows(Settings(variant=variant), "cpu")
        emulated = [row(Settings(variant=variant), "float16", side, "raw_product") for side in ("none", variant)]  # type: ignore[arg-type]
        for found, expected in zip((plain, twin), emulated, strict=True):
            assert found.keys() == expected.keys()
            counts = ("n", "n_inf", "n_nan", "n_lost", "n_exceeding", "n_zero")
            assert [found[name] for name in counts] == [expected[name] for name in counts]
            assert found["max_rel_error"] == pytest.approx(expected["max_rel_error"], rel=0.5)
        assert (plain["format"], plain["n_inf"]) == ("float16 on this CPU", 242)


def test_a_devices_products_are_those_of_torch_and_not_of_the_emulation() -> None:
    inputs, scale = drawn(Recipe(n_keys=6, d_head=8)), torch.tensor([30.0], dtype=torch.float64)
    q, k = ((30 * x).float().half() for x in (inputs.q, inputs.k))
    assert torch.equal(native_products(inputs, scale, Choices(), "cpu")[0], (q @ k.T).double())
