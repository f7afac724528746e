"""Scheduled actions of Application Auto Scaling, which set the bounds of an endpoint's instances.

moto 5.2.5 keeps them, and applies none. `tests/local/events/test_schedules.py` fails without this
module. Policies that follow a load are kept, too, and nothing here applies them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from orchestration.local.account.protocol import ACCOUNT_ID, Operation, ServiceError


def actions(region: str) -> Iterator[Any]:
    """Yield the scheduled actions of endpoints that are scalable targets."""
    models = sys.modules.get("moto.applicationautoscaling.models")
    if models is None:
        # Loaded with the first request, so there is no action.
        return
    backend = models.applicationautoscaling_backends[ACCOUNT_ID][region]
    for action in backend.scheduled_actions:
        if action.resource_id in backend.targets.get(action.scalable_dimension, {}):
            yield action


def apply(action: Any, sagemaker: Mapping[str, Operation]) -> None:
    """Set a target's bounds, and bring its number of instances within them."""
    models = sys.modules["moto.applicationautoscaling.models"]
    region = action.arn.split(":")[3]
    backend = models.applicationautoscaling_backends[ACCOUNT_ID][region]
    target = backend.targets[action.scalable_dimension][action.resource_id]
    bounds = action.scalable_target_action
    target.update(bounds.get("MinCapacity"), bounds.get("MaxCapacity"), None)
    _, endpoint, _, variant = action.resource_id.split("/")
    try:
        described = sagemaker["DescribeEndpoint"]({"EndpointName": endpoint})
        for each in described.get("ProductionVariants", []):
            if each["VariantName"] != variant:
                continue
            count = max(each["CurrentInstanceCount"], target.min_capacity)
            desired = {
                "VariantName": variant,
                "DesiredInstanceCount": min(count, target.max_capacity),
            }
            sagemaker["UpdateEndpointWeightsAndCapacities"](
                {"EndpointName": endpoint, "DesiredWeightsAndCapacities": [desired]}
            )
    except ServiceError:
        return  # AWS notes a scaling activity that failed: the endpoint is gone, or being updated.
