"""The epsilon exhibit: the chosen rule is always the normalised line, and every line has a role of its own."""

import pytest

from qkdemo.labs.epsilon import RULE_WORDS, Settings
from qkdemo.web.epsilon_view import epsilon_exhibit


@pytest.mark.parametrize("rule", RULE_WORDS)
def test_four_lines_differ_in_role_and_the_chosen_rule_leads(rule: str) -> None:
    table, view = epsilon_exhibit(Settings(rule=rule))  # type: ignore[arg-type]
    for panel in view["panels"][:2]:
        lines = panel["lines"]
        assert (lines[0]["role"], lines[0]["column"].split(".")[0]) == ("norm", rule)
        assert len({line["role"] for line in lines}) == len({line["column"] for line in lines}) == len(lines) >= 3
        assert {"absent", "inside", "outside"} <= {line["column"].split(".")[0] for line in lines}
        assert all(line["column"] in table.column_names for line in lines)
