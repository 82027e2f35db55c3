"""Every dial and every remedy of training has its words."""

import numpy as np
import pytest

from qkdemo.dials import declarations
from qkdemo.labs.training import lab
from qkdemo.labs.training.words import findings
from qkdemo.messages import has, say
from qkdemo.runs.plan import MOST_STEPS
from qkdemo.training.network.parameters import initial, shape_of, views
from qkdemo.training.remedies import REMEDIES
from qkdemo.training.settings import RemedyWord, Settings
from qkdemo.training.telemetry import CURVES


@pytest.mark.parametrize("dial", declarations(Settings), ids=lambda dial: dial.name)
def test_every_dial_has_a_label_and_a_help(dial: object) -> None:
    assert dial.label  # type: ignore[attr-defined]
    assert dial.help  # type: ignore[attr-defined]


@pytest.mark.parametrize("word", REMEDIES)
def test_every_remedy_has_a_name_and_says_what_it_acts_on(word: RemedyWord) -> None:
    assert has(f"variant.{word}.name")
    assert has(f"variant.{word}.short")
    acts = say(f"variant.{word}.acts")
    assert acts.startswith("Acts on ")
    learns = REMEDIES[word].parameters is not REMEDIES["none"].parameters  # so that logits can grow past a norm
    assert ("learned" in acts) or not learns


def test_every_remedy_that_can_be_chosen_is_there() -> None:
    (dial,) = [dial for dial in declarations(Settings) if dial.name == "variant"]
    assert set(dial.words) == set(REMEDIES)


@pytest.mark.parametrize(
    ("variant", "last"), [("qk_lr", "with a lower rate for W_q and W_k"), ("none", "without a remedy again")]
)
def test_the_fork_that_is_named_is_the_last_that_changed_plain_attention(variant: RemedyWord, last: str) -> None:
    forks = {"fork": "qk_rate", "fork_at": 100, "fork_2": "norm_on", "fork_2_at": 150}
    plan = lab.plan_of(lab.Settings(variant=variant, qk_lr_factor=0.3, **forks))  # type: ignore[arg-type]
    curves = np.ones((160, plan.width, len(CURVES)), np.float32)
    (sentence,) = findings(plan, curves, 160)
    assert sentence.startswith(f"After step 150 plain attention goes on {last}. ")


@pytest.mark.parametrize("name", ["fork_steps", "fork_2_steps", "fork_3_steps"])
def test_the_help_of_a_fork_names_the_last_step_there_can_be(name: str) -> None:
    (dial,) = [dial for dial in declarations(lab.Settings) if dial.name == name]
    assert dial.help.endswith(f" step {MOST_STEPS}.")
    short = lab.Settings(steps=40, fork="rate", fork_at=20, fork_2="rate", fork_2_at=28)
    assert "at least 20" in dial.help
    assert lab.plan_of(short).steps == 48
    late = lab.Settings(steps=3000, fork="rate", fork_at=3000, fork_steps=600, fork_2="rate", fork_2_at=3600)
    assert lab.plan_of(late.but(fork_2_steps=600)).steps == MOST_STEPS  # the button says: up to 600 more


@pytest.mark.parametrize(("variant", "leaf"), [("rms", "gamma_q"), ("dyt", "alpha_k"), ("cosine", "log_scale")])
def test_what_a_fork_gives_plain_attention_begins_where_the_dials_begin(variant: RemedyWord, leaf: str) -> None:
    assert say("training.fork.norm_on_help").endswith("begin at their defaults, or where an earlier fork left them.")
    turned = {"gamma": 5.0, "alpha": 3.0, "temperature": 1.0}
    plan = lab.plan_of(lab.Settings(variant=variant, fork="norm_on", **turned))  # type: ignore[arg-type]
    plain, given, fresh = plan.legs[0].runs[0], plan.legs[1].runs[0], Settings(variant=variant)
    assert all(getattr(given, name) == getattr(fresh, name) for name in turned)
    begun, meant = (views(initial(run)[None], shape_of(run))[f"0.{leaf}"] for run in (plain, fresh))
    assert begun.equal(meant)


def test_a_fork_that_slows_queries_and_keys_takes_back_an_earlier_remedy_as_its_help_says() -> None:
    assert "without a remedy that an earlier fork gave it" in say("training.fork.qk_rate_help")
    plan = lab.plan_of(lab.Settings(fork="norm_on", fork_at=100, fork_2="qk_rate", fork_2_at=150))
    assert [leg.runs[0].variant for leg in plan.legs] == ["none", "rms", "qk_lr"]
