"""Watching real classes: nothing changes, and what is measured is what their own attention weights say."""

import copy
import io
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from pyarrow import parquet
from torch import nn
from torch.nn import functional
from torch.nn.functional import scaled_dot_product_attention

from qkdemo import watch
from qkdemo.diagnose.findings.examine import examine_path
from qkdemo.diagnose.watching.report import Report
from tests.diagnose.watching.models import IDS, LANGUAGE_MODELS, VisionAttention, language_model
from tests.serving import ROOT


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_outputs_and_gradients_are_the_same_bit_for_bit(name: str, implementation: str) -> None:
    plain, watched = (language_model(name, implementation) for _ in range(2))
    with watch(watched) as report:
        other = watched(input_ids=IDS, labels=IDS)
        other.loss.backward()
    one = plain(input_ids=IDS, labels=IDS)
    one.loss.backward()
    assert torch.equal(one.logits, other.logits)
    for before, after in zip(plain.parameters(), watched.parameters(), strict=True):
        assert (before.grad is None) == (after.grad is None)
        assert before.grad is None or torch.equal(before.grad, after.grad)
    assert len({row["layer"] for row in report.rows}) == 2
    assert len(report.rows) == 2 * 4


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_what_is_measured_is_what_the_models_own_weights_say(name: str) -> None:
    """Entropy, slope and the first key's share, from the weights that the class itself returns, in float64."""
    model = language_model(name, "eager", torch.float64)
    with torch.no_grad(), watch(model) as report:
        found = model(input_ids=IDS, output_attentions=True)
    for layer, weights in enumerate(found.attentions):
        rows = [row for row in report.rows if f".{layer}." in row["layer"]]
        for row in rows:
            p = weights[:, row["head"]].double()  # [batch, queries, keys]
            entropies, slopes, firsts = [], [], []
            for sequence in p:
                for query in sequence:
                    seen = query[query > 0]
                    slopes += (seen * (1 - seen)).tolist()
                    if len(seen) > 1:
                        entropies.append(float(-(seen * seen.log()).sum()))
                        firsts.append(float(seen[0]))
            assert row["entropy"] == pytest.approx(sum(entropies) / len(entropies), rel=1e-5)
            assert row["softmax_slope"] == pytest.approx(sum(slopes) / len(slopes), rel=1e-5)
            assert row["first_key"] == pytest.approx(sum(firsts) / len(firsts), rel=1e-5)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_q_and_k_are_seen_after_norm_and_rotary_with_the_true_scale(implementation: str) -> None:
    model = language_model("Qwen3", implementation, torch.float64)
    seen: list[tuple[torch.Tensor, torch.Tensor, float]] = []
    original = functional.scaled_dot_product_attention

    def remember(query: torch.Tensor, key: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        seen.append((query.clone(), key.clone(), kwargs["scale"]))
        return original(query, key, *args, **kwargs)

    with torch.no_grad(), watch(model) as report:
        model(input_ids=IDS)
    functional.scaled_dot_product_attention = remember
    try:
        with torch.no_grad():
            language_model("Qwen3", "sdpa", torch.float64)(input_ids=IDS)
    finally:
        functional.scaled_dot_product_attention = original
    causal = torch.ones(12, 12, dtype=torch.bool).tril()
    for layer, (q, k, scale) in enumerate(seen):
        keys = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
        logits = (q @ keys.mT * scale).masked_fill(~causal, 0)
        for row in (row for row in report.rows if f".{layer}." in row["layer"]):
            assert abs(row["max_logit"]) == pytest.approx(logits[:, row["head"]].abs().max().item(), rel=1e-6)


def test_a_vision_transformer_in_timms_way_is_seen_by_its_modules_name() -> None:
    model = nn.Sequential(VisionAttention(), VisionAttention(norm=True))
    x = torch.randn(3, 9, 16)
    before = model(x)
    with watch(model) as report:
        assert torch.equal(model(x), before)
    assert {row["layer"] for row in report.rows} == {"0", "1"}
    normed = [row for row in report.rows if row["layer"] == "1"]
    assert all(row["q_norm_max"] <= math.sqrt(8) for row in normed)  # LayerNorm of eight entries


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("need_weights", [True, False])
def test_multihead_attention_is_seen_once_with_its_masks(batch_first: bool, need_weights: bool) -> None:
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(16, 4, batch_first=batch_first).double()
    x = torch.randn(2, 7, 16, dtype=torch.float64)
    given = x if batch_first else x.transpose(0, 1)
    causal = torch.ones(7, 7, dtype=torch.bool).triu(1)
    options: dict[str, Any] = {"attn_mask": causal, "need_weights": need_weights, "average_attn_weights": False}
    before, weights = layer(given, given, given, **options)
    with watch(layer) as report:
        after, _ = layer(given, given, given, **options)
    assert torch.equal(before, after)
    assert len(report.rows) == 4
    if weights is not None:
        for row in report.rows:
            first = weights[:, row["head"], 1:, 0].mean().item()
            assert row["first_key"] == pytest.approx(first, rel=1e-9)


def test_key_padding_hides_keys() -> None:
    layer = nn.MultiheadAttention(8, 1, batch_first=True)
    x = torch.randn(1, 4, 8)
    with watch(layer) as report:
        layer(x, x, x, key_padding_mask=torch.tensor([[False, False, True, True]]))
    assert report.rows[0]["entropy"] <= math.log(2) + 1e-6


def test_every_hundredth_step_is_measured_and_the_file_has_it(tmp_path: Path) -> None:
    model = VisionAttention()
    report = watch(model, every=3, to=tmp_path / "attention.jsonl")
    for _ in range(7):
        model(torch.randn(1, 5, 16))
    report.close()
    assert sorted({row["step"] for row in report.rows}) == [0, 3, 6]
    lines = [json.loads(line) for line in (tmp_path / "attention.jsonl").read_text(encoding="utf-8").splitlines()]
    assert lines == report.rows
    model(torch.randn(1, 5, 16))
    assert len(report.rows) == len(lines)  # closed: no hook is left


def test_parquet_and_every_writer_get_the_same(tmp_path: Path) -> None:
    class Board:
        def __init__(self) -> None:
            self.kept: dict[str, float] = {}

        def add_scalar(self, name: str, value: float, step: int) -> None:
            self.kept[f"{name}@{step}"] = value

    class Run:
        def __init__(self) -> None:
            self.kept: dict[str, float] = {}

        def log(self, values: dict[str, float], step: int) -> None:
            self.kept |= {f"{name}@{step}": value for name, value in values.items()}

    model, board, run = VisionAttention(), Board(), Run()
    x = torch.randn(1, 5, 16)
    for to in (board, run, tmp_path / "a.parquet"):
        with watch(model, to=to) as report:
            model(x)
    assert board.kept == run.kept
    largest = max(abs(row["max_logit"]) for row in report.rows)
    assert board.kept["attention/VisionAttention/max_abs_logit@0"] == largest
    assert parquet.read_table(tmp_path / "a.parquet").to_pylist() == report.rows


def test_an_optimisers_steps_count_and_its_update_is_measured() -> None:
    torch.manual_seed(0)
    model = VisionAttention()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0)
    report = watch(model, every=2, optimizer=optimizer)
    moved = []
    for _ in range(4):
        model(torch.randn(1, 5, 16)).square().mean().backward()
        model(torch.randn(1, 5, 16)).square().mean().backward()  # gradients are accumulated over two passes
        before = [p.detach().clone() for p in model.parameters()]
        optimizer.step()
        after = [p.detach() for p in model.parameters()]
        moved.append(math.sqrt(sum(float((a - b).square().sum()) for a, b in zip(before, after, strict=True))))
    report.close()
    assert [row["step"] for row in report.steps] == [0, 2]
    assert [row["update_norm"] for row in report.steps] == pytest.approx([moved[0], moved[2]], rel=1e-4)
    assert sorted({row["step"] for row in report.rows}) == [0, 2]
    assert report.steps[1]["exp_avg"] > 0


def test_a_model_that_fails_leaves_nothing_behind() -> None:
    class Failing(VisionAttention):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            super().forward(x)
            raise RuntimeError("no")

    original, model = functional.scaled_dot_product_attention, Failing()
    with watch(model), pytest.raises(RuntimeError, match="no"):
        model(torch.randn(1, 5, 16))
    assert functional.scaled_dot_product_attention is original
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_tensors_of_ones_own_are_measured_by_name() -> None:
    report = watch(nn.Linear(2, 2))
    report.see("mine", torch.ones(1, 1, 3, 4), torch.ones(1, 1, 3, 4))
    report.close()
    assert report.rows[0]["layer"] == "mine"
    assert report.rows[0]["max_logit"] == pytest.approx(2)


def test_the_report_says_its_worst_heads_or_that_it_saw_nothing() -> None:
    assert str(Report()).startswith("No attention call was seen.")
    model = VisionAttention()
    with watch(model) as report:
        model(torch.randn(1, 5, 16))
    assert "VisionAttention head" in str(report)
    assert abs(report.worst(1)[0]["max_logit"]) == report.by_layer()["VisionAttention"]["max_abs_logit"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"every": 0}, "every must be at least 1, but is 0"),
        ({"rows": -1}, "rows must be at least 1"),
        ({"to": 5}, "int"),
    ],
)
def test_wrong_options_get_a_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence):
        watch(nn.Linear(2, 2), **options)


def test_it_needs_torch_alone() -> None:
    program = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("jaxtyping", "streamlit", "pyarrow", "numpy", "sqlalchemy", "transformers"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Refuse())
import torch
from qkdemo import watch
model = torch.nn.MultiheadAttention(8, 2)
with watch(model) as report:
    model(*[torch.randn(3, 1, 8)] * 3)
print(len(report.rows))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "2", done.stderr


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["attention.jsonl", "attention.parquet"])
def test_what_is_noted_is_kept_beside_attention_and_examined_with_it(name: str, tmp_path: Path) -> None:
    """A loss that is lost at step 30, after the logits passed 100 at step 20."""
    model = nn.MultiheadAttention(4, 1, batch_first=True)
    q, k = torch.zeros(1, 1, 6, 4), torch.ones(1, 1, 6, 4)
    with watch(model, to=tmp_path / name) as report:
        for step in range(60):
            x = torch.randn(1, 6, 4)
            model(x, x, x)
            loss = torch.tensor(3.0 - step / 20 if step < 30 else 2.9, requires_grad=True)  # as in a training script
            report.note(loss=loss, lr=0.1)
            report.see("layers.7", q + 1.3**step / 2, k)
    examined = examine_path(tmp_path / name)
    said = {finding.key: finding.sentence for finding in examined.findings}
    assert "Large logits came before that" in said["attention_max_logit"]
    assert "head 0 of layers.7" in said["worst_head"]
    assert [row["loss"] for row in report.steps][:2] == [3.0, pytest.approx(2.95)]


def test_a_watched_file_without_a_loss_is_no_fault(tmp_path: Path) -> None:
    model = nn.MultiheadAttention(4, 1, batch_first=True)
    with watch(model, to=tmp_path / "a.jsonl"):
        for _ in range(8):
            model(*[torch.randn(1, 6, 4)] * 3)
    examined = examine_path(tmp_path / "a.jsonl")
    assert examined.healthy
    assert "report.note(loss=loss)" in examined.findings[0].advice


class Attends(nn.Module):
    """Hands q, k and v to the function that this file imported, as something turns them."""

    def __init__(self, turned: Any = lambda x: x, mask: torch.Tensor | None = None) -> None:
        super().__init__()
        self.turned, self.mask = turned, mask

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.turned(x)
        return scaled_dot_product_attention(x, x, x, attn_mask=self.mask)


X = torch.randn(2, 2, 5, 8, generator=torch.Generator().manual_seed(0))


def test_a_function_that_a_file_imported_by_name_is_seen_and_put_back() -> None:
    original = scaled_dot_product_attention
    with watch(Attends()) as report:
        report._model(X)
    assert {row["layer"] for row in report.rows} == {"Attends"}
    assert scaled_dot_product_attention is original is functional.scaled_dot_product_attention


@pytest.mark.parametrize(
    "turned",
    [lambda x: x[:, :, :0], lambda x: x[:0], lambda x: x.to("meta")],
    ids=["no positions", "no batch", "no data"],
)
def test_what_cannot_be_measured_is_warned_of_and_the_model_goes_on(turned: Any) -> None:
    model = Attends(turned)
    expected = model(X)
    with pytest.warns(RuntimeWarning, match="Attends: a call of attention could not be measured"), watch(model):
        assert model(X).shape == expected.shape


@pytest.mark.parametrize("hides", [-1e4, -1e9, -math.inf, torch.finfo(torch.float32).min])
def test_a_mask_that_is_added_is_no_logit(hides: float) -> None:
    mask = torch.zeros(5, 5).masked_fill(torch.ones(5, 5).triu(1).bool(), hides)
    with watch(Attends(mask=mask)) as added:
        added._model(X)
    with watch(Attends(mask=mask == 0)) as true:
        true._model(X)
    for one, other in zip(added.rows, true.rows, strict=True):
        assert one == pytest.approx(other, nan_ok=True)


@pytest.mark.parametrize("whole", [True, False])
def test_a_compiled_model_is_watched_and_so_is_one_with_a_compiled_part(*, whole: bool) -> None:
    torch._dynamo.reset()
    model, x = nn.Sequential(VisionAttention(), nn.Linear(16, 1)), torch.randn(2, 5, 16)
    called: Any = torch.compile(model, backend="eager") if whole else model
    if not whole:
        model[0] = torch.compile(model[0], backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    with torch.no_grad():
        expected = called(x)
        with watch(called, every=2, optimizer=optimizer) as report:
            for _ in range(4):
                torch.testing.assert_close(called(x), expected)
                optimizer.step()
    assert [row["step"] for row in report.rows if row["head"] == 0] == [0, 2]
    assert {row["layer"] for row in report.rows} == {"0"}


@pytest.mark.parametrize("in_place", [True, False])
def test_parts_that_are_compiled_as_one_graph_are_watched(*, in_place: bool) -> None:
    """As torchtitan compiles each block. A graph of a part has no room for a hook."""
    torch._dynamo.reset()
    model, x = nn.Sequential(VisionAttention(), nn.Linear(16, 1)), torch.randn(2, 5, 16)
    expected = model(x)
    if in_place:
        model[0].compile(backend="eager", fullgraph=True)
    else:
        model[0] = torch.compile(model[0], backend="eager", fullgraph=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    with watch(model, every=2, optimizer=optimizer) as report:
        for _ in range(4):
            torch.testing.assert_close(model(x), expected)
            optimizer.step()
    assert [(row["step"], row["layer"]) for row in report.rows if row["head"] == 0] == [(0, "0"), (2, "0")]


def test_a_copy_of_a_watched_model_is_not_watched(tmp_path: Path) -> None:
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    with watch(model, to=tmp_path / "a.jsonl") as report:
        saved = io.BytesIO()
        torch.save(model, saved)
        copies = [copy.deepcopy(model), torch.load(io.BytesIO(saved.getvalue()), weights_only=False)]
        for each in copies:
            each(X[0])
        assert not report.rows
        model(X[0])
        assert report.rows
