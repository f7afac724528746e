"""The creation of an endpoint, or its update."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from orchestration.expressions import All, Compare, Function, Result, Tree, apply, join
from orchestration.graph import (
    Adopt,
    Call,
    Choose,
    ErrorPattern,
    Graph,
    Operation,
    Output,
    Require,
    Retry,
    Step,
)
from orchestration.refs import Expression
from orchestration.stages.endpoints import variants
from orchestration.stages.endpoints.alarms import BEGAN, Watch
from orchestration.stages.endpoints.making import Made
from orchestration.stages.endpoints.states import States, in_parts
from orchestration.stages.hosting.sending import sent
from orchestration.stages.serving.model import EXISTS, QUOTA

CONFIG_VISIBLE_LATER: Final = Retry(
    errors=(ErrorPattern("ValidationException", "Could not find endpoint configuration"),)
)


@dataclass(frozen=True, slots=True)
class Applying:
    """The steps that bring an endpoint to a configuration."""

    made: Made
    watch: Watch | None

    def served(self, after: tuple[str, ...]) -> Step:
        """Require that the endpoint serves the configuration in the end."""
        settled = f"{self.made.stage.name}.settled"
        if self.watch is None:
            return States(self.made).verified()
        if self.watch.recovers:
            return self.watch.recovered(settled, f"{self.made.stage.name}.apply", after)
        return self.watch.rolled_back(settled, after)

    def choice(self, after: tuple[str, ...]) -> Choose:
        """Return the creation of an endpoint that is missing, and the update of any other."""
        name, stage = self.made.stage.name, self.made.stage
        request = self._request()
        tags = self.made.context.tag_list(name)
        create = Call(
            name=f"{name}.create",
            operation=stage.extra_request.merged("CreateEndpoint", {**request, "Tags": tags}),
            adopt=Adopt(exists=EXISTS),
            failure=QUOTA,
            retry=CONFIG_VISIBLE_LATER,
        )
        # An earlier attempt of this run may have got this far: then there is nothing to change, but
        # for what it could not create, which has the configuration and can only be deleted.
        look = f"{name}.look"
        served = Compare("eq", Result(look, "config"), self.made.name)
        changed = Choose(
            name=f"{name}.changed",
            condition=All((served, Compare("eq", Result(look, "status"), "InService"))),
            then=Graph(),
            otherwise=Graph((self._serving(), *self._update())),
        )
        applied = Choose(
            name=f"{name}.apply",
            condition=Compare("eq", Result(look, "status"), "Absent"),
            then=Graph((create,)),
            otherwise=Graph((self._telling(changed, f"{name}.began"),)),
            after=after,
        )
        return self._telling(applied, changed.name)

    def _telling(self, choice: Choose, otherwise: str) -> Choose:
        """Return a choice that tells of the alarms, which are asked right before an update only."""
        if self.watch is None or not self.watch.recovers:
            return choice
        return replace(choice, collect={BEGAN: []}, absent={BEGAN: Result(otherwise, BEGAN)})

    def _request(self) -> dict[str, Any]:
        return {"EndpointName": self.made.endpoint, "EndpointConfigName": self.made.name}

    def _serving(self) -> Require:
        # What is being created or rolled back has settled by now: all else can't be updated.
        name = self.made.stage.name
        status, reason = (Result(f"{name}.look", output) for output in ("status", "reason"))
        return Require(
            name=f"{name}.serving",
            condition=Compare("eq", status, "InService"),
            error="EndpointNotUsable",
            cause=join(
                *("endpoint ", self.made.endpoint, " is ", status),
                *(" and can't be updated: ", reason, "; delete it, and run again"),
            ),
        )

    def _update(self) -> tuple[Step, ...]:
        stage = self.made.stage
        steps: list[Step] = []
        request = self._request()
        if stage.update.is_guarded:
            alarms = [] if self.watch is None else self.watch.names
            request["DeploymentConfig"] = stage.update.request(alarms, stage.update_s)
        if stage.serverless is None:
            # Instances that autoscaling has added since serve on.
            request |= variants.retaining(self.made, Result(f"{stage.name}.scaled", "targets"))
            steps.append(scaled(self.made, f"{stage.name}.scaled", f"{stage.name}.serving"))
            steps += self._fitting()
        if self.watch is not None:
            steps += self.watch.reset((f"{stage.name}.serving",))
            if self.watch.recovers:
                steps.append(self.watch.began(tuple(step.name for step in steps)))
        update = Call(
            name=f"{stage.name}.update",
            operation=stage.extra_request.merged("UpdateEndpoint", request),
            failure=QUOTA,
            retry=CONFIG_VISIBLE_LATER,
            after=tuple(step.name for step in steps) or (f"{stage.name}.serving",),
        )
        before = Result(f"{stage.name}.look", "config")
        scaling = stage.autoscaling is not None
        return *steps, *sent(States(self.made), update, before, scaled=scaling)

    def _fitting(self) -> tuple[Require, ...]:
        """Require that the instances which the load has left can change over in parts."""
        stage = self.made.stage
        if not in_parts(stage):
            return ()
        targets = Result(f"{stage.name}.scaled", "targets")
        return stage.update.possible(
            f"{stage.name}.fitting",
            Result(f"{stage.name}.look", "instances"),
            stage.update_s,
            (f"{stage.name}.scaled",),
            unless=Compare("eq", apply(Function.COUNT, targets), 0),
        )


def scaled(made: Made, name: str, *after: str) -> Call:
    """Ask whether the variants' instances are scaled by their load: the output ``targets``."""
    parts: list[Any] = [
        name if isinstance(name, Expression) else str(name) for name in variants.names(made)
    ]
    request: dict[str, Tree] = {
        "ServiceNamespace": "sagemaker",
        "ResourceIds": [join("endpoint/", made.endpoint, "/variant/", part) for part in parts],
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    }
    targets = Output(("ScalableTargets",), kind="list", columns=("ResourceId",), default=())
    return Call(
        name=name,
        operation=Operation("application-autoscaling", "DescribeScalableTargets", request),
        outputs={"targets": targets},
        after=after,
    )
