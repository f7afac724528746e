"""The fields of a pipeline, as a user writes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, get_args

from pydantic import Field, model_validator

from orchestration.expressions import parameter
from orchestration.graph import ParameterSpec, ScheduleSpec
from orchestration.stages import (
    CheckpointEvaluation,
    Context,
    DataStaging,
    Deployment,
    Stage,
    TrainingJob,
)
from orchestration.stages.values import Model, Name, Scalar, Text

PIPELINE_NAME: Final = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$"
REGION: Final = r"^[a-z]{2,4}(-[a-z]+)+-\d$"

AnyStage: TypeAlias = Annotated[
    DataStaging | TrainingJob | CheckpointEvaluation | Deployment, Field(discriminator="kind")
]


def stage_kinds(model: type[Description] | None = None) -> dict[str, type[Stage]]:
    """The kinds of stages that a pipeline takes, by the name that a file gives them."""
    annotation = (model or Description).model_fields["stages"].annotation
    return {stage.model_fields["kind"].default: stage for stage in _stages_in(annotation)}


def _stages_in(annotation: Any) -> Iterator[type[Stage]]:
    if isinstance(annotation, type) and issubclass(annotation, Stage):
        yield annotation
    for inner in get_args(annotation):
        yield from _stages_in(inner)


class Parameter(Model):
    """A value given when a run starts: execution input, or a param of the DAG."""

    type: Literal["string", "number", "boolean"] = "string"
    default: Scalar | None = None
    """Without one, every run has to give the value."""
    description: str = ""

    def fits(self, value: Scalar) -> bool:
        """Return whether a value has the parameter's type."""
        match self.type:
            case "string":
                return isinstance(value, str)
            case "boolean":
                return isinstance(value, bool)
            case "number":
                return isinstance(value, int | float) and not isinstance(value, bool)

    @model_validator(mode="after")
    def _default_fits(self) -> Self:
        if self.default is not None and not self.fits(self.default):
            raise ValueError(f"expected a {self.type} as the default, got {self.default!r}")
        return self


class Schedule(Model):
    """When the pipeline runs by itself: the same moments on both backends."""

    cron: str
    """Five fields: minute, hour, day of month, month, day of week: ``0 6 * * MON``."""
    timezone: str = "UTC"
    """IANA name: ``Europe/Berlin``."""
    parameters: dict[Name, Scalar] = {}
    """Values of parameters for scheduled runs."""


class Description(Model):
    """A pipeline as a user writes it, each part valid by itself."""

    name: str = Field(pattern=PIPELINE_NAME, max_length=32)
    """Lower case with hyphens; it stands in the name of everything the pipeline creates."""
    description: str = ""
    parameters: dict[Name, Parameter] = {}
    workspace: Text
    """S3 URI, without a slash at its end, under which every run keeps its files."""
    role: Text = parameter("role")
    """ARN of the role that SageMaker's jobs and endpoints assume; by default the parameter
    ``role``."""
    region: str | None = Field(default=None, pattern=REGION)
    """The AWS region it runs in: ``us-west-2``. Without one it runs in the region of the session
    or connection that starts it. Needed where a stage names a ``framework`` and no image, which
    every region has under another path."""
    stages: tuple[AnyStage, ...] = Field(min_length=1)
    """A list, or a mapping from names to stages."""
    tags: dict[str, str] = Field(default={}, max_length=40)
    schedule: Schedule | None = None

    def context(self) -> Context:
        """Return the context that stages are lowered in."""
        return Context(
            pipeline=self.name,
            workspace=self.workspace,
            role=self.role,
            region=self.region,
            tags=self.tags,
        )

    def parameter_specs(self) -> tuple[ParameterSpec, ...]:
        """The parameters of the workflow."""
        return tuple(
            ParameterSpec(name=n, type=p.type, default=p.default, description=p.description)
            for n, p in self.declared_parameters().items()
        )

    def declared_parameters(self) -> dict[str, Parameter]:
        """The parameters, and ``role`` where nothing else is said of it."""
        declared = dict(self.parameters)
        if self.role == parameter("role") and "role" not in declared:
            declared["role"] = Parameter(description="ARN of the role that SageMaker assumes")
        return declared

    def schedule_spec(self) -> ScheduleSpec | None:
        """The schedule, as backends take it."""
        if self.schedule is None:
            return None
        return ScheduleSpec(
            cron=self.schedule.cron,
            timezone=self.schedule.timezone,
            parameters=self.schedule.parameters,
        )
