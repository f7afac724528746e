"""The way back of an inference component: to the specification and the copies that it had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from orchestration.expressions import Any, Compare, Function, Json, Result, Tree, apply, join
from orchestration.graph import Adopt, Call, Operation, Output, Recovery, Require, Step
from orchestration.stages.hosting.sending import sent
from orchestration.stages.hosting.states import NAME, ComponentStates
from orchestration.stages.serving.model import MODEL_VISIBLE_LATER
from orchestration.stages.unchanged import ABSENT, WRITTEN_BEFORE

_NOTHING: Final[Mapping[str, Json]] = {"before": "", "specification": None, "copies": 0}


@dataclass(frozen=True, slots=True)
class CheckedComponent:
    """A component, whose record is an object in the workspace: no name holds a specification."""

    states: ComponentStates

    noun: ClassVar[str] = "the component"

    @property
    def where(self) -> Mapping[str, Tree]:
        """The component that is asked."""
        return {NAME: self.states.name}

    def restorable(self, after: tuple[str, ...]) -> Require:
        """Require that what serves could be restored: no request takes a container as described."""
        look = self._name("look")
        status, config = Result(look, "status"), Result(look, "config")
        return Require(
            name=self._name("restorable"),
            condition=Any((Compare("ne", status, "InService"), Compare("ne", config, ""))),
            error="EndpointNotUsable",
            cause=join(
                *("inference component ", self.states.name, " serves no model with a name, which "),
                "trial: {after: true} could not restore; deploy to it once without",
            ),
            after=after,
        )

    def kept(self, before: Result) -> Call:
        """Keep what served before."""
        look = self._name("look")
        had: dict[str, Tree] = {each: Result(look, each) for each in self.states.restored}
        request: dict[str, Tree] = {
            **self._record,
            "Body": {"before": before, **had},
            "ContentType": "application/json",
            "IfNoneMatch": "*",
        }
        return Call(
            name=self._name("check"),
            operation=Operation("s3", "PutObject", request),
            adopt=Adopt(exists=WRITTEN_BEFORE),
        )

    def left(self) -> Call:
        """Read what served before."""
        nothing = {each: _NOTHING[each] for each in ("before", *self.states.restored)}
        outputs = {
            each: Output(("Body",), parse=True, inside=(each,), default=default)
            for each, default in nothing.items()
        }
        return Call(
            name=self._name("check_left"),
            operation=Operation("s3", "GetObject", self._record),
            outputs=outputs,
            recoveries=tuple(Recovery(error, nothing) for error in ABSENT),
        )

    def forgotten(self, step: str, after: tuple[str, ...]) -> Call:
        """Delete the record."""
        operation = Operation("s3", "DeleteObject", self._record)
        return Call(name=self._name(step), operation=operation, after=after)

    def serves(self, step: str, after: tuple[str, ...]) -> Call:
        """Ask for the model that it has."""
        described = Operation("sagemaker", "DescribeInferenceComponent", {NAME: self.states.name})
        outputs = {"config": Output(("Specification", "ModelName"), kind="string", default="")}
        return Call(name=self._name(step), operation=described, outputs=outputs, after=after)

    def settled(self, step: str, after: tuple[str, ...]) -> Call:
        """Wait until nothing changes it."""
        return self.states.settled(step, after)

    def back(self, left: str, settled: str) -> tuple[Step, ...]:
        """Return its update, all at once."""
        request: dict[str, Tree] = {
            NAME: self.states.name,
            "Specification": Result(left, "specification"),
        }
        scaled = "copies" not in self.states.restored
        if not scaled:
            request["RuntimeConfig"] = {"CopyCount": Result(left, "copies")}
        update = Call(
            name=self._name("check_undone"),
            operation=Operation("sagemaker", "UpdateInferenceComponent", request),
            retry=MODEL_VISIBLE_LATER,
        )
        steps = sent(self.states, update, self.states.made.name, scaled=scaled)
        step = settled.removeprefix(f"{self.states.made.stage.name}.")
        return *steps, self.settled(step, (steps[-1].name,))

    def _name(self, step: str) -> str:
        return f"{self.states.made.stage.name}.{step}"

    @property
    def _record(self) -> dict[str, Tree]:
        made = self.states.made
        uri = made.context.location(made.stage.name, "check", "before.json")
        return {"Bucket": apply(Function.S3_BUCKET, uri), "Key": apply(Function.S3_KEY, uri)}
