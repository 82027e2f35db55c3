"""A phase diagram outlives its server: what was trained is there, and the rest alone is trained."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from qkdemo.maps.phases.cells import cells, ends_of_plan
from qkdemo.maps.phases.diagram import BASE, Diagram, diagram_of
from qkdemo.runs.kept.store import Store
from qkdemo.runs.workers.pool import Pool
from qkdemo.web.maps.phases import _Batches
from tests.runs.plans import trained_curves

PATIENCE_S = 120.0  # a busy machine starts a worker slowly
ROOT = Path(__file__).parents[3]


def diagram() -> Diagram:
    """Three batches of three runs, since runs of one shape are trained together."""
    return replace(diagram_of("learning_rate", "n_layers", 3, 1, ("rms",)), base=BASE.but(steps=100))


def trained_here() -> None:
    """A server: the first batch is trained, the others wait."""
    pool = Pool(Store(os.environ["QKDEMO_STORE"]))
    pool.start_all(diagram().plans, "a")
    while not _Batches.of(diagram(), pool).ends:
        pool.attend("a")
        time.sleep(0.01)
    print("trained", flush=True)
    sys.stdin.read()


def test_after_a_restart_of_the_server_what_was_trained_is_there_and_only_the_rest_is_trained(tmp_path: Path) -> None:
    url, made = f"sqlite:///{tmp_path}/runs.sqlite", diagram()
    program = "from tests.web.maps.test_restart import trained_here; trained_here()"
    server = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "QKDEMO_STORE": url, "QKDEMO_WORKERS": "1"},
    )
    assert server.stdout
    assert server.stdout.readline() == b"trained\n"
    server.kill()
    server.wait(PATIENCE_S)

    pool = Pool(Store(url))
    try:
        before = _Batches.of(made, pool)
        kept = {live.plan.name: live.generation for live in before.lives if live and live.state == "finished"}
        assert 1 <= len(kept) < len(made.plans)
        assert len(before.ends) == 3 * len(kept)
        assert len(cells(before.ends, made)) == 3 * len(kept)
        assert {plan.name for plan in before.rest} == {plan.name for plan in made.plans} - kept.keys()
        pool.start_all(before.rest, "b")
        give_up = time.monotonic() + PATIENCE_S
        while _Batches.of(made, pool).rest:
            pool.attend("b")
            assert time.monotonic() < give_up, "it never ended"
            time.sleep(0.02)
        after = _Batches.of(made, pool)
        generations = {live.plan.name: live.generation for live in after.lives if live}
        assert {name: generations[name] for name in kept} == kept  # none of them was trained again
        ends = [end for plan in made.plans for end in ends_of_plan(plan, trained_curves(plan))]
        assert cells(after.ends, made) == cells(ends, made)
    finally:
        pool.close()
