"""Definitions of SageMaker Pipelines as pipelines.

https://aws-sagemaker-mlops.github.io/sagemaker-model-building-pipeline-definition-JSON-schema/
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.errors import PipelineError, Problem
from orchestration.importing.imported import Imported, Note
from orchestration.importing.steps.building import Source, built
from orchestration.importing.steps.step import (
    ORDER,
    Branch,
    Step,
    pipeline_name,
    renamed,
    stage_names,
)

_TYPES: Final = {"String": "string", "Integer": "number", "Float": "number", "Boolean": "boolean"}
_EXPERIMENT: Final = {
    "ExperimentName": {"Get": "Execution.PipelineName"},
    "TrialName": {"Get": "Execution.PipelineExecutionId"},
}
_TOLD: Final = {
    "CacheConfig": "the stage does its work in every run; see unless_unchanged of data_staging",
    "RetryPolicies": "jobs are retried as retry and fallbacks of the stage say",
    "Description": "stages have no description; left out",
    "DisplayName": "stages have no display name; left out",
}
_READ: Final = frozenset(
    {"Name", "Type", "Arguments", "DependsOn", "PropertyFiles", "FunctionArn", "OutputParameters"}
)


def is_definition(data: Mapping[str, Any]) -> bool:
    """Return whether something is a definition, or what ``DescribePipeline`` says of one."""
    return "PipelineDefinition" in data or ("Steps" in data and "Version" in data)


def from_definition(
    data: Mapping[str, Any], *, name: str | None = None, file: str = "imported"
) -> Imported:
    """Return the pipeline that does what a definition's does, and notes on what it does otherwise.

    Raises :class:`~orchestration.errors.PipelineError` where it is no definition, or no pipeline
    can be made of it.
    """
    definition = _definition(data)
    called = name or pipeline_name(str(data.get("PipelineName", file)))
    steps = _steps(definition, called)
    names, parameters = _parameters(definition)
    notes = [*_parameter_notes(definition, names), *_unsaid(definition)]
    conditions = _conditions(definition["Steps"], "Steps")
    for path, given in (*((step.path, step.given) for step in steps), *conditions):
        for key in given:
            if key not in _READ:
                notes.append(Note(f"{path}.{key}", _TOLD.get(key, "is left out")))
    return built(Source(called, steps, names, parameters, notes))


def _definition(data: Mapping[str, Any]) -> Mapping[str, Any]:
    definition = data.get("PipelineDefinition", data)
    if isinstance(definition, str):
        try:
            definition = json.loads(definition)
        except ValueError as error:
            raise PipelineError([Problem("PipelineDefinition", f"is no JSON: {error}")]) from error
    if not isinstance(definition, Mapping) or not isinstance(definition.get("Steps"), list):
        raise PipelineError([Problem("Steps", "expected a list of steps")])
    return definition


def _parameters(
    definition: Mapping[str, Any],
) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """Return our names by the definition's, and the parameters by our names."""
    given = definition.get("Parameters", [])
    names = renamed([each["Name"] for each in given])
    own: dict[str, dict[str, Any]] = {}
    for each in given:
        own[names[each["Name"]]] = {"type": _TYPES.get(each.get("Type", "String"), "string")}
        if "DefaultValue" in each:
            own[names[each["Name"]]]["default"] = each["DefaultValue"]
    return names, own


def _parameter_notes(definition: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[Note]:
    """Yield what of the parameters is otherwise here."""
    for number, each in enumerate(definition.get("Parameters", [])):
        if names[each["Name"]] != each["Name"]:
            yield Note(f"Parameters[{number}].Name", f"is called {names[each['Name']]} here")
        if "EnumValues" in each:
            yield Note(f"Parameters[{number}].EnumValues", "any value is taken here")


def _unsaid(definition: Mapping[str, Any]) -> Iterator[Note]:
    known = ("Version", "Metadata", "Parameters", "PipelineExperimentConfig", "Steps")
    for key in definition:
        if key not in known:
            yield Note(key, "is not known here; left out")
    if definition.get("Metadata"):
        yield Note("Metadata", "is left out")
    experiment = definition.get("PipelineExperimentConfig")
    if experiment not in (None, _EXPERIMENT):
        yield Note("PipelineExperimentConfig", "runs write to no experiment; left out")


def _steps(definition: Mapping[str, Any], pipeline: str) -> list[Step]:
    """Return the steps of a definition, in its order, as stages of a pipeline of that name.

    Raises :class:`~orchestration.errors.PipelineError` with everything that is no step.
    """
    found = list(_found(definition["Steps"], "Steps", ()))
    problems = [each for each in found if isinstance(each, Problem)]
    raw = [each for each in found if not isinstance(each, Problem)]
    names = [given["Name"] for given, _, _ in raw]
    problems += [
        Problem(path, f"another step is called {given['Name']!r}, too")
        for number, (given, path, _) in enumerate(raw)
        if given["Name"] in names[:number]
    ]
    known = {*names, *(str(c["Name"]) for _, c in _conditions(definition["Steps"], "Steps"))}
    for given, path, branches in raw:
        waits = given.get("DependsOn", [])
        around = [name for branch in branches for name in branch.after]
        wrong = [name for name in (waits if isinstance(waits, list) else [waits])]
        problems += [
            Problem(f"{path}.DependsOn", f"there is no step {name!r}")
            for name in (*wrong, *around)
            if name not in known
        ]
    if problems:
        raise PipelineError(problems)
    stages = stage_names(names, pipeline)
    return [
        Step(given["Name"], stages[given["Name"]], given["Type"], path, given, branches)
        for given, path, branches in raw
    ]


def _conditions(steps: object, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the condition steps that decide on others, each with its place."""
    for number, given in enumerate(steps if isinstance(steps, list) else ()):
        if isinstance(given, Mapping) and given.get("Type") == "Condition":
            arguments = given.get("Arguments", {})
            if arguments.get("IfSteps") or arguments.get("ElseSteps"):
                yield f"{path}[{number}]", given
            for key in ("IfSteps", "ElseSteps"):
                yield from _conditions(arguments.get(key), f"{path}[{number}].Arguments.{key}")


_Found = tuple[Mapping[str, Any], str, tuple[Branch, ...]]


def _found(steps: object, path: str, branches: tuple[Branch, ...]) -> Iterator[_Found | Problem]:
    if not isinstance(steps, list):
        yield Problem(path, f"expected a list of steps, got {steps!r:.60}")
        return
    for number, given in enumerate(steps):
        where = f"{path}[{number}]"
        if not isinstance(given, Mapping) or not {"Name", "Type"} <= given.keys():
            yield Problem(where, f"expected a step with Name and Type, got {given!r:.60}")
        elif given["Type"] == "Condition":
            yield from _inside(given, where, branches)
        else:
            yield given, where, branches


def _inside(
    given: Mapping[str, Any], where: str, branches: tuple[Branch, ...]
) -> Iterator[_Found | Problem]:
    arguments = given.get("Arguments", {})
    asked = arguments.get("Conditions", [])
    after, place = tuple(given.get("DependsOn", ())), f"{where}.Arguments.Conditions"
    if not arguments.get("IfSteps") and not arguments.get("ElseSteps"):
        yield {**given, "Type": ORDER}, where, branches
    for key, holds in (("IfSteps", True), ("ElseSteps", False)):
        side = Branch(given["Name"], asked, holds, after, place)
        yield from _found(arguments.get(key, []), f"{where}.Arguments.{key}", (*branches, side))
