"""The words lab: a float64 recomputation, the recorded weights, the words that may follow, and what is said."""

import contextlib
import io
import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from qkdemo.cli.command import main
from qkdemo.labs.training.lab import RUN_PRESETS
from qkdemo.labs.words import PRESETS, RUNS, Settings, explain, next_rows, rows, run, snippet
from qkdemo.labs.words.network import FILE, SHAPE, SideWord, accuracy, weights
from qkdemo.labs.words.train import BEGUN_FILE, BEGUN_STEPS, TOLERANCE, leaves_of, trained
from qkdemo.labs.words.view import picked, words_exhibit
from qkdemo.labs.words.words import verdict
from qkdemo.training.network.model import forward
from qkdemo.training.network.parameters import views
from qkdemo.training.sentences import WORDS
from qkdemo.training.trainer import State, Trainer

Array = NDArray[np.float64]
SENTENCE = Settings().sentence
FULL = " ".join(WORDS[-1:] * SHAPE.n_keys)
SIDES: tuple[SideWord, ...] = ("plain", "norm")


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def normal(x: Array, gain: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    return np.asarray(centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * gain)


def by_hand(side: SideWord, sentence: str, scale: float) -> tuple[list[list[Array]], Array]:
    """Attention, layer by layer and head by head, and the shares of the next word: NumPy, word by word, in float64."""
    with np.load(FILE) as kept:
        w = {name: kept[f"{side}.{name}"].astype(np.float64) for name in weights(side)}
    tokens = [WORDS.index(word) for word in sentence.split()]
    d, width = SHAPE.d_model, SHAPE.d_head
    x = np.stack([w["embedding"][token] + w["position"][at] for at, token in enumerate(tokens)])
    attention = []
    for layer in range(SHAPE.n_layers):
        made = normal(x, w[f"{layer}.attention_gain"]) @ w[f"{layer}.qkv"]
        heads, mixed = [], []
        for head in range(SHAPE.n_heads):
            q, k, v = (made[:, part * d + head * width : part * d + (head + 1) * width] for part in range(3))
            q, k = scale * q, scale * k
            if side == "norm":
                q = q / np.sqrt((q**2).mean(-1, keepdims=True) + 1e-6) * w[f"{layer}.gamma_q"]
                k = k / np.sqrt((k**2).mean(-1, keepdims=True) + 1e-6) * w[f"{layer}.gamma_k"]
            p = np.zeros((len(tokens), len(tokens)))
            for query in range(len(tokens)):
                p[query, : query + 1] = softmax(k[: query + 1] @ q[query] / math.sqrt(width))
            heads.append(p)
            mixed.append(p @ v)
        attention.append(heads)
        x = x + np.concatenate(mixed, -1) @ w[f"{layer}.out"]
        x = x + np.maximum(normal(x, w[f"{layer}.mlp_gain"]) @ w[f"{layer}.up"], 0) @ w[f"{layer}.down"]
    return attention, softmax(normal(x[-1], w["gain"]) @ w["head"])


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("sentence", [SENTENCE, PRESETS["verb"].sentence, "Ana", FULL])
@pytest.mark.parametrize("side", SIDES)
def test_attention_and_next_words_are_those_of_a_recomputation_in_float64(
    side: SideWord, sentence: str, scale: float
) -> None:
    attention, shares = by_hand(side, sentence, scale)
    for layer in range(SHAPE.n_layers):
        for head in range(SHAPE.n_heads):
            state = Settings(sentence=sentence, scale=scale, format="float64", of_layer=layer + 1, of_head=head + 1)
            found = run(state, [scale]).sides[side]
            assert found.weights[0] == pytest.approx(attention[layer][head], rel=1e-9, abs=1e-12)
            assert found.shares[0] == pytest.approx(shares, rel=1e-9, abs=1e-12)


def test_the_training_engine_reads_a_sentence_as_the_lab_does() -> None:
    """In float32, with the recorded weights in the places where the engine keeps them."""
    trainer = Trainer(list(RUNS.values()), maps=False)
    state = State.fresh(list(RUNS.values()))
    for at, side in enumerate(SIDES):
        for name, leaf in views(state.parameters[at : at + 1], SHAPE).items():
            if name in weights(side):
                leaf.copy_(weights(side)[name][None])
    tokens = torch.tensor([WORDS.index(word) for word in FULL.split()]).expand(2, 1, -1)
    outputs, layers = forward(views(state.parameters, SHAPE), tokens, trainer._ways[0].setup)
    shares = outputs[:, 0, -1].softmax(-1)
    for at, side in enumerate(SIDES):
        found = run(Settings(sentence=FULL, format="float64", of_head=2), [1.0]).sides[side]
        assert shares[at].numpy() == pytest.approx(found.shares[0], abs=1e-4)
        assert layers[1].weights[at, 0, 1].numpy() == pytest.approx(found.weights[0], abs=1e-4)


# ---- the recorded weights


def test_the_file_is_small_and_holds_what_the_settings_ask_for() -> None:
    assert FILE.stat().st_size < 300 * 1024
    for side in SIDES:
        fresh = leaves_of(State.fresh([RUNS[side]]).parameters[0])
        assert {name: leaf.shape for name, leaf in weights(side).items()} == {
            name: leaf.shape for name, leaf in fresh.items()
        }
        assert all(torch.isfinite(leaf).all() for leaf in weights(side).values())


def test_the_twins_differ_in_the_norm_alone_and_the_training_lab_knows_their_settings() -> None:
    assert RUNS["plain"].but(variant="rms") == RUNS["norm"] == RUN_PRESETS["words"]


def test_training_starts_from_the_first_weights_of_these_settings() -> None:
    """Embeddings of words that training moves least stay near where this seed put them; another seed's are far."""
    for side in SIDES:
        kept = weights(side)["embedding"].flatten()
        own, other = (
            torch.from_numpy(leaves_of(State.fresh([RUNS[side].but(seed=seed)]).parameters[0])["embedding"]).flatten()
            for seed in (RUNS[side].seed, RUNS[side].seed + 1)
        )
        assert torch.corrcoef(torch.stack([kept, own.double()]))[0, 1] > 0.3
        assert abs(torch.corrcoef(torch.stack([kept, other.double()]))[0, 1]) < 0.15


def test_the_command_begins_to_make_the_recorded_weights_again() -> None:
    """Within the tolerance that it states; the whole of it takes minutes: `python -m qkdemo.labs.words.train FILE`."""
    start = {
        f"{side}.{name}": leaf
        for side in SIDES
        for name, leaf in leaves_of(State.fresh([RUNS[side]]).parameters[0]).items()
    }
    again = trained(BEGUN_STEPS)
    with np.load(BEGUN_FILE) as kept:
        assert {name.split(".")[0] for name in kept.files} == set(SIDES)
        for name in kept.files:
            moved = np.linalg.norm(kept[name] - start[name])
            assert moved > 0
            assert np.linalg.norm(again[name] - kept[name]) < TOLERANCE * moved


def test_the_first_steps_bring_the_loss_down_alike_each_time() -> None:
    once, again = (Trainer(list(RUNS.values()), maps=False).advance(40).loss for _ in range(2))
    assert np.array_equal(once, again)
    assert (once[-5:].mean(0) < 0.8 * once[:5].mean(0)).all()


@pytest.mark.parametrize("side", SIDES)
def test_both_models_have_learnt_verbs_pronouns_and_who_has_what(side: SideWord) -> None:
    """Of texts drawn for this alone; a model that guesses is right in half of the cases."""
    assert all(share > 0.95 for share in accuracy()[side].values())


# ---- what is said and shown


def test_the_plain_row_becomes_one_hot_and_then_has_no_number_while_the_other_goes_on() -> None:
    result = run(Settings(format="float16"))
    one_hot, lost = (result.first_scale("plain", undefined=undefined) for undefined in (False, True))
    assert one_hot is not None
    assert lost is not None
    assert 1 < one_hot < lost
    top = result.sides["plain"].top(result.settings.query)
    assert (top[(result.scales >= one_hot) & (result.scales < lost)] >= 0.99).all()  # "from … on" means all of them
    assert np.isnan(top[result.scales >= lost]).all()
    assert not np.isnan(top[result.scales < lost]).any()
    assert result.first_scale("norm", undefined=True) is None
    assert result.sides["plain"].next_word(len(result.scales) - 1) is None
    word = result.sides["norm"].next_word(len(result.scales) - 1)
    assert word is not None
    assert WORDS[word] == "Ben"
    assert run(Settings(format="float64")).first_scale("plain", undefined=True) is None


@pytest.mark.parametrize("name", ["which", "verb", "no_story", "next"])
def test_from_where_on_a_row_has_no_number_is_no_scale_that_happened_to_be_tried(name: str) -> None:
    found = run(PRESETS[name]).first_scale("plain", undefined=True)
    assert found is not None
    row = run(PRESETS[name], [found * 0.998, found, found * 1.01, 2 * found]).sides["plain"].top(PRESETS[name].query)
    assert np.isnan(row).tolist() == [False, True, True, True]


def test_the_end_of_a_row_does_not_depend_on_where_the_dial_stands() -> None:
    """As read in the preset “A verb far from its noun”: 63 at scale 1, and 51 at scale 51, where it is 50.06."""
    ends = [explain(run(PRESETS["verb"].but(scale=scale)))[4] for scale in (1, 51, 300)]
    assert len(set(ends)) == 1
    assert "until from × 50.06 on the row is undefined" in ends[0]


@pytest.mark.parametrize("name", ["which", "owner", "verb", "no_story"])
def test_a_row_is_one_hot_at_the_scale_that_is_named_and_not_just_below(name: str) -> None:
    """In float64, where rounding does not make it come and go."""
    state = PRESETS[name].but(format="float64", scale=1.0)
    found = run(state).first_scale("plain", undefined=False)
    assert found is not None
    row = run(state, [0.998 * found, found, 1.01 * found, 2 * found]).sides["plain"].top(state.query)
    assert (row >= 0.99).tolist() == [False, True, True, True]


def test_a_row_is_one_hot_at_the_scale_that_is_named_where_rounding_makes_it_come_and_go() -> None:
    """The number is written up in four digits; at the first one above, × 1.597, this row is just below again."""
    state = Settings(sentence="Tom has the red hat", of_layer=1, of_head=2, format="float16")
    found = run(state).first_scale("plain", undefined=False)
    assert found is not None
    row = run(state, [1.597, found]).sides["plain"].top(state.query)
    assert (row >= 0.99).tolist() == [False, True]


def test_a_wrong_answer_is_called_wrong_and_a_right_one_right() -> None:
    assert "“Ben” is right, and both models say so" in verdict(run(Settings()))
    lost = verdict(run(Settings(scale=1000)))
    assert "“Ben” is right. The normalised model says so; plain attention has no answer" in lost
    assert "plain attention is wrong" in verdict(run(PRESETS["grown"]))
    assert "no right next word" in verdict(run(PRESETS["no_story"]))
    asked = [f"Ana has the red box . Ben has the blue hat . who has the {thing} ?" for thing in ("box", "hat")]
    for sentence, owner in zip(asked, ("Ana", "Ben"), strict=True):
        result = run(Settings(sentence=sentence))
        said = [WORDS[side.next_word(result.at) or 0] for side in result.sides.values()]
        right = [word == owner for word in said]
        says = {
            (True, True): "both models say so",
            (True, False): "the normalised model is wrong",
            (False, True): "plain attention is wrong",
            (False, False): "Neither model says so",
        }
        assert says[right[0], right[1]] in verdict(result)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Ana has the red hatt", "has the word 'hatt', which this model does not know; the nearest"),
        ("Ana has the zzz", "has the word 'zzz', which this model does not know. It knows Ana, Eva"),
        ("", "must have one word or more"),
        (f"{FULL} Ana", f"has {SHAPE.n_keys + 1} words; there is room for {SHAPE.n_keys}"),
    ],
)
def test_a_sentence_that_cannot_be_read_is_refused_in_one_sentence(text: str, says: str) -> None:
    err = io.StringIO()
    with contextlib.redirect_stderr(err):
        assert main(["words", "--sentence", text]) == 2
    assert says in err.getvalue()


def test_a_link_takes_the_nearest_word_and_says_so() -> None:
    settings, notes = Settings.from_texts({"sentence": "ana has the read hatt."})
    assert settings.sentence == "Ana has the red hat ."
    assert len(notes) == 1


def test_the_program_prints_the_numbers_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    for state in (Settings(), Settings(scale=4, of_layer=1, of_head=2, word=9), Settings(scale=200)):
        exec(snippet(state), {"__name__": "__main__"})
        printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        result = run(state, [state.scale])
        for told, (side, one) in zip(printed, result.sides.items(), strict=True):
            assert told["side"] == side
            assert told["row"] == pytest.approx(one.weights[0, state.query].tolist(), rel=1e-6, abs=1e-9, nan_ok=True)
            assert told["share"] == pytest.approx(one.shares[0].max(), rel=1e-6, nan_ok=True)


def test_rows_and_shares_are_whole() -> None:
    result = run(Settings())
    assert [row["word"] for row in rows(result)] == SENTENCE.split()
    for side in SIDES:
        assert sum(float(row[f"{side}_weight"] or 0) for row in rows(result)) == pytest.approx(1)
        assert sum(float(row[f"{side}_share"] or 0) for row in next_rows(result)) == pytest.approx(1)
    assert [row["next_word"] for row in next_rows(result) if row["may_follow"]] == ["Ben"]


def test_the_exhibit_draws_the_chosen_side_and_a_click_chooses_a_word() -> None:
    for shown, sides in (("both", ["plain", "norm"]), ("norm", ["norm"])):
        state: Any = Settings(shown=shown, word=4)  # type: ignore[arg-type]
        table, view = words_exhibit(run(state))
        arcs = view["panels"][0]
        assert [line["role"] for line in arcs["lines"]] == sides
        assert arcs["selected"] == 3
        assert all(line["column"] in table.column_names for line in arcs["lines"])
    assert picked(Settings(), {"key": 2}) == {"word": 3}
    assert picked(Settings(), {"dial": 2.0}) == {"scale": 2.0}
    assert picked(Settings(), {"key": 20}) == {}


@pytest.mark.parametrize("name", PRESETS)
def test_every_state_is_described(name: str) -> None:
    assert all(sentence and "{" not in sentence for sentence in explain(run(PRESETS[name])))
