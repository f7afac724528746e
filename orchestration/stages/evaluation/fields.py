"""The fields of an evaluation, and what follows from them alone."""

from __future__ import annotations

import struct
from typing import Final, Literal, TypeAlias

from pydantic import Field

from orchestration.checks.places import place
from orchestration.graph import Part
from orchestration.stages.capacity import Hours
from orchestration.stages.evaluation.comparing import (
    Champion,
    CheckpointSelection,
    EvaluationMetric,
    EvaluationReport,
    EvaluationSlices,
    RecordedFile,
)
from orchestration.stages.evaluation.transform import EvaluationTransform
from orchestration.stages.processing.gate import Direction, Miss, Threshold
from orchestration.stages.stage import Context, Stage
from orchestration.stages.training.container import Framework
from orchestration.stages.values import (
    Count,
    Extra,
    Gibibytes,
    Name,
    Seconds,
    Source,
    StandIn,
    Text,
    Vpc,
)

Subject: TypeAlias = Literal["checkpoints", "model", "training_job", "tuning_job"]
"""The field that names what is evaluated."""
SUBJECTS: Final[tuple[Subject, ...]] = ("checkpoints", "model", "training_job", "tuning_job")
_LARGEST: Final = 3.4e38
"""About the largest number of 32 bits; SageMaker has none beyond."""
METRIC: Final = "metric"
"""The name of the metric that decides, in ``results``."""


def known(value: Text | None) -> Text:
    """Return a field that is given where it is used: the checks refuse a stage without it."""
    return "" if value is None else value


class EvaluationFields(Stage):
    """The fields of an evaluation."""

    kind: Literal["checkpoint_evaluation"] = "checkpoint_evaluation"
    checkpoints: Text | None = None
    """S3 URI of the checkpoints, each a directory below it: ``train.outputs.checkpoints``."""
    model: Text | None = None
    """Instead: S3 URI of one final model, a ``model.tar.gz`` or a directory:
    ``train.outputs.model_artifacts``."""
    training_job: Text | None = None
    """Instead: name of a training job that has ended, ``train.outputs.job_name``; the metrics are
    those that it has printed, and no job evaluates."""
    tuning_job: Text | None = None
    """Instead: name of a tuning job that has ended, ``tune.outputs.tuning_job_name``; the models of
    its best training jobs are evaluated."""
    best_jobs: int = Field(default=3, ge=1, le=100)
    """With a ``tuning_job``: so many, the best by its objective as SageMaker ranks them."""
    checkpoint_prefix: str = Field(default="", max_length=100)
    """Beginning of the names of complete checkpoints (``epoch-``, ``checkpoint-``); others are
    ignored."""
    select: CheckpointSelection | None = None
    """Some of them: ``{every: 5}``, ``{last: 3}``, ``{pattern: "epoch-*0"}``, or all of these; and
    ``{best: {count: 3, metric: val_loss, direction: min}}`` of what training wrote into each."""
    recorded: RecordedFile | None = None
    """The JSON file with metrics that training has written into each checkpoint,
    ``metrics.json``: it is the report, and no job evaluates."""
    data: Text | None = None
    """S3 URI of the held-back data."""
    image: Text | None = None
    """The evaluation's container, by its registry path."""
    framework: Framework | None = None
    """Instead: AWS's own container of a framework: ``{name: pytorch, version: "2.8"}``."""
    source: Source | None = None
    """The evaluation script and what it imports."""
    command: tuple[Text, ...] = Field(default=(), max_length=100)
    """Instead of a ``source``: the container's own program that evaluates; it is given the same
    arguments."""
    arguments: tuple[Text, ...] = Field(default=(), max_length=90)
    """Further arguments of the script, or of the container's program."""
    max_checkpoints: int = Field(default=100, ge=1, le=1000)
    """Most checkpoints to evaluate; with more, the stage fails before it starts a job. Each one may
    write 21 of the 25,000 events that Step Functions allows an execution: more than 500 need a
    ``report``."""
    instance_type: Text | None = None
    """Machines of each job: ``ml.g5.xlarge``."""
    instance_count: Count = 1
    """Machines of each job; the data and the model lie on all, and one of them writes the
    report."""
    volume_gib: Gibibytes = 30
    """GiB of each machine's volume, which holds data and checkpoint."""
    max_concurrency: int = Field(default=4, ge=1, le=40)
    """Checkpoints evaluated at a time."""
    max_runtime_s: Seconds = Field(default=3600, le=5 * 86_400)
    """Seconds after which SageMaker stops a job."""
    metric: str = Field(min_length=1, max_length=100)
    """The metric that decides, by its name in the report or in the training job."""
    direction: Direction
    """``max``: the largest value is the best; ``min``: the smallest."""
    threshold: Threshold | None = None
    """The bound that the best value must keep; by default the best one passes."""
    metrics: dict[Name, EvaluationMetric] = Field(default={}, max_length=20)
    """Further metrics with their bounds: ``{latency_ms: {maximum: 40}}``. The best is the best of
    those that keep all bounds; an entry with the name of ``metric`` gives that one a path or
    bounds."""
    on_miss: Miss | None = None
    """The outcome of a run whose bounds are not kept, as in ``threshold``; a threshold says it for
    both, and by default it is ``fail``."""
    slices: dict[Name, EvaluationSlices] = Field(default={}, max_length=10)
    """Slices of the data: ``{language: {minimum: 0.8}}`` wants the deciding metric to be at least
    0.8 in every language of the report's ``slices.language``."""
    failures_allowed: int | None = Field(default=None, ge=0, le=999)
    """Evaluations that may fail: their checkpoints have lost."""
    champion: Champion | None = None
    """The model in use: the best is promoted only if it beats this one."""
    report: EvaluationReport | None = None
    """Let a job decide and write a page about it into the workspace; slices, a champion and
    failures that are allowed need that job, and have it by default."""
    environment: dict[str, Text] = Field(default={}, max_length=100)
    """Variables of the script, or of the container's program."""
    vpc: Vpc | None = None
    """Subnets and security groups of the jobs."""
    wait_for_capacity_h: Hours | None = None
    """Hours in which each job is requested again and again where there is no capacity or quota;
    ``None``: once."""
    transform: EvaluationTransform | None = None
    """Let a batch transform of ``data`` by each model make predictions, which the script or the
    container then scores: it is given ``--predictions DIR`` in the place of the model."""
    local: StandIn | None = None
    """The program that evaluates on the embedded AWS in the place of the container's own; it is
    given the arguments, too."""
    poll_interval_s: Seconds = 30
    """Seconds between two questions about a job's status."""
    extra_request: Extra = {}
    """Further fields of ``CreateProcessingJob``."""

    @property
    def subject(self) -> Subject:
        """The field that names what is evaluated."""
        return next((name for name in SUBJECTS if getattr(self, name) is not None), "checkpoints")

    @property
    def several(self) -> bool:
        """True if there may be several models, the best of which is chosen."""
        return self.subject in ("checkpoints", "tuning_job")

    @property
    def noun(self) -> str:
        """The word for each of several."""
        return "checkpoint" if self.subject == "checkpoints" else "model"

    @property
    def miss(self) -> Miss:
        """The consequence of a threshold or bound that is missed, and of nothing to evaluate."""
        miss = self.on_miss if self.threshold is None else self.threshold.on_miss
        return miss or "fail"

    @property
    def decided_by_job(self) -> bool:
        """True if a job of its own decides."""
        asked = (self.failures_allowed, self.champion, self.report)
        return bool(self.slices) or any(each is not None for each in asked)

    def registry_path(self, context: Context) -> Text:
        """Return the container: the image, or that of the framework in the region."""
        if self.framework is None:
            return known(self.image)
        return self.framework.registry_path(context.region, known(self.instance_type))

    def column(self, name: str) -> str:
        """Return the name in ``results`` of one of the ``metrics``."""
        return METRIC if name == self.metric else name

    def measured(self) -> dict[str, str]:
        """Return the metrics to read, by their names in ``results``, with the users' own names."""
        return {METRIC: self.metric} | {self.column(name): name for name in self.metrics}

    def place(self, name: str) -> tuple[Part, ...]:
        """Return the place of a metric in the report."""
        own = self.metrics.get(name)
        # Of a training job, the path is the name of a metric there.
        if own is not None and own.path is not None and self.subject != "training_job":
            return place(own.path)
        return ("metrics", name) if self.recorded is None else (name,)

    def reported_name(self, name: str) -> str:
        """Return the name of a metric in the training job."""
        own = self.metrics.get(name)
        return name if own is None or own.path is None else own.path

    def bound(self, value: float) -> float:
        """Return a bound as the metrics are compared with it.

        SageMaker gives the metrics of training jobs as numbers of 32 bits: 0.9 is
        0.8999999761581421 there, and must be enough for a bound of 0.9.
        """
        if self.subject != "training_job" or not abs(value) <= _LARGEST:
            return value
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
        return rounded

    def bounded(self) -> dict[str, EvaluationMetric]:
        """Return the metrics that have bounds, by the users' names."""
        return {name: metric for name, metric in self.metrics.items() if metric.bounds}
