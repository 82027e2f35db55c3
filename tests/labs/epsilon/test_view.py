"""The epsilon exhibit: the chosen rule is always the right one, and every line has a role of its own."""

import pytest

from qkdemo.labs.epsilon import RULE_WORDS, Settings
from qkdemo.labs.epsilon.view import epsilon_exhibit


@pytest.mark.parametrize("rule", RULE_WORDS)
def test_four_lines_differ_in_role_and_the_chosen_rule_leads(rule: str) -> None:
    table, view = epsilon_exhibit(Settings(rule=rule))  # type: ignore[arg-type]
    for panel in view["panels"][:2]:
        lines = panel["lines"]
        assert (lines[0]["role"], lines[0]["column"].split(".")[0]) == ("right", rule)
        assert len({line["role"] for line in lines}) == len({line["column"] for line in lines}) == len(lines) >= 3
        assert {"absent", "inside", "outside"} <= {line["column"].split(".")[0] for line in lines}
        assert all(line["column"] in table.column_names for line in lines)


@pytest.mark.parametrize(
    ("rule", "norm", "says"),
    [
        ("inside", "rms", "√ε = 1·10⁻³"),
        ("outside", "rms", "ε = 1·10⁻⁶"),
        ("floor", "rms", "ε = 1·10⁻⁶"),
        ("floored_root", "layernorm", "ε = 1·10⁻⁶"),
        ("inside", "l2", "√(ε/d) = 1.25·10⁻⁴"),  # d = 64
        ("outside", "l2", "ε/√d = 1.25·10⁻⁷"),
        ("floor", "l2", "ε/√d = 1.25·10⁻⁷"),
        ("floored_root", "l2", "ε/√d = 1.25·10⁻⁷"),
    ],
)
def test_the_mark_says_the_size_at_which_it_stands(rule: str, norm: str, says: str) -> None:
    _, view = epsilon_exhibit(Settings(rule=rule, norm=norm, epsilon=1e-6))  # type: ignore[arg-type]
    number = says.split(" = ")[1].replace("·10⁻", "e-").translate(str.maketrans("³⁴⁶⁷", "3467"))
    for panel in view["panels"][:2]:
        (mark,) = panel["marks"]
        assert mark["label"] == says
        assert mark["x"] == pytest.approx(float(number), rel=1e-6)


def test_without_epsilon_there_is_no_mark() -> None:
    _, view = epsilon_exhibit(Settings(rule="absent"))
    assert not any(panel["marks"] for panel in view["panels"][:2])


@pytest.mark.parametrize(
    ("state", "label"),
    [
        (Settings(epsilon=1e-7), "√ε = 3.16·10⁻⁴"),
        (Settings(epsilon=1e-7, format="float16", norm_in_format=True), "√ε as stored = 3.45·10⁻⁴"),
        (Settings(epsilon=1e-7, format="float16", norm_in_format=True, rule="outside"), "ε as stored = 1.19·10⁻⁷"),
        (Settings(epsilon=1e-7, format="float16", rule="outside"), "ε = 1·10⁻⁷"),
    ],
)
def test_a_mark_says_what_epsilon_it_stands_for(state: Settings, label: str) -> None:
    assert epsilon_exhibit(state)[1]["panels"][0]["marks"][0]["label"] == label
