"""What a map may be asked for, and the sentence that answers what it may not."""

import pytest

from qkdemo.dials import SettingsError, declarations
from qkdemo.labs.registry import LABS
from qkdemo.maps.request import MAPPED, SIZES, axis_of, numeric_dials, request_of, size_of, usual_axes
from qkdemo.messages import has

DRIFT = LABS["drift"]


def refused(x: str, y: str, measure: str = "", **dials) -> str:
    with pytest.raises(SettingsError) as error:
        request_of("drift", DRIFT.settings(**dials), x, y, measure)
    return str(error.value)


def test_two_times_the_same_dial_is_refused_and_the_others_are_named() -> None:
    said = refused("gain", "gain")
    assert said.startswith("x and y are both gain. A map needs two dials; the other one can be scale, d_head")
    assert "gamma" not in said  # it does not act here


def test_a_dial_that_does_not_act_is_refused_with_the_states_in_which_it_does() -> None:
    assert refused("scale", "gamma") == (
        "gamma does nothing when variant is l2; it acts for rms, layernorm, dyt, rms_softcap, full_width."
    )
    request_of("drift", DRIFT.settings(variant="rms"), "scale", "gamma")


def test_a_range_outside_the_dials_limits_is_refused() -> None:
    assert refused("scale:0.001:10", "gain") == "scale must be between 0.01 and 1000, but is 0.001."
    assert refused("scale:0.01:1001", "gain") == "scale must be between 0.01 and 1000, but is 1001."
    assert axis_of(DRIFT, "scale:0.01:1000").high == 1000


@pytest.mark.parametrize("text", ["scale:1", "scale:1:2:3", "scale::3", "scale:"])
def test_what_is_no_range_is_answered_with_one(text: str) -> None:
    assert refused(text, "gain").endswith("its lowest and its highest value: scale:0.01:1000.")


def test_a_range_that_goes_down_or_nowhere_is_refused() -> None:
    assert refused("scale:5:2", "gain") == "scale goes from 5 to 2. The first number must be the smaller one."
    assert refused("scale:2:2", "gain") == "scale goes from 2 to 2. The first number must be the smaller one."


def test_a_choice_is_no_axis() -> None:
    assert refused("format", "gain").startswith("'format' is no numeric dial of this lab. It has scale, gain")


def test_an_unknown_measure_is_answered_with_those_there_are() -> None:
    assert refused("scale", "gain", "loss") == (
        "'loss' is nothing that drift measures. It measures entropy_fraction, max_abs_logit, top_weight, "
        "softmax_slope, entropy, raw_lost."
    )


def test_a_lab_without_a_map_is_answered_with_those_that_have_one() -> None:
    with pytest.raises(SettingsError, match=r"'models' has no map\. These labs have one: arrows, drift"):
        request_of("models", LABS["models"].settings(), "", "")


def test_a_grid_over_the_budget_is_refused() -> None:
    assert [size_of(size) for size in SIZES] == [*SIZES]
    with pytest.raises(SettingsError, match="66 cells along a side are too many: a map has at most 65"):
        size_of(66)
    with pytest.raises(SettingsError, match="numbers of cells: 9, 17, 33, 65; not 12"):
        size_of(12)


def test_an_axis_may_not_leave_what_another_dial_allows() -> None:
    assert refused("scale", "query:0:16") == "query must be less than n_keys, which is 16, but is 16."
    request_of("drift", DRIFT.settings(), "scale", "query:0:15")


@pytest.mark.parametrize("name", MAPPED)
def test_every_axis_begins_and_ends_where_it_is_asked_to_and_stands_only_where_its_dial_can(name: str) -> None:
    lab = LABS[name]
    for dial in (dial for dial in declarations(lab.settings) if hasattr(dial.kind, "low")):
        axis = axis_of(lab, dial.name)
        values = axis.finest
        assert (values[0], values[-1]) == (dial.kind.low, dial.kind.high)
        assert list(values) == sorted(set(values))
        assert len(values) <= max(SIZES[-1], len(dial.kind.stops))
        assert [dial.check(value) for value in values] == list(values)
        for size in SIZES:
            assert {values[0], values[-1]} <= {*axis.values(size)} <= {*values}


def test_values_between_the_ends_can_be_typed() -> None:
    assert all(len(f"{value:g}".replace(".", "").strip("0")) <= 5 for value in axis_of(DRIFT, "scale").finest)
    assert {0.1, 1.0, 10.0, 100.0} <= {*axis_of(DRIFT, "scale:0.1:1000").finest}


def test_the_cells_of_an_axis_meet_and_hold_their_value() -> None:
    for text in ("scale:0.1:1000", "alignment", "n_keys"):
        axis = axis_of(DRIFT, text)
        values = axis.values(9)
        edges = axis.edges(values)
        assert len(edges) == len(values) + 1
        assert all(low < value < high for low, value, high in zip(edges, values, edges[1:], strict=False))


def test_every_measure_and_every_mark_has_a_name() -> None:
    for name in MAPPED:
        plane = LABS[name].plane
        assert plane is not None
        assert all(has(f"measure.{measure}") for measure in plane.measures)
        assert all(has(f"mark.{mark}") for mark in plane.marks)


@pytest.mark.parametrize("name", MAPPED)
def test_whatever_can_be_an_axis_is_one_as_far_as_other_dials_let_it_go(name: str) -> None:
    lab = LABS[name]
    settings = lab.settings()
    usual = usual_axes(lab, settings)
    for dial in numeric_dials(lab, settings):
        beside = next(text for text in usual if text.split(":")[0] != dial)
        axis = request_of(name, settings, dial, beside).x
        assert not axis.dial.misfit(settings.but(**{dial: axis.high}))


def test_a_dial_that_another_one_leaves_a_single_value_is_no_axis_and_is_not_offered_as_one() -> None:
    assert "head" not in numeric_dials(DRIFT, DRIFT.settings())
    assert "head" not in refused("gain", "gain").split(", ")
    assert "head" in numeric_dials(DRIFT, DRIFT.settings(n_heads=2))
    request_of("drift", DRIFT.settings(n_heads=2), "scale", "head")


def test_a_dial_beside_the_one_that_bounds_it_goes_as_far_as_that_one_does() -> None:
    """The cache has 32 keys at most; its shown key is a dial up to 63."""
    settings = LABS["cache"].settings()
    assert request_of("cache", settings, "key", "n_keys").x.text == "key:0:31"
    assert request_of("cache", settings, "n_keys:1:8", "key").y.text == "key:0:7"
    assert request_of("cache", settings, "key", "gain_spread").x.text == f"key:0:{settings.n_keys - 1}"
