"""As much of a pipeline as could be read, so that one mistake does not hide the others."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from orchestration.errors import Problem
from orchestration.expressions import Json, parameter, walk
from orchestration.graph import Integration, Overlap
from orchestration.pipeline.afterwards.sections import SECTIONS, STAGES, in_section
from orchestration.pipeline.description import Description, Parameter
from orchestration.pipeline.mending.data import mend, replaced
from orchestration.pipeline.notifying import Notify
from orchestration.pipeline.schedules.model import Schedule
from orchestration.pipeline.triggers.model import Trigger
from orchestration.refs import Expression, parse
from orchestration.stages import Context, Stage
from orchestration.stages.kinds import Kinds
from orchestration.stages.options import StepFunctionsOptions

if TYPE_CHECKING:
    from pydantic import TypeAdapter


SAMPLE_WORKSPACE = "s3://bucket"
SAMPLE_ROLE = "arn:aws:iam::111122223333:role/sample"
SAMPLE_REGION = "us-east-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A stage as it was written, whole or not."""

    name: str
    stage: Stage | None
    """``None`` where it could not be read."""
    kind: type[Stage] | None
    references: tuple[tuple[str, Expression[object]], ...]
    after: tuple[str, ...]
    section: str = STAGES
    """The field of the pipeline that it stands in."""
    rest: Stage | None = None
    """The stage, or one that has other values where what was written is wrong.

    ``None`` where nothing can stand for that.
    """
    mended: tuple[str, ...] = ()
    """The paths of those values."""

    def tells(self, problem: Problem) -> bool:
        """Return whether a problem is one of what was written, and not of a value in its place."""
        return not any(_is_of(problem, path) for path in self.mended)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The parts of a pipeline that could be read."""

    name: str
    workspace: Any
    role: Any
    region: str | None
    tags: Mapping[str, str]
    integrations: Mapping[str, Integration]
    parameters: Mapping[str, Parameter | None]
    """``None`` where only the name is known."""
    schedule: Schedule | None
    trigger: Trigger | None
    overlap: Overlap | None
    notify: Notify | None
    step_functions: StepFunctionsOptions | None
    stages: tuple[Written, ...]

    def context(self, wrong: Container[str] = ()) -> Context:
        """Return the context that stages are lowered in, with samples for fields that are wrong."""
        return Context(
            pipeline=self.name,
            workspace=SAMPLE_WORKSPACE if "workspace" in wrong else self.workspace,
            role=SAMPLE_ROLE if "role" in wrong else self.role,
            region=SAMPLE_REGION if "region" in wrong else self.region,
        )

    def defaults(self) -> dict[str, Json]:
        """The parameters that a run may leave out, with the values that they then have."""
        known = {name: read for name, read in self.parameters.items() if read is not None}
        return {name: read.default for name, read in known.items() if read.default is not None}

    @classmethod
    def of(cls, pipeline: Description) -> Draft:
        """A pipeline that is whole."""
        return cls(
            name=pipeline.name,
            workspace=pipeline.workspace,
            role=pipeline.role,
            region=pipeline.region,
            tags=pipeline.tags,
            integrations=pipeline.integrations(),
            parameters=pipeline.declared_parameters(),
            schedule=pipeline.schedule,
            trigger=pipeline.trigger,
            overlap=pipeline.overlap,
            notify=pipeline.notify,
            step_functions=pipeline.step_functions,
            stages=tuple(
                replace(_whole(stage), section=section)
                for section in SECTIONS
                for stage in getattr(pipeline, section)
            ),
        )

    @classmethod
    def read(cls, data: Mapping[str, Any], kinds: Kinds) -> Draft:
        """Read as much as possible of incomplete data, whose stages are a list of named ones."""
        given = data.get("parameters")
        parameters = {
            str(name): _try("parameters", value, name=str(name))
            for name, value in (given.items() if isinstance(given, Mapping) else ())
        }
        if data.get("role", parameter("role")) == parameter("role"):
            parameters.setdefault("role", Parameter())
        return cls(
            # What can't be read is reported already; a sample that is right stands for it.
            name=_read("name", data, "pipeline"),
            workspace=_read("workspace", data, SAMPLE_WORKSPACE),
            role=_read("role", data, SAMPLE_ROLE),
            region=_read("region", data, SAMPLE_REGION if data.get("region") else None),
            tags=_read("tags", data, {}),
            integrations=_integrations(_read("integration", data, {})),
            parameters=parameters,
            schedule=_read("schedule", data, None),
            trigger=_read("trigger", data, None),
            overlap=_read("overlap", data, None),
            notify=_read("notify", data, None),
            step_functions=_read("step_functions", data, None),
            stages=tuple(
                replace(_written(stage, kinds), section=section)
                for section in SECTIONS
                for _, stage in in_section(data, section)
                if _has_name(stage)
            ),
        )


def _is_of(problem: Problem, path: str) -> bool:
    """Return whether a problem is one of a field, or names it."""
    if path.endswith("]"):
        place, _, number = path.rpartition("[")
        # A list may be short for an object with that list in it.
        return (
            re.match(rf"{re.escape(place)}(\.\w+)?\[{re.escape(number)}", problem.field) is not None
        )
    return problem.field.startswith(path) or path.rpartition(".")[2] in problem.message


def _integrations(asked: Integration | Mapping[str, Integration]) -> Mapping[str, Integration]:
    return asked if isinstance(asked, Mapping) else {"": asked}


def _whole(stage: Stage) -> Written:
    return Written(
        name=stage.name,
        stage=stage,
        rest=stage,
        kind=type(stage),
        references=tuple(stage.references()),
        after=stage.after,
    )


def _has_name(stage: object) -> bool:
    return isinstance(stage, Stage) or (
        isinstance(stage, Mapping) and isinstance(stage.get("name"), str)
    )


def _written(data: Any, kinds: Kinds) -> Written:
    if isinstance(data, Stage):
        return _whole(data)
    # What is wrong is reported already; what is wrong with the rest still has to be.
    kind = kinds.get(str(data.get("kind")))
    fields = () if kind is None else tuple(kind.model_fields)
    kept, mended = mend(data, fields, lambda given: _stages_of([given], kinds))
    read = _stages([kept], kinds)
    if read and not mended:
        return _whole(read[0])
    after = data.get("after")
    names = after if isinstance(after, list | tuple) else ()
    return Written(
        name=data["name"],
        stage=None,
        kind=kind,
        references=tuple(_references(data, "")),
        after=tuple(name for name in names if isinstance(name, str)),
        rest=read[0] if read and all(replaced(read[0], p) for p in mended.values()) else None,
        mended=tuple(mended),
    )


def _references(value: Any, path: str) -> Iterator[tuple[str, Expression[object]]]:
    """Yield the references in data that cannot be anything else, with their paths."""
    if isinstance(value, Expression):
        yield from ((path, node) for node in walk(value))
    elif isinstance(value, Mapping):
        try:
            found = parse(value)
        except ValueError:
            for key, item in value.items():
                yield from _references(item, f"{path}.{key}" if path else str(key))
        else:
            yield from ((path, node) for node in walk(found))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _references(item, f"{path}[{index}]")


def _read(field: str, data: Mapping[str, Any], sample: Any) -> Any:
    value = _try(field, data.get(field))
    return sample if value is None else value


def _stages(data: list[Any], kinds: Kinds) -> tuple[Stage, ...]:
    """Stages as they are read, none where one of them is wrong."""
    from pydantic import ValidationError

    try:
        return _stages_of(data, kinds)
    except ValidationError:
        return ()


def _stages_of(data: list[Any], kinds: Kinds) -> tuple[Stage, ...]:
    read: tuple[Stage, ...] = _adapter("stages").validate_python(data, context=kinds)
    return read


def _try(field: str, value: Any, *, name: str | None = None) -> Any:
    """The value of a field of a pipeline, ``None`` where it is wrong."""
    from pydantic import ValidationError

    try:
        read = _adapter(field).validate_python({name: value} if name is not None else value)
    except ValidationError:
        return None
    return read[name] if name is not None else read


@cache
def _adapter(field: str) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    info = Description.model_fields[field]
    annotated: Any = Annotated[info.annotation, info]
    return TypeAdapter(annotated)
