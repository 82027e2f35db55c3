"""Steps that begin anew are counted on where they are of epochs; no row is left out without a word."""

import json

import pytest

from qkdemo.diagnose.findings.examine import examine
from qkdemo.diagnose.readers.columns import Log, roles
from qkdemo.diagnose.readers.logs import read_logs
from tests.diagnose.readers.written import LOSS, NORM, STEPS, events, table

PLACES = [(epoch, step) for epoch in (1, 2, 3) for step in range(10, 70, 10)]
FALLING = [round(8 - 2 * epoch - step / 50, 3) for epoch, step in PLACES]


def printed(line: str, header: str = "", footer: str = "") -> Log:
    """Three epochs of six lines, with a header above or a footer below each."""
    lines = list[str]()
    for (e, s), x in zip(PLACES, FALLING, strict=True):
        lines += [header.format(e=e)] if s == 10 and header else []
        lines += [line.format(e=e, s=s, l=x, before=s - 10)]
        lines += [footer.format(e=e)] if s == 60 and footer else []
    (log,) = read_logs("\n".join(lines).encode(), "train.log")
    return log


@pytest.mark.parametrize(
    "line",
    [
        "Training Epoch: {e}/3, step {s}/60 completed (loss: {l}):  9%|▉  | {s}/60 [00:01<00:10,  1.00s/it]",
        "03/01 10:00:00 - mmengine - INFO - Epoch(train)  [{e}][ {s}/60]  lr: 1.0e-04  loss: {l}",
        "Epoch: [{e}/3], Step: [{s}/60], Loss: {l}",
        "INFO:root:Epoch[{e}] Batch [{s}-{s}]\tSpeed: 100.0 samples/sec\tloss={l}",
        "[2021-04-01 10:00:00 tiny](main.py 208): INFO Train: [{e}/300][{s}/60]\teta 0:09:00 lr 0.1\tloss {l} (7.0)",
        "[{e}/3][{s}/60] loss: {l}",
        "[{e},    {s}] loss: {l}",
    ],
)
@pytest.mark.parametrize(
    "footer",
    ["", "Test: [0/98]\tTime 0.2 (0.3)\tLoss 9.0 (9.0)", "Epoch(val)  [{e}][20/20]  loss: 9.0", "Epoch {e}: mean 9.0"],
)
def test_steps_of_an_epoch_are_counted_on_whatever_prints_them(line: str, footer: str) -> None:
    """As llama-recipes, MMEngine, MXNet, Swin and PyTorch's examples; an evaluation has losses of its own."""
    log = printed(line, footer=footer)
    assert (log.steps, log.step.tolist()) == ("epochs", list(range(10, 190, 10)))
    assert log.columns[roles(log)["loss"]].tolist() == FALLING
    assert (log.rows, log.kept) == (18, 18)


@pytest.mark.parametrize(
    ("line", "header"),
    [
        ("loss: {l}  [{s:>5d}/60000]", "Epoch {e}\n-------------------"),
        (
            "Epoch Step: {s:6d} | Accumulation Step: 1 | Loss: {l} | Learning Rate: 1.0e-05",
            "[GPU0] Epoch {e} Training ==",
        ),
    ],
)
def test_an_epoch_may_be_named_above_its_lines(line: str, header: str) -> None:
    """As in PyTorch's tutorial and in the Annotated Transformer. Where the heads are left out, the loss goes on."""
    for head, word in ((header, "epochs"), ("", "passes")):
        log = printed(line, head)
        assert (log.steps, log.step.tolist()) == (word, list(range(10, 190, 10)))
        assert log.columns["loss"].tolist() == FALLING


def test_a_loss_that_jumps_in_the_second_epoch_and_stays_is_found() -> None:
    losses = [2.0 + 6 / (1 + at / 20) + (4.5 if at >= 70 else 0) for at in range(150)]
    lines = [f"Epoch: [{at // 50 + 1}/3], Step: [{at % 50 + 1}/50], Loss: {x:.4f}" for at, x in enumerate(losses)]
    report = examine("\n".join(lines).encode(), "train.log")
    assert [(event["kind"], event["from"]) for event in report.tables["events"]] == [("divergence", 71.0)]


def test_an_epoch_that_was_started_once_more_replaces_its_first_try() -> None:
    rows = [{"epoch": e, "step": s, "loss": x} for (e, s), x in zip(PLACES, FALLING, strict=True)]
    again = [*rows[:9], *({**row, "loss": row["loss"] + 0.1} for row in rows[6:12]), *rows[12:]]
    (log,) = read_logs(table(again), "x.csv")
    assert (log.steps, log.step.tolist()) == ("epochs", list(range(10, 190, 10)))
    assert log.columns["loss"].tolist()[6:12] == [x + 0.1 for x in FALLING[6:12]]
    assert (log.rows, log.kept) == (21, 18)


def test_runs_one_after_the_other_are_no_epochs() -> None:
    """Each begins with the first one's loss, or goes on from a later step than the first: the last run counts."""
    runs = [{"step": s, "loss": x} for _ in range(3) for s, x in zip(STEPS, LOSS, strict=True)]
    retried = [{"step": s, "loss": 4 - s / 100} for s in (*range(0, 200, 10), *[*range(100, 200, 10)] * 2)]
    once = [{"step": s, "loss": x} for (_, s), x in zip(PLACES[:12], FALLING, strict=False)]
    blocks = [{"step": s, name: x} for name in ("loss", "lr", "x") for s, x in zip(STEPS, LOSS, strict=True)]
    for rows, kept in ((runs, 8), (retried, 20), (once, 6), (blocks, 24)):
        (log,) = read_logs(table(rows), "x.csv")
        assert (log.steps, log.rows, log.kept) == ("named", len(rows), kept)


def test_rows_that_others_replace_are_said_and_rows_of_one_step_are_not() -> None:
    first = [{"step": s, "loss": 3.0 - s / 50} for s in range(60)]
    second = [{"step": s, "loss": 5.0} for s in range(40, 50)]
    evaluated = [{"step": s, "eval_loss": 2.0} for s in range(0, 60, 10)]
    twice = [row for row in first for _ in "ab"]

    def sentences(rows: list[dict[str, float]]) -> list[str]:
        findings = examine("\n".join(map(json.dumps, rows)).encode(), "run.jsonl").findings
        return [finding.sentence for finding in findings if finding.key == "replaced"]

    (one,), (other,) = sentences(first + second), sentences(twice)
    assert "Of 70 rows 50 were looked at. Where a step stands more than once, its last row counts." in one
    assert "Of 120 rows 60 were looked at." in other
    assert sentences([*first, *evaluated]) == []


def test_an_event_file_says_what_was_replaced_too() -> None:
    (log,) = read_logs(events() + events(), "events")
    assert (log.columns["train/loss"].tolist(), log.columns["train/grad_norm"].tolist()) == (LOSS, NORM)
    assert (log.rows, log.kept) == (16, 8)


def test_a_log_whose_last_line_is_cut_is_read_without_it() -> None:
    lines = [json.dumps({"current_steps": s, "loss": x}) for s, x in zip(STEPS, LOSS, strict=True)]  # LLaMA-Factory's
    whole, cut = ("\n".join([*lines, end]).encode() for end in ("", '{"current_steps": 90, "los'))
    for data, said in ((whole, []), (cut, ["cut_line"])):
        (log,) = read_logs(data, "trainer_log.jsonl")
        assert (log.steps, log.step.tolist(), log.columns["loss"].tolist()) == ("named", STEPS, LOSS)
        assert [x.key for x in examine(data, "trainer_log.jsonl").findings if x.key == "cut_line"] == said


@pytest.mark.parametrize(
    ("total", "part"),
    [
        ("total_loss", "mlm_loss"),
        ("total_loss", "loss_cls"),
        ("loss/total", "loss/a"),
        ("loss", "ce"),
        ("loss", "total_loss"),
    ],
)
def test_a_total_is_the_loss_and_not_one_of_its_parts(total: str, part: str) -> None:
    """As BERT's and detectron2's. What stands beside a bare loss may be summed over steps."""
    (log,) = read_logs(table([{"step": s, part: 0.1, total: x} for s, x in zip(STEPS, LOSS, strict=True)]), "x.csv")
    assert roles(log)["loss"] == total


@pytest.mark.parametrize("beside", ["mean_token_accuracy", "completions/mean_length", "reward", "kl"])
def test_an_entropy_of_tokens_is_not_that_of_attention(beside: str) -> None:
    """As TRL logs it; the same column alone may be of attention, which a sentence says."""
    rows = [{"step": s, "loss": x, "entropy": 0.03, beside: 0.5} for s, x in zip(STEPS, LOSS, strict=True)]
    (log,) = read_logs(table(rows), "x.csv")
    assert "entropy" not in roles(log)
    (named,) = read_logs(table([{**row, "attn/entropy": 0.5} for row in rows]), "x.csv")
    assert roles(named)["entropy"] == "attn/entropy"


@pytest.mark.parametrize(
    "first",
    [
        "using world size: 8, data-parallel size: 8, tensor-model-parallel size: 1",
        "tokens per iteration will be: 491,520",
        "2024-01-01 12:00:00,123 - INFO - Starting training",
        "GPU available: True (cuda), used: True",
        "loss; throughput; memory of every rank follow",
    ],
)
def test_a_printed_log_may_begin_with_a_line_that_looks_like_a_header(first: str) -> None:
    lines = [f"iter {s}: loss {x:.4f}, time 12.50ms" for s, x in zip(STEPS, LOSS, strict=True)]
    (log,) = read_logs("\n".join([first, *lines]).encode(), "train.log")
    assert (log.kind, log.step.tolist()) == ("lines", STEPS)
    assert log.columns["loss"].tolist() == pytest.approx(LOSS, abs=1e-4)


@pytest.mark.parametrize("header", ["epoch, step, loss", '"epoch", "step", "loss"', "epoch,Iterations,loss"])
def test_blanks_around_the_names_of_a_table_are_no_part_of_them(header: str) -> None:
    rows = [f"0, {s}, {x}" for s, x in zip(STEPS, LOSS, strict=True)]
    (log,) = read_logs("\n".join([header, *rows]).encode(), "x.csv")
    assert (log.steps, log.step.tolist(), log.columns["loss"].tolist()) == ("named", STEPS, LOSS)


@pytest.mark.parametrize("first", [True, False])
def test_of_a_history_the_steps_of_the_trainer_count_and_not_its_calls_of_wandb(first: bool) -> None:
    """As Hugging Face's Trainer has W&B's charts count; a row without one is of the last."""
    own = "train/global_step"
    rows = [{"_step": at, own: s, "train/loss": x} for at, (s, x) in enumerate(zip(STEPS, LOSS, strict=True))]
    rows.insert(4, {"_step": 3.5, "other": 1.0})
    rows = [row if first else dict(reversed(row.items())) for row in rows]
    (log,) = read_logs("\n".join(map(json.dumps, rows)).encode(), "history.jsonl")
    assert log.step.tolist() == STEPS
    assert set(log.columns) == {"train/loss", "other"}
    beside = [{"_step": at, "train/loss": x} | ({own: 7} if at == 3 else {}) for at, x in enumerate(LOSS)]
    (log,) = read_logs("\n".join(map(json.dumps, beside)).encode(), "history.jsonl")
    assert log.step.tolist() == list(range(8))
