"""What a column is known by: its name, its layer, what it measures."""

import json

import pytest

from qkdemo.diagnose.readers.columns import roles
from qkdemo.diagnose.readers.logs import read_logs
from tests.diagnose.readers.written import LOSS, NORM, STEPS, table


def test_what_watch_wrote_and_what_was_noted_below_it_are_one_run() -> None:
    """Steps of notes lie between those that were measured: no restart."""
    rows = [{"step": s, "layer": "a", "head": 0, "max_logit": 8.0} for s in range(0, 60, 10)]
    noted = [{"step": s, "loss": 3.0} for s in range(60)]
    (log,) = read_logs("\n".join(map(json.dumps, [*rows, *noted])).encode(), "attention.jsonl")
    assert log.columns["loss"].tolist() == [3.0] * 60


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("attention/model.layers.{}.self_attn/max_abs_logit", "attention/*/max_abs_logit"),
        ("train/layer_{}_max_logit", "train/layer_*_max_logit"),
    ],
)
def test_of_a_column_for_each_layer_the_worst_layer_is_looked_at(name: str, read: str) -> None:
    """As `watch` writes to TensorBoard or Weights & Biases; the first layer alone is calm."""
    rows = [
        {
            "step": s,
            "loss": x,
            **{name.format(layer): sign * s * (layer + 1) for layer, sign in ((0, 1), (1, 1), (10, -1))},
        }
        for s, x in zip(STEPS, LOSS, strict=True)
    ]
    rows[3].pop(name.format(10))
    (log,) = read_logs("\n".join(map(json.dumps, rows)).encode(), "run")
    assert roles(log)["max_logit"] == read
    assert log.columns[read].tolist() == [11 * s if s != STEPS[3] else 2 * s for s in STEPS]


def test_what_watch_writes_is_read_as_the_worst_head_of_a_step() -> None:
    rows = [
        {"step": s, "layer": layer, "head": head, "max_logit": -x * (head + 1), "entropy_fraction": 0.5 + head / 10}
        for s, x in zip(STEPS, LOSS, strict=True)
        for layer in ("a", "b")
        for head in (0, 1)
    ]
    (log,) = read_logs("\n".join(map(json.dumps, rows)).encode(), "attention.jsonl")
    known = roles(log)
    assert log.columns[known["max_logit"]].tolist() == [2 * x for x in LOSS]
    assert log.columns[known["entropy"]].tolist() == [0.5] * 8


def test_what_watch_wrote_before_a_restart_does_not_count() -> None:
    """Steps 0 to 49, and from a checkpoint at step 10 on again, so far up to 40, at which another head is the worst."""
    steps = [(step, step + 20.0, 10.0) for step in range(50)] + [(step, 20.0, step + 30.0) for step in range(10, 41)]
    rows = [
        {"step": step, "layer": layer, "head": 0, "max_logit": logit, "entropy_fraction": 0.5}
        for step, *logits in steps
        for layer, logit in zip(("a", "b"), logits, strict=True)
    ]
    (log,) = read_logs("\n".join(map(json.dumps, rows)).encode(), "attention.jsonl")
    assert log.where == "head 0 of b"
    assert log.columns["max_logit"].tolist() == [
        *(step + 20 for step in range(10)),
        *(step + 30 for step in range(10, 41)),
    ]


def test_what_watch_wrote_is_the_same_as_a_table() -> None:
    """As pandas writes it on, with rows that were noted between those of heads."""
    rows = [
        {"step": s, "layer": "a", "head": head, "max_logit": -x * (2 - head), "entropy_fraction": 0.5 + head / 10}
        for s, x in zip(STEPS, LOSS, strict=True)
        for head in (0, 1)
    ]
    noted = [{"step": s, "loss": x} for s, x in zip(STEPS, LOSS, strict=True)]
    noted += [{"step": s, "update_norm": x} for s, x in zip(STEPS, NORM, strict=True)]
    for data in ("\n".join(map(json.dumps, rows + noted)).encode(), table(rows + noted)):
        (log,) = read_logs(data, "attention")
        assert (log.kind, log.where) == ("watch", "head 0 of a")
        for role, wanted in (("max_logit", [2 * x for x in LOSS]), ("loss", LOSS), ("update_norm", NORM)):
            assert log.columns[roles(log)[role]].tolist() == wanted


def test_what_a_loss_is_scaled_by_is_no_loss_and_an_entropy_that_names_attention_is_its() -> None:
    for beside in ("loss_scale", "loss scale", "loss/weight", "loss_std", "router_z_loss"):
        for name in ("reduced_train_loss", "cross_entropy"):
            (log,) = read_logs(
                table([{"step": s, beside: 65536.0, name: x} for s, x in zip(STEPS, LOSS, strict=True)]), "x"
            )
            assert roles(log) == {"loss": name}
    (alone,) = read_logs(table([{"step": s, "loss_scale": 65536.0} for s in STEPS]), "x")
    assert roles(alone) == {}
    for other, own in (("entropy", "attn/entropy_mean"), ("max_score", "attention/max_score")):
        (log,) = read_logs(table([{"step": s, other: 0.5, own: x} for s, x in zip(STEPS, LOSS, strict=True)]), "x")
        assert list(roles(log).values()) == [own]


def test_the_norm_of_a_gain_of_a_norm_is_no_length_of_q() -> None:
    for name in ("grad/layers.0.q_norm.weight", "param_norm/attn.q_norm", "attn.q_norm.weight/norm"):
        (log,) = read_logs(table([{"step": s, "loss": x, name: x} for s, x in zip(STEPS, LOSS, strict=True)]), "x")
        assert "q_norm" not in roles(log), name


def test_a_column_is_known_by_what_people_call_it() -> None:
    names = {
        "loss": ("train/loss", "lm loss", "loss", "train_loss", "train/CrossEntropyLoss", "cross_entropy"),
        "max_logit": ("attention/max_logit", "qk_max", "max_attn_score", "attn/layer3/max_abs_logit"),
        "entropy": ("attn_entropy", "train/entropy"),
        "grad_norm": ("grad_norm", "grad norm", "train/grad_norm", "global_norm"),
        "lr": ("lr", "learning rate", "train/learning_rate", "lr-AdamW"),
        "update_norm": ("update_norm", "train/update norm"),
        "q_norm": ("q_norm", "attn/q_norm_max"),
    }
    for role, words in names.items():
        for word in words:
            rows = [{"step": s, word: x} for s, x in zip(STEPS, LOSS, strict=True)]
            (log,) = read_logs("\n".join(map(json.dumps, rows)).encode(), "run")
            assert roles(log) == {role: word}, word


@pytest.mark.parametrize("other", ["critic/score/max", "z_loss/output_logits_max", "policy_entropy", "router/entropy"])
def test_a_score_or_an_entropy_of_something_else_is_not_that_of_attention(other: str) -> None:
    """A reward of 1 is not "no large logits"; a norm of q and k bounds no output logit."""
    rows = [{"step": s, "loss": x, other: 180.0} for s, x in zip(STEPS, LOSS, strict=True)]
    (log,) = read_logs("\n".join(map(json.dumps, rows)).encode(), "run")
    assert roles(log) == {"loss": "loss"}


OTHERS = ["z_loss", "z loss", "train/Z loss", "aux_loss", "load_balancing loss", "router loss", "mtp loss", "kl/loss"]


@pytest.mark.parametrize("other", OTHERS)
def test_what_is_added_to_a_loss_is_not_taken_for_it_where_there_is_another(other: str) -> None:
    rows = [{"step": s, "train/total lm loss": x, other: 0.1} for s, x in zip(STEPS, LOSS, strict=True)]
    (log,) = read_logs("\n".join(map(json.dumps, rows)).encode(), "run")
    assert roles(log)["loss"] == "train/total lm loss"
    crossed = [{"step": s, "cross entropy loss": x, other: 0.1} for s, x in zip(STEPS, LOSS, strict=True)]
    (log,) = read_logs("\n".join(map(json.dumps, crossed)).encode(), "run")
    assert roles(log)["loss"] == "cross entropy loss"
    (alone,) = read_logs("\n".join(json.dumps({"step": s, "z loss": 0.1}) for s in STEPS).encode(), "run")
    assert roles(alone) == {"loss": "z loss"}
