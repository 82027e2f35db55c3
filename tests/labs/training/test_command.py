"""`python -m qkdemo train` and `sensitivity`."""

import errno
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import torch

from qkdemo.cli.command import COMMANDS, main
from qkdemo.labs.training.command import COMMAND, differing
from qkdemo.runs.batches import LARGEST_BATCH, together, train_all
from qkdemo.training.settings import Settings
from qkdemo.training.telemetry import CURVES

TINY = ["--n-keys", "8", "--d-head", "8", "--batch", "2", "--n-layers", "1"]
KEYS = [
    *("variant", "seed", "outcome", "learnt_first", "final_loss", "max_abs_logit", "final_entropy_fraction"),
    *("final_softmax_slope", "first_step_logit_over_100", "lost_at", "diverged_at"),
]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, *TINY, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_train_reports_every_run_and_counts_them(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "train", "--variant", "none,rms,l2", "--seeds", "0:2", "--steps", "20")
    assert list(found) == ["lab", "settings", "made_with", "runs", "summary"]
    assert [(run["variant"], run["seed"]) for run in found["runs"]] == [
        (variant, seed) for variant in ("none", "rms", "l2") for seed in (0, 1)
    ]
    assert all(set(KEYS) <= set(run) for run in found["runs"])
    assert found["settings"]["seed"] == [0, 1]
    for word, counts in found["summary"].items():
        outcomes = [run["outcome"] for run in found["runs"] if run["variant"] == word]
        assert [counts[outcome] for outcome in ("solved", "partly", "failed")] == [
            outcomes.count(outcome) for outcome in ("solved", "partly", "failed")
        ]


def test_train_compares_plain_and_rms_by_default_and_says_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--steps", "20", *TINY]) == 0
    out, error = capsys.readouterr()
    assert out.split()[0] == "variant"
    assert [line.split()[0] for line in out.splitlines()[-2:]] == ["none", "rms"]
    assert error.splitlines()[-1].endswith("40 of 40 run-steps")


def test_every_step_can_be_kept_in_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "runs.parquet"
    found = printed(capsys, "train", "--seeds", "3:5", "--steps", "20", "--parquet", str(file))
    table = pyarrow.parquet.read_table(file)
    assert table.column_names == ["run", "variant", "seed", "step", *CURVES]
    assert table.num_rows == 4 * 20
    rows = [row for row in table.to_pylist() if row["variant"] == "rms" and row["seed"] == 4]
    assert [row["step"] for row in rows] == list(range(1, 21))
    last = next(run for run in found["runs"] if run["variant"] == "rms" and run["seed"] == 4)
    assert sum(row["loss"] for row in rows) / 20 == pytest.approx(last["final_loss"])


def test_a_file_that_cannot_be_written_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["train", "--steps", "20", *TINY, "--parquet", str(tmp_path / "missing" / "runs.parquet")]) == 2
    error = capsys.readouterr().err.splitlines()
    assert len(error) == 1  # said before anything was trained
    assert error[0].endswith("runs.parquet cannot be written: No such file or directory.")


def test_ranges_and_single_values_make_one_list_and_none_is_trained_twice(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "train", "--variant", "rms", "--seeds", "7,0:2,1,7", "--steps", "20", *TINY)
    assert [run["seed"] for run in found["runs"]] == [7, 0, 1]
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "0:20 stands for 0, 1, …, 19." in told
    assert "0.25 nats and 15 % above" in told
    for column in ("learnt_at", "lost_at", "spikes", "diverged_at", "non_finite_at"):
        assert f"{column}: " in told


def test_a_disk_that_is_full_after_the_work_leaves_the_file_and_prints_the_report(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "runs.parquet"
    file.write_bytes(b"of an earlier run")

    def full(path: Path, data: bytes) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert main(["train", "--steps", "20", *TINY, "--json", "--parquet", str(file)]) == 1
    said = capsys.readouterr()
    assert len(json.loads(said.out)["runs"]) == 2
    assert said.err.endswith(f"qkdemo: {file} cannot be written: No space left on device.\n")
    assert file.read_bytes() == b"of an earlier run"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_an_interrupted_command_says_so_in_a_line() -> None:
    command = [sys.executable, "-m", "qkdemo", "train", "--steps", "3000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    process.stderr.readline()  # the first line of its progress
    process.send_signal(signal.SIGINT)
    out, error = process.communicate()
    assert (process.returncode, out) == (130, "")
    assert error.splitlines()[-1] == "qkdemo: interrupted before the end."
    assert "Traceback" not in error


def test_sensitivity_has_a_point_per_rate_and_a_number_per_variant(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(
        capsys, "sensitivity", "--learning-rate", "0.1,0.001", "--seeds", "0:2", "--steps", "20", "--warmup", "2"
    )
    assert list(found) == ["lab", "settings", "made_with", "curve", "summary"]
    assert [(point["variant"], point["learning_rate"]) for point in found["curve"]] == [
        (variant, rate) for variant in ("none", "rms") for rate in (0.001, 0.1)
    ]
    for word in ("none", "rms"):
        means = [point["mean_final_loss"] for point in found["curve"] if point["variant"] == word]
        assert found["summary"][word]["lr_sensitivity"] == pytest.approx(sum(means) / 2 - min(means))
        for point in found["curve"]:
            assert point["lowest"] <= point["mean_final_loss"] <= point["highest"]
            assert point["solved"] + point["partly"] + point["failed"] == 2
            assert "median_max_abs_logit" in point
            assert "max_abs_logit" not in point  # that is one run's


@pytest.mark.parametrize("word", [word for word, command in COMMANDS.items() if command.train])
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--variant", "qknorm"], "variant is 'qknorm', which is not known here."),
        (
            ["--seeds", "0:"],
            "seed is '0:', which is no range. A range is two whole numbers",
        ),
        (["--seeds", "5:5"], "seed is '5:5', which is no range."),
        (["--seeds", "1,20:0"], "seed is '20:0', which is no range."),
        (["--seeds", "0:20:2"], "seed is '0:20:2', which is no range."),
        (["--seeds", "0:99999"], "0:20 is 0, 1, …, 19; at most 10000 values."),
        (["--learning-rate", "1:3"], "learning_rate must be between 0.00001 and 3"),
    ],
)
def test_a_wrong_word_ends_with_one_line(
    word: str, arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if arguments[0] == "--learning-rate":
        arguments, sentence = ["--learning-rate", "7"], "learning_rate must be between"
    assert main([word, *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_runs_share_a_batch_only_if_their_shapes_and_lengths_agree() -> None:
    runs = [Settings(seed=at) for at in range(20)] + [Settings(steps=40), Settings(n_layers=1), Settings(variant="l2")]
    batches = together(runs)
    assert sorted(at for batch in batches for at in batch) == list(range(23))
    assert [len(batch) for batch in batches] == [LARGEST_BATCH, 5, 1, 1]
    assert differing(runs) == ["steps", "n_layers"]


def test_presets_are_allowed_and_differ() -> None:
    assert len(set(COMMAND.presets.values())) == len(COMMAND.presets)


def test_training_keeps_torch_to_one_thread_and_gives_the_others_back() -> None:
    torch.set_num_threads(2)
    try:
        seen: list[int] = []
        train_all([Settings(n_keys=8, d_head=8, steps=20)], lambda done, total: seen.append(torch.get_num_threads()))
        assert set(seen) == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
