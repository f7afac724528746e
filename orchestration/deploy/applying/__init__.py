"""Changes in an account, each safe to make twice."""

from orchestration.deploy.applying.calling import Sleep
from orchestration.deploy.applying.changes import apply
from orchestration.deploy.applying.requests import (
    machine_request,
    role_request,
    rule_request,
    schedule_request,
)

__all__ = [
    "Sleep",
    "apply",
    "machine_request",
    "role_request",
    "rule_request",
    "schedule_request",
]
