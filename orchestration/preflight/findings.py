"""Findings: what would fail, where it stands in the user's file, why, when, and how to mend it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TypeAlias

Severity: TypeAlias = Literal["fails", "may fail", "not checked"]
"""A run fails; a run may fail, or does worse than it could; nobody could look."""
SEVERITIES: Final[tuple[Severity, ...]] = ("fails", "may fail", "not checked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that stands between a pipeline and a run that succeeds."""

    check: str
    """The name of the check: ``quotas``."""
    severity: Severity
    where: str
    """A path in the user's description: ``stages.train.cluster.instance_type``."""
    what: str
    """The fault, with the amount asked for and the amount there is."""
    why: str = ""
    """The rule of AWS, or of the pipeline, that it breaks."""
    when: str = ""
    """The moment at which a run would fail."""
    mend: str = ""
    """The remedy."""
    sources: tuple[str, ...] = ()
    """Pages that document the rule."""

    def data(self) -> dict[str, Any]:
        """Return the finding as JSON."""
        return {**asdict(self), "sources": list(self.sources)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule that a check holds requests to, and the pages that document it."""

    check: str
    why: str
    sources: tuple[str, ...] = ()

    def broken(
        self, when: str, where: str, what: str, mend: str, severity: Severity = "fails"
    ) -> Finding:
        """Return the finding that says how a request breaks it."""
        return Finding(
            check=self.check,
            severity=severity,
            where=where,
            what=what,
            why=self.why,
            when=when,
            mend=mend,
            sources=self.sources,
        )


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort findings, the worst first, and leave out those that say the same."""
    distinct = dict.fromkeys(findings)
    return tuple(
        sorted(distinct, key=lambda each: (SEVERITIES.index(each.severity), each.check, each.where))
    )
