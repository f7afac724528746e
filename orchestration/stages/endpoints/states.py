"""The states of an endpoint: before a deployment, while one is under way, and after it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from orchestration.expressions import Any, Compare, Json, Result, Tree, join
from orchestration.graph import (
    Call,
    ErrorPattern,
    Operation,
    Output,
    Recovery,
    Require,
    Until,
)
from orchestration.stages.endpoints.fields import DeploymentFields
from orchestration.stages.endpoints.making import VARIANT, Made

_SETTLED: Final = frozenset(["InService", "Failed", "OutOfService", "UpdateRollbackFailed"])
ABSENT: Final = ErrorPattern("ValidationException", "Could not find endpoint")
NO_REASON: Final = "SageMaker gives no reason"
"""It promises one of what failed, and none of what it rolled back."""
_STATE: Final = {
    "status": Output(("EndpointStatus",), kind="string"),
    "config": Output(("EndpointConfigName",), kind="string"),
    "reason": Output(("FailureReason",), kind="string", default=NO_REASON),
}
_NOTHING: Final = {"status": "Absent", "config": "", "reason": ""}
_ARN: Final = {"arn": Output(("EndpointArn",), kind="string")}
SERVED_VARIANT: Final = Output(
    ("ProductionVariants", 0, "VariantName"), kind="string", default=VARIANT
)
_INSTANCES: Final = Output(
    ("ProductionVariants", 0, "DesiredInstanceCount"), kind="number", default=0
)
_PENDING: Final = Output(
    ("PendingDeploymentSummary", "EndpointConfigName"), kind="string", default=""
)


def in_parts(stage: DeploymentFields) -> bool:
    """Return whether an update moves parts of the only variant, whose instances may be scaled."""
    return stage.update.traffic != "all_at_once" and not stage.variants


@dataclass(frozen=True, slots=True)
class States:
    """Questions about an endpoint's state."""

    made: Made

    def busy(self, after: tuple[str, ...]) -> Call:
        """Ask whether a deployment of the endpoint is under way."""
        return Call(
            name=f"{self.made.stage.name}.busy",
            operation=self._described(),
            outputs={**_STATE, "variant": SERVED_VARIANT, "pending": _PENDING},
            recoveries=(Recovery(ABSENT, {**_NOTHING, "variant": VARIANT, "pending": ""}),),
            after=after,
        )

    def free(self, after: tuple[str, ...]) -> Require:
        """Require that no other deployment of the endpoint is under way."""
        stage = self.made.stage.name
        asked = f"{stage}.busy"
        quiet = ("Absent", *sorted(_SETTLED))
        settled = [Compare("eq", Result(asked, "status"), status) for status in quiet]
        # An earlier attempt of this run may have begun the deployment that is under way.
        name = self.made.name
        own = [Compare("eq", Result(asked, output), name) for output in ("config", "pending")]
        return Require(
            name=f"{stage}.free",
            condition=Any((*settled, *own)),
            error="EndpointBusy",
            cause=join(
                *("endpoint ", self.made.endpoint, " is ", Result(asked, "status"), ": another "),
                "deployment of it is under way; run again when it has ended, or give "
                "while_busy: wait",
            ),
            after=after,
        )

    def look(self, after: tuple[str, ...]) -> Call:
        """Wait until nothing changes the endpoint, and say what it serves."""
        until, outputs = self.until(), dict(_STATE)
        nothing: dict[str, Json] = dict(_NOTHING)
        if self.made.stage.update.while_busy == "wait":
            outputs["variant"], nothing["variant"] = SERVED_VARIANT, VARIANT
        if in_parts(self.made.stage):
            outputs["instances"], nothing["instances"] = _INSTANCES, 0
        until = replace(until, outputs=outputs)
        return Call(
            name=f"{self.made.stage.name}.look",
            operation=self._described(),
            until=until,
            recoveries=(Recovery(ABSENT, nothing),),
            after=after,
        )

    def settled(self, step: str, after: tuple[str, ...]) -> Call:
        """Wait until the endpoint has changed over, or back."""
        until = self.until()
        if self.made.context.tags:
            until = replace(until, outputs={**until.outputs, **_ARN})
        return Call(
            name=f"{self.made.stage.name}.{step}",
            operation=self._described(),
            until=until,
            after=after,
        )

    def in_service(self) -> Require:
        """Require that the endpoint serves something."""
        stage = self.made.stage.name
        status, reason = (Result(f"{stage}.settled", output) for output in ("status", "reason"))
        return Require(
            name=f"{stage}.in_service",
            condition=Compare("eq", status, "InService"),
            error="EndpointFailed",
            cause=join(
                *(f"stage {stage}: endpoint ", self.made.endpoint, " is ", status, ": ", reason),
                "; delete it, and run again",
            ),
        )

    def verified(self) -> Require:
        """Require that it serves this very configuration."""
        stage = self.made.stage.name
        config, reason = (Result(f"{stage}.settled", output) for output in ("config", "reason"))
        return Require(
            name=f"{stage}.verified",
            condition=Compare("eq", config, self.made.name),
            error="EndpointRolledBack",
            cause=join(
                f"stage {stage}: it serves ", config, " instead of ", self.made.name, ": ", reason
            ),
            after=(f"{stage}.untaken",),
        )

    def tagged(self, after: tuple[str, ...]) -> Call:
        """Give it, or its component, the tags of the pipeline and the stage, which updates lack.

        Its other tags stay, among them that of the run that created it.
        """
        stage = self.made.stage.name
        tags: list[Tree] = [{"Key": k, "Value": v} for k, v in self.made.context.tags.items()]
        request: dict[str, Tree] = {"ResourceArn": Result(f"{stage}.settled", "arn"), "Tags": tags}
        return Call(
            name=f"{stage}.tagged",
            operation=Operation("sagemaker", "AddTags", request),
            after=after,
        )

    def _described(self) -> Operation:
        return Operation("sagemaker", "DescribeEndpoint", {"EndpointName": self.made.endpoint})

    def until(self) -> Until:
        """Return the way to wait until nothing changes the endpoint."""
        return Until(
            poll=self._described(),
            status=("EndpointStatus",),
            success=_SETTLED,
            failure=frozenset(),
            interval_s=self.made.stage.poll_interval_s,
            timeout_s=self.made.stage.settling_s,
            outputs=_STATE,
        )
