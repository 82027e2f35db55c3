"""What fuzzers found and what they set out from, replayed: every file is read to its report, or gets its sentence."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.diagnose.fuzz import CORPUS, TARGETS, attempt

FILES = [(reader, path) for reader in TARGETS for path in sorted((CORPUS / reader).iterdir())]
CEILING = 1 << 30  # bytes more than the process has, for files of a few kilobytes


@pytest.fixture(autouse=True)
def under_a_ceiling() -> Iterator[None]:
    """What would allocate without looking fails here."""
    if not sys.platform.startswith("linux"):
        yield
        return
    resource = pytest.importorskip("resource")
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + CEILING, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize(("reader", "path"), FILES, ids=[f"{reader}-{path.name}" for reader, path in FILES])
def test_a_file_of_the_corpus_is_read_or_gets_its_sentence(reader: str, path: Path) -> None:
    attempt(reader, path.read_bytes())


def test_every_reader_has_a_corpus_of_small_files() -> None:
    sizes = {reader: [path.stat().st_size for path in (CORPUS / reader).iterdir()] for reader in TARGETS}
    assert all(sizes.values())
    assert max(max(each) for each in sizes.values()) <= 20_000
