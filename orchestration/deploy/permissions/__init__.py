"""The permissions of roles: narrow policies, and who may assume a role."""

from orchestration.deploy.permissions.assumed import AssumedRole, assumed
from orchestration.deploy.permissions.policies import (
    Runs,
    needed,
    policy,
    statements,
    synchronous,
)
from orchestration.deploy.permissions.statements import Statement, document
from orchestration.deploy.permissions.trust import trust

__all__ = [
    "AssumedRole",
    "Runs",
    "Statement",
    "assumed",
    "document",
    "needed",
    "policy",
    "statements",
    "synchronous",
    "trust",
]
