"""Lines as trainers print them are read to the same columns as tables: steps, places, bars, blocks and dictionaries."""

import re
from contextlib import suppress

import numpy as np
import pytest

from qkdemo.diagnose.readers.columns import roles
from qkdemo.diagnose.readers.inputs import InputError
from qkdemo.diagnose.readers.logs import read_logs
from qkdemo.diagnose.readers.printed import rows_of
from tests.diagnose.readers.written import LOSS, NORM, STEPS, lines, table


@pytest.mark.parametrize("mark", ["train/CrossEntropyLoss", "train/CE loss"])
def test_the_blocks_below_a_step_that_olmo_prints_are_its(mark: str) -> None:
    head = "2025-02-01 10:00:00.1 host:0 olmo.train:816 INFO [step={s}/739,328,epoch=1]\n"
    block = head + "    optim/total_grad_norm={g}\n    " + mark + "={l}\n    throughput/total_tokens={s},000\n"
    (log,) = read_logs(lines(block + "    optim/LR (group 0)=0.0003"), "run.log")
    known = roles(log)
    assert log.step.tolist() == STEPS
    assert known["loss"] == mark.lower()
    assert [log.columns[known[role]].tolist() for role in ("loss", "grad_norm")] == [LOSS, NORM]


def test_the_bars_that_keras_prints_are_read() -> None:
    places = [(e, s) for e in range(3) for s in range(1, 9)]
    line = "\x1b[1m{s}/8\x1b[0m \x1b[32m━━━\x1b[0m\x1b[37m━\x1b[0m \x1b[1m5s\x1b[0m 2ms/step - accuracy: 0.5"
    line += " - loss: {l:.4f}"
    bars = [line.format(s=s, l=3 - e / 2 - s / 100) for e, s in places]
    text = "\n".join(f"Epoch {e + 1}/3\n" + "\r".join(bars[8 * e : 8 * e + 8]) + "\x08\x08" for e in range(3))
    (log,) = read_logs(text.encode(), "x.log")
    assert (log.steps, log.step.tolist()) == ("epochs", list(range(1, 25)))
    assert log.columns["loss"].tolist() == [round(3 - e / 2 - s / 100, 4) for e, s in places]
    for end in (
        "8/8 - 5s - 3ms/step - loss: {l} - accuracy: 0.5",
        "8/8 [=====] - 5s 3ms/step - loss: {l} - val_loss: 9.0",
    ):
        text = "\n".join(f"Epoch {e}/8\n{end.format(l=x)}" for e, x in enumerate(LOSS, 1))
        (log,) = read_logs(text.encode(), "x.log")
        assert (log.steps, roles(log)["loss"], log.columns["loss"].tolist()) == ("rows", "loss", LOSS)


@pytest.mark.parametrize(
    "line",
    ["step {s:,} | loss: {l}", "Step {s:,}/2,000 loss {l}", "global_step={s}, loss={l}", "train_step: {s:,} loss: {l}"],
)
def test_a_step_above_a_thousand_is_read_as_it_is_written(line: str) -> None:
    steps = [200 * at for at in range(len(LOSS))]
    data = "\n".join(line.format(s=s, l=x) for s, x in zip(steps, LOSS, strict=True)).encode()
    rows = [{"step": f"{s:,}", "loss": f"{1000 * x:,}"} for s, x in zip(steps, LOSS, strict=True)]
    for log, times in ((read_logs(data, "x")[0], 1), (read_logs(table(rows), "x.csv")[0], 1000)):
        assert log.step.tolist() == steps
        assert log.columns["loss"].tolist() == [times * x for x in LOSS]


def test_what_the_trainer_prints_is_read_beside_its_bar() -> None:
    """With the numbers as numbers, or as text; NaN as Python prints it."""
    bar = "\r {at}%|##        | {at}/80 [00:10<01:30,  5.0it/s]"
    for quote in ("", "'"):
        printed = [f"{{'loss': {quote}{x}{quote}, 'grad_norm': nan, 'epoch': {quote}0.1{quote}}}" for x in LOSS]
        for text in (
            printed,
            [bar.format(at=1), *printed],
            [x for at, y in enumerate(printed) for x in (y, bar.format(at=at))],
        ):
            (log,) = read_logs("\n".join(text).encode(), "x")
            assert (log.kind, log.steps) == ("lines", "rows")
            assert log.columns["loss"].tolist() == LOSS
            assert np.isinf(log.columns["grad_norm"]).all()


def test_dictionaries_are_read_below_lines_that_begin_with_a_level_and_beside_steps_without_a_loss() -> None:
    """As transformers' logger and DeepSpeed print them."""
    dicts = [f"{{'loss': {x}, 'epoch': 0.1}}" for x in LOSS]
    level = ["[INFO|trainer.py:2134] 2024-05-01 10:00:00,123 >> ***** Running training *****", *dicts]
    rank = "[2024-05-01 10:00:00,1] [INFO] [logging.py:96:log_dist] [Rank 0] step={}, skipped=0, lr=[1e-05]"
    beside = [line for at, x in enumerate(dicts) for line in (rank.format(at), x)]
    settings = ["{'width': 64}", *(f"step {s}: loss {x}" for s, x in zip(STEPS, LOSS, strict=True))]
    for shown in (level, beside, beside[1:], settings):
        (log,) = read_logs("\n".join(shown).encode(), "x")
        assert (log.kind, log.columns["loss"].tolist()) == ("lines", LOSS)


@pytest.mark.parametrize("long", ["a", " ", "1", "a.b-", "step ", "loss ", "max", "=1", "1.", "e1"])
def test_a_line_of_any_length_takes_a_time_like_its_length(long: str) -> None:
    """In a time like the square of its length each of these lines would take many minutes."""
    line = "step 1 loss: " + long * (200_000 // len(long)) + "x\n"
    with suppress(InputError):
        read_logs(line.encode(), "x.log")


@pytest.mark.parametrize(
    "line",
    [
        "Epoch [{e}/3], Step [{s}/60], Loss: {l:.3f}",
        "epoch {e} | step {s} | loss {l:.3f}",
        "Epoch: {e} iter: {s} loss: {l:.3f}",
    ],
)
def test_printed_steps_of_an_epoch_are_counted_on(line: str) -> None:
    text = "\n".join(line.format(e=e, s=s, l=3 - e - s / 100) for e in (1, 2, 3) for s in range(10, 70, 10))
    (log,) = read_logs(text.encode(), "x.log")
    assert (log.steps, log.step.tolist()) == ("epochs", list(range(10, 190, 10)))
    assert log.columns["loss"].tolist() == [round(3 - e - s / 100, 3) for e in (1, 2, 3) for s in range(10, 70, 10)]


@pytest.mark.parametrize(
    "line",
    [
        "Train Epoch: {epoch} [{step}/60000 (1%)]\tLoss: {loss}",
        "Epoch: [{epoch}][  {step}/5005]\tTime  0.234 ( 0.500)\tLoss {loss} (7.0)",
        "Epoch [{epoch}][{step}/600]\tlr: 1.000e-02, loss: {loss}",
        "Epoch {epoch}:  9%|█   | {step}/50 [00:01<00:10,  9.1it/s, train_loss={loss}]",
        "Train: {epoch} [ {step}/1251 (  9%)]  Loss: {loss} (6.9)",
    ],
)
def test_places_of_a_printed_epoch_are_counted_on(line: str) -> None:
    places = [(epoch, step) for epoch in (1, 2) for step in range(10, 60, 10)]
    text = "\n".join(line.format(epoch=e, step=s, loss=f"{5 / (50 * e + s):.4f}") for e, s in places)
    (log,) = read_logs(text.encode(), "run")
    assert (log.steps, log.step.tolist()) == ("epochs", [float(x) for x in range(10, 110, 10)])
    assert log.columns[roles(log)["loss"]].tolist() == [float(f"{5 / (50 * e + s):.4f}") for e, s in places]


def test_a_printed_number_with_commas_between_thousands_is_read_whole() -> None:
    for written, read in (
        ("1,234.5", 1234.5),
        ("12,345", 12345.0),
        ("1,234,567.25", 1234567.25),
        ("-1,234.5", -1234.5),
    ):
        (row, *_) = rows_of(f"step 10 loss: {written}, tps: 1,234\n")
        assert (float(row["loss"]), row["tps"]) == (read, "1234")
    assert rows_of("step 10 loss: 0,912 | lr: 2") == [
        {"step": "10", "lr": "2"}
    ]  # with a decimal comma: no number is told


def test_a_header_whose_cells_name_a_step_is_one_of_a_table_whatever_else_it_names() -> None:
    """As Lightning wrote metrics.csv with `track_grad_norm=2`."""
    for header in ("epoch,grad_2.0_norm_total,step,train_loss", '"epoch","q_0.99 step 5","global_step","train_loss"'):
        text = "\n".join([header, *(f"0,{x},{step},{y}" for step, x, y in zip(STEPS, NORM, LOSS, strict=True))])
        (log,) = read_logs(text.encode(), "metrics.csv")
        assert (log.kind, log.step.tolist(), log.columns["train_loss"].tolist()) == ("csv", STEPS, LOSS)
        assert ("grad_2.0_norm_total" in header) is (roles(log).get("grad_norm") == "grad_2.0_norm_total")


def test_a_printed_line_with_commas_whose_first_one_names_a_step_beside_its_number_stays_one() -> None:
    for line in ("step: {s}, loss: {x}", "step, {s}, step: {s}, loss: {x}"):
        text = "\n".join(line.format(s=s, x=x) for s, x in zip(STEPS, LOSS, strict=True))
        (log,) = read_logs(text.encode(), "x.log")
        assert (log.kind, log.columns["loss"].tolist()) == ("lines", LOSS)


def bar(at: int, of: int, **named: str) -> str:
    """A line of the bar of Lightning 2, as its `Tqdm.format_num` writes numbers: five characters or more."""
    numbers = ", ".join(f"{name}={value}" for name, value in named.items())
    return f"Epoch 0: {100 * at // of:3d}%|██    | {at}/{of} [00:10<01:30, 10.00it/s, {numbers}]"


def test_steps_that_are_printed_in_thousands_drop_no_row_and_name_no_wrong_step() -> None:
    """As LeRobot prints them: 800, then 1K several times."""
    steps = range(200, 8200, 200)
    shown = [f"{step}" if step < 1000 else f"{round(step / 1000)}K" for step in steps]
    losses = [5 - 0.05 * at for at in range(len(steps))]
    text = "\n".join(f"INFO train.py:447 step:{at} smpl:{at} loss:{x:.3f}" for at, x in zip(shown, losses, strict=True))
    (log,) = read_logs(text.encode(), "lerobot.log")
    assert (log.steps, log.rows, log.kept) == ("rows", 40, 40)
    np.testing.assert_allclose(log.columns["loss"], losses, atol=1e-3)
    (log,) = read_logs("\n".join(f"step: {at}K loss: 2.5" for at in range(1, 20)).encode(), "a.log")
    assert log.step.tolist() == [1000 * at for at in range(1, 20)]


@pytest.mark.parametrize(
    ("shown", "step"),
    [("1{}k", 1e4), ("1,00{}K", 1e6), ("1{}M", 1e7), ("2{}b", 20), ("1{}.0e+3", 1e4), ("1{}", 10), ("1,00{}", 1000)],
)
def test_a_step_in_any_spelling_is_read(shown: str, step: float) -> None:
    """A letter that is none of k, K, M and B does not count."""
    text = "\n".join(f"step {shown.format(at)} loss: 2.5" for at in range(8))
    (log,) = read_logs(text.encode(), "a.log")
    assert (log.step[0], len(log.step)) == (step, 8)


def test_steps_that_a_bar_rounds_are_those_of_its_count() -> None:
    """From 100,000 on NeMo's bar shows three digits of a step."""
    steps = range(139_000, 145_000, 200)
    rows = [bar(at, 300_000, loss="5.010", global_step=f"{at:.3g}", consumed="3.55e+7") for at in steps]
    assert len(set(re.findall(r"step=([^,]*)", "".join(rows)))) < len(rows)
    (log,) = read_logs("\r".join(rows).encode(), "nemo.log")
    assert log.step.tolist() == list(steps)
    rows = [bar(at, 300, loss="5.010", global_step=f"{at}.00"[:5]) for at in range(1, 20)]
    assert read_logs("\r".join(rows).encode(), "nemo.log")[0].step.tolist() == list(range(1, 20))


@pytest.mark.parametrize("lost", ["nan.0", "inf.0", "-inf."])
def test_a_loss_that_a_bar_fills_up_to_five_characters_is_not_finite(lost: str) -> None:
    rows = [bar(at, 1000, train_loss=lost if at == 500 else "2.500") for at in range(100, 1000, 100)]
    (log,) = read_logs("\r".join(rows).encode(), "bar.log")
    assert log.step[np.isinf(log.columns["train_loss"])].tolist() == [500]


def test_rows_of_evaluations_are_no_steps_where_rows_are_counted() -> None:
    """As the Trainer prints them: after every fourth loss, of six sets."""
    sets = [f"{{'eval_{at}_loss': '2.5', 'eval_{at}_runtime': '1.2', 'epoch': '0.5'}}" for at in range(6)]
    lines = [sets[0]]  # eval_on_start
    for at in range(20):
        lines += [f"{{'loss': '{3 - 0.1 * at:.1f}', 'epoch': '{at / 20}'}}", *(sets if at % 4 == 3 else [])]
    (log,) = read_logs("\n".join(lines).encode(), "trainer.log")
    assert (log.steps, log.step.tolist()) == ("rows", list(range(20)))
    np.testing.assert_allclose(log.columns["loss"], 3 - 0.1 * np.arange(20))


def test_the_console_of_composer_is_read_with_the_block_below_each_place() -> None:
    blocks = [
        f"[batch={at}/3125]:\n\t Train time/batch: {at - 1}\n\t Train loss/train/total: {9 - at / 100:.4f}\n"
        f"\t Train metrics/train/LanguageCrossEntropy: {9 - at / 100:.4f}\n"
        for at in range(20, 220, 20)
    ]
    (log,) = read_logs("".join(blocks).encode(), "composer.log")
    assert (log.kind, log.step.tolist()) == ("lines", list(range(20, 220, 20)))
    np.testing.assert_allclose(log.columns["train loss/train/total"], 9 - log.step / 100)


def test_lines_whose_first_one_has_a_comma_are_no_table() -> None:
    """As nanochat begins."""
    first = ["Tokens / batch: 524,288", "Number of parameters: 560,988,160", "Step 00000 | Validation bpb: 3.6623"]
    lines = [f"step {at:05d}/00300 (0.33%) | loss: {9 - at / 50:.4f} | lrm: 1.00 | dt: 412.1ms" for at in range(60)]
    (log,) = read_logs("\n".join([*first, *lines]).encode(), "train.log")
    assert log.columns["loss"].size == 60
    assert log.step[-1] == 59
