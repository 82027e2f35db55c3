"""German and Polish, a few sentences of each."""

import pytest

from qkdemo.locale.tables import Translation
from tests.locale import GERMAN, POLISH, translation


@pytest.fixture(scope="session")
def german(tmp_path_factory: pytest.TempPathFactory) -> Translation:
    return translation(tmp_path_factory.mktemp("german"), "de", GERMAN)


@pytest.fixture(scope="session")
def polish(tmp_path_factory: pytest.TempPathFactory) -> Translation:
    return translation(tmp_path_factory.mktemp("polish"), "pl", POLISH)
