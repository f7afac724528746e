"""The steps by which an endpoint's traffic moves to a new fleet.

https://docs.aws.amazon.com/sagemaker/latest/dg/deployment-guardrails.html; that the wait after a
canary is repeated once all traffic has moved is assumed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from orchestration.local.account.clock import Clock
from orchestration.local.account.protocol import JsonObject
from orchestration.local.sagemaker.serving.alarms import Alarms
from orchestration.local.sagemaker.serving.traffic import Fleet, Traffic

_POLL_S = 0.02
_ALL: Final = 100.0


@dataclass(frozen=True, slots=True)
class Step:
    """A share of the traffic, in percent, and the seconds for which the new fleet keeps it."""

    share: float
    wait_s: float


def steps(deployment: JsonObject, instances: int) -> list[Step]:
    """Return the steps of an update."""
    rolling = deployment.get("RollingUpdatePolicy")
    if rolling:
        size = percent(rolling["MaximumBatchSize"], instances)
        return _even(size, rolling["WaitIntervalInSeconds"])
    policy = deployment.get("BlueGreenUpdatePolicy")
    if not policy:
        return [Step(_ALL, 0)]
    traffic = policy["TrafficRoutingConfiguration"]
    wait_s = traffic["WaitIntervalInSeconds"]
    last = Step(_ALL, policy.get("TerminationWaitInSeconds", 0))
    if traffic["Type"] == "CANARY":
        canary = Step(percent(traffic["CanarySize"], instances), wait_s)
        return [canary, Step(_ALL, wait_s), last]
    if traffic["Type"] == "LINEAR":
        return [*_even(percent(traffic["LinearStepSize"], instances), wait_s), last]
    return [Step(_ALL, wait_s), last]


def percent(size: JsonObject, instances: int) -> float:
    """Return a capacity in percent of a variant's instances."""
    value = float(size["Value"])
    return value if size["Type"] == "CAPACITY_PERCENT" else _ALL * value / instances


def _even(size: float, wait_s: float) -> list[Step]:
    count = math.ceil(_ALL / size)
    return [Step(min(_ALL, size * number), wait_s) for number in range(1, count + 1)]


@dataclass(frozen=True)
class Shift:
    """The move of an endpoint's traffic from one fleet to another, watched by alarms."""

    traffic: Traffic
    old: Fleet
    new: Fleet
    alarms: Alarms
    names: Sequence[str]

    def tripped_by(self, plan: Sequence[Step], clock: Clock) -> list[str]:
        """Move the traffic; return the alarms that went off, with all traffic back then."""
        for step in plan:
            self.traffic.route((self.old, _ALL - step.share), (self.new, step.share))
            tripped = self._baked(clock.pause(step.wait_s))
            if tripped:
                self.traffic.route((self.old, _ALL))
                return tripped
        return []

    def _baked(self, seconds: float) -> list[str]:
        """Watch the alarms for a time; return those that went off."""
        end = time.monotonic() + seconds
        while True:
            tripped = self.alarms.tripped(self.names) if self.names else []
            left = end - time.monotonic()
            if tripped or left <= 0:
                return tripped
            time.sleep(min(_POLL_S, left))
