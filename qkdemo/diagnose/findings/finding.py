"""What a report on a file holds.

* `Finding`: a key of say("finding.…") with its numbers; its sentence is formed where it is shown;
* `Report`: findings, the worst first, and tables; `healthy`: nothing to mend.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from qkdemo.diagnose.pair import Pair
from qkdemo.diagnose.readers.columns import Log, roles
from qkdemo.messages import has, say

Level: TypeAlias = Literal["bad", "watch", "good"]
Row: TypeAlias = dict[str, Any]

LEVELS: Final[tuple[Level, ...]] = ("bad", "watch", "good")


@dataclass(frozen=True)
class Finding:
    """One thing that was found. `look`: the lab that shows it, and its dials, for a link."""

    level: Level
    key: str
    values: Mapping[str, object] = field(default_factory=dict)
    look: tuple[str, Mapping[str, str]] | None = None

    @property
    def sentence(self) -> str:
        """What is said."""
        return say(f"finding.{self.key}", **self.values)

    @property
    def advice(self) -> str:
        """What to try; empty where there is nothing to."""
        key = f"advice.{self.key}"
        return say(key, **self.values) if has(key) else ""


@dataclass(frozen=True)
class Report:
    """Everything about one file."""

    kind: Literal["tensors", "checkpoint", "log", "port"]
    name: str
    findings: tuple[Finding, ...]
    tables: Mapping[str, Sequence[Row]]
    curves: Mapping[str, Log] = field(default_factory=dict)
    pair: Pair | None = None  # q and k, if they were brought

    def roles(self, run: str) -> dict[str, str]:
        """Which column of a run of a log is what: as it was read, then as its names tell."""
        log, read = self.curves[run], self.tables.get("columns", ())
        named = {row["role"]: row["column"] for row in read if row["run"] == run and row["column"] in log.columns}
        return {**roles(log), **named}

    @property
    def healthy(self) -> bool:
        """Whether there is nothing to mend."""
        return all(finding.level == "good" for finding in self.findings)


def by_level(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings, the worst first."""
    return tuple(sorted(findings, key=lambda finding: LEVELS.index(finding.level)))
