"""Which column a run is judged by, and that this is said."""

import json
from typing import Any

import numpy as np
import pytest

from qkdemo.diagnose.curves.causes import run
from qkdemo.diagnose.findings.examine import examine
from qkdemo.diagnose.findings.of_logs import of_logs
from qkdemo.diagnose.readers.inputs import InputError
from tests.diagnose.curves.courses import FALLING, FLAT, GROWN, LOST, LOST_LATE, NONE, STEPS, log


def test_a_wrong_guess_of_a_column_can_be_corrected() -> None:
    found = run(log(loss=FALLING, mine=GROWN), {"max_logit": "mine"})
    assert found.causes[0].key == "large_logits"


@pytest.mark.parametrize("name", ["cross_entropy", "train/CrossEntropyLoss", "cross-entropy"])
def test_a_cross_entropy_is_not_that_of_attention(name: str) -> None:
    assert "entropy" not in run(log(loss=FALLING, **{name: FALLING})).roles
    assert run(log(loss=FALLING, **{"attn/entropy": FALLING / 4})).roles["entropy"] == "attn/entropy"


def test_that_an_entropy_is_read_as_a_share_is_said_where_its_name_does_not_say_so() -> None:
    for name, said in (("entropy", True), ("entropy_fraction", False)):
        report = of_logs([run(log(loss=FLAT, **{name: np.full(200, 0.02)}))], "x")
        assert ("entropy_share" in [finding.key for finding in report.findings]) == said


def test_a_column_that_the_log_does_not_have_is_said_with_those_it_has() -> None:
    data = b"\n".join(b'{"step": %d, "loss": 1.0}' % step for step in range(30))
    with pytest.raises(
        InputError, match=r"In log.jsonl no column of numbers is read as xx\. Beside the steps these are read: loss\."
    ):
        examine(data, "log.jsonl", columns={"loss": "xx"})


def test_the_name_of_a_run_stands_apart_from_what_is_said_of_it() -> None:
    logs = [log(loss=np.linspace(5, 1, 40)), log(loss=np.linspace(5, 2, 40))]
    report = of_logs([run(each) for each in logs], "runs.csv")
    assert all(finding.sentence.startswith("run: ") for finding in report.findings)


@pytest.mark.parametrize("name", ["eval_loss", "eval/loss", "val_loss", "dev/loss"])
def test_a_loss_of_an_evaluation_alone_does_not_tell_what_became_of_the_training(name: str) -> None:
    assert run(log(**{name: FALLING}, lr=np.full(200, 0.1))).causes[0].key == "no_loss"
    assert run(log(**{name: FALLING}, max_logit=np.full(200, 8.0))).causes[0].key == "logits_alone"
    both = run(log(**{name: FALLING, "loss": LOST_LATE}, max_logit=np.full(200, 8.0)))
    assert both.roles["loss"] == "loss"
    assert run(log(**{name: FALLING}), {"loss": name}).causes[0].key == "healthy"  # where one asks for it


@pytest.mark.parametrize("watched", [True, False])
def test_that_the_worst_layer_or_head_is_looked_at_is_said(watched: bool) -> None:
    """One head in four is nearly one-hot from the first step on, as in many models that are well."""
    rows: list[dict[str, Any]] = [
        {"step": at, "layer": "a", "head": head, "max_logit": 20.0, "entropy_fraction": 0.03 if head == 2 else 0.7}
        for at in range(60)
        for head in range(4)
    ]
    if not watched:
        rows = [
            {"step": at, **{f"attn/head{head}/entropy": 0.03 if head == 2 else 0.7 for head in range(4)}}
            for at in range(60)
        ]
    rows += [{"step": at, "loss": 3.0 - at / 20 + 2 * (at > 40)} for at in range(60)]
    report = examine("\n".join(map(json.dumps, rows)).encode(), "x.jsonl")
    assert {"attention_entropy", "worst_of_each"} <= {finding.key for finding in report.findings}
    (entropy,) = (finding.sentence for finding in report.findings if finding.key == "attention_entropy")
    assert "A low entropy of attention, in its worst layer or head, came before that" in entropy


def test_a_column_that_the_reader_named_is_not_doubted() -> None:
    found = log(**{"loss": FALLING, "logits/max": 5 + STEPS / 100})
    for given_, doubted in ((None, True), ({"max_logit": "logits/max"}, False), ({"loss": "loss"}, True)):
        keys = [finding.key for finding in of_logs([run(found, given_)], "x").findings]
        assert ("logit_read" in keys) is doubted


@pytest.mark.parametrize("role", ["loss", "grad_norm"])
def test_of_several_columns_the_one_that_was_looked_at_is_said(role: str) -> None:
    short = np.where(STEPS < 5, 1.0, NONE)  # too few values to be looked at
    both = {f"baseline_{role}": FALLING[::-1], f"qk_{role}": FALLING, f"end_of_all_{role}": short}
    found = {finding.key: finding for finding in of_logs([run(log(**both))], "a").findings}
    name = "the loss" if role == "loss" else "the norm of the gradient"
    assert found["of_several"].sentence == (
        f"Of several columns that may be {name}, qk_{role} was looked at. The others (baseline_{role}) were not."
    )
    for results in ([run(log(**both), {role: f"qk_{role}"})], [run(log(**{role: FALLING, "eval_loss": FALLING}))]):
        assert "of_several" not in {finding.key for finding in of_logs(results, "a").findings}


def test_a_perplexity_is_no_loss_that_was_left_out() -> None:
    """As Megatron prints it beside its loss."""
    found = of_logs([run(log(**{"lm loss": FALLING, "lm loss ppl": np.exp(FALLING)}))], "a").findings
    assert "of_several" not in {finding.key for finding in found}


def test_columns_of_layers_are_not_several_columns() -> None:
    names = [f"layers.{layer}.max_logit" for layer in range(3)]
    text = "\n".join(json.dumps({"step": s, "loss": 2.0, **dict.fromkeys(names, 8.0)}) for s in range(30))
    assert "of_several" not in {finding.key for finding in examine(text.encode(), "a.jsonl").findings}


def test_the_policys_loss_is_looked_at_before_the_critics() -> None:
    """As TRL's PPOTrainer logs both, and what it called them before."""
    for policy, critic in (("loss/policy_avg", "loss/value_avg"), ("ppo/loss/policy", "ppo/loss/value")):
        beside = {critic: FALLING, "objective/rlhf_reward": STEPS / 200}
        found = run(log(**{policy: np.zeros(200)}, **beside))
        assert (found.roles["loss"], [cause.key for cause in found.causes]) == (policy, ["policy_loss"])
        lost = run(log(**{policy: np.where(STEPS > 150, LOST, 0.0)}, **beside))
        assert (lost.healthy, lost.causes[0].numbers["step"]) == (False, 151)


@pytest.mark.parametrize(
    "name", ["ppo/mean_non_score_reward", "objective/non_score_reward", "rollout/ep_rew_mean", "charts/episodic_return"]
)
def test_other_names_of_rewards_tell_a_loss_of_reinforcement_learning_too(name: str) -> None:
    assert [cause.key for cause in run(log(loss=FALLING[::-1], **{name: STEPS})).causes] == ["policy_loss"]


def test_a_policys_loss_is_told_by_its_own_name_where_no_reward_is_logged() -> None:
    found = run(log(**{"losses/policy_loss": FALLING[::-1], "losses/value_loss": FALLING}))
    assert [cause.key for cause in found.causes if cause.key != "of_several"] == ["policy_loss"]
    named = run(log(**{"losses/policy_loss": FALLING[::-1]}), {"loss": "losses/policy_loss"})
    assert "policy_loss" not in [cause.key for cause in named.causes]
