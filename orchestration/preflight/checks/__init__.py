"""The checks of an account, one module for each kind of thing that a run needs of it."""

from typing import Final

from orchestration.preflight.checks.buckets import buckets
from orchestration.preflight.checks.connections import connections
from orchestration.preflight.checks.efa import efa
from orchestration.preflight.checks.file_systems import file_systems
from orchestration.preflight.checks.images import images
from orchestration.preflight.checks.keys import keys
from orchestration.preflight.checks.names import endpoints, names
from orchestration.preflight.checks.permissions import permissions
from orchestration.preflight.checks.policies import bucket_policies, key_policies
from orchestration.preflight.checks.quotas import quotas
from orchestration.preflight.checks.roles import roles
from orchestration.preflight.checks.schedules import schedules
from orchestration.preflight.checks.subnets import subnets_of
from orchestration.preflight.checks.vpc_endpoints import vpc_endpoints
from orchestration.preflight.checks.zones import zones
from orchestration.preflight.examination import Check

CHECKS: Final[tuple[Check, ...]] = (
    quotas,
    subnets_of,
    zones,
    file_systems,
    efa,
    vpc_endpoints,
    roles,
    permissions,
    buckets,
    bucket_policies,
    keys,
    key_policies,
    images,
    names,
    endpoints,
    schedules,
    connections,
)
"""Every check, in the order in which they read the account."""
