"""The steps that deploy a model as an inference component.

The endpoint is made if it is missing, and left as it is otherwise: other components may be on it.
The component has the new model in the end, or the one that it had.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

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
    Recovery,
    Require,
    Step,
)
from orchestration.stages.endpoints.alarms import Watch
from orchestration.stages.endpoints.cases import Case
from orchestration.stages.endpoints.checking import Checking
from orchestration.stages.endpoints.making import Made
from orchestration.stages.endpoints.trials import Trying
from orchestration.stages.endpoints.updates import EndpointUpdate
from orchestration.stages.hosting.components import InferenceComponent
from orchestration.stages.hosting.restoring import CheckedComponent
from orchestration.stages.hosting.sending import sent, untaken
from orchestration.stages.hosting.shared import SharedEndpoint
from orchestration.stages.hosting.states import GONE, NAME, ComponentStates
from orchestration.stages.serving.model import EXISTS, MODEL_VISIBLE_LATER, QUOTA
from orchestration.stages.values import Text

# A deletion that was sent before, and whose response was lost.
_DELETING: Final = ErrorPattern("ValidationException", "Cannot delete in-progress")


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
        return self.made.component

    @property
    def states(self) -> ComponentStates:
        """Questions about the component's state."""
        if not self._cases:
            return ComponentStates(self.made, self.name)
        # Copies that the load has added since serve on.
        copies = () if self._is_scaled else ("copies",)
        return ComponentStates(self.made, self.name, restored=("specification", *copies))

    @property
    def _is_scaled(self) -> bool:
        return self.component.autoscaling is not None

    @property
    def _cases(self) -> tuple[Case, ...]:
        """The cases that are asked after the update."""
        trial = self.update.trial
        return trial.cases if trial is not None and trial.after else ()

    def steps(self) -> tuple[Step, ...]:
        """Return the steps up to a component that serves the new model."""
        steps: list[Step] = list(() if self.watch is None else self.watch.usable())
        steps += self.made.found(_last(steps))
        steps += [self.states.look(_last(steps)), self._usable()]
        if self._cases:
            steps.append(CheckedComponent(self.states).restorable(_last(steps)))
        steps.append(self.made.model(_last(steps)))
        if self.update.trial:
            steps.append(Trying(self.made, self.update.trial.cases).choice(_last(steps)))
        for call in self._alarms():
            steps.append(replace(call, after=_last(steps)))
        # Last, so that a model which does not pass leaves no new endpoint, which costs.
        steps += self.endpoint.steps(_last(steps))
        steps.append(self._apply(_last(steps)))
        settled = self.states.settled("settled", _last(steps))
        steps += [settled, self._failed(), self._in_service()]
        steps.append(untaken(self.made, "inference component", self.name, _last(steps)))
        if self.watch is None:
            steps.append(self._verified())
        else:
            steps.append(self.watch.recovered(settled.name, self._step("began"), _last(steps)))
        if self._cases:
            check = Checking(self.made, self._cases, CheckedComponent(self.states))
            steps += check.steps(_last(steps))
        return tuple(steps)

    def _alarms(self) -> tuple[Call, ...]:
        """Make the alarms, let them forget what they saw, and ask since when they are so."""
        watch = self.watch
        return () if watch is None else (*watch.made(), *watch.reset(), watch.began())

    def _step(self, name: str) -> str:
        return f"{self.made.stage.name}.{name}"

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
        named, extra = {NAME: self.name}, self.made.stage.extra_request
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
        if self._is_scaled:
            # Copies that the load has added since serve on.
            del asked["RuntimeConfig"]
        rolling = self.update.traffic == "rolling"
        alarms = [] if self.watch is None else self.watch.names
        config = self.update.request(alarms, self.made.stage.update_s) if rolling else {}
        update = Call(
            name=self._step("update_component"),
            operation=extra.merged(
                "UpdateInferenceComponent",
                {**named, **asked, **({"DeploymentConfig": _of_copies(config)} if config else {})},
            ),
            failure=QUOTA,
            retry=MODEL_VISIBLE_LATER,
        )
        before = Result(self._step("look"), "config")
        changed = Choose(
            name=self._step("changed"),
            condition=Compare("ne", before, self.made.name),
            then=Graph(sent(self.states, update, before, scaled=self._is_scaled)),
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
            operation=Operation("sagemaker", "DeleteInferenceComponent", {NAME: self.name}),
            recoveries=(Recovery(GONE, {}), Recovery(_DELETING, {})),
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
            cause=join(
                f"stage {self.made.stage.name}: it serves ",
                config,
                " instead of ",
                self.made.name,
                ": ",
                reason,
            ),
            after=(self._step("untaken"),),
        )


def _of_copies(config: dict[str, Any]) -> dict[str, Any]:
    """Return a rolling policy that counts copies instead of instances."""
    policy = dict(config["RollingUpdatePolicy"])
    size = dict(policy["MaximumBatchSize"])
    if size["Type"] == "INSTANCE_COUNT":
        size["Type"] = "COPY_COUNT"
    return {**config, "RollingUpdatePolicy": {**policy, "MaximumBatchSize": size}}


def _last(steps: list[Step]) -> tuple[str, ...]:
    return (steps[-1].name,) if steps else ()
