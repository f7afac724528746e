"""One rule of a service, and the error of a request that breaks it.

Every service has its rules in a table by name; `tests/local/test_rules.py` breaks each of them.
A source is "model" (a shape, or the text of one, in botocore's service model 1.43), "guide" (a page
of AWS's documentation) or "issue" (the error as people reported it). "wording assumed" marks an
error that is documented without its text, "code assumed" one without its code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestration.local.account.protocol import ServiceError


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: the error of a request that breaks it, and where the rule is written down."""

    error: str
    message: str
    source: str
    status: int = 400


def broken(rules: Mapping[str, Rule], name: str, /, **values: object) -> ServiceError:
    """Return the error of a request that breaks a rule."""
    rule = rules[name]
    return ServiceError(rule.error, rule.message.format(**values), status=rule.status)
