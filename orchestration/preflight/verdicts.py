"""Verdicts of IAM's policy simulation: one for each action on each resource."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The word of policies on one action on one resource."""

    action: str
    resource: str
    decision: str
    """``allowed``, ``explicitDeny`` or ``implicitDeny``."""
    unknown: tuple[str, ...]
    """Condition keys that only the call itself will have."""


def verdicts(results: Iterable[Mapping[str, Any]]) -> Iterator[Verdict]:
    """Yield what the results of a simulation say about each resource.

    There is one result per action, with those of its resources inside; where it has none, it is
    itself about the resource that it names.
    https://docs.aws.amazon.com/IAM/latest/APIReference/API_EvaluationResult.html
    """
    for each in results:
        own = {**each, "EvalResourceDecision": each["EvalDecision"]}
        for one in each.get("ResourceSpecificResults") or [own]:
            yield Verdict(
                action=each["EvalActionName"],
                resource=one["EvalResourceName"],
                decision=one["EvalResourceDecision"],
                unknown=tuple(sorted(one.get("MissingContextValues", ()))),
            )
