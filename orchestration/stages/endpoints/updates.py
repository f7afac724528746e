"""Updates of an endpoint: how traffic moves to a new model, and what moves it back.

https://docs.aws.amazon.com/sagemaker/latest/dg/deployment-guardrails.html
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from orchestration.errors import Problem
from orchestration.expressions import All, Compare, Function, Tree, apply, join
from orchestration.expressions import Any as Either
from orchestration.graph import Require
from orchestration.refs import Expression
from orchestration.stages.endpoints.cases import Trial, as_trial
from orchestration.stages.values import Count, Model, Seconds, Text

MOST_ALARMS: Final = 10
_BAKING_S: Final = 300
_LONGEST_S: Final = 28_800
_SHORTEST_S: Final = 600
_SHARES: Final[Mapping[str, int]] = {"canary": 1, "linear": 10, "rolling": 5}
"""The smallest share of the instances that moves at a time, in percent; the largest is 50."""
_SIZES: Final = {"canary": "CanarySize", "linear": "LinearStepSize"}
_HALF: Final = 50


class EndpointAlarms(Model):
    """Alarms of CloudWatch that roll an update back."""

    named: tuple[Text, ...] = Field(default=(), max_length=MOST_ALARMS)
    """Alarms that exist, by their names."""
    errors_percent: float | None = Field(default=None, ge=0, lt=100)
    """Make an alarm that goes off if more of the new model's answers are errors (5xx)."""
    latency_ms: float | None = Field(default=None, gt=0)
    """Make an alarm that goes off if the new model takes longer."""
    statistic: Literal["Average", "p50", "p90", "p95", "p99", "Maximum"] = "Average"
    """The statistic of the latency."""
    period_s: Seconds = Field(default=60, multiple_of=60)
    """Seconds that are looked at together."""
    periods: int = Field(default=1, ge=1, le=10)
    """Periods in a row that must be bad."""

    @property
    def made(self) -> tuple[str, ...]:
        """The ends of the names of the alarms that are made."""
        asked = {"5xx": self.errors_percent, "latency": self.latency_ms}
        return tuple(name for name, limit in asked.items() if limit is not None)

    def limits(self, made: str) -> dict[str, Any]:
        """Return what an alarm that is made compares."""
        if made == "5xx":
            percent = self.errors_percent or 0.0
            return {
                "MetricName": "Invocation5XXErrors",
                "Statistic": "Average",
                "Threshold": percent / 100,
            }
        is_percentile = self.statistic.startswith("p")
        return {
            "MetricName": "ModelLatency",
            ("ExtendedStatistic" if is_percentile else "Statistic"): self.statistic,
            # In microseconds.
            "Threshold": (self.latency_ms or 0.0) * 1000,
        }

    def problems(self, baking_s: int) -> Iterator[Problem]:
        """Yield the errors of alarms that watch a model for a time."""
        count = len(self.named) + len(self.made)
        if count > MOST_ALARMS:
            yield Problem("alarms", f"{count} alarms; the most is {MOST_ALARMS}")
        if count == 0:
            yield Problem("alarms", "expected named alarms, errors_percent or latency_ms")
        looked_s = self.period_s * self.periods
        if self.made and baking_s < looked_s:
            yield Problem(
                "baking_s",
                f"the alarms look at {looked_s} s, and the model is watched for {baking_s} s; "
                f"give at least {looked_s}",
            )


class EndpointUpdate(Model):
    """The way in which an endpoint that serves already changes over to the new model.

    Models and configurations are named after what they are made of, so a deployment of what is
    served already changes nothing. The endpoint's variant keeps its name.
    """

    traffic: Literal["all_at_once", "canary", "linear", "rolling"] = "all_at_once"
    """``canary``: a small part first, then the rest; ``linear``: in equal steps, beside the whole
    old fleet; ``rolling``: instance by instance, with few more than there were."""
    percent: int | None = Field(default=None, ge=1, le=_HALF)
    """The share of the instances that moves first (canary) or at a time (linear, rolling)."""
    instances: int | None = Field(default=None, ge=1)
    """The same as a number of instances."""
    baking_s: int = Field(default=_BAKING_S, ge=0, le=3600)
    """Seconds for which the alarms are watched after each move."""
    termination_wait_s: int = Field(default=0, ge=0, le=3600)
    """Seconds for which the old instances are kept when all traffic has moved."""
    alarms: EndpointAlarms | None = None
    """Any that goes off takes all traffic back, and fails the run with ``EndpointRolledBack``."""
    trial: Annotated[Trial | None, BeforeValidator(as_trial)] = None
    """Cases that a temporary endpoint of one instance must answer before anything else changes; it
    is deleted in any case. Where one is answered otherwise, the run fails with ``TrialFailed``, and
    where one is answered later than its ``max_latency_ms`` with ``TrialTooSlow``. A list of cases
    is short for ``{cases: [...]}``."""
    while_busy: Literal["wait", "refuse"] = "wait"
    """While another deployment of the endpoint is under way: wait for its end, or fail with
    ``EndpointBusy``."""

    keep: int | None = Field(default=None, ge=2, le=50)
    """Delete all but so many of the newest models and configurations that this stage has made for
    the endpoint, with their alarms: never what serves, or what served before."""

    @property
    def guards(self) -> tuple[str, ...]:
        """The fields that ask SageMaker for more than to move all traffic at once, unwatched."""
        asked = {
            "traffic": self.traffic != "all_at_once",
            "alarms": self.alarms is not None,
            "termination_wait_s": self.termination_wait_s > 0,
        }
        return tuple(field for field, is_asked in asked.items() if is_asked)

    @property
    def is_guarded(self) -> bool:
        """True if an update must find the same variants: SageMaker's guardrails ask for it."""
        return bool(self.guards)

    def problems(
        self,
        instances: Count,
        timeout_s: int,
        of: Literal["instances", "copies"] = "instances",
        most: Count | None = None,
    ) -> Iterator[Problem]:
        """Yield what SageMaker refuses, or what can't end well, with a number of what moves.

        ``most``: where the number follows the load, up to which; ``instances`` is the fewest then.
        """
        yield from self._sizes(instances, of, instances if most is None else most)
        if self.traffic == "rolling" and self.termination_wait_s:
            yield Problem("termination_wait_s", "a rolling update keeps no old instances; remove")
        if self.alarms is not None:
            yield from self.alarms.problems(self.baking_s)
        if self.trial is not None:
            for problem in self.trial.problems():
                yield problem.within("trial")
        if self.baking_s not in (0, _BAKING_S) and not self.is_guarded:
            message = "nothing is watched where all traffic moves at once without alarms; remove it"
            yield Problem("baking_s", message)
        waits_s = self.waits_s(instances if most is None else most)
        if waits_s >= min(timeout_s, _LONGEST_S):
            yield Problem(
                "baking_s",
                f"the update waits {waits_s} s in all, and may take {min(timeout_s, _LONGEST_S)} "
                "s; bake for less, or raise timeout_s",
            )

    def possible(
        self,
        step: str,
        moved: Count,
        timeout_s: int,
        after: tuple[str, ...],
        *,
        unless: Expression[bool] | None = None,
    ) -> tuple[Require, ...]:
        """Require that a number of instances which only a run knows can change over in parts.

        ``unless``: a condition under which they are not the ones that do.
        """
        if self.traffic == "all_at_once" or not isinstance(moved, Expression):
            return ()
        bounds, part, words = [Compare("ge", moved, 2)], "in parts", "at least 2"
        if self.instances is not None:
            least, most = 2 * self.instances, 100 * self.instances // _SHARES[self.traffic]
            part, limit_s = f"{self.instances} at a time", min(timeout_s, _LONGEST_S)
            if self.traffic != "canary" and self.baking_s:
                moves = (limit_s - self.termination_wait_s - 1) // self.baking_s
                if moves * self.instances < most:
                    most = moves * self.instances
                    part = f"{part}, {self.baking_s} s each within {limit_s} s"
            bounds = [Compare("ge", moved, least), Compare("le", moved, most)]
            words = f"at least {least} and at most {most}"
        needed = f"{self.traffic} traffic, {part}, needs {words} instances, got "
        fits = All(tuple(bounds))
        required = Require(
            name=step,
            condition=fits if unless is None else Either((unless, fits)),
            error="UpdateNotPossible",
            cause=join(needed, apply(Function.TEXT, moved)),
            after=after,
        )
        return (required,)

    def waits_s(self, instances: Count) -> int:
        """Return the seconds in which the traffic only waits."""
        if not self.is_guarded:
            return 0
        moves = {"all_at_once": 1, "canary": 2}.get(self.traffic)
        if moves is None:
            # Where only the run knows, it moves at most half at a time.
            moves = math.ceil(100 / (self._share(instances) or _HALF))
        return moves * self.baking_s + self.termination_wait_s

    def request(self, alarms: list[Tree], timeout_s: int) -> dict[str, Any]:
        """Return ``DeploymentConfig``."""
        timeout = {"MaximumExecutionTimeoutInSeconds": min(timeout_s, _LONGEST_S)}
        limit = timeout if timeout_s >= _SHORTEST_S else {}
        config: dict[str, Any] = {}
        if self.traffic == "rolling":
            config["RollingUpdatePolicy"] = {
                "MaximumBatchSize": self._size,
                "WaitIntervalInSeconds": self.baking_s,
                **limit,
            }
        else:
            routing = {"Type": self.traffic.upper(), "WaitIntervalInSeconds": self.baking_s}
            if self.traffic in _SIZES:
                routing[_SIZES[self.traffic]] = self._size
            config["BlueGreenUpdatePolicy"] = {
                "TrafficRoutingConfiguration": routing,
                "TerminationWaitInSeconds": self.termination_wait_s,
                **limit,
            }
        if alarms:
            named = [{"AlarmName": name} for name in alarms]
            config["AutoRollbackConfiguration"] = {"Alarms": named}
        return config

    @property
    def _size(self) -> dict[str, Any]:
        if self.percent is not None:
            return {"Type": "CAPACITY_PERCENT", "Value": self.percent}
        return {"Type": "INSTANCE_COUNT", "Value": self.instances}

    def _share(self, instances: Count) -> float | None:
        """Return the share that moves at a time, in percent; None where a run decides."""
        if self.percent is not None:
            return self.percent
        if self.instances is None or not isinstance(instances, int):
            return None
        return 100 * self.instances / instances

    def _sizes(self, instances: Count, of: str, most: Count) -> Iterator[Problem]:
        sizes = [n for n in ("percent", "instances") if getattr(self, n) is not None]
        if self.traffic == "all_at_once":
            for name in sizes:
                yield Problem(name, "all traffic moves at once; remove it, or choose a canary")
            return
        if len(sizes) != 1:
            yield Problem("percent", f"expected either percent or instances for {self.traffic}")
            return
        if isinstance(instances, int) and instances < 2:
            yield Problem(
                "traffic",
                f"{self.traffic} needs at least 2 {of}, since at most half of them move "
                f"first; got {_word(of, scaled=instances != most)} {instances}",
            )
            return
        least = _SHARES[self.traffic]
        for count in dict.fromkeys((instances, most)):
            share = self._share(count)
            if share is not None and not least <= share <= _HALF:
                expected = f"expected {least} to {_HALF} % of the {of} for {self.traffic}"
                among = "" if instances == most else f" of {count}"
                yield Problem(sizes[0], f"{expected}, got {share:g} %{among}")
                return


def _word(of: str, *, scaled: bool) -> str:
    """Return the field with the number of what moves, the fewest of it where that changes."""
    if scaled:
        return f"autoscaling.min_{of}"
    return "instance_count" if of == "instances" else of
