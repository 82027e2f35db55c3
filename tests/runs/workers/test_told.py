"""Times and counts that sentences name are those that the code keeps."""

import re
from pathlib import Path

from qkdemo.messages import say
from qkdemo.runs.kept.store import MOST_BYTES, MOST_RUNS
from qkdemo.runs.workers.job import CEILING_S
from qkdemo.runs.workers.workshop import SILENT_S, UNWATCHED_S

ROOT = Path(__file__).parents[3]


def test_a_run_may_use_the_minutes_that_a_sentence_gives_it() -> None:
    assert CEILING_S == 600
    assert "ten minutes of computing" in say("live.ceiling", step="1")


def test_a_worker_and_a_visitor_have_the_time_that_sentences_give_them() -> None:
    assert f"after {SILENT_S:.0f} s another one takes over" in say("training.status.silent", since="5 s")
    assert UNWATCHED_S == 60
    assert "nobody had watched it for a minute" in say("live.rested", step="1")


def test_a_page_that_found_no_room_tries_again_when_it_says_so() -> None:
    feed = (ROOT / "qkdemo" / "web" / "exhibit" / "rows" / "feed.js").read_text(encoding="utf-8")
    assert "const FULL_MS = 10000;" in feed
    assert "tries again every ten seconds" in say("exhibit.full")


def test_the_readme_counts_the_runs_that_are_kept() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert re.search(rf"The newest {MOST_RUNS} runs, or {MOST_BYTES // 2**30} GiB, are kept\.", readme)
