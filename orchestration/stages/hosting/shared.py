"""The endpoint of inference components: made if it is missing, and left as it is otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from orchestration.expressions import Compare, Result, Tree, join
from orchestration.graph import (
    Adopt,
    Call,
    Choose,
    ErrorPattern,
    Graph,
    Operation,
    Output,
    Recovery,
    Require,
    Retry,
    Step,
    Until,
)
from orchestration.stages.endpoints import identity
from orchestration.stages.endpoints.fields import TYPES
from orchestration.stages.endpoints.making import VARIANT, Made
from orchestration.stages.endpoints.states import ABSENT, SERVED_VARIANT
from orchestration.stages.hosting.components import InferenceComponent
from orchestration.stages.serving.model import EXISTS, QUOTA

_CONFIG_VISIBLE_LATER: Final = Retry(
    errors=(ErrorPattern("ValidationException", "Could not find endpoint configuration"),)
)
_STATE: Final = {
    "status": Output(("EndpointStatus",), kind="string"),
    "reason": Output(("FailureReason",), kind="string", default=""),
    "config": Output(("EndpointConfigName",), kind="string"),
    "variant": SERVED_VARIANT,
}
_MACHINES: Final = (
    *TYPES,
    "InitialInstanceCount",
    "VariantInstanceProvisionTimeoutInSeconds",
    "RoutingConfig",
)


@dataclass(frozen=True, slots=True)
class SharedEndpoint:
    """An endpoint without a model, whose instances have room for components."""

    made: Made
    component: InferenceComponent

    def steps(self, after: tuple[str, ...]) -> tuple[Step, ...]:
        """Return the steps that make the endpoint if it is missing, and require that it serves."""
        name = self.made.stage.name
        look = Call(
            name=f"{name}.endpoint",
            operation=self._until.poll,
            outputs={"status": _STATE["status"]},
            recoveries=(Recovery(ABSENT, {"status": "Absent"}),),
            after=after,
        )
        missing = Choose(
            name=f"{name}.missing",
            condition=Compare("eq", Result(look.name, "status"), "Absent"),
            then=Graph(self._creation()),
            otherwise=Graph(),
            after=(look.name,),
        )
        ready = Call(
            name=f"{name}.ready",
            operation=self._until.poll,
            until=self._until,
            after=(missing.name,),
        )
        status, reason = (Result(ready.name, output) for output in ("status", "reason"))
        serving = Require(
            name=f"{name}.serving",
            condition=Compare("eq", status, "InService"),
            error="EndpointFailed",
            cause=join(
                *("endpoint ", self.made.endpoint, " is ", status, ": ", reason),
                "; delete it, and run again",
            ),
            after=(ready.name,),
        )
        return look, missing, ready, serving

    @property
    def served_config(self) -> Tree:
        """The name of the configuration that it has, which whoever made it has named."""
        return Result(f"{self.made.stage.name}.ready", "config")

    @property
    def variant(self) -> Tree:
        """The name of the one variant that it has."""
        return Result(f"{self.made.stage.name}.ready", "variant")

    @property
    def _named(self) -> dict[str, Tree]:
        return {"EndpointName": self.made.endpoint}

    @property
    def _until(self) -> Until:
        return Until(
            poll=Operation("sagemaker", "DescribeEndpoint", self._named),
            status=("EndpointStatus",),
            success=frozenset(["InService", "Failed", "OutOfService", "UpdateRollbackFailed"]),
            failure=frozenset(),
            interval_s=self.made.stage.poll_interval_s,
            timeout_s=self.made.stage.settling_s,
            outputs=_STATE,
        )

    def _creation(self) -> tuple[Call, Call]:
        stage, tags = self.made.stage, self.made.context.tag_list(self.made.stage.name)
        config = Call(
            name=f"{stage.name}.config",
            operation=self._config(EndpointConfigName=self._config_name),
            adopt=Adopt(exists=EXISTS),
        )
        request = {**self._named, "EndpointConfigName": self._config_name, "Tags": tags}
        create = Call(
            name=f"{stage.name}.create",
            operation=stage.extra_request.merged("CreateEndpoint", request),
            adopt=Adopt(exists=EXISTS),
            failure=QUOTA,
            retry=_CONFIG_VISIBLE_LATER,
            after=(config.name,),
        )
        return config, create

    @property
    def _config_name(self) -> Tree:
        """The name of the configuration of a new endpoint."""
        requests = [self._config().request]
        return identity.named_after(self.made.prefix, self.made.endpoint, requests)

    def _config(self, **name: Tree) -> Operation:
        request = {**name, **self._config_request()}
        return self.made.stage.extra_request.merged("CreateEndpointConfig", request)

    def _config_request(self) -> dict[str, Any]:
        stage, managed = self.made.stage, self.component.managed_instances
        machines = {
            name: value
            for name, value in stage.machines(stage.instance_count).items()
            if name in _MACHINES
        }
        scaling = {} if managed is None else {"ManagedInstanceScaling": managed.request()}
        request: dict[str, Any] = {
            "ProductionVariants": [{"VariantName": VARIANT, **machines, **scaling}],
            "ExecutionRoleArn": self.made.context.role,
            **stage.volume_key,
            "Tags": self.made.context.tag_list(stage.name),
        }
        if stage.vpc is not None:
            request["VpcConfig"] = stage.vpc.request()
        if stage.enable_network_isolation:
            request["EnableNetworkIsolation"] = True
        return request
