"""Distributed training as a SageMaker training job.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateTrainingJob.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, Field
from typing_extensions import override

from orchestration import strategies
from orchestration.errors import Problem
from orchestration.expressions import Result, Tree, field, join
from orchestration.graph import Adopt, Call, ErrorPattern, Operation, Output, Until
from orchestration.refs import Expression, Ref
from orchestration.stages.stage import SAMPLE, Context, Fragment, Stage, outputs
from orchestration.stages.values import (
    Count,
    Extra,
    ExtraRequest,
    Gibibytes,
    Model,
    Seconds,
    Source,
    Text,
    Value,
    Vpc,
    s3_problem,
)
from orchestration.strategies import NoStrategy, Strategy

_IN_USE = ErrorPattern("ResourceInUse")


class S3Channel(Model):
    """A channel read from S3."""

    kind: Literal["s3"] = "s3"
    uri: Text
    input_mode: Literal["File", "FastFile", "Pipe"] | None = None
    """How the container sees it; ``None``: as the job does (File)."""
    distribution: Literal["FullyReplicated", "ShardedByS3Key"] = "FullyReplicated"
    """Whether every host gets all objects, or its share of them."""
    content_type: str | None = None

    def request(self) -> dict[str, Any]:
        """One entry of ``InputDataConfig``, without its name."""
        source = {
            "S3DataType": "S3Prefix",
            "S3Uri": self.uri,
            "S3DataDistributionType": self.distribution,
        }
        entry: dict[str, Any] = {"DataSource": {"S3DataSource": source}}
        if self.content_type is not None:
            entry["ContentType"] = self.content_type
        if self.input_mode is not None:
            entry["InputMode"] = self.input_mode
        return entry


class FileSystemChannel(Model):
    """A channel mounted from FSx for Lustre; the job then needs a :class:`Vpc`."""

    kind: Literal["fsx_lustre"] = "fsx_lustre"
    file_system: Expression[Any]
    """``staged.outputs.file_system``; in YAML ``{ref: staging.file_system}``."""
    path: str = Field(default="", pattern=r"^(/[A-Za-z0-9._-]+)*$", max_length=200)
    """A directory below the staged data: ``/train``."""
    access: Literal["ro", "rw"] = "ro"

    def request(self) -> dict[str, Any]:
        """One entry of ``InputDataConfig``, without its name."""
        directory = field(self.file_system, "directory")
        source = {
            "FileSystemId": field(self.file_system, "id"),
            "FileSystemType": "FSxLustre",
            "DirectoryPath": join(directory, self.path) if self.path else directory,  # type: ignore[arg-type]  # the field of an expression is one
            "FileSystemAccessMode": self.access,
        }
        return {"DataSource": {"FileSystemDataSource": source}}


def _channel(value: object) -> object:
    if isinstance(value, str | Expression):
        return {"kind": "s3", "uri": value}
    if isinstance(value, dict) and len(value) == 1 and "kind" not in value and "uri" not in value:
        return {"kind": "s3", "uri": value}
    return value


Channel: TypeAlias = Annotated[
    Annotated[S3Channel | FileSystemChannel, Field(discriminator="kind")],
    BeforeValidator(_channel),
]
"""Where a channel's data comes from; an S3 URI or a reference to one stands for a plain S3
channel."""


class Cluster(Model):
    """The machines of a training job."""

    instance_type: Text
    """``ml.p5.48xlarge``."""
    instance_count: Count = 1
    volume_gib: Gibibytes = 30
    """Storage of each instance in GiB, where its type has no local storage of its own."""


class ManagedSpot(Model):
    """Spare capacity at a discount; SageMaker starts the job again after an interruption.

    https://docs.aws.amazon.com/sagemaker/latest/dg/model-managed-spot-training.html
    """

    max_wait_s: Seconds
    """Seconds in all, waiting for capacity and training; at least the job's ``max_runtime_s``."""


class Checkpoints(Model):
    """A directory of the container that SageMaker keeps in step with S3 while training goes on."""

    uri: Text | None = None
    """Where in S3; by default the run's own place in the workspace."""
    local_path: str = "/opt/ml/checkpoints"


@dataclass(frozen=True, slots=True)
class TrainingJobOutputs:
    """References to what a :class:`TrainingJob` gives."""

    job_name: Ref[str]
    model_artifacts: Ref[str]
    """S3 URI of ``model.tar.gz``."""
    checkpoints: Ref[str]
    """S3 URI of the checkpoints, if the job keeps any."""
    billable_time_s: Ref[int]
    """Seconds that are paid, after the spot discount."""


class TrainingJob(Stage):
    """A training job over a cluster of machines, distributed by a strategy."""

    kind: Literal["training_job"] = "training_job"
    image: Text
    """The training container, by its registry path."""
    source: Source | None = None
    """The code to run in a container with the SageMaker training toolkit; ``None``: the container's
    own."""
    hyperparameters: dict[str, Value] = {}
    """JSON-encoded where there is a ``source``, as the toolkit reads them; else sent as text."""
    channels: dict[str, Channel] = Field(default={}, max_length=20)
    cluster: Cluster
    strategy: Strategy = NoStrategy()
    spot: ManagedSpot | None = None
    checkpoints: Checkpoints | None = None
    max_runtime_s: Seconds = Field(default=86_400, le=28 * 86_400)
    metrics: dict[str, str] = Field(default={}, max_length=40)
    """Regular expressions over the log, by metric name; the first group is the value."""
    environment: dict[str, Text] = Field(default={}, max_length=100)
    vpc: Vpc | None = None
    input_mode: Literal["File", "FastFile", "Pipe"] = "File"
    enable_network_isolation: bool = False
    encrypt_inter_container_traffic: bool = False
    poll_interval_s: Seconds = 30
    extra_request: Extra = {}
    """Further fields of ``CreateTrainingJob``: added, checked like the rest, never dropped."""

    output_names: ClassVar[tuple[str, ...]] = (
        "job_name",
        "model_artifacts",
        "checkpoints",
        "billable_time_s",
    )

    @property
    def outputs(self) -> TrainingJobOutputs:
        """References to what this stage gives."""
        return outputs(TrainingJobOutputs, self.name)

    @override
    def given_outputs(self) -> frozenset[str]:
        every = frozenset(self.output_names)
        return every if self.checkpoints is not None else every - {"checkpoints"}

    @override
    def check(self) -> Iterator[Problem]:
        cluster = self.cluster
        for problem in strategies.problems(
            self.strategy, cluster.instance_type, cluster.instance_count
        ):
            yield Problem("strategy", problem)
        if isinstance(cluster.instance_type, str) and not cluster.instance_type.startswith("ml."):
            yield Problem(
                "cluster.instance_type",
                f"{cluster.instance_type!r} is no SageMaker instance type; they begin with ml.",
            )
        if self.spot is not None and self.spot.max_wait_s < self.max_runtime_s:
            yield Problem(
                "spot.max_wait_s",
                f"{self.spot.max_wait_s} is less than max_runtime_s ({self.max_runtime_s}); it "
                "counts waiting and training together",
            )
        if self.spot is not None and self.checkpoints is None:
            yield Problem("spot", "an interrupted job starts from scratch; give it checkpoints: {}")
        yield from self._check_channels()
        if self.checkpoints is not None:
            yield from s3_problem("checkpoints.uri", self.checkpoints.uri)
        own = [name for name in self.hyperparameters if name.startswith("sagemaker_")]
        for name in own:
            yield Problem(
                f"hyperparameters.{name}",
                "names with sagemaker_ are the toolkit's; set strategy, source or extra_request",
            )
        try:
            self._request(SAMPLE)
        except ValueError as error:
            yield Problem("extra_request", str(error))

    def _check_channels(self) -> Iterator[Problem]:
        mounted = []
        for name, channel in self.channels.items():
            if isinstance(channel, S3Channel):
                yield from s3_problem(f"channels.{name}.uri", channel.uri)
                continue
            mounted.append(name)
            system = channel.file_system
            if not isinstance(system, Ref) or system.output != "file_system":
                yield Problem(
                    f"channels.{name}.file_system",
                    "takes the file system of a staging stage: {ref: <stage>.file_system}",
                )
        if mounted and self.vpc is None:
            yield Problem(
                "vpc", f"is required to mount the file system of channel {', '.join(mounted)}"
            )

    @override
    def lower(self, context: Context) -> Fragment:
        name = f"{self.name}.job"
        job_name = context.resource_name(self.name)
        described = {"TrainingJobName": job_name}
        call = Call(
            name=name,
            operation=Operation("sagemaker", "CreateTrainingJob", self._request(context)),
            adopt=Adopt(exists=_IN_USE, name_field="TrainingJobName"),
            until=Until(
                poll=Operation("sagemaker", "DescribeTrainingJob", described),
                status=("TrainingJobStatus",),
                success=frozenset(["Completed"]),
                failure=frozenset(["Failed", "Stopped"]),
                reason=("FailureReason",),
                interval_s=self.poll_interval_s,
                # The service ends the job by itself; an hour more covers provisioning and upload.
                timeout_s=(self.spot.max_wait_s if self.spot else self.max_runtime_s) + 3600,
                stop=Operation("sagemaker", "StopTrainingJob", described),
                outputs={
                    "job_name": Output(("TrainingJobName",), kind="string"),
                    "model_artifacts": Output(("ModelArtifacts", "S3ModelArtifacts"), default=None),
                    "billable_time_s": Output(("BillableTimeInSeconds",), default=None),
                },
            ),
        )
        given: dict[str, Tree] = {
            output: Result(name, output)
            for output in ("job_name", "model_artifacts", "billable_time_s")
        }
        if self.checkpoints is not None:
            given["checkpoints"] = self._checkpoints_uri(context, self.checkpoints)
        return Fragment(steps=(call,), outputs=given, shown=("job_name", "model_artifacts"))

    def _checkpoints_uri(self, context: Context, checkpoints: Checkpoints) -> Text:
        if checkpoints.uri is not None:
            return checkpoints.uri
        return context.location(self.name, "checkpoints")

    def _request(self, context: Context) -> dict[str, Any]:
        stopping: dict[str, Any] = {"MaxRuntimeInSeconds": self.max_runtime_s}
        request: dict[str, Any] = {
            "TrainingJobName": context.resource_name(self.name),
            "RoleArn": context.role,
            "AlgorithmSpecification": self._algorithm(),
            "HyperParameters": self._hyperparameters(context),
            "InputDataConfig": [
                {"ChannelName": channel, **source.request()}
                for channel, source in self.channels.items()
            ],
            "OutputDataConfig": {"S3OutputPath": context.location(self.name, "output")},
            "ResourceConfig": {
                "InstanceType": self.cluster.instance_type,
                "InstanceCount": self.cluster.instance_count,
                "VolumeSizeInGB": self.cluster.volume_gib,
            },
            "StoppingCondition": stopping,
            "Tags": context.tag_list(self.name),
        }
        if self.spot is not None:
            request["EnableManagedSpotTraining"] = True
            stopping["MaxWaitTimeInSeconds"] = self.spot.max_wait_s
        if self.checkpoints is not None:
            request["CheckpointConfig"] = {
                "S3Uri": self._checkpoints_uri(context, self.checkpoints),
                "LocalPath": self.checkpoints.local_path,
            }
        if self.vpc is not None:
            request["VpcConfig"] = self.vpc.request()
        if self.enable_network_isolation:
            request["EnableNetworkIsolation"] = True
        if self.encrypt_inter_container_traffic:
            request["EnableInterContainerTrafficEncryption"] = True
        if self.environment:
            request["Environment"] = dict(self.environment)
        if not request["InputDataConfig"]:
            del request["InputDataConfig"]
        return ExtraRequest.merged(request, self.extra_request)

    def _algorithm(self) -> dict[str, Any]:
        algorithm: dict[str, Any] = {
            "TrainingImage": self.image,
            "TrainingInputMode": self.input_mode,
        }
        if self.metrics:
            algorithm["MetricDefinitions"] = [
                {"Name": name, "Regex": regex} for name, regex in self.metrics.items()
            ]
        return algorithm

    def _hyperparameters(self, context: Context) -> dict[str, Tree]:
        own = strategies.hyperparameters(self.strategy, self.cluster.instance_type)
        if self.source is None and not own:
            return {name: _plain(value) for name, value in self.hyperparameters.items()}
        sent: dict[str, object] = {**self.hyperparameters}
        if self.source is not None:
            sent["sagemaker_program"] = self.source.entry_point
            sent["sagemaker_submit_directory"] = join(
                context.source(self.source), "/sourcedir.tar.gz"
            )
            sent["sagemaker_job_name"] = context.resource_name(self.name)
        sent |= own
        return {name: _json(value) for name, value in sent.items()}


def _json(value: object) -> Tree:
    # The toolkit decodes each value as JSON and takes what is none as text, so a reference goes as
    # it is.
    return join(value) if isinstance(value, Expression) else json.dumps(value, ensure_ascii=False)


def _plain(value: object) -> Tree:
    if isinstance(value, Expression):
        return join(value)
    return value if isinstance(value, str) else json.dumps(value)
