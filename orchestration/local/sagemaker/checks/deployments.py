"""Checks of a DeploymentConfig: how an endpoint's traffic moves to a new configuration."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from orchestration.local.account.protocol import JsonObject
from orchestration.local.sagemaker.rules import refusal

_HALF = 50
_SMALLEST_STEP = 10
_SMALLEST_BATCH = 5


def check_deployment(deployment: JsonObject, variant: JsonObject) -> None:
    """Refuse a DeploymentConfig that breaks a rule of SageMaker."""
    blue_green = deployment.get("BlueGreenUpdatePolicy")
    rolling = deployment.get("RollingUpdatePolicy")
    if blue_green and rolling:
        raise refusal("one policy")
    if rolling and "ServerlessConfig" in variant:
        raise refusal("rolling instances")
    instances = variant.get("InitialInstanceCount", 1)
    if rolling:
        for member in ("MaximumBatchSize", "RollbackMaximumBatchSize"):
            size = rolling.get(member)
            if size and not _SMALLEST_BATCH <= _percent(size, instances) <= _HALF:
                raise refusal("rolling batches", size=size["Value"])
    if blue_green:
        _check_traffic(blue_green, instances)


def check_alarms(deployment: JsonObject, missing: Callable[[Sequence[str]], Sequence[str]]) -> None:
    """Refuse a DeploymentConfig with an alarm that does not exist."""
    alarms = deployment.get("AutoRollbackConfiguration", {}).get("Alarms", [])
    for name in missing([alarm["AlarmName"] for alarm in alarms]):
        raise refusal("alarms exist", alarm=name)


def _check_traffic(policy: JsonObject, instances: int) -> None:
    traffic = policy["TrafficRoutingConfiguration"]
    kind, canary, step = traffic["Type"], traffic.get("CanarySize"), traffic.get("LinearStepSize")
    if (canary is not None) != (kind == "CANARY"):
        raise refusal("sizes of canaries")
    if (step is not None) != (kind == "LINEAR"):
        raise refusal("sizes of steps")
    if canary and _percent(canary, instances) > _HALF:
        raise refusal("half a canary", size=canary["Value"])
    if step and not _SMALLEST_STEP <= _percent(step, instances) <= _HALF:
        raise refusal("linear steps", size=step["Value"])
    # A linear shift waits between its steps; the others wait once.
    rounds = math.ceil(100 / _percent(step, instances)) - 1 if step else 1
    waits = policy.get("TerminationWaitInSeconds", 0) + rounds * traffic["WaitIntervalInSeconds"]
    timeout = policy.get("MaximumExecutionTimeoutInSeconds")
    if timeout is not None and timeout <= waits:
        raise refusal("time to wait", timeout=timeout, waits=waits)


def _percent(size: JsonObject, instances: int) -> float:
    value = float(size["Value"])
    if size["Type"] == "CAPACITY_PERCENT":
        # A part of a single instance is the whole of it.
        return value if instances > 1 else 100
    return 100 * value / instances
