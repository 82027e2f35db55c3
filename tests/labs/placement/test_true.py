"""Every sentence of the placement lab that depends on a result, held against both passes at random settings."""

import random
from collections.abc import Iterator

import numpy as np

from qkdemo.labs.placement import Settings, explain, run
from qkdemo.labs.placement.lab import PRESETS, mistakes_of, spreads_of
from qkdemo.labs.placement.mistakes import MISTAKES, explain_mistakes
from qkdemo.labs.placement.words import caught, findings
from tests.labs.placement.passes import About
from tests.labs.placement.truths import CAUSES, NAMES, TRUTHS, mistaken
from tests.labs.told import HOW_MANY, SEED, computed, hold, reads, states
from tests.oracles import heard

SMALL = {"d_model": 32, "n_heads": 4, "n_kv_heads": 4, "d_head": 16, "n_keys": 16}


def drawn() -> Iterator[Settings]:
    """Random blocks under random pipelines, of which half differ in one choice or two alone."""
    draw = random.Random(SEED)
    for state in states(Settings, 8, SMALL):
        left = {name: getattr(state, f"left_{name}") for name in CHOICES}
        if draw.random() < 0.4:
            left = {name: getattr(Settings(), f"left_{name}") for name in CHOICES} | {"norm": left["norm"]}
        changed = draw.sample(CHOICES, draw.choice([0, 1, 1, 1, 2]))
        right = left | {name: getattr(state, f"right_{name}") for name in changed}
        alike = {
            f"{side}_{name}": word for side, words in (("left", left), ("right", right)) for name, word in words.items()
        }
        kind = draw.random()
        if kind < 0.2:
            yield state.but(compare="all_mistakes", format="float64")
        elif kind < 0.35:
            preset = draw.choice(list(PRESETS.values())).as_dict()
            yield state.but(
                compare="two", **{name: word for name, word in preset.items() if name.startswith(("left_", "right_"))}
            )
        else:
            yield state.but(**alike if kind < 0.9 else {}, compare="two")


CHOICES = [name.removeprefix("left_") for name in Settings().as_dict() if name.startswith("left_")]


def test_every_sentence_of_a_result_has_an_oracle() -> None:
    needed = computed(r"placement\.(finding|caught)\..*", r"placement\.(vanishing|vanishing_with_one_head|same|lost)")
    needed |= computed(r"placement\.(rounding|only_output|apart|by_position)") | {f"cause.{word}" for word in CAUSES}
    assert needed == set(TRUTHS)


def test_every_sentence_is_true_wherever_the_dials_stand() -> None:
    held, draw = set[str](), random.Random(SEED)
    with np.errstate(all="ignore"):
        for state in drawn():
            result, spreads = run(state), spreads_of(state)
            with heard() as said:
                told = caught(state)
                explain(result)
                headlines = findings(state)
            assert told
            assert len(headlines) == len(spreads)
            own = [each for each in said if not each.key.startswith("placement.finding")]
            held |= hold(own, TRUTHS, NAMES, About(state, state.gain_spread, result), state)
            of_spreads = [each for each in said if each.key.startswith("placement.finding")][: len(spreads)]
            for at in draw.sample(range(len(spreads)), 2):
                held |= hold([of_spreads[at]], TRUTHS, NAMES, About(state, spreads[at]), state)
    if HOW_MANY:
        print(len(held), "of", len(TRUTHS), "were heard; not", sorted(set(TRUTHS) - held))
    assert len(held) > 8


def test_what_is_said_of_eight_draws_is_their_numbers() -> None:
    settings = Settings(n_keys=8, d_head=8, d_model=16, gains="unit", token_spread=4)
    found = mistakes_of(settings)
    with heard() as said:
        explain_mistakes(found)
    errors = mistaken(About(settings, settings.gain_spread))
    for each in said[:-1]:
        name = each.key.removeprefix("mistake.")
        error, lowest, highest = (str(each.values[word]) for word in ("error", "lowest", "highest"))
        assert error == "< 10⁻¹²" if errors[name] < 1e-12 else reads(error, errors[name], 3)
        assert {lowest, error, highest} == {error} or lowest != highest
    assert said[-1].key == "placement.hidden"
    hidden = sum(x < 1e-12 for x in mistaken(About(settings, 0.0)).values())
    assert (said[-1].number("hidden"), said[-1].number("all")) == (hidden, len(MISTAKES))
    assert hidden == 3
