"""The fields of a deployment."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from orchestration.errors import PipelineError, Problem
from orchestration.expressions import Tree
from orchestration.graph import Operation
from orchestration.stages.endpoints.cases import SmokeTest
from orchestration.stages.endpoints.updates import EndpointUpdate
from orchestration.stages.hosting.autoscaling import Autoscaling
from orchestration.stages.hosting.components import InferenceComponent
from orchestration.stages.hosting.fields import Asynchronous, DataCapture, Serverless
from orchestration.stages.hosting.variants import MOST, OtherVariant, VariantName
from orchestration.stages.serving.containers import SequenceFields
from orchestration.stages.stage import Context
from orchestration.stages.training.container import Framework
from orchestration.stages.values import (
    Count,
    Extra,
    ExtraRequest,
    Model,
    Seconds,
    Source,
    StandIn,
    Text,
    Vpc,
)

TYPES: Final = ("InstanceType", "InstancePools")
"""The fields of a variant that say its instance type, or several."""
_UPDATE_S: Final = 3600
"""Seconds that an endpoint has to settle, where the stage is not given more."""


class DeploymentRequests(Model):
    """Further fields of the requests of a deployment, as AWS names them."""

    CreateModel: Extra = {}
    """Of the model."""
    CreateEndpointConfig: Extra = {}
    """Of the endpoint's configuration."""
    CreateEndpoint: Extra = {}
    """Of the endpoint, where it does not exist yet."""
    UpdateEndpoint: Extra = {}
    """Of the endpoint, where it exists."""
    CreateInferenceComponent: Extra = {}
    """Of the component, where it does not exist yet."""
    UpdateInferenceComponent: Extra = {}
    """Of the component, where it exists."""

    def merged(self, operation: str, request: dict[str, Any]) -> Operation:
        """Return an operation with its further fields; ``ValueError`` for one that is set."""
        whole = ExtraRequest.merged(request, getattr(self, operation), operation)
        return Operation("sagemaker", operation, whole)


class DeploymentFields(SequenceFields):
    """The fields of a deployment."""

    kind: Literal["deployment"] = "deployment"
    model_data: Text | None = None
    """S3 URI of a directory with the model's files (``evaluate.outputs.best_checkpoint``), or of a
    ``model.tar.gz`` (``model_archive: true``)."""
    model_package: Text | None = None
    """Instead: the ARN of an approved version in the model registry."""
    package_group: Text | None = None
    """Instead: the model package group whose latest approved version is deployed; the ARN of one in
    another account."""
    registry_role: Text | None = None
    """ARN of a role of the group's account that is assumed to read the group, where its policy does
    not let this account. The model is made under the pipeline's own role."""
    model_archive: bool = False
    """``model_data`` is a ``model.tar.gz``, not a directory."""
    image: Text | None = None
    """The inference container, by its registry path."""
    framework: Framework | None = None
    """Instead: AWS's own container that serves a framework: ``{name: pytorch, version: "2.6"}``."""
    source: Source | None = None
    """Code of ``model_fn`` and so on, for a model that was saved without ``code/``; its entry point
    is a module at the top of its folder. It lies beside the model, under its own digest."""
    judge: Source | None = None
    """Script that judges the answers to the cases of ``update.trial`` together, in a processing
    job: ``python3 <entry_point> --answers DIR --output DIR``. It writes ``verdict.json``:
    ``{"passed": false, "reason": "two prices are negative"}``."""
    endpoint_name: Text | None = None
    """By default the pipeline's and the stage's name; it outlives the run."""
    instance_type: Text | None = None
    """Machines that serve the model: ``ml.m5.large``. Needed, but for ``serverless``."""
    instance_count: Count = 1
    """Machines that serve the model."""
    fallbacks: tuple[Text, ...] = Field(default=(), max_length=4)
    """Further instance types, in order: SageMaker takes the next one where it has no capacity for
    those before, also when it scales out."""
    capacity_timeout_s: int | None = Field(default=None, ge=300, le=3600, strict=True)
    """Seconds in which SageMaker must have found the machines, of all types together."""
    volume_kms_key: Text | None = None
    """KMS key that encrypts the machines' volumes."""
    startup_timeout_s: int | None = Field(default=None, ge=60, le=3600, strict=True)
    """Seconds in which a model's container must have started and answer ``/ping``."""
    download_timeout_s: int | None = Field(default=None, ge=60, le=3600, strict=True)
    """Seconds in which the model's files must have come from S3."""
    routing: Literal["random", "least_outstanding_requests"] | None = None
    """The instance that a request goes to: one at random (SageMaker's default), or the one that has
    the fewest under way."""
    serverless: Serverless | None = None
    """A model without machines of its own, in their place."""
    inference_component: InferenceComponent | None = None
    """Copies of the model on an endpoint that other models share; ``instance_type`` and
    ``instance_count`` are those of an endpoint that does not exist yet."""
    asynchronous: Asynchronous | None = None
    """A queue of requests, whose answers go to S3."""
    autoscaling: Autoscaling | None = None
    """Let the number of instances follow the load; ``instance_count`` is that of a new endpoint."""
    data_capture: DataCapture | None = None
    """Requests and answers to write to S3."""
    environment: dict[str, Text] = Field(default={}, max_length=100)
    """Variables of the model's container."""
    smoke_test: SmokeTest | None = None
    """A request that the endpoint must answer; by default none is sent."""
    update: EndpointUpdate = EndpointUpdate()
    """The way traffic moves to the new model; by default all at once, with nothing to watch it."""
    variant: VariantName | None = None
    """With ``variants``: the name of the one that the new model goes to."""
    weight: float | None = Field(default=None, ge=0)
    """With ``variants``: its share of the requests, in proportion to the others; by default 1."""
    variants: dict[VariantName, OtherVariant] = Field(default={}, max_length=MOST - 1)
    """Further variants, by their names: ``{champion: {weight: 9}}`` keeps what the endpoint serves
    there, for 9 of 10 requests beside a ``weight`` of 1."""
    shadow: bool = Field(default=False, strict=True)
    """With one of ``variants``: the new model answers nobody. It gets copies of that variant's
    requests: with a ``weight`` of 0.2 beside 1, of one in five."""
    local: StandIn | None = None
    """The program that serves on the embedded AWS in the place of the image's own: it answers
    ``GET /ping`` and ``POST /invocations`` on the port in ``SAGEMAKER_BIND_TO_PORT``."""
    poll_interval_s: Seconds = 30
    """Seconds between two questions about the endpoint's status."""
    vpc: Vpc | None = None
    """Subnets and security groups of the model's container."""
    enable_network_isolation: bool = False
    """The model's container reaches no network."""
    extra_request: DeploymentRequests = DeploymentRequests()
    """Further fields, by operation: ``{CreateModel: {…}, CreateEndpointConfig: {…}}``."""

    @property
    def update_s(self) -> int:
        """The seconds that an update of the endpoint may take."""
        return self.timeout_s or _UPDATE_S

    @property
    def settling_s(self) -> int:
        """The seconds that the endpoint itself has to settle; less may be left to the stage."""
        return max(_UPDATE_S, self.update_s)

    def registry_path(self, context: Context) -> Text:
        """Return the container: the image, or that of the framework in the region.

        Raises :class:`~orchestration.errors.PipelineError` where there is none.
        """
        if self.framework is None:
            return "" if self.image is None else self.image
        first, *others = (
            self.framework.registry_path(context.region, kind, serves=True)
            for kind in (self.deciding_type, *self.fallbacks)
        )
        differing = [number for number, image in enumerate(others) if image != first]
        if differing:
            message = "needs another image than instance_type; give the stage an image for both"
            raise PipelineError([Problem(f"fallbacks.{n}", message) for n in differing])
        return first

    @property
    def deciding_type(self) -> Text | None:
        """The instance type that decides on the images of frameworks."""
        return self.instance_type if self.serverless is None else "ml.m5.large"

    def machines(self, instances: Count) -> dict[str, Any]:
        """Return what a variant runs on, with a number of instances where it has any."""
        if self.serverless is not None:
            return {"ServerlessConfig": self.serverless.request()}
        strategy = self.routing
        routing = (
            {} if strategy is None else {"RoutingConfig": {"RoutingStrategy": strategy.upper()}}
        )
        asked = {
            "ContainerStartupHealthCheckTimeoutInSeconds": self.startup_timeout_s,
            "ModelDataDownloadTimeoutInSeconds": self.download_timeout_s,
            "VariantInstanceProvisionTimeoutInSeconds": self.capacity_timeout_s,
        }
        return {
            **self._types(),
            "InitialInstanceCount": instances,
            **{name: seconds for name, seconds in asked.items() if seconds is not None},
            **routing,
        }

    def _types(self) -> dict[str, Any]:
        """Return the instance type, or the pools of several by their priority."""
        if not self.fallbacks:
            return {"InstanceType": self.instance_type}
        types = enumerate((self.instance_type, *self.fallbacks), start=1)
        return {"InstancePools": [{"InstanceType": kind, "Priority": n} for n, kind in types]}

    def specification(self, model: Tree) -> dict[str, Any]:
        """Return the ``Specification`` of the inference component, with a model."""
        if self.inference_component is None:
            return {}
        names = (
            "ContainerStartupHealthCheckTimeoutInSeconds",
            "ModelDataDownloadTimeoutInSeconds",
        )
        machines = self.machines(1)
        startup = {name: machines[name] for name in names if name in machines}
        return {
            "ModelName": model,
            "ComputeResourceRequirements": self.inference_component.requirements(),
            **({"StartupParameters": startup} if startup else {}),
        }

    @property
    def volume_key(self) -> dict[str, Text]:
        """The key of the machines' volumes, as configurations name it."""
        return {} if self.volume_kms_key is None else {"KmsKeyId": self.volume_kms_key}

    def endpoint(self, context: Context) -> Text:
        """Return the endpoint's name."""
        if self.endpoint_name is not None:
            return self.endpoint_name
        return context.name_prefix(self.name).removesuffix("-")
