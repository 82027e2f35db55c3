"""The drift lab: what it claims, in numbers and in words."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings

from qkdemo.attention.inputs import Inputs, Recipe, draw
from qkdemo.attention.variants import VARIANTS, VariantWord
from qkdemo.dials import Dial, declarations, preferred_numbers
from qkdemo.floats.formats import FORMATS, FormatWord
from qkdemo.labs.drift import (
    DECIDED,
    OPEN,
    PRESETS,
    UNMOVED,
    Settings,
    bound_in_words,
    explain,
    findings,
    on,
    report,
    rows,
    run,
    sharpness,
    state_of,
    sweep_scales,
)
from tests.strategies import settings_of

SMALL = Settings(n_keys=4, d_head=8)
ONE_SCALE = 1e-14  # of a logit that is stored unrounded


def only(rows: list[dict[str, Any]], **where: Any) -> dict[str, Any]:
    (found,) = [row for row in rows if all(row[name] == value for name, value in where.items())]
    return found


# --- the claim ----------------------------------------------------------------------------------------------------


def test_the_lab_opens_on_the_seed_table() -> None:
    """q and k of 16 positions, width 64, seed 0; l2 with g = 10 beside plain attention."""
    table = rows(run(Settings(), [1, 2, 4, 8, 16]))
    assert [(row["scale"], row["variant"]) for row in table] == [
        (scale, variant) for scale in (1, 2, 4, 8, 16) for variant in ("none", "l2")
    ]
    plain = [row for row in table if row["variant"] == "none"]
    assert [f"{row['max_abs_logit']:.1f}" for row in plain] == ["2.6", "10.6", "42.3", "169.2", "676.9"]
    assert [f"{row['top_weight']:.4f}" for row in plain] == ["0.4111", "0.9957", "1.0000", "1.0000", "1.0000"]
    assert [f"{row['entropy']:.3f}" for row in plain] == ["2.332", "0.676", "0.148", "0.037", "0.001"]
    assert [f"{row['softmax_slope']:.2e}" for row in plain] == [
        "5.39e-02",
        "2.14e-02",
        "5.48e-03",
        "1.36e-03",
        "1.74e-05",
    ]
    for twin in (row for row in table if row["variant"] == "l2"):
        assert f"{twin['max_abs_logit']:.1f} {twin['top_weight']:.4f}" == "3.3 0.5237"
        assert f"{twin['entropy']:.3f} {twin['softmax_slope']:.2e} {twin['bound']}" == "2.127 5.10e-02 10.0"


@pytest.mark.parametrize(
    ("gain", "top", "entropy"),
    [(1, "0.0844", "2.765"), (5, "0.2297", "2.592"), (20, "0.9252", "1.182"), (50, "0.9999", "0.469")],
)
def test_the_learned_scale_buys_sharpness_back_as_in_the_seed_table(gain: float, top: str, entropy: str) -> None:
    twin = only(report(Settings(gain=gain))["rows"], variant="l2")
    assert (f"{twin['top_weight']:.4f}", f"{twin['entropy']:.3f}", twin["bound"]) == (top, entropy, gain)


@given(settings_of(Settings, format="float64"))
def test_no_side_exceeds_its_bound_in_any_state(state: Settings) -> None:
    for row in report(state)["rows"]:
        if row["bound"] is not None:
            assert row["max_abs_logit"] <= row["bound"] * (1 + ONE_SCALE)


@given(settings_of(Settings, norm_in_format=False))
@example(Settings(variant="l2", format="bfloat16", alignment=0.99, n_keys=64))
def test_formats_add_at_most_their_rounding_to_a_bound(state: Settings) -> None:
    mantissa = {"float64": 52, "float32": 23, "bfloat16": 7, "float16": 10}[state.format]
    twin = only(report(state)["rows"], variant=state.variant)
    assume(twin["bound"] is not None)
    assume(not twin["raw_lost"])  # full width: raw products may leave float16 although the bound would fit
    assert twin["max_abs_logit"] <= twin["bound"] * (1 + 2 * 2.0**-mantissa)


@given(settings_of(Settings))
def test_measures_are_in_range_or_their_rows_are_counted(state: Settings) -> None:
    n_rows = state.n_heads * state.n_keys
    # float32 measures, and ln n in float32
    rounding = 1e-14 if state.format == "float64" else 1e-5
    for row in report(state)["rows"]:
        assert 0 <= row["undefined_rows"] <= n_rows
        assert 0 <= row["zeroed_rows"] <= 2 * n_rows
        assert 0 <= row["logit_lost"] <= 1
        if not VARIANTS[row["variant"]].capped:  # tanh(∞) is 1
            assert row["raw_lost"] <= row["logit_lost"]  # what is lost stays lost
        if row["undefined_rows"] == n_rows:
            continue
        assert 0 <= row["entropy"] <= math.log(state.n_keys) * (1 + rounding)
        assert 1 / state.n_keys - rounding <= row["top_weight"] <= 1
        assert 0 <= row["softmax_slope"] <= 0.25
        assert math.isnan(row["entropy_fraction"]) or 0 <= row["entropy_fraction"] <= 1 + rounding


# --- run ----------------------------------------------------------------------------------------------------------


@given(settings_of(Settings))
@settings(max_examples=30)
def test_the_sweep_holds_the_current_scale_and_both_ends(state: Settings) -> None:
    scales = sweep_scales(state)
    assert state.scale in scales
    assert (scales[0], scales[-1]) == (0.01, 1000)
    assert list(scales) == sorted(set(scales))


def test_the_current_scale_is_found_in_the_sweep() -> None:
    result = run(SMALL.but(scale=7.77))
    assert result.scales[result.at] == 7.77


@pytest.mark.parametrize(("n_heads", "n_keys", "stops"), [(1, 64, 101), (4, 64, 51), (2, 256, 27), (4, 256, 22)])
def test_larger_states_are_swept_in_fewer_steps(n_heads: int, n_keys: int, stops: int) -> None:
    assert len(sweep_scales(Settings(n_heads=n_heads, n_keys=n_keys))) == stops  # 8 is no stop of the last two


def test_plain_attention_beside_itself_is_one_side() -> None:
    result = run(SMALL.but(variant="none"))
    assert [side.variant for side in result.sides] == ["none"]
    assert len(rows(run(SMALL.but(variant="none"), [1.0]))) == 1


def test_plain_attention_is_the_same_beside_every_twin() -> None:
    plain = run(SMALL.but(variant="none")).plain
    assert all(run(SMALL.but(variant=variant)).plain is plain for variant in VARIANTS)
    narrow = SMALL.but(format="float16", variant="rms")
    assert run(narrow.but(norm_in_format=True)).plain is run(narrow).plain  # it has no norm


@pytest.mark.parametrize(
    ("variant", "idle"),
    [
        ("l2", {"gamma": 3.0, "alpha": 3.0, "temperature": 1.0, "softcap": 7.0}),
        ("dyt", {"gain": 3.0, "temperature": 1.0, "softcap": 7.0}),
        ("rms", {"gain": 3.0, "alpha": 3.0, "temperature": 1.0, "softcap": 7.0}),
        ("cosine", {"gain": 3.0, "alpha": 3.0, "gamma": 3.0, "softcap": 7.0}),
        ("softcap", {"gain": 3.0, "alpha": 3.0, "gamma": 3.0, "temperature": 1.0}),
        ("rms_softcap", {"gain": 3.0, "alpha": 3.0, "temperature": 1.0}),
        ("none", {"gain": 3.0, "alpha": 3.0, "gamma": 3.0, "temperature": 1.0, "softcap": 7.0}),
    ],
)
def test_dials_that_a_variant_does_not_read_leave_no_trace(variant: VariantWord, idle: dict[str, float]) -> None:
    state = Settings(variant=variant)
    assert state_of(state.but(**idle)) == state_of(state)
    for dial in declarations(Settings):
        if dial.kind.only_for:
            assert dial.acts_for(state) == (dial.name not in idle)


@pytest.mark.parametrize(
    ("variant", "changed"),
    [
        ("l2", {"gain": 3.0}),
        ("rms", {"gamma": 3.0}),
        ("layernorm", {"gamma": 3.0}),
        ("full_width", {"gamma": 3.0}),
        ("rms_softcap", {"gamma": 3.0}),
        ("rms_softcap", {"softcap": 7.0}),
        ("cosine", {"temperature": 1.0}),
        ("softcap", {"softcap": 7.0}),
        ("l2", {"d_head": 16}),
        ("l2", {"n_keys": 5}),
        ("l2", {"format": "bfloat16"}),
        ("l2", {"causal": True}),
        ("l2", {"alignment": 0.5}),
        ("l2", {"mean": 0.5}),
        ("l2", {"n_heads": 2}),
        ("full_width", {"n_heads": 2, "head_spread": 4.0}),
        ("l2", {"seed": 1}),
    ],
    ids=str,
)
def test_dials_that_act_change_the_numbers(variant: VariantWord, changed: dict[str, Any]) -> None:
    state = SMALL.but(variant=variant)
    assert only(report(state.but(**changed))["rows"], variant=variant) != only(report(state)["rows"], variant=variant)


def test_what_is_looked_at_closely_stays_within_the_state() -> None:
    assert state_of(Settings(n_keys=4, query=200, key=3, head=3)).shown == (0, 3, 3)
    assert state_of(Settings(n_keys=4, n_heads=2, query=1, key=200, head=3)).shown == (1, 1, 3)


# --- sharpness ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["float64", "float16"])
@pytest.mark.parametrize("variant", [word for word in VARIANTS if word != "none"])
def test_the_dial_of_a_variant_shows_what_each_of_its_values_shows_alone(
    variant: VariantWord, format: FormatWord
) -> None:
    state = SMALL.but(variant=variant, scale=2.0, format=format, n_heads=2, causal=True)
    state = state.but(gain=7.77, gamma=1.23, temperature=0.123, softcap=51)  # none of them a stop
    curve = sharpness(state)
    assert curve is not None
    assert curve.dial == VARIANTS[variant].dial
    kind = next(dial.kind for dial in declarations(Settings) if dial.name == curve.dial)
    assert isinstance(kind, Dial)
    assert set(preferred_numbers(kind.low, kind.high)) <= set(curve.values.tolist())
    assert getattr(state, curve.dial) in curve.values
    # float32 sums may be taken in another order, and a stored logit lie one float16 step away
    close = {"rel": 1e-12, "abs": 1e-15} if format == "float64" else {"rel": 5e-3, "abs": 1e-6}
    for at in (0, len(curve.values) // 2, -1):
        alone = only(report(state.but(**{curve.dial: curve.values[at].item()}))["rows"], variant=variant)
        for name in ("max_abs_logit", "top_weight", "entropy_fraction", "softmax_slope", "bound"):
            assert getattr(curve, name)[at] == pytest.approx(alone[name], **close), name


def test_plain_attention_has_no_dial_that_buys_anything_back() -> None:
    assert sharpness(Settings(variant="none")) is None


def test_more_gain_is_more_sharpness() -> None:
    for variant in ("l2", "rms", "layernorm", "full_width"):
        curve = sharpness(Settings(variant=variant, n_heads=2))
        assert curve is not None
        assert (np.diff(curve.entropy_fraction) <= 1e-12).all()
        assert (np.diff(curve.bound) > 0).all()


# --- words --------------------------------------------------------------------------------------------------------


def test_the_first_sentence_tells_the_story_of_the_seed_table() -> None:
    scales = (0.5, 1.0, 2.0, 8.0)
    told = dict(zip(scales, findings(run(Settings(), scales)), strict=True))
    assert told == {
        0.5: "At weight scale 0.5, plain attention spreads over its keys on average: "
        "entropy is 98.9 % of the most possible. "
        "With L2 norm and learned scale g too: 76.7 %.",
        1.0: "At weight scale 1, plain attention spreads over its keys on average: "
        "entropy is 84.1 % of the most possible. "
        "With L2 norm and learned scale g too: 76.7 %.",
        2.0: "At weight scale 2, plain attention favours one key or a few on average: "
        "entropy is 24.4 % of the most possible. "
        "With L2 norm and learned scale g, attention spreads over its keys on average: "
        "entropy is 76.7 % of the most possible.",
        8.0: "At weight scale 8, plain attention gives most of its weight to one key per query on average: "
        "entropy is 1.35 % of the most possible. "
        "With L2 norm and learned scale g, entropy is 76.7 % of the most possible, nearly as at weight scale 1.",
    }


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        (
            Settings(variant="none"),
            (
                "At weight scale 8, plain attention gives most of its weight to one key per query on average: "
                "entropy is 1.35 % of the most possible."
            ),
        ),
        (
            Settings(variant="rms", gamma=10),
            (
                "At weight scale 8, plain attention gives most of its weight to one key per query on average: "
                "entropy is 1.35 % of the most possible. "
                "So does attention with RMSNorm, whose bound is 800: entropy is 1.6 %."
            ),
        ),
        (
            Settings(scale=400, format="float16"),
            (
                "At weight scale 400, 242 of the 256 scores of plain attention are infinite or no number in float16, "
                "and 16 of 16 rows have no defined attention weights. "
                "With L2 norm and learned scale g, entropy is 76.7 % of the most possible, nearly as at weight scale 1."
            ),
        ),
    ],
)
def test_the_first_sentence_of_some_states(state: Settings, sentence: str) -> None:
    assert explain(run(state))[0] == sentence


def test_sentences_follow_the_thresholds_that_they_name() -> None:
    result = run(Settings())
    for at, sentence in enumerate(findings(result)):
        fraction = result.plain.entropy_fraction[at]
        assert ("plain attention gives most of its weight to one key per query on average" in sentence) == (
            fraction < DECIDED
        )
        assert ("plain attention spreads over its keys on average" in sentence) == (fraction >= OPEN)


def test_a_norm_that_returns_zeros_is_called_unhealthy_with_its_count() -> None:
    state = PRESETS["silent_zeros"]
    told = explain(run(state))
    assert "32 of the 32 query and key vectors became zeros in float16" in told[0]
    assert "RMSNorm: 32 of the 32 query and key vectors became zeros." in told
    few = explain(run(state.but(scale=28)))
    assert "2 of the 32 query and key vectors became zeros in float16" in few[0]


def test_a_twin_that_fails_alone_is_not_said_to_fail_as_well() -> None:
    """Full width, gain 10: raw products reach 102 400, which float16 lacks, at a scale where plain is at ease."""
    state = Settings(
        scale=0.01,
        variant="full_width",
        n_heads=4,
        d_head=256,
        gamma=10,
        format="float16",
        head_spread=16,
        alignment=0.99,
    )
    finding, *numbers = explain(run(state))
    assert finding == (
        "At weight scale 0.01, plain attention spreads over its keys on average over the queries of its 4 heads: "
        "entropy is 100 % of the most possible. "
        "With full-width RMSNorm, 16 of 64 rows have no defined attention weights."
    )
    assert any(sentence.startswith("Full-width RMSNorm: 16 of 64 rows") for sentence in numbers)


def test_when_only_rows_with_one_key_are_left_no_per_cent_is_told() -> None:
    """Two causal rows: the second, which has a choice, overflows; the first is defined and has none."""
    result = run(Settings(n_keys=2, causal=True, format="float16", scale=100, variant="none", seed=5))
    side = result.plain
    assert (side.undefined_rows[result.at], side.entropy[result.at]) == (1, 0)
    assert math.isnan(side.entropy_fraction[result.at])
    told = " ".join(explain(result))
    assert "entropy 0 nats (only rows that see a single key are defined)" in told
    assert "NaN" not in told


def test_rows_without_a_number_are_not_said_to_be_infinite() -> None:
    state = Settings(scale=1000, variant="layernorm", format="float16", norm_in_format=True, mean=3, d_head=256)
    twin = only(report(state)["rows"], variant="layernorm")
    assert (twin["undefined_rows"], twin["raw_lost"]) == (16, 1)
    assert math.isnan(twin["max_abs_logit"])
    assert any("infinite or no number" in sentence for sentence in explain(run(state)) if "LayerNorm" in sentence)


def test_the_first_causal_row_is_explained_where_there_is_one() -> None:
    one_key = "The first query sees one key"
    assert any(one_key in sentence for sentence in explain(run(SMALL.but(causal=True))))
    assert not any(one_key in sentence for sentence in explain(run(SMALL)))


@pytest.mark.parametrize("variant", [word for word in VARIANTS if word != "none"])
def test_every_bound_is_said_with_its_value(variant: VariantWord) -> None:
    state = Settings(variant=variant, n_heads=2, gamma=2.0)
    sentence = bound_in_words(state, run(state, [1.0]).twin)
    value = {"l2": "10", "cosine": "10", "softcap": "50", "full_width": "64", "rms_softcap": "28.24"}.get(variant, "32")
    assert f"= {value}" in sentence
    assert sentence in explain(run(state))


@pytest.mark.parametrize("format", list(FORMATS))
def test_only_float16_is_said_to_lose_products(format: FormatWord) -> None:
    told = " ".join(explain(run(Settings(format=format))))
    assert ("a score is first infinite or no number at weight scale 55.65" in told) == (format == "float16")


def test_softcap_does_not_save_products_that_were_lost_before_it() -> None:
    twin = only(report(Settings(scale=400, format="float16", variant="softcap"))["rows"], variant="softcap")
    assert twin["raw_lost"] * 256 == 242
    assert twin["undefined_rows"] == 0
    assert twin["max_abs_logit"] == 50  # tanh(∞) is 1: finite again, and wrong


def test_a_dial_that_divides_cannot_be_zero_or_infinite() -> None:
    """A cap or temperature of 0 is refused here, where other libraries take it for “off” or return NaN."""
    for name in ("softcap", "temperature", "gain", "gamma"):
        dial = next(dial for dial in declarations(Settings) if dial.name == name)
        for bad in (0.0, -50.0, math.inf, math.nan):
            with pytest.raises(ValueError, match=f"{name} must be between"):
                Settings(**{name: bad})
        assert isinstance(dial.kind, Dial)
        assert dial.kind.low > 0


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_shows_what_its_name_says(name: str) -> None:
    state = PRESETS[name]
    twin = only(report(state)["rows"], variant=state.variant)
    plain = only(report(state)["rows"], variant="none")
    shows = {
        "seed_table": f"{twin['entropy']:.3f}" == "2.127",
        "fresh": plain["entropy_fraction"] > 0.8,
        "long_training": plain["entropy"] < 0.01 and twin["entropy"] > 2,
        # γ = 4 twice makes up for 1/√256: a norm with a scale of one, bounded at 256, saturated all the same
        "scale_one": twin["bound"] == 256 and twin["entropy"] < 0.1 * math.log(128),
        "half_precision": plain["undefined_rows"] == 16 and twin["undefined_rows"] == 0,
        "silent_zeros": twin["zeroed_rows"] == 32 and twin["entropy_fraction"] > 0.999,
        "shifted": twin["entropy_fraction"] > 0.5,
        # bounded at √64, and attention still looks around where plain attention has long chosen
        "dynamic_tanh": twin["bound"] == 8 and twin["entropy_fraction"] > 0.5 and plain["entropy_fraction"] < 0.1,
        "uneven_heads": twin["max_abs_logit"] > math.sqrt(64) / 4,
    }
    assert shows[name]


def test_softcap_hides_what_float16_lost() -> None:
    """After tanh nothing is infinite, so no row is undefined; only the share of lost products tells."""
    twin = only(report(Settings(scale=400, format="float16", variant="softcap"))["rows"], variant="softcap")
    assert (twin["raw_lost"] > 0.9, twin["logit_lost"], twin["undefined_rows"]) == (True, 0, 0)


def test_zero_vectors_that_somebody_brought_are_no_fault_of_a_format_or_a_norm() -> None:
    """A row of padding is 0 before any norm, and LayerNorm makes a constant row 0: nothing was rounded away."""
    drawn = draw(Recipe())
    q, k = (x.clone() for x in drawn)
    q[0, 3], k[0, 5], k[0, 6] = 0, 0, 2
    for variant in ("l2", "rms", "layernorm", "softcap"):
        result = run(on(Settings(variant=variant, scale=1), Inputs(q=q, k=k)))  # type: ignore[arg-type]
        assert not result.plain.zeroed_rows.any()
        assert not result.twin.zeroed_rows.any()
        assert not any("zeros" in sentence or "to zero" in sentence for sentence in explain(result))


def test_attention_that_is_as_wide_but_elsewhere_is_not_said_to_be_as_it_was() -> None:
    """Dynamic tanh bends: at scale 30 the logits are other ones, though the entropy is nearly that of scale 1."""
    result = run(Settings(variant="dyt", gamma=0.5, scale=30))
    fresh = run(Settings(variant="dyt", gamma=0.5, scale=1))
    one, other = result.twin.entropy_fraction[result.at], fresh.twin.entropy_fraction[fresh.at]
    assert abs(one - other) < UNMOVED
    assert "as at weight scale 1" not in explain(result)[0]
