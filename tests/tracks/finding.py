"""What a stop's lab says, also where its lab has to be trained first; as a program: pins answers anew."""

import json
import sys
from functools import lru_cache
from pathlib import Path

from qkdemo.tracks.catalogue import TRACKS, evidence, is_trained
from qkdemo.tracks.stop import Evidence, Stop, Trained
from qkdemo.training.plan import Plan
from qkdemo.training.twins import plan_of
from tests.training.plans import trained_curves

PINS = Path(__file__).parent / "answers"


@lru_cache(maxsize=8)
def _trained(plan: Plan) -> Trained:
    return Trained(plan, trained_curves(plan))


@lru_cache(maxsize=256)
def evidence_of(stop: Stop) -> Evidence:
    return stop.evidence(_trained(plan_of(stop.state))) if is_trained(stop) else evidence(stop)


def pinned(stop: Stop) -> dict[str, str | float]:
    """The answer and every number; of a run that was trained the answer alone: after a collapse digits are chaotic."""
    found = evidence_of(stop)
    return {"answer": found.answer, **({} if is_trained(stop) else found.numbers)}


if __name__ == "__main__":
    for track in sys.argv[1:] or TRACKS:
        answers = {stop.name: pinned(stop) for stop in TRACKS[track]}
        text = json.dumps(answers, indent=1, ensure_ascii=False)
        (PINS / f"{track}.json").write_text(text + "\n", encoding="utf-8")
