"""A trial: requests that a temporary endpoint must answer before any traffic moves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from orchestration.cleanup import TRIAL
from orchestration.expressions import Compare, Result, Tree, join
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
from orchestration.stages.endpoints.asking import Asking
from orchestration.stages.endpoints.cases import Case
from orchestration.stages.endpoints.making import VARIANT, Made
from orchestration.stages.serving.model import EXISTS, MODEL_VISIBLE_LATER, QUOTA

ERROR: Final = "TrialFailed"
TOO_SLOW: Final = "TrialTooSlow"
GONE: Final = Recovery(ErrorPattern("ValidationException", "Could not find"), {})
_VISIBLE_LATER: Final = Retry(
    errors=(ErrorPattern("ValidationException", "Could not find endpoint configuration"),)
)
_ENDED: Final = frozenset(["InService", "Failed", "OutOfService"])
_STATE: Final = {
    "status": Output(("EndpointStatus",), kind="string"),
    "reason": Output(("FailureReason",), kind="string", default=""),
}


@dataclass(frozen=True, slots=True)
class Trying:
    """The steps that try a new model on an endpoint of its own, which is always deleted."""

    made: Made
    cases: tuple[Case, ...]

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
            then=Graph((*self._configured(), guarded)),
            otherwise=Graph(),
            after=after,
        )

    @property
    def _has_own_model(self) -> bool:
        """True if the model tried differs: that of a component leaves its network to the endpoint.

        The trial's endpoint has a model of its own, and so the model has the network.
        """
        stage = self.made.stage
        closed = stage.vpc is not None or stage.enable_network_isolation
        return stage.inference_component is not None and closed

    def _configured(self) -> tuple[Call, ...]:
        if not self._has_own_model:
            return (temporary_configuration(self.made, "trial_config", VARIANT),)
        name = temporary(self.made)
        model = self.made.trial_model("trial_model", name)
        config = temporary_configuration(self.made, "trial_config", VARIANT, model=name)
        return model, replace(config, after=(model.name,))

    def _name(self, step: str) -> str:
        return f"{self.made.stage.name}.{step}"

    def _endpoint(self) -> Call:
        named = {"EndpointName": temporary(self.made)}
        request: dict[str, Tree] = {
            **named,
            "EndpointConfigName": temporary(self.made),
            "Tags": temporary_tags(self.made),
        }
        return Call(
            name=self._name("trial_endpoint"),
            operation=Operation("sagemaker", "CreateEndpoint", request),
            adopt=Adopt(exists=EXISTS),
            failure=QUOTA,
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
                error=ERROR,
                cause=join("the model did not start: ", Result(ready.name, "reason")),
            ),
        ]
        asking = Asking(
            self._name("trial"),
            temporary(self.made),
            error=ERROR,
            too_slow=TOO_SLOW,
            remedy="the endpoint is as it was",
            judging=self.made.judging("trial"),
        )
        return (*steps, *asking.steps(self.cases, (steps[-1].name,)))

    def _until(self) -> Until:
        return Until(
            poll=Operation("sagemaker", "DescribeEndpoint", {"EndpointName": temporary(self.made)}),
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
            recoveries=(GONE,),
        )
        endpoint = Call(
            name=self._name("trial_end"),
            operation=Operation(
                "sagemaker", "DeleteEndpoint", {"EndpointName": temporary(self.made)}
            ),
            recoveries=(GONE,),
            after=(created.name,),
        )
        config = Call(
            name=self._name("trial_forgotten"),
            operation=Operation(
                "sagemaker", "DeleteEndpointConfig", {"EndpointConfigName": temporary(self.made)}
            ),
            recoveries=(GONE,),
            after=(endpoint.name,),
        )
        if not self._has_own_model:
            return created, endpoint, config
        model = Call(
            name=self._name("trial_model_forgotten"),
            operation=Operation("sagemaker", "DeleteModel", {"ModelName": temporary(self.made)}),
            recoveries=(GONE,),
            after=(config.name,),
        )
        return created, endpoint, config, model


def temporary(made: Made) -> Expression[str]:
    """Return the name of the temporary endpoint and its configuration, which belong to the run."""
    return made.context.resource_name(made.stage.name)


def temporary_tags(made: Made) -> list[Tree]:
    """Return their tags, by which whoever cleans up after the run tells them from what serves."""
    own = {"Key": TRIAL, "Value": made.endpoint}
    return [*made.context.tag_list(made.stage.name), own]


def temporary_configuration(
    made: Made, step: str, variant: Tree, *, model: Tree | None = None
) -> Call:
    """Make a configuration for the new model on one machine, under a name of the run's own."""
    served: dict[str, Tree] = {
        "VariantName": variant,
        "ModelName": made.model_name if model is None else model,
        **made.stage.machines(1),
    }
    request: dict[str, Tree] = {
        "EndpointConfigName": temporary(made),
        "ProductionVariants": [served],
        **made.stage.volume_key,
        "Tags": temporary_tags(made),
    }
    return Call(
        name=f"{made.stage.name}.{step}",
        operation=Operation("sagemaker", "CreateEndpointConfig", request),
        adopt=Adopt(exists=EXISTS),
        retry=MODEL_VISIBLE_LATER,
    )
