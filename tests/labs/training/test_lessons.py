"""What a run teaches follows from its numbers, and each preset of the places without help says what it is for."""

from typing import Any

import numpy as np
import pytest

from qkdemo.labs.training.lab import Settings, plan_of
from qkdemo.labs.training.lessons import lessons
from qkdemo.messages import say
from qkdemo.runs.batches import train_all
from qkdemo.runs.plan import Plan
from qkdemo.training.outcome import outcome_of
from qkdemo.training.settings import Settings as Run
from qkdemo.training.telemetry import CURVES

SIDE = {"loss": 2.77, "max_abs_logit": 5.0, "entropy_fraction": 0.9, "softmax_slope": 0.05}


def curves_of(plan: Plan, plain: dict[str, Any], twin: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Every number constant but for the first step; `learnt`: a loss of 0 in the middle."""
    curves = np.zeros((plan.steps, 2, len(CURVES)), np.float32)
    for row, side in enumerate((plain, twin)):
        for name, value in (SIDE | {k: v for k, v in side.items() if k != "learnt"}).items():
            curves[:, row, CURVES.index(name)] = value
        curves[0, row, CURVES.index("entropy_fraction")] = 0.9
        if side.get("learnt"):
            curves[plan.steps // 2, row, CURVES.index("loss")] = 0.0
    return curves


@pytest.mark.parametrize(
    ("task", "plain", "twin", "words"),
    [
        (
            "copy",
            {"loss": 0.0, "max_abs_logit": 25},
            {"loss": 0.01},
            "largest logit of plain attention was 5 times as large",
        ),
        ("copy", {"loss": 0.0}, {"loss": 0.01}, "No difference in how it ends:** both solve the task."),
        ("copy", {"max_abs_logit": 1e5}, {}, "was 100 000, that of the other model 5"),
        ("copy", {}, {}, "both end near chance (2.77 nats) or above it."),
        ("copy", {"learnt": True}, {"learnt": True}, "was below 0.1 nats at some step, and both end near chance"),
        ("addition", {"loss": 3.13, "max_abs_logit": 4e4}, {"loss": 3.14}, "Smaller logits were not enough"),
        ("induction", {"loss": 1.61}, {"loss": 1.76}, "plain attention ends 0.15 nats lower"),
        ("induction", {"loss": 1.61}, {"loss": 1.62}, "1.62 with RMSNorm (means of the last 20 steps)"),
        ("text", {"loss": 2.9, "max_abs_logit": 5e4}, {"loss": 2.4}, "RMSNorm ends 0.5 nats lower"),
        (
            "copy",
            {"softmax_slope": 0.003, "learnt": True},
            {"loss": 0.02, "entropy_fraction": 0.3, "softmax_slope": 0.028},
            "the model with RMSNorm solves the task while its entropy fraction falls from 0.9 at the first step to 0.3",
        ),
        (
            "copy",
            {"softmax_slope": 0.003, "learnt": True},
            {"loss": 0.02, "entropy_fraction": 0.3, "softmax_slope": 0.028},
            "0.028 here, 3·10⁻³ where the run failed. These are means of the last 20 steps.",
        ),
        (
            "copy",
            {"loss": 0.0, "entropy_fraction": 0.12, "softmax_slope": 0.0083},
            {"loss": 0.0, "entropy_fraction": 0.29},
            "plain attention solves the task while its entropy fraction falls from 0.9 at the first step to 0.12",
        ),
    ],
)
def test_the_lesson_follows_from_the_numbers(task: Any, plain: Any, twin: Any, words: str) -> None:
    plan = plan_of(Settings(task=task, steps=60))
    assert words in " ".join(lessons(plan, curves_of(plan, plain, twin))).replace("\u202f", " ")


def test_a_side_that_forgot_the_task_is_no_gap_without_a_collapse() -> None:
    plan = plan_of(Settings(steps=60))
    curves = curves_of(plan, {"loss": 1.9}, {"loss": 0.5})
    assert "neither forgot the task" in " ".join(lessons(plan, curves))
    curves[:35, 0, CURVES.index("loss")] = 0
    assert lessons(plan, curves) == []


def test_of_a_side_that_was_back_at_chance_on_its_way_it_is_not_said_that_it_never_was() -> None:
    plan = plan_of(Settings(steps=60))
    curves = curves_of(plan, {"loss": 1.2}, {"loss": 0.5})
    curves[15:30, 0, CURVES.index("loss")] = 3
    said = " ".join(lessons(plan, curves))
    assert "neither forgot the task" in said
    assert "chance" not in said


def test_of_a_side_whose_loss_rises_in_its_last_steps_it_is_not_said_that_nothing_collapsed() -> None:
    plan = plan_of(Settings(steps=300))
    curves = curves_of(plan, {"loss": 1.2}, {"loss": 0.5})
    curves[288:, 0, CURVES.index("loss")] = 3
    said = " ".join(lessons(plan, curves))
    assert "A gap at the end" in said
    assert "collapse" not in said


def test_a_rescue_needs_no_lesson_and_neither_does_what_is_unfinished_or_forked() -> None:
    plan = plan_of(Settings(steps=60))
    curves = curves_of(plan, {"learnt": True}, {"loss": 0.02})
    assert lessons(plan, curves) == []
    assert lessons(plan, curves_of(plan, {}, {})[:-1]) == []
    forked = plan_of(Settings(steps=60, fork="rate", fork_at=30))
    assert lessons(forked, np.zeros((60, 4, len(CURVES)), np.float32)) == []


def test_where_the_page_says_that_both_twins_learn_to_copy_they_do_and_their_logits_differ() -> None:
    assert "from 0.003 to 0.01 both models learn to copy within 300 steps, with different logits" in say("how.training")
    calm = [
        Run(variant=variant, schedule="constant", learning_rate=rate)
        for rate in (0.003, 0.01)
        for variant in ("none", "rms")
    ]
    slow = [Run(variant=variant, schedule="constant", learning_rate=0.001, seed=2) for variant in ("none", "rms")]
    runs = [*calm, *slow]
    found = [outcome_of(run, read) for run, read in zip(runs, train_all(runs, lambda *_: None), strict=True)]
    assert [end.outcome for end in found] == ["solved"] * 4 + ["partly"] * 2
    assert found[0].max_abs_logit > 2 * found[1].max_abs_logit
    assert found[2].max_abs_logit > 2 * found[3].max_abs_logit


def test_where_nobody_knows_the_least_possible_loss_no_lesson_says_that_the_task_is_not_solved() -> None:
    for gap in (0.0, -0.4, 0.4):
        plan = plan_of(Settings(task="words", steps=40))
        said = " ".join(lessons(plan, curves_of(plan, {"loss": 0.9 + gap}, {"loss": 0.9})))
        assert "either run counts as solved" in said
        assert "solves the task" not in said
