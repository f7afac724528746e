"""The states of an inference component: before a deployment, while one is under way, after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from orchestration.expressions import Json
from orchestration.graph import Call, ErrorPattern, Operation, Output, Recovery, Until
from orchestration.stages.endpoints.making import Made
from orchestration.stages.endpoints.states import NO_REASON
from orchestration.stages.values import Text

NAME: Final = "InferenceComponentName"
GONE: Final = ErrorPattern("ValidationException", "Could not find inference component")
_STATE: Final = {
    "status": Output(("InferenceComponentStatus",), kind="string", default="Absent"),
    "config": Output(("Specification", "ModelName"), kind="string", default=""),
    "endpoint": Output(("EndpointName",), kind="string", default=""),
    "arn": Output(("InferenceComponentArn",), kind="string", default=""),
    "reason": Output(("FailureReason",), kind="string", default=NO_REASON),
}
_NOTHING: Final = {"status": "Absent", "config": "", "endpoint": "", "arn": "", "reason": ""}
_WHOLE: Final = {
    "specification": Output(("Specification",), default=None),
    "copies": Output(("RuntimeConfig", "DesiredCopyCount"), kind="number", default=0),
}
_NONE: Final[Mapping[str, Json]] = {"specification": None, "copies": 0}


@dataclass(frozen=True, slots=True)
class ComponentStates:
    """Questions about an inference component's state."""

    made: Made
    name: Text
    """The component's name."""
    restored: tuple[str, ...] = ()
    """The parts that a failed check puts back, by the names of outputs."""

    def look(self, after: tuple[str, ...]) -> Call:
        """Wait until nothing changes the component, and say what it serves before an update.

        One that is being deleted is absent in the end; what was just applied never is.
        """
        outputs = {**_STATE, **{each: _WHOLE[each] for each in self.restored}}
        nothing = {**_NOTHING, **{each: _NONE[each] for each in self.restored}}
        return self._asked("look", after, outputs, nothing)

    def settled(self, step: str, after: tuple[str, ...]) -> Call:
        """Wait until the component has changed over, or back."""
        return self._asked(step, after, _STATE, None)

    def _asked(
        self,
        step: str,
        after: tuple[str, ...],
        outputs: Mapping[str, Output],
        nothing: Mapping[str, Json] | None,
    ) -> Call:
        poll = Operation("sagemaker", "DescribeInferenceComponent", {NAME: self.name})
        until = Until(
            poll=poll,
            status=("InferenceComponentStatus",),
            success=frozenset(["InService", "Failed"]),
            failure=frozenset(),
            interval_s=self.made.stage.poll_interval_s,
            timeout_s=self.made.stage.settling_s,
            gone=None if nothing is None else GONE,
            outputs=outputs,
        )
        return Call(
            name=f"{self.made.stage.name}.{step}",
            operation=poll,
            until=until,
            recoveries=() if nothing is None else (Recovery(GONE, nothing),),
            after=after,
        )
