"""The checks of an account, one module for each kind of thing that a run needs of it."""

from typing import Final

from orchestration.preflight.checks.buckets import buckets
from orchestration.preflight.checks.permissions import permissions
from orchestration.preflight.checks.quotas import quotas
from orchestration.preflight.checks.roles import roles
from orchestration.preflight.checks.subnets import subnets_of
from orchestration.preflight.checks.zones import zones
from orchestration.preflight.examination import Check

CHECKS: Final[tuple[Check, ...]] = (
    quotas,
    subnets_of,
    zones,
    roles,
    permissions,
    buckets,
)
"""Every check, in the order in which they read the account."""
