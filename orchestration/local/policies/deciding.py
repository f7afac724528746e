"""Decisions about roles where IAM is enforced, and the record of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from orchestration.local.policies.evaluation import Decision, Need, decision

Policies = Callable[[str], Iterable[Mapping[str, Any]]]
"""The policies of the role with an ARN."""


@dataclass(frozen=True)
class Access:
    """Something that a role, or a service as the role, did or asked for."""

    role: str
    action: str
    resource: str
    """Its ARN; ``*`` where the action has none, and empty where it is not known."""
    context: Mapping[str, str]
    """Condition keys with their values, tags of the resource among them."""
    allowed: bool

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Access:
        """Restore an access from `to_json`."""
        return cls(**data)

    def to_json(self) -> dict[str, Any]:
        """Return its fields as a JSON object."""
        return asdict(self)

    @property
    def need(self) -> Need:
        """The need that policies decided on."""
        return Need(self.action, self.resource, self.context)


class _Judge:
    """The decisions in this process: of no role until IAM is enforced."""

    def __init__(self) -> None:
        self.policies: Policies | None = None
        self.accesses: list[Access] = []


_JUDGE = _Judge()


def enforce(policies: Policies) -> None:
    """Let the policies of roles decide from now on."""
    _JUDGE.policies = policies


def decide(role: str, need: Need) -> Decision:
    """Return what the policies of a role say of something; where none are enforced, it is allowed.

    Bucket policies may allow what they do not; an access tells what the role's own say.
    """
    if _JUDGE.policies is None:
        return "allowed"
    decided = decision(_JUDGE.policies(role), need)
    known = {key: str(value) for key, value in need.context.items()}
    _JUDGE.accesses.append(Access(role, need.action, need.resource, known, decided == "allowed"))
    return decided


def permits(role: str, need: Need) -> bool:
    """Return whether the policies of a role allow something."""
    return decide(role, need) == "allowed"


def accesses() -> list[Access]:
    """Return what roles have done or asked for, in order."""
    return [*_JUDGE.accesses]
