"""The pipeline as a user writes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, ValidationError, model_validator

from orchestration.errors import PipelineError, Problem
from orchestration.expressions import parameter
from orchestration.graph import ParameterSpec, ScheduleSpec, Workflow
from orchestration.pipeline.wording import PIPELINE_NAME, REGION
from orchestration.stages import (
    CheckpointEvaluation,
    Context,
    DataStaging,
    Deployment,
    Stage,
    TrainingJob,
)
from orchestration.stages.values import Model, Name, Scalar, Text

AnyStage: TypeAlias = Annotated[
    DataStaging | TrainingJob | CheckpointEvaluation | Deployment, Field(discriminator="kind")
]


class Parameter(Model):
    """A value given when a run starts: execution input, or a param of the DAG."""

    type: Literal["string", "number", "boolean"] = "string"
    default: Scalar | None = None
    """Without one, every run has to give the value."""
    description: str = ""

    def fits(self, value: Scalar) -> bool:
        """Whether a value is of the parameter's type."""
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
            raise ValueError(f"the default {self.default!r} is no {self.type}")
        return self


class Schedule(Model):
    """When the pipeline runs by itself: the same moments on both backends."""

    cron: str
    """Five fields: minute, hour, day of month, month, day of week: ``0 6 * * MON``."""
    timezone: str = "UTC"
    """IANA name: ``Europe/Berlin``."""
    parameters: dict[Name, Scalar] = {}
    """Values of parameters for scheduled runs."""


class Pipeline(Model):
    """Stages of distributed training, told once, for Airflow and for Step Functions.

    Building one reports every mistake at once as a :class:`~orchestration.errors.PipelineError`.
    """

    # A slot, and no private attribute of Pydantic's: copies with other fields must not take it
    # along, and it has no part in equality and pickling.
    __slots__ = ("_workflow",)
    if TYPE_CHECKING:
        _workflow: Workflow

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
    """The AWS region it runs in: ``us-west-2``. Needed where a stage names a ``framework`` and no
    image, which every region has under another path."""
    stages: tuple[AnyStage, ...] = Field(min_length=1)
    """A list, or a mapping from names to stages."""
    tags: dict[str, str] = Field(default={}, max_length=40)
    schedule: Schedule | None = None

    def __init__(self, /, **data: Any) -> None:
        from orchestration.pipeline.draft import Draft
        from orchestration.pipeline.lowering import of_requests
        from orchestration.pipeline.problems import problems
        from orchestration.pipeline.wording import from_validation

        named, misnamed = _named(data)
        try:
            super().__init__(**named)
        except ValidationError as error:
            draft = Draft.read(named)
            found = [*from_validation(error, named), *problems(draft), *misnamed]
            raise PipelineError(_grouped([*found, *of_requests(draft, found)])) from error
        if misnamed:
            raise PipelineError(misnamed)
        self.lower()  # What is wrong with the whole is said at once, not when a backend asks.

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """A pipeline from a YAML file, read safely, with its lock file where it has one."""
        from orchestration.pipeline.files import read

        data, found = read(Path(path))
        try:
            pipeline = cls.parse(data)
        except PipelineError as error:
            raise PipelineError([*found, *error.problems]) from error
        if found:
            raise PipelineError(found)
        return pipeline

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Self:
        """A pipeline from plain data, as a YAML file holds it."""
        return cls(**{str(key): value for key, value in data.items()})

    def lower(self) -> Workflow:
        """The pipeline as a checked workflow, lowered once."""
        from orchestration.pipeline.lowering import lower

        try:
            return self._workflow
        except AttributeError:
            # No model is assigned to, so what it is lowered to stays right.
            object.__setattr__(self, "_workflow", lower(self))
            return self._workflow

    def context(self) -> Context:
        """What stages are lowered with."""
        return Context(
            pipeline=self.name,
            workspace=self.workspace,
            role=self.role,
            region=self.region,
            tags=self.tags,
        )

    def warnings(self) -> list[Problem]:
        """What may well be wrong, or is not known to work."""
        return [
            *self._unscheduled(),
            *(
                Problem(f"stages.{stage.name}.{found.path}", found.message)
                for stage in self._by_default()
                for found in stage.warnings()
            ),
        ]

    def _unscheduled(self) -> Iterator[Problem]:
        """The parameters that nobody gives a scheduled run, unless the DAG file or deploy does."""
        schedule = self.schedule_spec()
        if schedule is None:
            return
        missing = [
            spec.name
            for spec in self.parameter_specs()
            if spec.default is None and spec.name not in schedule.parameters
        ]
        if missing:
            yield Problem(
                "schedule.parameters",
                f"scheduled runs have no value for {', '.join(missing)}; give each a default or a "
                "value here, or else give it to dag(…, parameters=…), which fails without, and to "
                "`orchestrate deploy`",
            )

    def facts(self) -> dict[str, list[str]]:
        """What follows from the numbers of each stage: the sizes of clusters and batches.

        Where they are parameters, from the defaults.
        """
        told = {stage.name: list(stage.facts()) for stage in self._by_default()}
        return {name: lines for name, lines in told.items() if lines}

    def _by_default(self) -> list[Stage]:
        from orchestration.pipeline.draft import Draft
        from orchestration.stages.assuming import assuming

        defaults = Draft.of(self).defaults()
        return [assuming(stage, defaults) for stage in self.stages]

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


def _named(data: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """The data with its stages as a list of named ones, and what can't be brought into it."""
    stages = data.get("stages")
    if not isinstance(stages, Mapping):
        return data, []
    named: list[Any] = []
    found: list[Problem] = []
    for name, stage in stages.items():
        path = f"stages.{name}"
        if isinstance(stage, Mapping):
            own = stage.get("name", name)
            named.append({**stage, "name": name})
        elif isinstance(stage, Stage):
            own = stage.name
            named.append(stage)
        else:
            own = name
            found.append(Problem(path, f"is {stage!r:.60}; it has to be a mapping with a kind"))
        if own != name:
            found.append(Problem(path, f"has another name in it: {own!r}; leave that out"))
    return {**data, "stages": named}, found


def _grouped(found: Sequence[Problem]) -> list[Problem]:
    """The problems stage by stage, in the order in which each stage comes up first."""
    groups: dict[tuple[str, ...], list[Problem]] = {}
    for problem in found:
        top, *rest = problem.path.split(".")
        groups.setdefault((top, *(rest[:1] if top == "stages" else ())), []).append(problem)
    return [problem for group in groups.values() for problem in group]
