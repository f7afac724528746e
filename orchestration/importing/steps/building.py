"""Steps as a pipeline, and what differs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from orchestration.errors import PipelineError, Problem
from orchestration.expressions import Apply, Function, Parameter, walk
from orchestration.graph import Call, Workflow, all_steps
from orchestration.importing.imported import Imported, Note, differences
from orchestration.importing.steps import jobs, serving
from orchestration.importing.steps.calls import JOBS
from orchestration.importing.steps.models import alike, apart, folded
from orchestration.importing.steps.registrations import OPERATION, compared
from orchestration.importing.steps.stages import stage_of
from orchestration.importing.steps.step import ORDER, Step
from orchestration.importing.steps.values import TYPED, Values
from orchestration.pipeline import Pipeline
from orchestration.refs import parse

_NAMED: Final = (*(job.named for job in JOBS.values() if job.stop), "Tags")
_REFERENCES: Final = ("ref", "parameter", "join", "run", "each")
_DROPPED: Final = (
    ("AppManaged", False),
    ("S3CompressionType", "None"),
    ("SkipModelValidation", "None"),
)
"""Fields that the SDK writes with what AWS takes by default."""


@dataclass(frozen=True, slots=True)
class Source:
    """The steps and parameters that a definition was read as."""

    pipeline: str
    """The name of the pipeline."""
    steps: Sequence[Step]
    names: Mapping[str, str]
    """The names of parameters here by those in the definition."""
    parameters: Mapping[str, dict[str, Any]]
    """As a pipeline declares them, by their names here."""
    notes: Sequence[Note]
    """On what was left out already."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the description, such as ``schedule``."""


def built(source: Source) -> Imported:
    """Return the pipeline of the steps, and notes on what it does otherwise.

    Raises :class:`~orchestration.errors.PipelineError` where no pipeline can be made of them.
    """
    calls: dict[str, str] = {}
    lost: dict[str, str] = {}
    while True:
        made = _made(source, frozenset(calls), lost)
        problems = made.problems()
        more = {key: why for key, why in made.unsaid(problems).items() if key not in calls}
        calls |= more
        refused = {} if more else made.refused(problems)
        lost |= refused
        if not more and not refused:
            break
    notes = [
        *source.notes,
        *made.notes,
        *_call_notes(made.stages.values(), calls),
        *made.compared(),
    ]
    return Imported(made.description, tuple(sorted(dict.fromkeys(notes), key=_place)))


@dataclass(frozen=True, slots=True)
class _Made:
    """A description made of a definition, with the steps that its stages come from."""

    description: dict[str, Any]
    stages: Mapping[str, Step]
    values: Values
    notes: Sequence[Note]

    def problems(self) -> list[Problem]:
        """Return what is wrong with the description."""
        try:
            Pipeline.parse(self.description).lower()
        except PipelineError as error:
            return list(error.problems)
        return []

    def unsaid(self, problems: Sequence[Problem]) -> dict[str, str]:
        """Return the stages that their kind does not say whole, with the reason of each.

        One that has parts is tried without them first.
        """
        said = {stage: why for stage, why in self._by_stage(problems) if self._is_typed(stage)}
        parted = {step.stage for step in self.values.steps.values() if step.parts}
        return {
            apart(stage) if stage in parted else stage: why
            for stage, why in {**said, **self.values.untyped}.items()
        }

    def refused(self, problems: Sequence[Problem]) -> dict[str, str]:
        """Return the stages that can't be made of their steps, with the reason of each.

        Raises :class:`~orchestration.errors.PipelineError` where none would be left, or what
        follows a question would run unasked.
        """
        refused = dict(self._by_stage(problems))
        asks = any(self.stages[stage].kind == "Approval" for stage in refused)
        if problems and (asks or not refused or len(refused) == len(self.stages)):
            raise PipelineError([self._placed(each) for each in problems])
        return refused

    def _by_stage(self, problems: Sequence[Problem]) -> Iterator[tuple[str, str]]:
        for problem in reversed(problems):  # The first of each counts.
            match = re.match(r"stages\.(\w+)\.?(.*)", problem.path)
            if match and match[1] in self.stages:
                yield match[1], f"{match[2]}: {problem.message}".removeprefix(": ")

    def _is_typed(self, stage: str) -> bool:
        kind: str = self.description["stages"][stage]["kind"]
        return self.stages[stage].kind in TYPED and kind != "aws_call"

    def _placed(self, problem: Problem) -> Problem:
        """Return a problem with the place of its step in the definition."""
        match = re.match(r"stages\.(\w+)", problem.path)
        step = self.stages.get(match[1]) if match else None
        if step is None:
            return problem
        return Problem(step.path, f"as stage {step.stage}: {problem.path}: {problem.message}")

    def compared(self) -> Iterator[Note]:
        """Yield where requests of the stages are not those of the steps."""
        workflow = Pipeline.parse(self.description).lower()
        sent = _requests(workflow)
        for stage, step in self.stages.items():
            for each in (step, *step.parts) if self._is_typed(stage) else ():
                path = each.request_path
                operation = JOBS[each.kind].operation if each.kind in JOBS else OPERATION
                theirs = _kept(_plain(self.values.of(each.arguments, path, stage)))
                ours = _kept(_plain(sent[stage, operation]))
                if step.parts:
                    theirs, ours = alike(theirs, ours)
                yield from differences(theirs, _aligned(theirs, ours), path)


def _made(source: Source, calls: frozenset[str], refused: Mapping[str, str]) -> _Made:
    every = folded(source.steps, calls)
    steps = [step for step in every if step.stage not in refused]
    by_name = {step.name: step for step in steps}
    parameters = {name: dict(each) for name, each in source.parameters.items()}
    values = Values(source.pipeline, by_name, calls, parameters, dict(source.names))
    notes = [
        Note(step.path, f"is left out: {refused[step.stage]}")
        for step in source.steps
        if step.stage in refused
    ]
    role = _role(steps, values)
    made = {step.stage: stage_of(step, values) for step in steps}
    # Twice: what a stage is asked for is known when all that ask have been read.
    made = {step.stage: stage_of(step, values) for step in steps}
    lost = [step for step in steps if made[step.stage] is None]
    for step in lost:
        if step.kind == ORDER:
            continue
        notes.append(Note(step.path, f"{step.name}: no stage does what a {step.kind} step does"))
    stages: dict[str, Any] = {}
    for step in steps:
        stage = made[step.stage]
        if stage is not None:
            if step.stage in values.reports and stage["kind"] == "processing_job":
                report = values.reports[step.stage]
                stage["report"] = {key: value for key, value in report.items() if value}
            after = _after(step, every, values, made)
            stages[step.stage] = {**stage, **({"after": after} if after else {})}
    description: dict[str, Any] = {"name": source.pipeline, "workspace": _workspace(steps, values)}
    if values.parameters:
        description["parameters"] = values.parameters
    if role is not None:
        description["role"] = role
    description |= source.fields
    description["stages"] = stages
    texts = [n for n in values.sent if not values.parameters[n].keys() & {"type", "description"}]
    if texts:
        text = "functions are sent them as text; declare type: number or boolean where they are one"
        notes.append(Note("parameters", f"{', '.join(texts)}: {text}"))
    kept = {step.stage: step for step in steps if step.stage in stages}
    return _Made(description, kept, values, [*notes, *values.notes])


def _role(steps: Sequence[Step], values: Values) -> Any:
    for step in steps:
        if step.kind not in JOBS:
            continue
        tuned, path = step.arguments.get("TrainingJobDefinition"), step.request_path
        if isinstance(tuned, Mapping) and "RoleArn" in tuned:
            return values.of(tuned["RoleArn"], f"{path}.TrainingJobDefinition.RoleArn", step.stage)
        if step.arguments.get("RoleArn") is not None:
            return values.of(step.arguments["RoleArn"], f"{path}.RoleArn", step.stage)
    for step in steps:
        for part in step.parts:
            if (role := part.arguments.get("ExecutionRoleArn")) is not None:
                return values.of(role, f"{part.request_path}.ExecutionRoleArn", step.stage)
    return None


def _workspace(steps: Sequence[Step], values: Values) -> Any:
    text = json.dumps([step.arguments for step in steps], default=str)
    found = re.search(r'"s3://([a-z0-9][a-z0-9.-]+[a-z0-9])[/"]', text)
    if found is not None:
        return f"s3://{found[1]}/pipelines"
    values.parameters.setdefault("workspace", {"description": "S3 URI of the runs' files"})
    return {"parameter": "workspace"}


def _after(
    step: Step, steps: Sequence[Step], values: Values, made: Mapping[str, object]
) -> list[str]:
    """Return the stages that a stage waits for, in the definition's words."""
    waited: dict[str, None] = dict(values.after.get(step.stage, {}))
    lost = [each for each in steps if made.get(each.stage) is None]
    waiting, seen = [*step.after, *_named(step, lost)], {step.name}
    for name in waiting:  # It grows by those that a step which is left out would have waited for.
        for each in steps:
            if each.name in seen or name not in (each.name, *(b.name for b in each.branches)):
                continue
            seen.add(each.name)
            if made.get(each.stage) is None:
                waiting += [*each.after, *_named(each, steps)]
            else:
                waited[each.stage] = None
    return list(waited)


def _named(step: Step, steps: Sequence[Step]) -> list[str]:
    """Return the steps whose results a step asks for, itself or in the conditions around it."""
    asked = [step.given, *(branch.conditions for branch in step.branches)]
    text = json.dumps(asked, default=str)
    return [each.name for each in steps if f'"Steps.{each.name}.' in text]


def _call_notes(steps: Iterable[Step], calls: Mapping[str, str]) -> Iterator[Note]:
    for step in steps:
        if step.stage in calls:
            yield Note(
                step.path,
                f"{step.stage} is an aws_call that makes the step's request as it is, since the "
                f"stage of its kind can't say it ({calls[step.stage]})",
            )
        elif step.kind == "RegisterModel":
            text = "makes the group where there is none, waits until the version is completed, and "
            yield Note(step.path, f"{step.stage} {text}marks it as the run's own")
            if isinstance(step.arguments.get("ModelApprovalStatus"), Mapping):
                text = "a version is PendingManualApproval where a run has another than Approved"
                yield Note(f"{step.request_path}.ModelApprovalStatus", text)
        elif step.kind == "Transform":
            text = (
                "takes its data for a folder, and fails if there are fewer predictions than objects"
            )
            yield Note(step.path, f"{step.stage} {text}")
        elif step.parts:
            text = "updates an endpoint of that name where there is one, once nothing changes it"
            yield Note(step.path, f"{step.stage} {text}")
        own = "of each run's own" if step.kind == "Transform" else "that follows from its content"
        for part in () if step.stage in calls else step.parts:
            yield Note(part.path, f"is made by {step.stage}, under a name {own}")


def _requests(workflow: Workflow) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Return the requests that make each stage's job, by their operations."""
    operations = {OPERATION, *(job.operation for job in JOBS.values())}
    return {
        (step.name.partition(".")[0], step.operation.name): step.operation.request
        for step in all_steps(workflow.graph)
        if isinstance(step, Call) and step.operation.name in operations
    }


def _kept(value: Any) -> Any:
    """Return a request without names, tags and what only repeats a default of AWS's."""
    if isinstance(value, Mapping):
        return {
            key: _kept(item)
            for key, item in value.items()
            if key not in (*_NAMED, "InputName", "OutputName")
            and (key, item) not in _DROPPED
            and item not in ({}, [])
        }
    if isinstance(value, list | tuple):
        return [_kept(item) for item in value]
    return value


def _plain(request: Any) -> Any:
    """Return a request whose tuned jobs are described by the names that a stage uses."""
    request = serving.compared(compared(request))
    definition = request.get("TrainingJobDefinition")
    if not isinstance(definition, Mapping):
        return request
    return {**request, "TrainingJobDefinition": jobs.training(definition)}


def _aligned(theirs: Any, ours: Any) -> Any:
    """Return our request with the definition's references where ours say the same.

    References to stages are resolved while a pipeline is lowered; those to parameters stay.
    """
    if isinstance(ours, Apply) and ours.function is Function.DIRECTORY:
        return theirs
    if isinstance(theirs, Mapping):
        if len(theirs) == 1 and next(iter(theirs)) in _REFERENCES:
            text = json.dumps(theirs)
            same = '"ref"' in text or _parameters(parse(theirs)) == _parameters(ours)
            return theirs if same else ours
        if isinstance(ours, Mapping):
            return {
                key: _aligned(theirs[key], item) if key in theirs else item
                for key, item in ours.items()
            }
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        return [_aligned(one, other) for one, other in zip(theirs, ours, strict=True)]
    return ours


def _parameters(value: Any) -> set[str]:
    return {node.name for node in walk(value) if isinstance(node, Parameter)}


def _place(note: Note) -> tuple[str, ...]:
    return tuple(
        part.zfill(6) if part.isdigit() else part for part in re.split(r"[.\[\]]+", note.path)
    )
