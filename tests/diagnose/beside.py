"""Two log doctors, where they are installed, beside ours on the same logs: `python -m tests.diagnose.beside LOGS BIN`.

LOGS holds what `python -m tests.diagnose.forty_runs 0 LOGS` wrote, BIN the commands `trainspotter` and `runmedic`. The
table counts alarms in runs that are well and in runs that are ill, at a doctor's highest severity and at a warning or
more; and the cause that stands first: of its worst finding the first one that it lists, or the first fix if it lists
none. `named at all` counts runs in which any finding speaks of attention or logits, in any place.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from qkdemo.diagnose.findings.examine import examine_path
from tests.diagnose.forty_runs import ATTENTION, RATE

SEVERITIES: Final = {"error": 2, "critical": 2, "bad": 2, "warning": 1, "watch": 1}


@dataclass(frozen=True)
class Verdict:
    """On one run."""

    severity: int  # 2: the highest that the doctor has; 1: a warning; 0: nothing to mend
    cause: str  # attention, rate, or empty
    attention: bool  # named at all


def ours(path: Path, folder: Path) -> Verdict:
    """By the report of `qkdemo diagnose`."""
    findings = examine_path(path).findings
    key = next((finding.key for finding in findings if finding.key in (*ATTENTION, *RATE)), "")
    cause = "attention" if key in ATTENTION else "rate" if key else ""
    return Verdict(SEVERITIES.get(findings[0].level, 0), cause, attention=cause == "attention")


def trainspotter(path: Path, folder: Path) -> Verdict:
    """By its findings and their fixes."""
    found = _printed(folder / "trainspotter", "analyze", path, "--output", "json")["findings"]
    return _verdict((x["severity"], x["fixes"]) for x in found)


def runmedic(path: Path, folder: Path) -> Verdict:
    """By its findings and their causes, the likeliest first."""
    (run,) = _printed(folder / "runmedic", "diagnose", path, "--json")
    return _verdict((x["severity"], x["likely_causes"]) for x in run["findings"])


DOCTORS: Final[Mapping[str, Callable[[Path, Path], Verdict]]] = {
    "qkdemo": ours,
    "trainspotter": trainspotter,
    "runmedic": runmedic,
}


def _printed(*command: Any) -> Any:
    return json.loads(subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False).stdout)


def _verdict(findings: Iterable[tuple[str, list[str]]]) -> Verdict:
    ranked = sorted(((SEVERITIES.get(severity, 0), words) for severity, words in findings), key=lambda x: -x[0])
    if not ranked or not ranked[0][0]:
        return Verdict(0, "", attention=False)
    severity, words = ranked[0]
    first = words[0] if words else ""
    cause = "attention" if _attention(first) else "rate" if "learning rate" in first.lower() else ""
    return Verdict(severity, cause, attention=any(_attention(word) for _, each in ranked for word in each))


def _attention(words: str) -> bool:
    return any(word in words.lower() for word in ("attention", "logit"))


def main(logs: Path, folder: Path) -> None:
    """A row for each doctor."""
    runs = {kind: sorted(logs.glob(f"{kind}.*.jsonl")) for kind in ("well", "attention", "rate")}
    print({kind: len(paths) for kind, paths in runs.items()})
    for name, doctor in DOCTORS.items():
        found = {kind: [doctor(path, folder) for path in paths] for kind, paths in runs.items()}
        ill = found["attention"] + found["rate"]
        alarms = [[sum(x.severity >= least for x in each) for least in (2, 1)] for each in (found["well"], ill)]
        first = {kind: sum(x.cause == kind for x in found[kind]) for kind in ("attention", "rate")}
        named = {kind: sum(x.attention for x in each) for kind, each in found.items()}
        print(
            f"{name:13} false alarms {alarms[0]}  ill runs seen {alarms[1]}  first cause {first}  named at all {named}"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
