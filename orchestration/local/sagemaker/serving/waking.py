"""Requests that wait for the first instance of an asynchronous endpoint, and what starts it.

Of scaling policies, step scaling alone is applied, and only where an alarm on
``HasBacklogWithoutCapacity`` asks for it; moto 5.2.5 keeps policies and applies none.
`tests/conformance/test_updates.py` fails without this module.
"""

from __future__ import annotations

import time
from typing import Final

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import Operation, ServiceError
from orchestration.local.sagemaker.serving import scaling
from orchestration.local.sagemaker.serving.alarms import Alarms
from orchestration.local.sagemaker.serving.endpoint import Endpoint

_PATIENCE_S: Final = 21_600.0
"""Seconds after which a request that waits has expired: botocore's RequestTTLSeconds, 1.43."""
_LOOK_S: Final = 5.0


def started(account: Account, endpoint: Endpoint, alarms: Alarms, resize: Operation) -> None:
    """Wait until an endpoint has an instance; an alarm's policy may start one meanwhile."""
    last = time.monotonic() + account.clock.pause(_PATIENCE_S)
    while not endpoint.deleted and not _instances(endpoint) and time.monotonic() < last:
        endpoint.requests.wait()
        for action in alarms.actions(endpoint.name):
            _scale(account, endpoint, action, resize)
        time.sleep(max(0.01, account.clock.pause(_LOOK_S)))


def _instances(endpoint: Endpoint) -> int:
    return sum(member.count for member in endpoint.fleet.members) if endpoint.fleet else 0


def _scale(account: Account, endpoint: Endpoint, action: str, resize: Operation) -> None:
    """Add the instances that a step scaling policy says, within its target's bounds."""
    found = scaling.backend(account)
    for policy in [] if found is None else [*found.policies.values()]:
        if policy.policy_arn != action or policy.step_scaling_policy_configuration is None:
            continue
        target = found.targets[policy.scalable_dimension][policy.resource_id]
        [step, *_] = policy.step_scaling_policy_configuration["StepAdjustments"]
        count = min(_instances(endpoint) + step["ScalingAdjustment"], target.max_capacity)
        desired = {
            "VariantName": policy.resource_id.split("/")[-1],
            "DesiredInstanceCount": max(count, target.min_capacity),
        }
        try:
            resize({"EndpointName": endpoint.name, "DesiredWeightsAndCapacities": [desired]})
        except ServiceError:
            return  # It is being updated: the alarm asks again.
