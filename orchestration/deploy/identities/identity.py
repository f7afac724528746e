"""An identity that acts for a pipeline: who it is, what it needs, and what needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from orchestration.deploy.permissions import Statement
from orchestration.deploy.permissions.statements import documents, merged

Who: TypeAlias = Literal[
    "machine", "jobs", "scheduler", "companion", "copying", "deployer", "doctor", "airflow"
]
WHO: Final[tuple[Who, ...]] = (
    "machine",
    "jobs",
    "scheduler",
    "companion",
    "copying",
    "deployer",
    "doctor",
    "airflow",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A role, or a person or program that has credentials of its own."""

    who: Who
    name: str
    """The ARN of its role; for a person or a program, a description."""
    statements: tuple[Statement, ...]
    """Merged, with the steps that need each."""
    trust: Mapping[str, Any] = field(default_factory=dict)
    """The trust policy of its role; empty for a person or a program."""
    notes: tuple[str, ...] = ()
    """Needs that no request tells, and that its owner must add."""

    @property
    def policy(self) -> dict[str, Any]:
        """The policy in IAM's form, ready to be put on a role."""
        return {"Version": "2012-10-17", "Statement": documents(self.statements)}

    def explained(self) -> list[tuple[dict[str, Any], list[str]]]:
        """Return each statement of the policy with the steps that need it."""
        steps = [sorted(statement.needed_by) for statement in self.statements]
        return list(zip(self.policy["Statement"], steps, strict=True))


def identity(who: Who, name: str, needed: list[Statement], **fields: Any) -> Identity:
    """Return an identity with its statements merged."""
    return Identity(who=who, name=name, statements=tuple(merged(needed)), **fields)
