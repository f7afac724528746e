"""A trial: requests that a temporary endpoint must answer before any traffic moves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, cast

from orchestration.checks.responses import path_to
from orchestration.cleanup import TRIAL
from orchestration.expressions import All, Compare, Result, Tree, join
from orchestration.expressions.scalars import text
from orchestration.graph import (
    Adopt,
    Call,
    Choose,
    ErrorPattern,
    Graph,
    Guarded,
    Operation,
    Output,
    Recovery,
    Require,
    Retry,
    Step,
    Until,
)
from orchestration.refs import Expression
from orchestration.stages.endpoints.making import VARIANT, Made
from orchestration.stages.endpoints.updates import TrialRequest
from orchestration.stages.serving.model import EXISTS, MODEL_VISIBLE_LATER

_GONE: Final = Recovery(ErrorPattern("ValidationException", "Could not find"), {})
_VISIBLE_LATER: Final = Retry(
    errors=(ErrorPattern("ValidationException", "Could not find endpoint configuration"),)
)
_ENDED: Final = frozenset(["InService", "Failed", "OutOfService"])
_STATE: Final = {
    "status": Output(("EndpointStatus",), kind="string"),
    "reason": Output(("FailureReason",), kind="string", default=""),
}


@dataclass(frozen=True, slots=True)
class Trial:
    """The steps that try a new model on an endpoint of its own, which is always deleted."""

    made: Made
    requests: tuple[TrialRequest, ...]

    def choice(self, after: tuple[str, ...]) -> Choose:
        """Try a model that does not serve already."""
        name = self._name("trial")
        guarded = Guarded(
            name=name,
            acquire=self._endpoint(),
            body=Graph(self._body()),
            cleanup=Graph(self._deletions()),
        )
        return Choose(
            name=self._name("untried"),
            condition=Compare("ne", Result(self._name("look"), "config"), self.made.name),
            then=Graph((self._config(), guarded)),
            otherwise=Graph(),
            after=after,
        )

    @property
    def _temporary(self) -> Expression[str]:
        """The name of the temporary endpoint, which belongs to the run."""
        return self.made.context.resource_name(self.made.stage.name)

    @property
    def _tags(self) -> list[Tree]:
        # Whoever cleans up after the run can tell it from an endpoint that serves.
        own = {"Key": TRIAL, "Value": self.made.endpoint}
        return [*self.made.context.tag_list(self.made.stage.name), own]

    def _name(self, step: str) -> str:
        return f"{self.made.stage.name}.{step}"

    def _config(self) -> Call:
        variant: dict[str, Tree] = {
            "VariantName": VARIANT,
            "ModelName": self.made.name,
            "InstanceType": self.made.stage.instance_type,
            "InitialInstanceCount": 1,
        }
        request: dict[str, Tree] = {
            "EndpointConfigName": self._temporary,
            "ProductionVariants": [variant],
            "Tags": self._tags,
        }
        return Call(
            name=self._name("trial_config"),
            operation=Operation("sagemaker", "CreateEndpointConfig", request),
            adopt=Adopt(exists=EXISTS),
            retry=MODEL_VISIBLE_LATER,
        )

    def _endpoint(self) -> Call:
        named = {"EndpointName": self._temporary}
        request: dict[str, Tree] = {
            **named,
            "EndpointConfigName": self._temporary,
            "Tags": self._tags,
        }
        return Call(
            name=self._name("trial_endpoint"),
            operation=Operation("sagemaker", "CreateEndpoint", request),
            adopt=Adopt(exists=EXISTS),
            retry=_VISIBLE_LATER,
            after=(self._name("trial_config"),),
        )

    def _body(self) -> tuple[Step, ...]:
        until = replace(self._until(), outputs=_STATE)
        # Waited for inside of the guard: an endpoint that is late is deleted as well.
        ready = Call(name=self._name("trial_ready"), operation=until.poll, until=until)
        steps: list[Step] = [
            ready,
            Require(
                name=self._name("trial_serves"),
                condition=Compare("eq", Result(ready.name, "status"), "InService"),
                error="TrialFailed",
                cause=join("the model did not start: ", Result(ready.name, "reason")),
            ),
        ]
        for number, request in enumerate(self.requests, start=1):
            call = self._asked(number, request, steps[-1].name)
            steps.append(call)
            if request.expected:
                steps.append(self._answered(number, request, call.name))
        return tuple(steps)

    def _asked(self, number: int, request: TrialRequest, after: str) -> Call:
        whole: dict[str, Tree] = {
            "EndpointName": self._temporary,
            "ContentType": "application/json",
            "Accept": "application/json",
            "Body": cast(Tree, request.request),
        }
        outputs: dict[str, Output] = {
            f"value_{place}": Output(("Body",), kind=_kind(value), parse=True, inside=path_to(path))
            for place, (path, value) in enumerate(request.expected.items())
        }
        return Call(
            name=self._name(f"trial_{number}"),
            operation=Operation("sagemaker-runtime", "InvokeEndpoint", whole),
            outputs=outputs,
            after=(after,),
        )

    def _answered(self, number: int, request: TrialRequest, asked: str) -> Require:
        conditions: list[Expression[bool]] = []
        words: list[str | Expression[object]] = []
        for place, (path, value) in enumerate(request.expected.items()):
            answer = Result(asked, f"value_{place}")
            conditions.append(Compare("eq", answer, value))
            words += [f"; expected {text(value)} as {path}, got ", answer]
        return Require(
            name=self._name(f"trial_{number}_answers"),
            condition=All(tuple(conditions)),
            error="TrialFailed",
            cause=join(f"request {number}", *words),
            after=(asked,),
        )

    def _until(self) -> Until:
        return Until(
            poll=Operation("sagemaker", "DescribeEndpoint", {"EndpointName": self._temporary}),
            status=("EndpointStatus",),
            success=_ENDED,
            failure=frozenset(),
            interval_s=self.made.stage.poll_interval_s,
            timeout_s=self.made.stage.settling_s,
        )

    def _deletions(self) -> tuple[Call, ...]:
        until = self._until()
        # What is still being created can't be deleted.
        created = Call(
            name=self._name("trial_created"),
            operation=until.poll,
            until=until,
            recoveries=(_GONE,),
        )
        endpoint = Call(
            name=self._name("trial_end"),
            operation=Operation("sagemaker", "DeleteEndpoint", {"EndpointName": self._temporary}),
            recoveries=(_GONE,),
            after=(created.name,),
        )
        config = Call(
            name=self._name("trial_forgotten"),
            operation=Operation(
                "sagemaker", "DeleteEndpointConfig", {"EndpointConfigName": self._temporary}
            ),
            recoveries=(_GONE,),
            after=(endpoint.name,),
        )
        return created, endpoint, config


def _kind(value: Any) -> Any:
    if isinstance(value, str):
        return "string"
    return "any" if isinstance(value, bool) else "number"
