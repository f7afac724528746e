"""The scalable targets of Application Auto Scaling that are variants; moto keeps them.

https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-scaling-update.html, and
https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-delete-with-scaling.html
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import ACCOUNT_ID, JsonObject
from orchestration.local.sagemaker.checks.hosting import instance_types
from orchestration.local.sagemaker.rules import refusal

_DIMENSION: Final = "sagemaker:variant:DesiredInstanceCount"


def backend(account: Account) -> Any:
    """Return moto's backend; None before the first request to it."""
    models = sys.modules.get("moto.applicationautoscaling.models")
    if models is None:
        return None
    return models.applicationautoscaling_backends[ACCOUNT_ID][account.region]


def check_scaled(
    account: Account, endpoint: str, old: Sequence[JsonObject], new: Sequence[JsonObject]
) -> None:
    """Refuse an update that removes a scaled variant, or changes its instance type."""
    kept = [(each["VariantName"], *instance_types(each)) for each in new]
    touched = [
        each["VariantName"]
        for each in old
        if _resource(endpoint, each["VariantName"]) in _targets(account)
        and (each["VariantName"], *instance_types(each)) not in kept
    ]
    if touched:
        raise refusal("scaled variants stay", variants=", ".join(touched))


def is_target(account: Account, dimension: str, resource: str) -> bool:
    """Return whether something is a scalable target that moto keeps."""
    found = backend(account)
    return found is not None and resource in found.targets.get(dimension, {})


def forget(account: Account, endpoint: str) -> None:
    """Deregister the variants of an endpoint that is deleted, with their policies."""
    found, prefix = backend(account), _resource(endpoint, "")
    for resource in [each for each in _targets(account) if each.startswith(prefix)]:
        for key, policy in list(found.policies.items()):
            if policy.resource_id == resource:
                del found.policies[key]
        found.scheduled_actions = [
            each for each in found.scheduled_actions if each.resource_id != resource
        ]
        del found.targets[_DIMENSION][resource]


def _targets(account: Account) -> dict[str, Any]:
    found = backend(account)
    return {} if found is None else found.targets.get(_DIMENSION, {})


def _resource(endpoint: str, variant: str) -> str:
    return f"endpoint/{endpoint}/variant/{variant}"
