"""The phase diagram is trained once, goes on where it was stopped, and its record is what training gives."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from qkdemo.maps import phases
from qkdemo.maps.phase_picture import alt, finding, phase_spec, phase_table
from qkdemo.maps.phases import RATES, RECORDED, RUNS, SEEDS, STARTS, cells, here, read, rows, train
from qkdemo.training.outcome import Outcome
from qkdemo.training.settings import Settings, identity


def quick(runs: Sequence[Settings]) -> list[Outcome]:
    """Another executor: says who solves it without training."""
    made = here([phases.BASE.but(steps=20)])[0]
    word = {True: "solved", False: "failed"}
    return [
        Outcome(
            **{**vars(made), "outcome": word[run.learning_rate < 0.01], "end": "chance", "final_loss": float("inf")}
        )
        for run in runs
    ]


def test_the_record_that_ships_is_whole() -> None:
    ends = read()
    assert {identity(end.settings) for end in ends} == {identity(run) for run in RUNS}
    assert len(RUNS) == 2 * len(RATES) * len(STARTS) * len(SEEDS) == 486


def test_recorded_runs_end_as_they_do_when_they_are_trained_here() -> None:
    """Where the seeds of a cell agree: at a border rounding decides."""
    clear = [cell for cell in cells(read()) if max(cell.counts.values()) == cell.seeds]
    drawn = random.Random(5).sample(clear, 6)
    variants = phases.VARIANTS
    runs = [
        phases.BASE.but(variant=variants[cell.role], learning_rate=cell.learning_rate, qk_start=cell.qk_start)
        for cell in drawn
    ]
    assert [outcome.outcome for outcome in here(runs)] == [next(iter(cell.counts)) for cell in drawn]


def test_stopped_half_way_it_goes_on_and_trains_nothing_twice(tmp_path: Path) -> None:
    file, asked = tmp_path / "phases.jsonl", list[str]()

    def stops(runs: Sequence[Settings]) -> list[Outcome]:
        if len(asked) >= 100:
            raise KeyboardInterrupt
        asked.extend(identity(run) for run in runs)
        return quick(runs)

    with pytest.raises(KeyboardInterrupt):
        train(file, stops)
    assert len(read(file)) == len(asked) == 112
    whole = file.read_text(encoding="utf-8")
    file.write_text(whole[:-30], encoding="utf-8")  # killed while it wrote
    assert len(read(file)) == 111
    again = list[str]()

    def counts(runs: Sequence[Settings]) -> list[Outcome]:
        again.extend(identity(run) for run in runs)
        return quick(runs)

    assert len(train(file, counts)) == 486
    assert len(again) == 486 - 111
    assert not {*again} & {*asked[:-1]}
    assert train(file, lambda runs: pytest.fail("nothing is missing")) is not None


def test_a_cell_counts_its_seeds_and_a_loss_that_is_infinite_is_kept(tmp_path: Path) -> None:
    ends = train(tmp_path / "phases.jsonl", quick)
    made = cells(ends)
    assert len(made) == 162
    assert {cell.seeds for cell in made} == {3}
    assert {cell.solved for cell in made if cell.learning_rate < 0.01} == {3}
    assert {cell.solved for cell in made if cell.learning_rate > 0.01} == {0}
    assert {end.final_loss for end in ends} == {float("inf")}
    assert [row["solved"] for row in rows(made)[:9]] == [3, 3, 3, 0, 0, 0, 0, 0, 0]


def test_large_weights_at_the_start_cost_plain_attention_rates_and_rmsnorm_none() -> None:
    """The claim that the picture makes."""
    made = cells(read())

    def best(role: str, start: float) -> int:
        return sum(cell.solved == 3 for cell in made if (cell.role, cell.qk_start) == (role, start))

    assert best("plain", 1.0) >= 3
    assert best("plain", 32.0) == 0
    assert best("norm", 32.0) >= best("norm", 1.0) - 1 >= 3


def test_the_picture_and_its_words_hold_every_cell() -> None:
    made = cells(read())
    for role in ("plain", "norm"):
        assert phase_table(made, role).num_rows == 81
        assert alt(made, role).count("At ×") == len(STARTS)
    assert finding(made).startswith("Plain attention solves the task at every seed in ")
    json.dumps(phase_spec(), allow_nan=False)
    assert RECORDED.stat().st_size < 200_000
