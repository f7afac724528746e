"""The steps that deploy a model as an inference component.

The endpoint is made if it is missing, and left as it is otherwise: other components may be on it.
The component has the new model in the end, or the one that it had.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from orchestration.errors import Problem
from orchestration.expressions import All, Compare, Result, Tree, join
from orchestration.expressions import Any as Either
from orchestration.graph import (
    Adopt,
    Call,
    Choose,
    ErrorPattern,
    Fail,
    Graph,
    Operation,
    Output,
    Recovery,
    Require,
    Step,
    Until,
)
from orchestration.stages.endpoints.alarms import Watch
from orchestration.stages.endpoints.fields import DeploymentFields
from orchestration.stages.endpoints.making import Made
from orchestration.stages.endpoints.trials import Trying
from orchestration.stages.endpoints.updates import EndpointUpdate
from orchestration.stages.hosting.components import InferenceComponent
from orchestration.stages.hosting.shared import SharedEndpoint
from orchestration.stages.serving.model import EXISTS, MODEL_VISIBLE_LATER, QUOTA
from orchestration.stages.values import Text

_NAME: Final = "InferenceComponentName"
_GONE: Final = ErrorPattern("ValidationException", "Could not find inference component")
# A deletion that was sent before, and whose response was lost.
_DELETING: Final = ErrorPattern("ValidationException", "Cannot delete in-progress")
_UPDATING: Final = ErrorPattern("ValidationException", "Cannot update in-progress")
_STATE: Final = {
    "status": Output(("InferenceComponentStatus",), kind="string", default="Absent"),
    "config": Output(("Specification", "ModelName"), kind="string", default=""),
    "endpoint": Output(("EndpointName",), kind="string", default=""),
    "arn": Output(("InferenceComponentArn",), kind="string", default=""),
    "reason": Output(("FailureReason",), kind="string", default=""),
}
_SHARED: Final = "is of the whole endpoint, which its components share; remove it"
_ONE: Final = "a component has one container; remove it"
_REFUSED: Final = {
    "serverless": "a component is on instances; remove it",
    "asynchronous": _SHARED,
    "autoscaling": "the copies have a fixed number; give inference_component managed_instances",
    "data_capture": _SHARED,
    "variants": "the endpoint has one variant for all its components; remove it",
    "preprocessing": _ONE,
    "postprocessing": _ONE,
}


def problems(stage: DeploymentFields) -> Iterator[Problem]:
    """Yield what does not go with an inference component."""
    component, extra = stage.inference_component, stage.extra_request
    if component is None:
        for name in ("CreateInferenceComponent", "UpdateInferenceComponent"):
            if getattr(extra, name):
                yield Problem(f"extra_request.{name}", "needs inference_component; remove it")
        return
    if extra.UpdateEndpoint:
        message = "an endpoint of components is never updated; remove it"
        yield Problem("extra_request.UpdateEndpoint", message)
    for name, reason in _REFUSED.items():
        if getattr(stage, name):
            yield Problem(name, reason)
    yield from component.problems(stage.instance_count)
    if stage.endpoint_name is None:
        yield Problem("endpoint_name", "is needed: the endpoint that has room for the copies")
    if stage.update is None:
        yield Problem("update", "is needed with inference_component; give update: {}")
        return
    yield from _moved(stage.update)


def _moved(update: EndpointUpdate) -> Iterator[Problem]:
    if update.traffic not in ("all_at_once", "rolling"):
        yield Problem("update.traffic", "a component is updated all_at_once or rolling")
    elif update.traffic == "all_at_once" and update.alarms is not None:
        yield Problem("update.alarms", "only a rolling update of a component is watched")
    if update.alarms is not None and update.alarms.made:
        yield Problem("update.alarms", "no alarms are made for a component; name those that exist")
    for field in ("termination_wait_s", "keep"):
        if getattr(update, field) != EndpointUpdate.model_fields[field].default:
            yield Problem(f"update.{field}", "is of whole endpoints; remove it")
    if update.while_busy == "refuse":
        yield Problem("update.while_busy", "an update of a component is waited for; remove it")
    if update.trial is not None and update.trial.after:
        yield Problem("update.trial.after", "the cases are asked before; use smoke_test after it")


@dataclass(frozen=True, slots=True)
class Hosted:
    """A deployment to an inference component."""

    made: Made
    component: InferenceComponent
    update: EndpointUpdate
    watch: Watch | None

    @property
    def endpoint(self) -> SharedEndpoint:
        """The endpoint that has room for the copies."""
        return SharedEndpoint(self.made, self.component)

    @property
    def name(self) -> Text:
        """The component's name."""
        if self.component.name is not None:
            return self.component.name
        return self.made.context.name_prefix(self.made.stage.name).removesuffix("-")

    def steps(self) -> tuple[Step, ...]:
        """Return the steps up to a component that serves the new model."""
        steps: list[Step] = list(() if self.watch is None else self.watch.usable())
        steps += self.made.found(_last(steps))
        look = self._asked("look", _last(steps), Recovery(_GONE, _NOTHING))
        steps += [look, self._usable(), self.made.model((self._step("usable"),))]
        if self.update.trial:
            steps.append(Trying(self.made, self.update.trial.cases).choice(_last(steps)))
        # Last, so that a model which does not pass leaves no new endpoint, which costs.
        steps += self.endpoint.steps(_last(steps))
        steps.append(self._apply(_last(steps)))
        settled = self._asked("settled", _last(steps))
        steps += [settled, self._failed(), self._in_service()]
        if self.watch is not None:
            return (*steps, self.watch.rolled_back(settled.name, _last(steps)))
        return (*steps, self._verified())

    def _step(self, name: str) -> str:
        return f"{self.made.stage.name}.{name}"

    def _asked(self, step: str, after: tuple[str, ...], *recoveries: Recovery) -> Call:
        """Wait until nothing changes the component, and say what it has."""
        poll = Operation("sagemaker", "DescribeInferenceComponent", {_NAME: self.name})
        until = Until(
            poll=poll,
            status=("InferenceComponentStatus",),
            success=frozenset(["InService", "Failed"]),
            failure=frozenset(),
            interval_s=self.made.stage.poll_interval_s,
            timeout_s=self.made.stage.settling_s,
            # One that is being deleted is absent in the end; what was just applied never is.
            gone=_GONE if recoveries else None,
            outputs=_STATE,
        )
        return Call(
            name=self._step(step), operation=poll, until=until, recoveries=recoveries, after=after
        )

    def _usable(self) -> Require:
        status, endpoint = (Result(self._step("look"), output) for output in ("status", "endpoint"))
        here = Compare("eq", endpoint, self.made.endpoint)
        # An earlier attempt of this run may have made one that failed: it is deleted in the end.
        same = Compare("eq", Result(self._step("look"), "config"), self.made.name)
        failed = All((Compare("eq", status, "Failed"), same))
        own = All((Either((Compare("eq", status, "InService"), failed)), here))
        return Require(
            name=self._step("usable"),
            condition=Either((Compare("eq", status, "Absent"), own)),
            error="EndpointNotUsable",
            cause=join(
                *("inference component ", self.name, " of endpoint ", endpoint, " is ", status),
                *(" and can't be updated on ", self.made.endpoint, ": "),
                *(Result(self._step("look"), "reason"), "; delete it, or give another name"),
            ),
        )

    def _apply(self, after: tuple[str, ...]) -> Choose:
        named, extra = {_NAME: self.name}, self.made.stage.extra_request
        asked: dict[str, Tree] = {
            "Specification": self.made.stage.specification(self.made.name),
            "RuntimeConfig": {"CopyCount": self.component.copies},
        }
        create = Call(
            name=self._step("create_component"),
            operation=extra.merged(
                "CreateInferenceComponent",
                {
                    **named,
                    "EndpointName": self.made.endpoint,
                    "VariantName": self.endpoint.variant,
                    **asked,
                    "Tags": self.made.context.tag_list(self.made.stage.name),
                },
            ),
            adopt=Adopt(exists=EXISTS),
            failure=QUOTA,
            retry=MODEL_VISIBLE_LATER,
        )
        rolling = self.update.traffic == "rolling"
        alarms = [] if self.watch is None else self.watch.names
        config = self.update.request(alarms, self.made.stage.update_s) if rolling else {}
        update = Call(
            name=self._step("update_component"),
            operation=extra.merged(
                "UpdateInferenceComponent",
                {**named, **asked, **({"DeploymentConfig": _of_copies(config)} if config else {})},
            ),
            adopt=Adopt(exists=_UPDATING),
            failure=QUOTA,
            retry=MODEL_VISIBLE_LATER,
        )
        changed = Choose(
            name=self._step("changed"),
            condition=Compare("ne", Result(self._step("look"), "config"), self.made.name),
            then=Graph((update,)),
            otherwise=Graph(),
        )
        return Choose(
            name=self._step("apply"),
            condition=Compare("eq", Result(self._step("look"), "status"), "Absent"),
            then=Graph((create,)),
            otherwise=Graph((changed,)),
            after=after,
        )

    def _failed(self) -> Choose:
        """Delete a new component that could not start, and fail: there is nothing to go back to.

        That it is gone is waited for by whoever looks next.
        """
        deleted = Call(
            name=self._step("deleted"),
            operation=Operation("sagemaker", "DeleteInferenceComponent", {_NAME: self.name}),
            recoveries=(Recovery(_GONE, {}), Recovery(_DELETING, {})),
        )
        fail = Fail(
            name=self._step("not_started"),
            error="ComponentFailed",
            cause=join(
                *self._cause("; it is being deleted, and endpoint "),
                *(self.made.endpoint, " stays, with its instances, which cost"),
            ),
            after=(deleted.name,),
        )
        new = Compare("ne", Result(self._step("look"), "status"), "InService")
        return Choose(
            name=self._step("failed"),
            condition=All((new, Compare("eq", Result(self._step("settled"), "status"), "Failed"))),
            then=Graph((deleted, fail)),
            otherwise=Graph(),
            after=(self._step("settled"),),
        )

    def _cause(self, *more: str) -> tuple[Any, ...]:
        status, reason = (Result(self._step("settled"), output) for output in ("status", "reason"))
        return "inference component ", self.name, " is ", status, ": ", reason, *more

    def _in_service(self) -> Require:
        return Require(
            name=self._step("in_service"),
            condition=Compare("eq", Result(self._step("settled"), "status"), "InService"),
            error="ComponentFailed",
            cause=join(*self._cause()),
            after=(self._step("failed"),),
        )

    def _verified(self) -> Require:
        config, reason = (Result(self._step("settled"), output) for output in ("config", "reason"))
        return Require(
            name=self._step("verified"),
            condition=Compare("eq", config, self.made.name),
            error="EndpointRolledBack",
            cause=join("it serves ", config, " instead of ", self.made.name, ": ", reason),
            after=(self._step("in_service"),),
        )


_NOTHING: Final = {"status": "Absent", "config": "", "endpoint": "", "arn": "", "reason": ""}


def _of_copies(config: dict[str, Any]) -> dict[str, Any]:
    """Return a rolling policy that counts copies instead of instances."""
    policy = dict(config["RollingUpdatePolicy"])
    size = dict(policy["MaximumBatchSize"])
    if size["Type"] == "INSTANCE_COUNT":
        size["Type"] = "COPY_COUNT"
    return {**config, "RollingUpdatePolicy": {**policy, "MaximumBatchSize": size}}


def _last(steps: list[Step]) -> tuple[str, ...]:
    return (steps[-1].name,) if steps else ()
