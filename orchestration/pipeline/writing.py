"""A pipeline as YAML that reads back as the same pipeline."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

from pydantic_core import PydanticSerializationError, to_jsonable_python

from orchestration.errors import PipelineError, Problem
from orchestration.expressions.conditions import written_condition
from orchestration.pipeline.afterwards.sections import SECTIONS, placed
from orchestration.pipeline.description import Description
from orchestration.pipeline.nesting.paths import without_machine
from orchestration.pipeline.yaml import dumped, parsed
from orchestration.refs import Expression
from orchestration.stages import Stage
from orchestration.stages.kinds import OWN, Kinds, name_of
from orchestration.stages.packing import digest
from orchestration.stages.values import Model, Source, StandIn

_WAY_OUT: Final = "keep the pipeline in Python"


class _Read(Protocol):
    def __call__(self, data: Mapping[str, Any], *, stages: Sequence[type[Stage]]) -> Description:
        """Return the pipeline of a file's data."""


def written(pipeline: Description, folder: Path | None, read: _Read) -> str:
    """Return the YAML of a pipeline; :class:`PipelineError` names all that YAML has no form for.

    `folder` is where the file will lie: paths of code become relative to it, and code that is
    still as it was goes without its digest. What `read` makes of the text is compared.
    """
    data, kinds = _exact(pipeline, read)
    if folder is not None:
        data = _Writer(folder.resolve()).pipeline(pipeline)
    return _heading(kinds) + dumped(data)


def origin(pipeline: Description, read: _Read) -> tuple[dict[str, Any], ...]:
    """Return what definitions hold of a pipeline of Python: the data of a file and its lock file.

    Code has its digest and the last name of its folder. Programs that stand in for images are left
    out: they are this machine's, and AWS never hears of them. Raises what :func:`written` does.
    """
    data, _ = _exact(pipeline, read)
    for section in SECTIONS:
        for stage in data.get(section, {}).values():
            for holder in (stage, stage.get("transform", {})):
                holder.pop("local", None)
    return without_machine(data), {"sources": {}}


def _exact(pipeline: Description, read: _Read) -> tuple[dict[str, Any], list[type[Stage]]]:
    """Return a pipeline's data, and the classes of stages that must be named with it."""
    exact = _Writer(None)
    data = exact.pipeline(pipeline)
    kinds, wrong = _foreign(pipeline.every_stage)
    wrong = [*exact.problems, *wrong]
    if not wrong:
        again = read(parsed(dumped(data), Path("to_yaml")), stages=kinds)
        wrong = list(_lost(pipeline, again))
    if wrong:
        raise PipelineError(placed(wrong, {name: getattr(pipeline, name) for name in SECTIONS}))
    return data, kinds


def stage_data(stage: Stage) -> dict[str, Any]:
    """Return a stage as a file would hold it below its name, with paths and digests as they are."""
    writer = _Writer(None)
    data = writer._stage(stage)
    if writer.problems:
        raise PipelineError(writer.problems)
    return data


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes models as plain data, as a file would hold it."""

    folder: Path | None
    problems: list[Problem] = field(default_factory=list)

    def pipeline(self, pipeline: Description) -> dict[str, Any]:
        """Return a pipeline with its stages by name."""
        data = self._fields(pipeline, "", without=SECTIONS)
        for section in SECTIONS:
            if stages := getattr(pipeline, section):
                data[section] = {stage.name: self._stage(stage) for stage in stages}
        return data

    def _stage(self, stage: Stage) -> dict[str, Any]:
        inside = _Writer(self.folder)
        data = inside._fields(stage, "", without=("name",))
        self.problems.extend(replace(each, stage=stage.name) for each in inside.problems)
        return data

    def _fields(self, model: Model, path: str, *, without: Sequence[str] = ()) -> dict[str, Any]:
        """Return the fields that differ from their defaults, the kind before all others."""
        data: dict[str, Any] = {}
        for name in sorted(type(model).model_fields, key=lambda name: name != "kind"):
            value = getattr(model, name)
            default = type(model).model_fields[name].get_default(call_default_factory=True)
            same = type(value) is type(default) and value == default
            if name not in without and (name == "kind" or not same):
                data[name] = self._value(value, f"{path}.{name}" if path else name)
        if self.folder is not None and isinstance(model, Source | StandIn):
            data.update(_relative(data, self.folder))
            if isinstance(model, Source) and _unchanged(model):
                del data["sha256"]
        return data

    def _value(self, value: Any, path: str) -> Any:
        if isinstance(value, Expression):
            return written_condition(value)
        if isinstance(value, Model):
            return self._fields(value, path)
        if isinstance(value, Mapping):
            return {str(key): self._value(item, f"{path}.{key}") for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._value(item, f"{path}[{index}]") for index, item in enumerate(value)]
        try:
            return to_jsonable_python(value, inf_nan_mode="constants")
        except (PydanticSerializationError, UnicodeDecodeError):
            message = f"is {value!r:.60}, which YAML has no form for; {_WAY_OUT}"
            self.problems.append(Problem(path, message))
            return None


def _relative(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the absolute paths of code, relative to the folder of the file."""

    def beside(path: str) -> str:
        place = Path(path)
        return Path(os.path.relpath(place, folder)).as_posix() if place.is_absolute() else path

    found = {name: beside(data[name]) for name in ("directory", "archive") if name in data}
    further = [beside(path) for path in data.get("dependencies", ())]
    return found | ({"dependencies": further} if further else {})


def _unchanged(source: Source) -> bool:
    """Return whether code on this machine has its digest still."""
    path = source.directory or source.archive
    if path is None or source.sha256 is None or not Path(path).exists():
        return False
    try:
        now = digest(
            Path(path),
            runtime=source.runtime,
            include=source.include,
            dependencies=source.dependencies,
        )
    except PipelineError:
        return False
    return now == source.sha256


def _foreign(stages: Sequence[Stage]) -> tuple[list[type[Stage]], list[Problem]]:
    """Return the classes of stages that must be named with the file, and those that can't be."""
    classes: dict[type[Stage], None] = {}
    problems = []
    for stage in stages:
        kind, name = type(stage), name_of(type(stage))
        if name and Kinds().get(name) is kind:
            continue
        if message := _unreadable(kind, name):
            problems.append(Problem("", message, stage=stage.name))
        classes[kind] = None
    return list(classes), problems


def _unreadable(kind: type[Stage], name: str) -> str:
    """Return why a file can't name a kind; empty where it can."""
    if not name:
        return 'its class has no kind; give it a field: kind: Literal["query"] = "query"'
    if name in OWN:
        return (
            f"is a {kind.__qualname__}, but YAML reads the package's {name}; give it its own kind"
        )
    module = sys.modules.get(kind.__module__)
    held = () if module is None or kind.__module__ == "__main__" else vars(module).values()
    if not any(value is kind for value in held):
        place = f"{kind.__module__}.{kind.__qualname__}"
        return f"its class {place} can't be imported by name; move it to the top of a module"
    return ""


def _lost(pipeline: Description, again: Description) -> Iterator[Problem]:
    """Yield the places that YAML reads as something else."""
    for problem in _different(pipeline, again):
        if problem.field not in SECTIONS:
            yield problem
    for stage, other in zip(pipeline.every_stage, again.every_stage, strict=True):
        for problem in _different(stage, other):
            yield replace(problem, stage=stage.name)


def _different(model: Model, again: Model) -> Iterator[Problem]:
    for name in type(model).model_fields:
        value, read = getattr(model, name), getattr(again, name)
        if value != read:
            message = f"is {value!r:.60}, which YAML reads as {read!r:.60}; {_WAY_OUT}"
            yield Problem(name, message)


def _heading(kinds: Sequence[type[Stage]]) -> str:
    modules = dict.fromkeys(kind.__module__ for kind in kinds)
    options = " ".join(f"--stages {name}" for name in modules)
    return f"# Kinds of its own: orchestrate {options} ...\n" if modules else ""
