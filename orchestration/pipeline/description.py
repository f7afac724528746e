"""The fields of a pipeline, as a user writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from orchestration.expressions import Json, parameter
from orchestration.graph import Integration, Overlap, ParameterSpec, ScheduleSpec, TriggerSpec
from orchestration.pipeline.afterwards.sections import SECTIONS
from orchestration.pipeline.notifying import Notify
from orchestration.pipeline.schedules.model import Schedule
from orchestration.pipeline.triggers.model import Trigger
from orchestration.stages import Context, Stage
from orchestration.stages.kinds import Kinds
from orchestration.stages.options import AirflowOptions, StepFunctionsOptions
from orchestration.stages.values import Element, Model, Name, Scalar, Text

PIPELINE_NAME: Final = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$"
REGION: Final = r"^[a-z]{2,4}(-[a-z]+)+-\d$"

ROLE: Final = "role"
"""The parameter that has the role, where the pipeline says nothing else of it."""


def _stage(value: object, info: ValidationInfo) -> object:
    """Read a stage by its kind; ``info.context`` holds the kinds that the pipeline takes."""
    if isinstance(value, Stage):
        return value
    kinds = info.context if isinstance(info.context, Kinds) else Kinds()
    if not isinstance(value, Mapping):
        text = f"expected a mapping with a kind, got {value!r:.60}"
        raise PydanticCustomError("stage_kind", "{text}", {"text": text})
    name = value.get("kind")
    kind = kinds.get(name) if isinstance(name, str) else None
    if kind is None:
        raise PydanticCustomError("stage_kind", "{text}", {"text": kinds.unknown(value)})
    return kind.model_validate(dict(value), context=info.context)


AnyStage: TypeAlias = Annotated[SerializeAsAny[Stage], BeforeValidator(_stage)]
"""A stage of any kind."""


class Parameter(Model):
    """A value given when a run starts: execution input, or a param of the DAG."""

    type: Literal["string", "number", "boolean", "array"] = "string"
    """``array``: a list of scalars, or of objects of scalars, for ``for_each``."""
    default: Scalar | list[Element] | None = None
    """Without one, every run has to give the value."""
    description: str = ""
    """Words about the value, shown where a run is started."""

    def fits(self, value: Scalar | list[Element]) -> bool:
        """Return whether a value has the parameter's type."""
        match self.type:
            case "string":
                return isinstance(value, str)
            case "boolean":
                return isinstance(value, bool)
            case "number":
                return isinstance(value, int | float) and not isinstance(value, bool)
            case "array":
                return isinstance(value, list)

    @model_validator(mode="after")
    def _default_fits(self) -> Self:
        if self.default is not None and not self.fits(self.default):
            article = "an" if self.type == "array" else "a"
            raise ValueError(f"expected {article} {self.type} as the default, got {self.default!r}")
        return self


class Description(Model):
    """A pipeline as a user writes it, each part valid by itself."""

    name: str = Field(pattern=PIPELINE_NAME, max_length=32)
    """Lower case with hyphens; it stands in the name of everything the pipeline creates."""
    description: str = ""
    """Words about the pipeline, shown where its DAG or state machine is listed."""
    parameters: dict[Name, Parameter] = {}
    """Values that each run is given, by name: ``{bucket: {}, epochs: {default: 3}}``."""
    workspace: Text
    """S3 URI, without a slash at its end, under which every run keeps its files."""
    role: Text = parameter(ROLE)
    """ARN of the role that SageMaker's jobs and endpoints assume; by default the parameter
    ``role``, which runs must give if a stage uses it."""
    region: str | None = Field(default=None, pattern=REGION)
    """The AWS region it runs in: ``us-west-2``. Without one it runs in the region of the session
    or connection that starts it. Needed where a stage names a ``framework`` and no image, which
    every region has under another path."""
    integration: Integration | dict[Name, Integration] | None = None
    """The way Step Functions starts the jobs of all stages, or of those named: ``sync`` waits for
    their end by itself, ``sdk`` takes newer fields of the API and polls. By default ``sync`` where
    it is sure to know every field."""
    stages: tuple[AnyStage, ...] = Field(min_length=1)
    """A list, or a mapping from names to stages."""
    on_failure: tuple[AnyStage, ...] = ()
    """Stages after the end of a run that failed: to notify, to clean up, to record. They read
    ``{outcome: error}``, ``{outcome: cause}`` and ``{outcome: state}``."""
    on_success: tuple[AnyStage, ...] = ()
    """Stages after the end of a run that succeeded; they read the outputs of others as well."""
    always: tuple[AnyStage, ...] = ()
    """Stages after the end of every run, whether it failed or succeeded."""
    tags: dict[str, str] = Field(default={}, max_length=40)
    """Tags of everything that the pipeline creates; a stage adds its own."""
    schedule: Schedule | None = None
    """When runs start by themselves; by default never."""
    trigger: Trigger | None = None
    """The event after which it runs by itself, beside its schedule."""
    overlap: Overlap | None = None
    """The policy for a run that starts while an older one is under way, whoever started either:
    ``queue`` waits, ``skip`` ends it without doing anything, ``stop_older`` stops the older one,
    ``allow`` runs both. By default ``queue`` with a schedule or a trigger, else ``allow``."""
    notify: Notify | None = None
    """The topics of SNS that hear how runs end."""
    airflow: AirflowOptions | None = None
    """Settings of all tasks on Airflow; other backends ignore them."""
    step_functions: StepFunctionsOptions | None = None
    """Settings of the state machine that ``deploy`` makes; other backends ignore them."""

    @property
    def every_stage(self) -> tuple[Stage, ...]:
        """All stages, those after the end of a run included."""
        return tuple(stage for section in SECTIONS for stage in getattr(self, section))

    def context(self) -> Context:
        """Return the context that stages are lowered in."""
        return Context(
            pipeline=self.name,
            workspace=self.workspace,
            role=self.role,
            region=self.region,
            tags=self.tags,
        )

    def possible_parameters(self) -> tuple[ParameterSpec, ...]:
        """Return the parameters of runs, ``role`` required whether or not a stage uses it."""
        return tuple(
            ParameterSpec(name=n, type=p.type, default=p.default, description=p.description)
            for n, p in self.declared_parameters().items()
        )

    def declared_parameters(self) -> dict[str, Parameter]:
        """The parameters, and ``role`` where nothing else is said of it."""
        declared = dict(self.parameters)
        if self.role == parameter(ROLE) and ROLE not in declared:
            declared[ROLE] = Parameter(description="ARN of the role that SageMaker assumes")
        return declared

    def integrations(self) -> dict[str, Integration]:
        """The integrations by stage; for all stages under an empty name."""
        asked = self.integration
        if asked is None:
            return {}
        return dict(asked) if isinstance(asked, dict) else {"": asked}

    def airflow_settings(self) -> dict[str, Mapping[str, Json]]:
        """The settings of Airflow's tasks by stage; of all tasks under an empty name."""
        options = {"": self.airflow, **{stage.name: stage.airflow for stage in self.every_stage}}
        return {name: each.settings() for name, each in options.items() if each is not None}

    def alias(self) -> str | None:
        """The alias of the state machine that starts runs, if one does."""
        options = self.step_functions
        return None if options is None or options.alias is None else options.alias.name

    def schedule_spec(self) -> ScheduleSpec | None:
        """The schedule, as backends take it."""
        return None if self.schedule is None else self.schedule.spec()

    def trigger_spec(self) -> TriggerSpec | None:
        """The trigger, as backends take it."""
        return None if self.trigger is None else self.trigger.spec()
