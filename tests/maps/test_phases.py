"""The phase diagram is trained once, goes on where it was stopped, and its record is what training gives."""

import json
import math
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qkdemo.cli.command import main
from qkdemo.dials import SettingsError
from qkdemo.maps.phases.cells import RECORDED, SHARES, End, cells, ends_of_plan, here, read, rows, train
from qkdemo.maps.phases.diagram import BASE, DEFAULT, RATES, STARTS, Diagram, diagram_of, from_link
from qkdemo.maps.phases.picture import alt, finding, phase_spec, phase_table
from qkdemo.messages import say
from qkdemo.training.outcome import Outcome
from qkdemo.training.settings import Settings, identity
from tests.runs.plans import trained_curves


def quick(runs: Sequence[Settings]) -> list[Outcome]:
    """Another executor: says who solves it without training."""
    made = here([BASE.but(steps=20)])[0]
    word = {True: "solved", False: "failed"}
    return [
        Outcome(
            **{**vars(made), "outcome": word[run.learning_rate < 0.01], "end": "chance", "final_loss": float("inf")}
        )
        for run in runs
    ]


def test_the_record_that_ships_is_whole() -> None:
    ends = read()
    assert {identity(end.settings) for end in ends} == {identity(run) for run in DEFAULT.runs}
    assert len(DEFAULT.runs) == DEFAULT.size == 2 * len(RATES) * len(STARTS) * 3 == 486


def test_recorded_runs_end_as_they_do_when_they_are_trained_here() -> None:
    """Where the seeds of a cell agree: at a border rounding decides."""
    clear = [cell for cell in cells(read()) if max(cell.counts.values()) == cell.seeds]
    drawn = random.Random(5).sample(clear, 6)
    runs = [BASE.but(variant=cell.remedy, learning_rate=cell.x, qk_start=cell.y) for cell in drawn]
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
    assert {cell.solved for cell in made if cell.x < 0.01} == {3}
    assert {cell.solved for cell in made if cell.x > 0.01} == {0}
    assert {end.final_loss for end in ends} == {float("inf")}
    assert [row["solved"] for row in rows(made)[:9]] == [3, 3, 3, 0, 0, 0, 0, 0, 0]


def test_large_weights_at_the_start_cost_plain_attention_rates_and_rmsnorm_none() -> None:
    """The claim that the picture makes."""
    made = cells(read())

    def best(remedy: str, start: float) -> int:
        return sum(cell.solved == 3 for cell in made if (cell.remedy, cell.y) == (remedy, start))

    assert best("none", 1.0) >= 3
    assert best("none", 32.0) == 0
    assert best("rms", 32.0) >= best("rms", 1.0) - 1 >= 3


def test_the_picture_and_its_words_hold_every_cell() -> None:
    made = cells(read())
    for remedy in ("none", "rms"):
        assert phase_table(made, remedy).num_rows == 81
        assert alt(made, remedy).count("every seed solve") == len(STARTS)  # solves, or: in no cell does … solve
    assert finding(made).startswith("Plain attention solves the task at every seed in ")
    json.dumps(phase_spec(), allow_nan=False)


@pytest.mark.parametrize("share", SHARES[1:])
def test_how_else_a_run_ends_has_a_picture_of_its_own(share: str) -> None:
    ends = read()
    word = {"spiked": lambda end: end.spiked, "non_finite": lambda end: end.end == share}
    holds = word.get(share, lambda end: end.outcome == share)
    ends = [
        replace(end, end="non_finite") if end.outcome == "failed" else end for end in ends
    ]  # none did in the record
    made = cells(ends)
    for remedy in ("none", "rms"):
        table, of_side = phase_table(made, remedy, share), [end for end in ends if end.settings.variant == remedy]
        counted = sum(map(int, table.column("count").to_pylist()))
        assert counted == sum(map(holds, of_side)) > 0
        assert sum(table.column("share").to_pylist()) == pytest.approx(counted / 3)
        numbers = re.findall(r": (\d+) of 27 runs", alt(made, remedy, share=share))
        assert (len(numbers), sum(map(int, numbers))) == (len(STARTS), counted)
        assert f"{counted} of 243 runs" in finding(made, share=share)
    assert say(f"phases.counted.{share}") in json.dumps(phase_spec(share=share))
    assert RECORDED.stat().st_size < 200_000


def test_other_dials_ranges_seeds_and_remedies_are_written_in_a_link_and_read_back() -> None:
    made = diagram_of("learning_rate:0.01:0.1", "n_layers", 3, 2, ("none", "rms", "softcap"))
    assert made.xs[0] == 0.01
    assert made.ys == (1, 3, 4)
    assert from_link(made.text) == made
    assert len(made.text) <= 100
    assert from_link(DEFAULT.text) is DEFAULT


def test_a_dial_that_acts_on_one_side_alone_is_trained_once_on_the_other() -> None:
    made = diagram_of("learning_rate", "gamma", 3, 1, ("none", "rms"))
    assert made.size == 18
    assert len(made.runs) == 3 + 9
    ends = ends_of_all(made)
    assert len(cells(ends, made)) == 18
    of_plain = [[cell.solved for cell in cells(ends, made) if cell.remedy == "none" and cell.y == y] for y in made.ys]
    assert of_plain[0] == of_plain[1] == of_plain[2]


def test_runs_are_counted_once_where_a_dial_does_nothing() -> None:
    made = diagram_of("softcap", "learning_rate", 3, 2, ("none", "softcap"))
    found = cells([End(run, "failed", "chance", spiked=False, final_loss=3.0) for run in made.runs], made)
    assert finding(found, made, "failed") == "Plain attention: 6 of 6 runs failed. Softcap: 18 of 18 runs failed."
    assert alt(found, "none", made, "failed").count("2 of 2 runs failed") == 3
    across = diagram_of("learning_rate", "softcap", 3, 2, ("none", "softcap"))
    found = cells([End(run, "failed", "chance", spiked=False, final_loss=3.0) for run in across.runs], across)
    assert finding(found, across, "failed").startswith("Plain attention: 6 of 6 runs failed.")


def test_a_loss_of_nine_tenths_of_chance_is_near_chance() -> None:
    below = [end for end in read() if end.end == "chance" and end.final_loss < math.log(16)]
    assert below
    assert "near" in say("phases.end.chance")


def ends_of_all(diagram: Diagram) -> list[End]:
    """Trained here by the code that a worker runs, in the plans in which it would."""
    short = replace(diagram, base=BASE.but(steps=20))
    ends = [end for plan in short.plans for end in ends_of_plan(plan, trained_curves(plan))]
    return [replace(end, settings=end.settings.but(steps=BASE.steps)) for end in ends]


def test_batches_share_a_shape_hold_every_run_once_and_begin_with_the_coarse_cells() -> None:
    made = diagram_of("learning_rate", "n_layers", 5, 2)
    runs = [run for plan in made.plans for run in plan.legs[0].runs]
    assert sorted(map(identity, runs)) == sorted(map(identity, made.runs))
    assert all(len({run.n_layers for run in plan.legs[0].runs}) == 1 for plan in made.plans)
    whole = diagram_of("learning_rate", "beta2", 9, 1)
    first = {(run.learning_rate, run.beta2) for run in whole.plans[0].legs[0].runs}
    assert first <= {(x, y) for x in whole.xs[::4] for y in whole.ys[::4]}


def test_what_a_worker_trains_ends_as_it_does_here() -> None:
    made = replace(diagram_of("learning_rate", "beta2", 3, 1), base=BASE.but(steps=60))
    by_plan = {
        identity(end.settings): end.outcome for plan in made.plans for end in ends_of_plan(plan, trained_curves(plan))
    }
    assert by_plan == {identity(run): outcome.outcome for run, outcome in zip(made.runs, here(made.runs), strict=True)}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("steps", "qk_start"), "steps is no axis of this diagram"),
        (("softcap", "qk_start"), "softcap is no axis of this diagram"),
        (("beta2", "beta2"), "x and y are both beta2. A phase diagram needs two dials"),
        (("beta2:2:3", "qk_start"), "beta2 must be between"),
        (("beta2", "qk_start", 4), "numbers of cells: 3, 5, 9; not 4"),
        (("magic:1:2", "qk_start"), "magic is no axis of this diagram. These can be one: learning_rate, warmup"),
        (("beta2", "qk_start", 5, 9), "A cell has between 1 seed and 5, not 9"),
        (("beta2", "qk_start", 5, 1, ("none", "magic")), "'magic' is no remedy"),
        (("beta2", "qk_start", 5, 1, ("none", "none")), "each once"),
        (("beta2", "qk_start", 9, 5, ("none", "rms", "softcap")), "This diagram has 1215 runs; 1000 are the most"),
    ],
)
def test_what_is_no_diagram_is_refused_in_a_sentence(asked: tuple[Any, ...], said: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(said)):
        diagram_of(*asked)


def test_the_command_trains_another_one_and_wants_a_record_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["phases", "--y", "n_layers", "--x", "learning_rate:0.01:0.1", "--cells", "3", "--seeds", "1"]
    assert main(words) == 2
    assert "name it by --into" in capsys.readouterr().err
    assert main([*words, "--remedies", "rms", "--into", str(tmp_path / "mine.jsonl"), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)["rows"]
    assert [row["n_layers"] for row in made] == [1, 1, 1, 3, 3, 3, 4, 4, 4]
    assert all(row["solved"] + row["partly"] + row["failed"] == 1 for row in made)
