"""What is said of a pipeline means what the pipeline computes: at every model of the table, and at random choices.

The pipelines themselves are held against a second writing of every choice (`plain`).
`QKDEMO_STATES=3000 python -m pytest tests/labs/placement/test_meaning.py` searches longer than CI does.
"""

import itertools
import random
import re
from collections.abc import Iterator
from functools import cache, partial

import numpy as np
import pytest
import torch
from torch import Tensor

from qkdemo.attention.blocks import BlockRecipe, draw_block
from qkdemo.attention.pipeline import CHOICES, OnWord, Pipeline, trace
from qkdemo.facts.models import MODELS, Model, alike
from qkdemo.facts.nearest import changes, closest, in_words, own_number
from qkdemo.labs.placement.mistakes import pair_of, possible
from qkdemo.labs.placement.words import contract
from tests.labs.placement.meanings import read_back, unsaid
from tests.labs.placement.plain import passed
from tests.labs.told import HOW_MANY, SEED

_recipe = partial(BlockRecipe, d_head=16, n_heads=4, learned_scale=0.7, softcap=2.0)
BLOCKS = [
    draw_block(_recipe(d_model=64, n_kv_heads=2, n_keys=3, offset=3, mean=0.3, head_spread=1.5, token_spread=2)),
    draw_block(_recipe(d_model=32, n_kv_heads=4, n_keys=6, mean=1, causal=True, seed=2)),
    draw_block(_recipe(d_model=32, n_kv_heads=1, n_keys=5, offset=50, seed=3)),
]
READ = [model for model in MODELS if model.pipeline]


def some(count: int, most: int = 4) -> Iterator[Pipeline]:
    """Models with up to `most` choices changed, and now and then any choices at all."""
    draw = random.Random(SEED)
    for _ in range(HOW_MANY or count):
        if draw.random() < 0.15:
            yield Pipeline(**{name: draw.choice(words) for name, words in CHOICES.items()})  # type: ignore[arg-type]
        else:
            yield changed(draw, draw.choice(READ).pipeline, draw.randint(0, most))


def changed(draw: random.Random, pipeline: Pipeline | None, many: int) -> Pipeline:
    assert pipeline is not None
    return pipeline.but(**{name: draw.choice(CHOICES[name]) for name in draw.sample(list(CHOICES), many)})


@cache
def made(pipeline: Pipeline) -> Tensor:
    """Everything that it computes on a block whose gains, biases, heads and positions are all unlike."""
    found = trace(pipeline, BLOCKS[0])
    return torch.cat([x.flatten() for x in (found.logits, found.weights, found.output)])


def same(one: Pipeline, other: Pipeline) -> bool:
    """One function: RMSNorm's epsilon moves the fifth digit."""
    return bool((made(one) - made(other)).norm() < 3e-5 * made(one).norm())


def read_as(model: Model) -> list[Pipeline]:
    """What the row may be: of a choice that was not read, anything."""
    assert model.pipeline is not None
    names = sorted(model.unread)
    every = itertools.product(*(CHOICES[name] for name in names))
    return [model.pipeline.but(**dict(zip(names, words, strict=True))) for words in every]


def test_every_choice_does_what_a_second_writing_of_it_does() -> None:
    for at, pipeline in enumerate([*(model.pipeline for model in READ), *some(40, len(CHOICES))]):
        assert pipeline is not None
        block = BLOCKS[at % len(BLOCKS)]
        found, plain = trace(pipeline, block), passed(pipeline, block)
        assert block.w_o is not None
        own = {"logits": found.seen(found.logits), "weights": found.weights, "output": found.output}
        plain["output"] = plain["output"] @ block.w_o.numpy().T
        for name, x in own.items():
            np.testing.assert_allclose(x.numpy(), plain[name], rtol=1e-7, atol=1e-9 * float(x.abs().max()))


def test_a_contract_says_enough_to_compute_what_the_pipeline_computes() -> None:
    """A reader who knows the sentence and what is usual, whatever the pipeline beside it is."""
    draw = random.Random(SEED)
    for pipeline in [*(model.pipeline for model in READ), *some(40, len(CHOICES))]:
        assert pipeline is not None
        told = contract(pipeline, changed(draw, pipeline, draw.choice([0, 2, len(CHOICES)])))
        assert same(read_back(told), pipeline), told


def test_the_models_that_are_named_do_just_this_and_no_other_one_does() -> None:
    for pipeline in some(15):
        named = {model.model for model in alike(pipeline)}
        assert named == {model.model for model in READ if any(same(pipeline, one) for one in read_as(model))}
        assert in_words(pipeline).removeprefix("perhaps ").startswith("the same function as") == bool(named)


def test_the_closest_model_is_what_the_contract_gives_with_the_named_choices_changed() -> None:
    for pipeline in some(15):
        told = contract(pipeline, pipeline)
        model, names = closest(pipeline)
        assert any(reached(told, one, names) for one in read_as(model)), f"{told} {in_words(pipeline)}"


def reached(told: str, model: Pipeline, names: list[str]) -> bool:
    """Whether a reader of the contract gets the function of the model with these choices as the model has them."""
    reader, idle = read_back(told), [name for name in unsaid(told) if name != "order" or model.order != "none"]
    for many in range(len(idle) + 1):
        for free in itertools.combinations(idle, many):
            if same(reader.but(**{name: getattr(model, name) for name in (*names, *free)}), model):
                return True
    return False


BARE = Pipeline(norm="none", gain="none")


@pytest.mark.parametrize(
    ("pipeline", "said"),
    [
        (Pipeline(gain="scalar", order="rotary_norm"), "Hunyuan V1 dense, but for gain."),
        (
            BARE.but(order="none", cap="softcap", conversion="weights_and_gain", scale="one"),
            "VideoPrism, but for scale.",
        ),
        (Pipeline(stored="one_plus", conversion="weights_and_gain"), "Step 3.7, but for what was permuted."),
        (BARE.but(norm="dyt", on="qkv"), "Qwen2 / Qwen2.5, but for norm."),
        (Pipeline(place="full_width", norm="layernorm", gain="none"), "ESM-C, but for gain."),
    ],
)
def test_what_is_near_a_model_is_said_by_what_has_to_be_changed(pipeline: Pipeline, said: str) -> None:
    assert f"one of the closest is {said}" in in_words(pipeline)


def test_a_model_whose_scale_may_be_this_one_is_nearest_where_none_is_known_to_have_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Grok-1 is known to divide by √d; without it Gemma 2 is left, whose scale is a number of its own."""
    others = tuple(model for model in MODELS if model.model != "Grok-1")
    monkeypatch.setattr("qkdemo.facts.nearest.MODELS", others)
    capped = BARE.but(cap="softcap")
    model, names = closest(capped)
    assert model.model == "Gemma 2"
    assert own_number(capped, model, names)


def test_a_choice_that_does_nothing_has_not_to_be_changed() -> None:
    assert changes(Pipeline(on="k", key_gain="q_alone"), Pipeline(gain="none")) == ["on"]
    assert changes(BARE.but(place="full_width"), Pipeline(gain="none")) == ["norm"]


@pytest.mark.parametrize(("name", "on"), [("ZAYA", "k"), ("Dory (nGPT-style)", "q"), ("nGPT", "q")])
def test_a_gain_that_comes_back_with_the_norm_has_not_to_be_changed(name: str, on: OnWord) -> None:
    (one,) = (model.pipeline for model in READ if model.model == name)
    assert one is not None
    assert closest(one.but(on=on))[1] == ["on"]


def test_of_models_that_were_all_read_in_part_perhaps_comes_first() -> None:
    """Megatron-Core’s own pairs were not read; beside Llama 4’s, which were, it is the name that is uncertain."""
    (megatron,) = (model.pipeline for model in READ if model.model == "Megatron-Core qk_l2_norm")
    (llama,) = (model.pipeline for model in READ if model.model == "Llama 4 (text)")
    assert megatron is not None
    assert llama is not None
    assert in_words(megatron).startswith("perhaps the same function as the choices of Megatron-Core qk_l2_norm")
    assert re.match("the same function as the choices of Llama 4.*; and perhaps Megatron-Core", in_words(llama))


def test_the_name_of_a_mistake_is_what_both_contracts_say_of_a_port_that_makes_it() -> None:
    """Of every model: left and right differ in what the name says, and in nothing else."""
    for model in READ:
        assert model.pipeline is not None
        for name in possible(model.pipeline):
            left, right = pair_of(name, model.pipeline)
            sides = contract(left, right), contract(right, left)
            for told, wanted in zip(sides, SAYS[name], strict=True):
                assert all(re.search(rf"(?:^|; ){part}(?:;|,|\.)", told) for part in wanted), f"{model.model} {told}"


# What the name of a mistake says of the weights, and of the code that reads them.
SAYS: dict[str, tuple[list[str], list[str]]] = {
    "full_width": (["[^;]*, (?:per head|inside the product)"], ["[^;]*, full width"]),
    "norm_skipped": (["(?!no norm on q and k; (?!.*after softmax))[^;]*"], ["no norm on q and k"]),
    "layernorm_for_rms": (["RMSNorm"], ["LayerNorm"]),
    "rotary_first": (["then rotary positions"], ["rotary positions before it"]),
    "q_gain_on_k": (["gain on k: its own"], ["gain on k: q’s"]),
    "gain_not_permuted": (["what was permuted: nothing", "a gain per[^;]*"], ["what was permuted: weights"]),
    "l2_scale_kept": (["RMSNorm", "logits times 1/√d"], ["L2", "logits times 1/√d"]),
    "one_plus_as_gamma": (["a gain [^;]*stored as 1 \\+ γ"], ["a gain [^;]*stored as γ"]),
    "gamma_as_one_plus": (["a gain [^;]*stored as γ"], ["a gain [^;]*stored as 1 \\+ γ"]),
    "scale_one": (["logits times 1/√d"], ["logits times 1"]),
}
