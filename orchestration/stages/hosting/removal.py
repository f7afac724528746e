"""The deletion of an inference component that could not start."""

from __future__ import annotations

from typing import Final

from orchestration.graph import Adopt, Call, ErrorPattern, Operation, Recovery, Until
from orchestration.stages.endpoints.fields import DeploymentFields
from orchestration.stages.values import Text

NAME: Final = "InferenceComponentName"
STATUS: Final = ("InferenceComponentStatus",)
GONE: Final = ErrorPattern("ValidationException", "Could not find inference component")
# A deletion that was sent before, and whose response was lost: its end is waited for.
_DELETING: Final = ErrorPattern("ValidationException", "Cannot delete in-progress")


def removal(stage: DeploymentFields, component: Text, step: str) -> Call:
    """Return the call that deletes a component and waits until it is gone."""
    return Call(
        name=f"{stage.name}.{step}",
        operation=Operation("sagemaker", "DeleteInferenceComponent", {NAME: component}),
        adopt=Adopt(exists=_DELETING),
        recoveries=(Recovery(GONE, {}),),
        until=Until(
            poll=Operation("sagemaker", "DescribeInferenceComponent", {NAME: component}),
            status=STATUS,
            success=frozenset(),
            failure=frozenset(["Failed"]),
            reason=("FailureReason",),
            gone=GONE,
            interval_s=stage.poll_interval_s,
            timeout_s=stage.settling_s,
        ),
    )
