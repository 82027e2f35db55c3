"""The contract between the labs' views and what draws them."""

from tests.javascript.declarations import FILE, declarations


def test_the_scripts_know_the_types_that_there_are() -> None:
    assert FILE.read_text(encoding="utf-8") == declarations(), "python -m tests.javascript.declarations"
