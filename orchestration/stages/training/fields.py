"""The fields of a training job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from orchestration.stages.capacity import Hours
from orchestration.stages.stage import Context, Stage
from orchestration.stages.training.automatic import Auto
from orchestration.stages.training.batch import Batch
from orchestration.stages.training.channels import Channel, InputMode
from orchestration.stages.training.cluster import Candidate, Cluster, ManagedSpot
from orchestration.stages.training.container import Framework
from orchestration.stages.training.observability import Debugger, Experiment, Profiler, TensorBoard
from orchestration.stages.training.runtime_metrics import RUNTIME_METRICS
from orchestration.stages.values import Extra, Model, Seconds, Source, StandIn, Text, Value, Vpc
from orchestration.strategies import NoStrategy, Strategy


class Checkpoints(Model):
    """A directory of the container that SageMaker keeps in step with S3 while training goes on."""

    uri: Text | None = None
    """S3 URI; by default the run's own place in the workspace."""
    local_path: str | None = "/opt/ml/checkpoints"
    """``None``: not said, and SageMaker takes ``/opt/ml/checkpoints``."""


class ModelOutput(Model):
    """The S3 place of the model and of the script's other output."""

    uri: Text | None = None
    """A prefix in S3, below which SageMaker writes ``<job>/output/model.tar.gz``; by default the
    run's own place in the workspace."""
    kms_key: Text | None = None
    """Encrypts it."""
    compression: Literal["GZIP", "NONE"] | None = None
    """``NONE``: single files instead of ``model.tar.gz``."""


class TrainingFields(Stage):
    """The fields of a training job, and the values that follow from them alone."""

    kind: Literal["training_job"] = "training_job"
    image: Text | None = None
    """The training container, by its registry path."""
    framework: Framework | None = None
    """Instead of ``image``: AWS's own container of a framework."""
    algorithm: Text | None = None
    """Name or ARN of an algorithm: one of yours, or from AWS Marketplace."""
    entrypoint: tuple[Text, ...] = Field(default=(), max_length=100)
    """Replaces the container's own entry point, and with it the training toolkit."""
    arguments: tuple[Text, ...] = Field(default=(), max_length=100)
    """Arguments of the container's entry point."""
    source: Source | None = None
    """The code to run in a container with the SageMaker training toolkit; ``None``: the container's
    own."""
    log_level: int = Field(default=20, ge=0, le=50)
    """Of the training toolkit: 10 debug, 20 info, 30 warnings."""
    hyperparameters: dict[str, Value] = {}
    """JSON-encoded where there is a ``source``, as the toolkit reads them; else sent as text."""
    channels: dict[str, Channel] = Field(default={}, max_length=20)
    """The data, by the names under which the script finds it: ``{train: s3://…}``."""
    cluster: Cluster = Cluster()
    """The job's machines."""
    strategy: Annotated[Strategy | Auto, Field(discriminator="kind")] = NoStrategy()
    """The distribution of the training; ``auto``: the planner picks it, machines included."""
    spot: ManagedSpot | None = None
    """Train on spot capacity; by default on demand."""
    checkpoints: Checkpoints | None = None
    """Keep checkpoints in S3 while the job runs; ``{}`` in the run's own place."""
    max_runtime_s: Seconds = Field(default=86_400, le=28 * 86_400)
    """Seconds after which SageMaker stops the job."""
    wait_for_capacity_h: Hours | None = None
    """Hours, from the first request on, in which the cluster and its fallbacks are requested again
    and again where there is no capacity or quota: every 15 minutes, or 48 times in all if that is
    less often. ``None``: each is requested once."""
    max_retries: int | None = Field(default=None, ge=1, le=30)
    """Times that SageMaker starts the job again by itself after an error of its own."""
    batch: Batch | None = None
    """The size of the batch; ``orchestrate validate`` computes with it and checks it."""
    metrics: dict[str, str] = Field(default={}, max_length=40)
    """Regular expressions over the log, by metric name; the first group is the value."""
    metrics_time_series: bool = False
    """Keep the metrics over time in SageMaker, beside the last values."""
    environment: dict[str, Text] = Field(default={}, max_length=100)
    """Variables of the training script."""
    vpc: Vpc | None = None
    """Subnets and security groups of the job."""
    input_mode: InputMode = "File"
    """``File``: data is copied before the script starts; ``FastFile``, ``Pipe``: while it reads."""
    output: ModelOutput = ModelOutput()
    """The place of the model and of what else the script writes."""
    debugger: Debugger | None = None
    """Save tensors, and watch them by rules; by default neither."""
    profiler: Profiler | None = None
    """Monitor the use of the machines; by default as SageMaker does by itself."""
    tensorboard: TensorBoard | None = None
    """Copy the script's event files to S3; by default they are not kept."""
    experiment: Experiment | None = None
    """The experiment that the job is filed under; by default none."""
    enable_network_isolation: bool = False
    """The container reaches no network."""
    encrypt_inter_container_traffic: bool = False
    """Encrypt the traffic between the machines."""
    local: StandIn | None = None
    """The program that runs on the embedded AWS in the place of an image's own or an algorithm."""
    poll_interval_s: Seconds = 30
    """Seconds between two questions about the job's status."""
    extra_request: Extra = {}
    """Further fields of ``CreateTrainingJob``: added, checked like the rest, never dropped."""

    @property
    def distribution(self) -> Strategy:
        """The strategy; none as long as it is still to be planned."""
        return NoStrategy() if isinstance(self.strategy, Auto) else self.strategy

    @property
    def defined_metrics(self) -> Mapping[str, str]:
        """The regular expressions that SageMaker reads metrics by."""
        measured = self.source is not None and self.source.runtime
        return {**RUNTIME_METRICS, **self.metrics} if measured else self.metrics

    def checkpoints_uri(self, context: Context) -> Text:
        """Return the S3 URI of the checkpoints."""
        if self.checkpoints is not None and self.checkpoints.uri is not None:
            return self.checkpoints.uri
        return context.location(self.name, "checkpoints")

    def candidates(self) -> tuple[Candidate | None, ...]:
        """The clusters that jobs request one after the other; ``None``: groups or preferences."""
        return self.cluster.candidates() or (None,)
