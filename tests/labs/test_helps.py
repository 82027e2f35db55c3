"""The help of a dial that several labs have is true in each of them."""

import re
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
import torch

from qkdemo.attention.inputs import Recipe, draw
from qkdemo.dials import Choice, Dial, declarations
from qkdemo.labs import arrows, drift, mla, placement, words
from qkdemo.labs.registry import LABS
from qkdemo.messages import ENGLISH, LANGUAGES, say
from tests.strategies import COMPUTED

# Logits of a state in bfloat16, of labs that have them as numbers.
LOGITS: dict[str, Any] = {
    "arrows": lambda: arrows.run(arrows.Settings(format="bfloat16")).plain.logits,
    "words": lambda: words.run(words.Settings(format="bfloat16")).sides["plain"].logits[:, -1],
    "drift": lambda: drift.run(drift.Settings(format="bfloat16")).plain.logit,
    "placement": lambda: placement.run(placement.Settings(format="bfloat16")).right.logits,
    "mla": lambda: mla.run(mla.Settings(format="bfloat16")).explicit.all,
}


def help_of(lab: str, name: str) -> str:
    return {dial.name: dial.help for dial in declarations(COMPUTED[lab].settings)}[name]


@pytest.mark.parametrize("lab", LOGITS)
def test_logits_are_said_to_be_stored_where_they_are(lab: str) -> None:
    logits = np.asarray(LOGITS[lab](), dtype=np.float64)
    kept = torch.from_numpy(logits).bfloat16().double().numpy()
    assert ("and the logits are stored" in help_of(lab, "format")) == bool(np.array_equal(kept, logits, equal_nan=True))


def test_what_a_format_holds_is_said_of_the_lab_that_shows_the_dial() -> None:
    texts = {lab: help_of(lab, "format") for lab in ("cache", "mla", "epsilon", "cost")}
    assert len(set(texts.values())) == 4
    assert not any("q·k" in text for text in texts.values())  # none of these stores it


def test_a_gain_that_multiplies_what_no_norm_bounds_is_not_said_to_bound_it() -> None:
    state = placement.Settings(left_scale="learned", left_norm="rms", gain=10.0, right_order="norm_rotary")
    assert placement.run(state).left.logits.abs().max() > state.gain
    assert "≤" not in help_of("placement", "gain")


def test_the_mean_of_a_head_is_said_to_grow_with_its_size() -> None:
    (q, _), (shifted, _) = (draw(Recipe(n_heads=4, head_spread=9, mean=mean)) for mean in (0.0, 2.0))
    added = (shifted - q).mean((1, 2))
    assert added.max() / added.min() == pytest.approx(9)
    assert all("times the size of its head" in help_of(lab, "mean") for lab in ("drift", "placement"))


@pytest.mark.parametrize("norm", ["layernorm", "rms"])
@pytest.mark.parametrize("place", ["per_head", "in_product", "full_width", "input"])
def test_only_layernorm_of_each_head_takes_the_mean_away_again(place: Any, norm: Any) -> None:
    state = placement.Settings(left_place=place, left_norm=norm, head_spread=8)
    base, shifted = (placement.run(state.but(mean=mean)).left.logits for mean in (0.0, 2.0))
    gone = bool((shifted - base).norm() < 1e-9 * base.norm())
    assert gone == (norm == "layernorm" and place in ("per_head", "in_product"))
    told = help_of("placement", "mean")
    assert "LayerNorm of each head’s q and k subtracts it again, unless rotary positions come before it." in told
    assert "no norm before the projection does" in told


def test_a_layernorm_after_rotary_does_not_take_the_mean_away_for_a_rotation_does_not_keep_it() -> None:
    state = placement.Settings(left_norm="layernorm", left_order="rotary_norm")
    base, shifted = (placement.run(state.but(mean=mean)).left.logits for mean in (0.0, 2.0))
    assert (shifted - base).norm() > 0.1 * base.norm()


@pytest.mark.parametrize("name", ["head_spread", "projections"])
def test_a_dial_of_latent_attention_that_moves_the_other_ways_alone_says_so(name: str) -> None:
    small, large = (mla.run(mla.Settings(**{name: value})) for value in (1.0, 10.0))
    assert np.array_equal(small.explicit.all, large.explicit.all)
    assert mla.rows(small) == mla.rows(large)
    assert mla.other_rows(small) != mla.other_rows(large)
    assert help_of("mla", name).startswith(f"Only in the comparison under “{say('other_ways.heading')}”")


def test_what_latent_attention_draws_is_said_once_to_be_stored() -> None:
    drawn = mla.lab._draw(mla.Settings())
    assert "latent" in drawn
    assert "latents" not in help_of("mla", "format")


def test_the_sphere_alone_has_one_query_whatever_its_keys() -> None:
    texts = {lab.name: help_of(lab.name, "n_keys") for lab in COMPUTED.values() if hasattr(lab.settings, "n_keys")}
    assert [name for name, text in texts.items() if "one query" in text] == ["sphere"]
    assert not any("sphere" in text for text in texts.values())


def test_a_dial_is_counted_from_where_it_begins() -> None:
    for lab in LABS.values():
        for dial in declarations(lab.settings):
            if counted := re.search(r"[Cc]ounted from (\d)", dial.help):
                assert isinstance(dial.kind, Dial)
                assert int(counted[1]) == dial.kind.low, (lab.name, dial.name)


def test_a_letter_stands_for_one_number_of_a_lab() -> None:
    for lab in LABS.values():
        letters = [found[1] for dial in declarations(lab.settings) if (found := re.match(r"([^\W\d]): ", dial.help))]
        assert len(set(letters)) == len(letters), (lab.name, letters)


def test_a_help_explains_no_word_that_its_dial_does_not_know() -> None:
    for lab in LABS.values():
        for dial in declarations(lab.settings):
            if isinstance(dial.kind, Choice):
                told = set(re.findall(r"(?:^|[.;] )([a-z_]+): ", dial.help))
                assert told <= set(dial.allowed_words()), (lab.name, dial.name, told)


def test_every_text_for_a_use_of_its_own_is_shown_by_a_lab() -> None:
    shown = defaultdict(set)
    for lab in LABS.values():
        for dial in declarations(lab.settings):
            shown[dial.name].add(dial.help)
    for key, text in LANGUAGES[ENGLISH].items():
        if match := re.fullmatch(r"dial\.(\w+)\.help_\w+", key):
            assert text in shown[match[1]], key
