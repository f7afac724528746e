"""Deployment of a checkpoint behind a SageMaker endpoint, verified by asking it.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateEndpoint.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

from pydantic import Field, JsonValue
from typing_extensions import override

from orchestration.errors import Problem
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
from orchestration.refs import Ref
from orchestration.stages.outputs import Outputs, output
from orchestration.stages.serving.model import EXISTS, MODEL_VISIBLE_LATER, ServedModel
from orchestration.stages.stage import SAMPLE, Context, Fragment, Stage
from orchestration.stages.values import (
    Count,
    Extra,
    ExtraRequest,
    Model,
    Seconds,
    Text,
    Vpc,
    s3_problem,
)

_SETTLED = frozenset(["InService", "Failed", "OutOfService", "UpdateRollbackFailed"])
_ABSENT = ErrorPattern("ValidationException", "Could not find endpoint")
# What an update that was sent before, and whose response was lost, makes of the next one. Should
# it be someone else's, the endpoint ends up with another configuration, which fails the run.
_UPDATING = ErrorPattern("ValidationException", "Cannot update in-progress endpoint")
_CONFIG_VISIBLE_LATER = Retry(
    errors=(ErrorPattern("ValidationException", "Could not find endpoint configuration"),)
)


class SmokeTest(Model):
    """A real request that the deployed endpoint has to answer before the run counts as done."""

    request: JsonValue
    """The body: JSON, or text of another content type (which Step Functions cannot send)."""
    content_type: str = "application/json"

    @property
    def body(self) -> JsonValue:
        """The body, parsed where it is a text that holds JSON."""
        if not isinstance(self.request, str) or "json" not in self.content_type.lower():
            return self.request
        try:
            return cast(JsonValue, json.loads(self.request))
        except ValueError:
            return self.request


class DeploymentRequests(Model):
    """Further fields of the requests of a deployment, as AWS names them."""

    CreateModel: Extra = {}
    CreateEndpointConfig: Extra = {}
    CreateEndpoint: Extra = {}
    UpdateEndpoint: Extra = {}

    def merged(self, operation: str, request: dict[str, Any]) -> Operation:
        """Return an operation with its further fields; ``ValueError`` for one that is set."""
        whole = ExtraRequest.merged(request, getattr(self, operation), operation)
        return Operation("sagemaker", operation, whole)


@dataclass(frozen=True, slots=True)
class DeploymentOutputs:
    """References to what a :class:`Deployment` gives."""

    endpoint_name: Ref[str] = output(shown=True)
    endpoint_config_name: Ref[str] = output(shown=True)
    model_name: Ref[str] = output(shown=True)
    answer: Ref[object] = output(
        exists=lambda stage: stage.smoke_test is not None,
        otherwise="give it a smoke_test",
        shown=True,
    )
    """The endpoint's answer to the smoke test, parsed as JSON."""


class Deployment(Stage):
    """Serves a checkpoint: the endpoint is created the first time and updated from then on.

    The run goes on once the endpoint serves this very configuration; an update that SageMaker
    rolled back fails the run with ``EndpointRolledBack``, though the endpoint is in service.
    """

    kind: Literal["deployment"] = "deployment"
    model_data: Text
    """S3 URI of a directory with the model's files (``evaluate.outputs.best_checkpoint``), or of a
    ``model.tar.gz`` (``model_archive: true``)."""
    model_archive: bool = False
    image: Text
    """The inference container, by its registry path."""
    endpoint_name: Text | None = None
    """By default the pipeline's and the stage's name; it outlives the run."""
    instance_type: Text
    instance_count: Count = 1
    environment: dict[str, Text] = Field(default={}, max_length=100)
    smoke_test: SmokeTest | None = None
    timeout_s: Seconds = 3600
    poll_interval_s: Seconds = 30
    vpc: Vpc | None = None
    enable_network_isolation: bool = False
    extra_request: DeploymentRequests = DeploymentRequests()
    """Further fields, by operation: ``{CreateModel: {…}, CreateEndpointConfig: {…}}``."""

    outputs: ClassVar[Outputs[DeploymentOutputs]] = Outputs(DeploymentOutputs)

    @override
    def check(self, context: Context = SAMPLE) -> Iterator[Problem]:
        yield from s3_problem("model_data", self.model_data)
        try:
            self.lower(SAMPLE)
        except ValueError as error:
            yield Problem("extra_request", str(error))

    @override
    def lower(self, context: Context) -> Fragment:
        name = self.name
        endpoint = self._endpoint(context)
        steps: list[Step] = [
            self._model(context),
            self._config(context),
            self._look(endpoint),
            self._apply(context, endpoint),
            self._settled(endpoint),
            *self._verified(context),
        ]
        given: dict[str, Tree] = {
            "endpoint_name": endpoint,
            "endpoint_config_name": context.resource_name(name),
            "model_name": context.resource_name(name),
        }
        if self.smoke_test is not None:
            steps.append(self._invoke(endpoint, self.smoke_test))
            given["answer"] = Result(f"{name}.invoke", "answer")
        return Fragment(
            steps=tuple(steps),
            outputs=given,
        )

    def _endpoint(self, context: Context) -> Text:
        if self.endpoint_name is not None:
            return self.endpoint_name
        return context.name_prefix(self.name).removesuffix("-")

    def _model(self, context: Context) -> Call:
        served = ServedModel(
            data=self.model_data,
            is_archive=self.model_archive,
            image=self.image,
            environment=self.environment,
            vpc=self.vpc,
            is_isolated=self.enable_network_isolation,
        )
        return Call(
            name=f"{self.name}.model",
            operation=self.extra_request.merged("CreateModel", served.request(self.name, context)),
            adopt=Adopt(exists=EXISTS),
        )

    def _config_operation(self, context: Context) -> Operation:
        variant: dict[str, Any] = {
            "VariantName": "main",
            "ModelName": context.resource_name(self.name),
            "InstanceType": self.instance_type,
            "InitialInstanceCount": self.instance_count,
            "InitialVariantWeight": 1.0,
        }
        request = {
            "EndpointConfigName": context.resource_name(self.name),
            "ProductionVariants": [variant],
            "Tags": context.tag_list(self.name),
        }
        return self.extra_request.merged("CreateEndpointConfig", request)

    def _config(self, context: Context) -> Call:
        return Call(
            name=f"{self.name}.config",
            operation=self._config_operation(context),
            adopt=Adopt(exists=EXISTS),
            retry=MODEL_VISIBLE_LATER,
            after=(f"{self.name}.model",),
        )

    def _wait(self, endpoint: Text) -> tuple[Operation, Until]:
        described = Operation("sagemaker", "DescribeEndpoint", {"EndpointName": endpoint})
        return described, Until(
            poll=described,
            status=("EndpointStatus",),
            success=_SETTLED,
            failure=frozenset(),
            interval_s=self.poll_interval_s,
            timeout_s=self.timeout_s,
            outputs={
                "status": Output(("EndpointStatus",), kind="string"),
                "config": Output(("EndpointConfigName",), kind="string"),
                "reason": Output(("FailureReason",), kind="string", default=""),
            },
        )

    def _look(self, endpoint: Text) -> Call:
        described, until = self._wait(endpoint)
        absent = Recovery(_ABSENT, {"status": "Absent", "config": "", "reason": ""})
        return Call(
            name=f"{self.name}.look",
            operation=described,
            until=until,
            recoveries=(absent,),
            after=(f"{self.name}.config",),
        )

    def _apply(self, context: Context, endpoint: Text) -> Choose:
        name = self.name
        config = context.resource_name(name)
        request = {"EndpointName": endpoint, "EndpointConfigName": config}
        create = Call(
            name=f"{name}.create",
            operation=self.extra_request.merged(
                "CreateEndpoint", {**request, "Tags": context.tag_list(name)}
            ),
            adopt=Adopt(exists=EXISTS),
            retry=_CONFIG_VISIBLE_LATER,
        )
        update = Call(
            name=f"{name}.update",
            operation=self.extra_request.merged("UpdateEndpoint", dict(request)),
            adopt=Adopt(exists=_UPDATING),
            retry=_CONFIG_VISIBLE_LATER,
            after=(f"{name}.serving",),
        )
        # What is being created or rolled back has settled by now: all else can't be updated.
        serving = Require(
            name=f"{name}.serving",
            condition=Compare("eq", Result(f"{name}.look", "status"), "InService"),
            error="EndpointNotUsable",
            cause=join(
                "endpoint ",
                endpoint,
                " is ",
                Result(f"{name}.look", "status"),
                " and can't be updated: ",
                Result(f"{name}.look", "reason"),
                "; delete it, and run again",
            ),
        )
        # An earlier attempt of this run may have got this far: then there is nothing to change.
        changed = Choose(
            name=f"{name}.changed",
            condition=Compare("eq", Result(f"{name}.look", "config"), config),
            then=Graph(),
            otherwise=Graph((serving, update)),
        )
        return Choose(
            name=f"{name}.apply",
            condition=Compare("eq", Result(f"{name}.look", "status"), "Absent"),
            then=Graph((create,)),
            otherwise=Graph((changed,)),
        )

    def _settled(self, endpoint: Text) -> Call:
        described, until = self._wait(endpoint)
        return Call(
            name=f"{self.name}.settled",
            operation=described,
            until=until,
            after=(f"{self.name}.apply",),
        )

    def _verified(self, context: Context) -> tuple[Require, Require]:
        settled, config = f"{self.name}.settled", context.resource_name(self.name)
        in_service = Require(
            name=f"{self.name}.in_service",
            condition=Compare("eq", Result(settled, "status"), "InService"),
            error="EndpointFailed",
            cause=join(
                "the endpoint is ", Result(settled, "status"), ": ", Result(settled, "reason")
            ),
        )
        verified = Require(
            name=f"{self.name}.verified",
            condition=Compare("eq", Result(settled, "config"), config),
            error="EndpointRolledBack",
            cause=join(
                "it serves ",
                Result(settled, "config"),
                " instead of ",
                config,
                ": ",
                Result(settled, "reason"),
            ),
            after=(in_service.name,),
        )
        return in_service, verified

    def _invoke(self, endpoint: Text, test: SmokeTest) -> Call:
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
                },
            ),
            outputs={"answer": Output(("Body",), parse=True)},
            after=(f"{self.name}.verified",),
        )
