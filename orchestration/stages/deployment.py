"""Deployment of a checkpoint behind a SageMaker endpoint, verified by asking it.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateEndpoint.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, cast

from typing_extensions import override

from orchestration.errors import PipelineError, Problem
from orchestration.expressions import Result, Tree
from orchestration.graph import Call, Operation, Output, Step
from orchestration.refs import Expression, Ref
from orchestration.stages.endpoints import code, sharing, variants
from orchestration.stages.endpoints.alarms import Watch
from orchestration.stages.endpoints.applying import Applying
from orchestration.stages.endpoints.cases import SmokeTest
from orchestration.stages.endpoints.checking import CheckedEndpoint, Checking
from orchestration.stages.endpoints.fields import DeploymentFields, DeploymentRequests
from orchestration.stages.endpoints.making import Made
from orchestration.stages.endpoints.pruning import Pruning
from orchestration.stages.endpoints.states import States
from orchestration.stages.endpoints.trials import Trying
from orchestration.stages.hosting import combining
from orchestration.stages.hosting.components import InferenceComponent
from orchestration.stages.hosting.fields import Asynchronous
from orchestration.stages.hosting.hosted import Hosted
from orchestration.stages.hosting.queueing import Queued
from orchestration.stages.hosting.scaling import Scaling
from orchestration.stages.hosting.sending import untaken
from orchestration.stages.hosting.states import NAME as COMPONENT_NAME
from orchestration.stages.outputs import Outputs, output
from orchestration.stages.registry import packages
from orchestration.stages.stage import SAMPLE, Context, Fragment
from orchestration.stages.values import Count, Text, s3_problem

__all__ = ["Deployment", "DeploymentOutputs", "DeploymentRequests", "SmokeTest"]


@dataclass(frozen=True, slots=True)
class DeploymentOutputs:
    """References to what a :class:`Deployment` gives."""

    endpoint_name: Ref[str] = output(shown=True)
    endpoint_config_name: Ref[str] = output(shown=True)
    model_name: Ref[str] = output(shown=True)
    model_package: Ref[str] = output(
        exists=lambda stage: stage.model_data is None,
        otherwise="it deploys files; refer to its model_data",
        shown=True,
    )
    """The ARN of the registered version that is deployed."""
    inference_component: Ref[str] = output(
        exists=lambda stage: stage.inference_component is not None,
        otherwise="the model has the whole endpoint; give it an inference_component",
        shown=True,
    )
    """The name of the inference component."""
    answer: Ref[object] = output(
        exists=lambda stage: stage.smoke_test is not None,
        otherwise="give it a smoke_test",
        shown=True,
    )
    """The endpoint's answer to the smoke test, parsed as JSON."""


class Deployment(DeploymentFields):
    """Serves a checkpoint: the endpoint is created the first time and updated from then on.

    The run goes on once the endpoint serves this very configuration; an update that SageMaker
    rolled back fails the run with ``EndpointRolledBack``, though the endpoint is in service.
    """

    outputs: ClassVar[Outputs[DeploymentOutputs]] = Outputs(DeploymentOutputs)
    lacking: ClassVar[Mapping[str, str]] = {
        "wait_for_capacity_h": "an endpoint is requested once. A new one without machines is "
        "Failed and can only be deleted; after an update without machines, the old model serves "
        "on. Both fail the run: start it again later, or on another instance_type",
    }

    @override
    def check(self, context: Context = SAMPLE) -> Iterator[Problem]:
        if self.model_data is not None:
            yield from s3_problem("model_data", self.model_data)
        yield from packages.problems(self)
        yield from code.problems(self)
        yield from code.combined(self)
        yield from combining.problems(self)
        fewest, most = self._moved
        of: Literal["instances", "copies"] = "copies" if self.inference_component else "instances"
        for problem in self.update.problems(fewest, self.update_s, of, most):
            yield problem.within("update")
        if self.update.keep is not None and isinstance(self.endpoint_name, Expression):
            yield Problem(
                "update.keep",
                "endpoints whose names only a run knows share their models' names, and one's "
                "could be deleted for another; write the endpoint_name out",
            )
        try:
            self._askable().lower(context)
        except PipelineError as error:
            yield from error.problems
        except ValueError as error:
            yield Problem("extra_request", str(error))

    @property
    def _moved(self) -> tuple[Count, Count]:
        """The fewest and the most instances, or copies, that an update may meet."""
        if self.inference_component is not None:
            return self.inference_component.bounds
        if self.autoscaling is not None:
            return self.autoscaling.whole
        return self.instance_count, self.instance_count

    def _askable(self) -> Deployment:
        """Return the stage without cases that could not be asked, which is told already."""
        trial = self.update.trial
        if trial is None or not any(trial.problems()):
            return self
        update = self.update.model_copy(update={"trial": None})
        return self.model_copy(update={"update": update})

    @override
    def warnings(self) -> Iterator[Problem]:
        update = self.update
        if update.traffic != "all_at_once" and update.alarms is None:
            yield Problem("update.alarms", "nothing is watched, so nothing rolls the update back")
        yield from code.unencrypted(self)
        yield from code.unanswered(self)
        yield from sharing.warnings(self)

    @override
    def lower(self, context: Context) -> Fragment:
        made = Made(self, context)
        watch = self._watch(made)
        if self.inference_component is not None:
            return self._hosted(made, watch, self.inference_component)
        states = States(made)
        steps = list(self._before(made, states, watch))
        applying = Applying(made, watch)
        steps.append(applying.choice(_last(steps)))
        steps += [states.settled("settled", _last(steps)), states.in_service()]
        steps.append(untaken(made, "endpoint", made.endpoint, _last(steps)))
        steps.append(applying.served(_last(steps)))
        values: dict[str, Tree] = {
            "endpoint_name": made.endpoint,
            "endpoint_config_name": made.name,
            "model_name": made.model_name,
            **packages.outputs(self),
        }
        permissions = (*packages.needs(self), *(() if watch is None else watch.permissions))
        if self.autoscaling is not None:
            scaling = Scaling(made, self.autoscaling)
            steps += scaling.steps((steps[-1].name,))
            permissions += scaling.permissions
        if self.update.trial is not None and self.update.trial.after:
            check = Checking(made, self.update.trial.cases, CheckedEndpoint(made))
            steps += check.steps((steps[-1].name,))
        if context.tags:
            steps.append(states.tagged((steps[-1].name,)))
        if self.smoke_test is not None:
            if self.asynchronous is None:
                where = {} if self.variant is None else {"TargetVariant": self.variant}
                steps.append(self._invoke(made.endpoint, self.smoke_test, steps[-1].name, where))
            else:
                queued = self._queued(made, self.smoke_test, self.asynchronous)
                steps += queued.steps((steps[-1].name,))
                permissions += queued.permissions
            values["answer"] = Result(steps[-1].name, "answer")
        if self.update.keep is not None:
            alarms = () if self.update.alarms is None else self.update.alarms.made
            steps += Pruning(made, self.update.keep, alarms).steps((steps[-1].name,))
        return Fragment(steps=tuple(steps), outputs=values, permissions=permissions)

    def _hosted(self, made: Made, watch: Watch | None, component: InferenceComponent) -> Fragment:
        """Return the deployment to an inference component."""
        own = Hosted(made, component, self.update, watch)
        steps = list(own.steps())
        values: dict[str, Tree] = {
            "endpoint_name": made.endpoint,
            "endpoint_config_name": own.endpoint.served_config,
            "model_name": made.model_name,
            "inference_component": own.name,
            **packages.outputs(self),
        }
        permissions = (*packages.needs(self), *(() if watch is None else watch.permissions))
        if component.autoscaling is not None:
            steps += component.autoscaling.steps(self.name, own.name, (steps[-1].name,))
            permissions += component.autoscaling.permissions(own.name)
        if made.context.tags:
            steps.append(States(made).tagged((steps[-1].name,)))
        if self.smoke_test is not None:
            where: dict[str, Tree] = {COMPONENT_NAME: own.name}
            steps.append(self._invoke(made.endpoint, self.smoke_test, steps[-1].name, where))
            values["answer"] = Result(steps[-1].name, "answer")
        if own.update.keep is not None:
            alarms = () if own.update.alarms is None else own.update.alarms.made
            pruning = Pruning(made, own.update.keep, alarms, ("Model",))
            steps += pruning.steps((steps[-1].name,))
        return Fragment(steps=tuple(steps), outputs=values, permissions=permissions)

    def _before(self, made: Made, states: States, watch: Watch | None) -> tuple[Step, ...]:
        """Return the steps before the endpoint is created or updated."""
        steps: list[Step] = list(() if watch is None else watch.usable())
        if self.autoscaling is None:
            moved = self.instance_count
            steps += self.update.possible(f"{self.name}.parts", moved, self.update_s, _last(steps))
        steps += made.found(_last(steps))
        if self.update.while_busy == "refuse":
            steps.append(states.busy(_last(steps)))
            steps += variants.found(made, _last(steps))
            steps.append(states.free(_last(steps)))
            steps.append(states.look(_last(steps)))
        else:
            steps.append(states.look(_last(steps)))
            steps += variants.found(made, _last(steps))
        steps += variants.required(made, _last(steps))
        steps += [made.model(_last(steps)), made.config()]
        if self.update.trial:
            steps.append(Trying(made, self.update.trial.cases).choice(_last(steps)))
        if watch is not None:
            for call in watch.made():
                steps.append(replace(call, after=_last(steps)))
        return tuple(steps)

    def _watch(self, made: Made) -> Watch | None:
        if self.update.alarms is None:
            return None
        dimensions: dict[str, Tree] = {
            "EndpointName": made.endpoint,
            "VariantName": made.variant,
            # The new instances only: what the old ones answer does not count.
            "EndpointConfigName": made.name,
        }
        if self.inference_component is not None:
            # A component's metrics do not tell new copies from old ones.
            dimensions = {COMPONENT_NAME: made.component}
        return Watch(
            stage=self.name,
            alarms=self.update.alarms,
            prefix=made.prefix,
            config=made.name,
            beginning=made.alarm_name,
            dimensions=dimensions,
            tags=made.context.tag_list(self.name),
        )

    def _queued(self, made: Made, test: SmokeTest, queue: Asynchronous) -> Queued:
        place = made.context.location(self.name, "smoke_test.json")
        return Queued(self.name, test, made.endpoint, queue, place)

    def _invoke(
        self, endpoint: Text, test: SmokeTest, after: str, where: Mapping[str, Tree]
    ) -> Call:
        return Call(
            name=f"{self.name}.invoke",
            operation=Operation(
                "sagemaker-runtime",
                "InvokeEndpoint",
                {
                    "EndpointName": endpoint,
                    "ContentType": test.content_type,
                    "Accept": "application/json",
                    "Body": cast(Tree, test.body),
                    **where,
                },
            ),
            outputs={"answer": Output(("Body",), parse=True)},
            after=(after,),
        )


def _last(steps: list[Step]) -> tuple[str, ...]:
    return (steps[-1].name,) if steps else ()
