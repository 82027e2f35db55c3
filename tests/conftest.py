"""What every test relies on: shapes are checked, torch uses one thread, Hypothesis repeats itself in CI."""

import os
from collections.abc import Iterable

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

from tests.shapes import checked_once

checked_once()
# Before anything imports them: the shapes in these signatures are checked at every call that a test makes.
# The options let a whole number stand for a float, as mypy does, and raise what Python raises for a wrong type.
install_import_hook(
    [
        "qkdemo.attention",
        "qkdemo.floats",
        "qkdemo.labs.learning_rates",
        "qkdemo.labs.placement.diagnosis",
        "qkdemo.labs.placement.fitting",
        "qkdemo.labs.training",
        "qkdemo.runs",
        "qkdemo.training",
    ],
    "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True, violation_type=TypeError))",
)

import torch  # noqa: E402

torch.set_num_threads(1)
if os.environ.get("QKDEMO_ROUNDING") == "other":  # as on a processor that rounds in another way
    from tests.rounding import OtherRounding

    OtherRounding().__enter__()

# The machine may be busy: no test fails for being slow.
settings.register_profile("laptop", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "laptop")


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Only this process rounds otherwise; what it is compared with does not."""
    for item in items:
        if os.environ.get("QKDEMO_ROUNDING") and item.get_closest_marker("one_rounding"):
            item.add_marker(pytest.mark.skip("Another process does not round in the other way."))
