"""`python -m qkdemo diagnose FILE`: exit codes, sentences, JSON and a page that holds no script."""

import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from qkdemo.cli.command import main


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "pair.npz", q=rng.standard_normal((2, 9, 16)), k=rng.standard_normal((2, 9, 16)))
    return tmp_path / "pair.npz"


def test_a_healthy_file_ends_with_0_and_one_with_findings_with_1(
    pair: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diagnose", str(pair)]) == 0
    assert "In order: The largest |logit| is" in capsys.readouterr().out
    assert main(["diagnose", str(pair), "--scale", "100"]) == 1
    assert "Found: In head" in capsys.readouterr().out


def test_json_holds_findings_with_sentences_and_every_table(pair: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(pair), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["kind"] == "tensors"
    assert told["healthy"]
    assert all(finding["sentence"].endswith(".") for finding in told["findings"])
    assert sorted(told["tables"]) == ["formats", "growth", "heads", "variants"]


def test_a_checkpoint_and_a_log_are_told_by_what_they_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = {f"model.layers.0.self_attn.{side}_proj.weight": torch.eye(8) for side in "qk"}
    safetensors.torch.save_file(weights, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text('{"num_attention_heads": 2, "qk_norm": true}', encoding="utf-8")
    assert main(["diagnose", str(tmp_path)]) == 1
    assert "The config says qk_norm, and no gain" in capsys.readouterr().out
    log = tmp_path / "trainer_state.json"
    rows = [{"step": at, "loss": 2.0 - at / 50} for at in range(30)]
    log.write_text(json.dumps({"log_history": rows}), encoding="utf-8")
    assert main(["diagnose", str(log)]) == 0
    assert "no spike, no divergence" in capsys.readouterr().out


def test_the_page_stands_alone_and_no_name_reaches_it_unescaped(tmp_path: Path, pair: Path) -> None:
    evil = tmp_path / "<img src=x onerror=alert(1)>.npz"
    evil.write_bytes(pair.read_bytes())
    assert main(["diagnose", str(evil), "--html", str(tmp_path / "out.html")]) == 0
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert "<img" not in page
    assert "&lt;img src=x" in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere.npz"], "nowhere.npz cannot be opened"),
        (["FILE", "--column", "nothing"], "'nothing' is no column: write role=name"),
        (["FILE", "--html", "/nowhere/at/all.html"], "all.html cannot be written"),
        (["FILE", "--scale", "x"], "invalid float value"),
        ([], "FILE"),
    ],
)
def test_what_cannot_be_read_or_written_ends_with_2_and_one_line(
    pair: Path, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    try:
        code = main(["diagnose", *(word.replace("FILE", str(pair)) for word in words)])
    except SystemExit as end:
        code = int(str(end.code))
    assert code == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1


def test_the_drift_lab_runs_on_the_tensors_of_a_file(pair: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(pair), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert main(["drift", "--tensors", str(pair), "--scale", "1,2", "--variant", "rms", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["settings"]["tensors"] == str(pair)
    assert (found["settings"]["n_heads"], found["settings"]["n_keys"], found["settings"]["d_head"]) == (2, 9, 16)
    largest = {(row["scale"], row["variant"]): row["max_abs_logit"] for row in found["rows"]}
    assert largest[1, "none"] == pytest.approx(max(abs(row["max_logit"]) for row in told["tables"]["heads"]))
    assert largest[2, "none"] == pytest.approx(4 * largest[1, "none"])
    assert largest[2, "rms"] == pytest.approx(largest[1, "rms"], rel=1e-4)


def test_the_drift_lab_says_from_a_shell_what_of_a_file_it_took(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    many = {name: rng.standard_normal((6, 300, 8)) for name in "qk"}
    np.savez(tmp_path / "many.npz", **many)
    assert main(["drift", "--tensors", str(tmp_path / "many.npz")]) == 0
    told = capsys.readouterr().err
    assert "many.npz" in told
    assert "Of its 6 heads the lab takes the worst" in told
    assert "Of 300 positions it takes 25" in told


def test_the_drift_lab_says_what_it_cannot_take_from_a_file(
    pair: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["drift", "--tensors", str(pair), "--n-keys", "4"]) == 2
    assert "n_keys describes q and k that are drawn" in capsys.readouterr().err
    log = tmp_path / "log.csv"
    log.write_text("step,loss\n" + "".join(f"{at},{3 - at / 30}\n" for at in range(30)), encoding="utf-8")
    assert main(["drift", "--tensors", str(log)]) == 2
    assert "log.csv was read as a log" in capsys.readouterr().err
    assert main(["drift", "--tensors", str(tmp_path / "none.npz")]) == 2
    assert "none.npz" in capsys.readouterr().err
