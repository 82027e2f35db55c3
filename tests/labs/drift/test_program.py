"""The program on the page: it stands alone, it runs, and its numbers are those of the lab."""

import ast
import contextlib
import io
import itertools
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from qkdemo.attention.variants import VARIANTS, VariantWord
from qkdemo.floats.formats import FORMATS, FormatWord
from qkdemo.labs.drift import Settings, run, snippet
from qkdemo.labs.drift.scale_sweep import Side
from tests.strategies import settings_of

MEASURES = ("max_abs_logit", "top_weight", "entropy", "softmax_slope")
# The program's softmax is float64; the lab's is float32 for the formats up to float32. float32 keeps 7 digits, of a
# logit of some hundreds 5; entropies and slopes below 1e-6 are below what float32 weights resolve.
CLOSE: dict[FormatWord, dict[str, float]] = {
    "float64": {"rel": 1e-9, "abs": 1e-14},
    "float32": {"rel": 1e-4, "abs": 1e-6},
    # one product in a batch may be summed in another order, and then be stored one step away
    "bfloat16": {"rel": 2.0**-7, "abs": 1e-5},
    "float16": {"rel": 2.0**-10, "abs": 1e-5},
}


def output(program: str) -> dict[str, float]:
    """What `program` prints when it is run on its own, here."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(program, "snippet", "exec"), {"__name__": "__main__"})
    measures: dict[str, float] = json.loads(out.getvalue())
    return measures


def lab(state: Settings, side: Side) -> dict[str, float]:
    """The same measures by the lab; those that are not defined are left out, as the program leaves them out."""
    values = {name: float(getattr(side, name)[0]) for name in MEASURES}
    return {name: value for name, value in values.items() if not math.isnan(value)}


def assert_agree(state: Settings) -> None:
    result = run(state, [state.scale])
    for side in result.sides:
        # plain attention has no norm: that switch does not reach it
        printed = output(snippet(state, side.variant))
        expected = lab(state, side)
        assert printed.keys() == expected.keys(), state.to_texts()
        for name, value in expected.items():
            assert printed[name] == pytest.approx(value, **CLOSE[state.format]), (name, state.to_texts())


@pytest.mark.parametrize("format", list(FORMATS))
@pytest.mark.parametrize("variant", list(VARIANTS))
def test_the_program_prints_the_labs_numbers(variant: VariantWord, format: FormatWord) -> None:
    small = Settings(variant=variant, format=format, n_keys=6, d_head=8, gain=7, gamma=1.5, temperature=0.07, softcap=5)
    for causal, inside, n_heads in itertools.product((False, True), (False, True), (1, 2)):
        assert_agree(small.but(causal=causal, norm_in_format=inside, n_heads=n_heads, scale=2, mean=0.3))
        assert_agree(small.but(causal=causal, norm_in_format=inside, n_heads=n_heads, scale=300, head_spread=4))


@given(settings_of(Settings, format="float64"))
@settings(max_examples=60)
def test_in_float64_they_agree_to_nine_digits_in_any_state(state: Settings) -> None:
    assert_agree(state)


@pytest.mark.parametrize(
    "state",
    [
        Settings(),
        Settings(scale=400, format="float16"),
        Settings(scale=400, format="float16", variant="rms", norm_in_format=True),
        Settings(scale=400, format="float16", n_keys=2, causal=True, seed=3),
        # the only row that can choose is undefined, the other sees one key
        Settings(scale=100, format="float16", n_keys=2, causal=True, seed=5),
        # every sum overflows, every centred entry is −∞, every logit no number
        Settings(scale=1000, format="float16", variant="layernorm", norm_in_format=True, mean=3, d_head=256),
        Settings(scale=1000, d_head=256, n_keys=256, n_heads=4, variant="full_width", gamma=10, head_spread=16),
        Settings(scale=0.01, d_head=4, n_keys=2, gamma=0.1, variant="rms"),
        Settings(scale=0.01, d_head=4, n_keys=2, variant="l2"),
        Settings(temperature=0.01, variant="cosine", alignment=0.99),
        Settings(alignment=0.35, mean=2.7, n_heads=3, head_spread=3.5, seed=9999),
    ],
    ids=lambda state: "&".join(f"{name}={text}" for name, text in state.to_texts().items()) or "default",
)
def test_they_agree_at_the_edges_too(state: Settings) -> None:
    assert_agree(state)


@pytest.mark.parametrize("variant", list(VARIANTS))
def test_the_program_imports_numpy_torch_and_json_alone_and_is_short(variant: VariantWord) -> None:
    program = snippet(Settings(), variant)
    imported = [node for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert {name.name for node in imported for name in node.names} == {"json", "numpy", "torch"}
    assert "qkdemo" not in program
    assert len(program.splitlines()) < 60
    assert max(map(len, program.splitlines())) <= 120
    assert "{" + "{" not in program


@pytest.mark.parametrize(
    ("variant", "names"), [("none", set()), ("l2", {"g"}), ("rms", {"gamma"}), ("cosine", {"tau"})]
)
def test_the_program_names_the_dials_that_it_reads_and_no_other(variant: VariantWord, names: set[str]) -> None:
    tree = ast.parse(snippet(Settings(), variant))
    assigned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    assert assigned & {"g", "gamma", "tau", "c"} == names


def test_the_seed_table_comes_out_of_a_file_that_knows_nothing_of_us(tmp_path: Path) -> None:
    program = tmp_path / "table.py"
    program.write_text(snippet(Settings(scale=8)), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-I", str(program)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    printed: dict[str, Any] = json.loads(done.stdout)
    assert {name: f"{value:.3g}" for name, value in printed.items()} == {
        "max_abs_logit": "3.3",
        "top_weight": "0.524",
        "entropy": "2.13",
        "softmax_slope": "0.051",
    }
