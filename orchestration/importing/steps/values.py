"""The values of a definition that are known only during a run, as references."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from orchestration.checks.responses import misplaced
from orchestration.importing.imported import Note
from orchestration.importing.steps.calls import JOBS
from orchestration.importing.steps.step import Step, renamed, snake

TYPED: Final = {
    "Training": {
        "TrainingJobName": "job_name",
        "ModelArtifacts.S3ModelArtifacts": "model_artifacts",
        "CheckpointConfig.S3Uri": "checkpoints",
    },
    "Processing": {"ProcessingJobName": "job_name"},
    "Tuning": {
        "HyperParameterTuningJobName": "tuning_job_name",
        "BestTrainingJob.TrainingJobName": "job_name",
        # The first of the summaries, sorted by their metric, is the best job.
        "TrainingJobSummaries[0].TrainingJobName": "job_name",
    },
    "Transform": {
        "TransformJobName": "job_name",
        "ModelName": "model_name",
        "TransformOutput.S3OutputPath": "location",
    },
    "RegisterModel": {"ModelPackageArn": "model_package"},
    "Endpoint": {
        "EndpointName": "endpoint_name",
        "EndpointConfigName": "endpoint_config_name",
    },
}
"""The outputs of stages by what steps call them."""
_RESULT: Final = re.compile(
    r"ProcessingOutputConfig\.Outputs\[['\"]([^'\"]+)['\"]\]\.S3Output\.S3Uri"
)
_WORDS: Final = frozenset(
    {"ref", "parameter", "join", "run", "first_of", "arn_name", "time_text", "each"}
)
"""Keys that make a mapping a reference here, and are plain data in a definition."""
_PLAIN: Final = re.compile(r"\w+([.]\w+|\[\d+\])*")
_OUTPUT: Final = re.compile(r"OutputParameters\[['\"]([^'\"]+)['\"]\]")


@dataclass
class Values:
    """The values of a definition as ours, and what they ask of the stages."""

    pipeline: str
    steps: Mapping[str, Step]
    calls: frozenset[str]
    """Stages that are calls, since no other kind says all of them."""
    parameters: dict[str, dict[str, Any]]
    """Of the pipeline, by its own names."""
    names: dict[str, str]
    """Those names by theirs."""
    asked: dict[str, dict[str, str]] = field(default_factory=dict)
    """Outputs that a call must have, by stage: their places in the response."""
    reports: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Reports that processing jobs must have, by stage."""
    after: dict[str, dict[str, None]] = field(default_factory=dict)
    """Stages to wait for that no reference names, by stage."""
    untyped: dict[str, str] = field(default_factory=dict)
    """Stages that can't be of their kind, with the output that is asked of them."""
    sent: dict[str, None] = field(default_factory=dict)
    """Parameters that functions are sent, whatever their types."""
    notes: list[Note] = field(default_factory=list)

    def of(self, value: Any, path: str, stage: str) -> Any:
        """Return a value with each reference as a pipeline writes it."""
        if isinstance(value, Mapping):
            if len(value) == 1 and value.keys() & _WORDS:
                return self.given(str(dict(value)), path)
            match list(value.items()):
                case [("Get", str(place))]:
                    return self._got(place, path, stage)
                case [("Std:Join", Mapping() as join)]:
                    return self._joined(join, path, stage)
                case [("Std:JsonGet", Mapping() as read)]:
                    return self.read(read, path, "texts")
            return {key: self.of(item, f"{path}.{key}", stage) for key, item in value.items()}
        if isinstance(value, list):
            return [self.of(item, f"{path}[{n}]", stage) for n, item in enumerate(value)]
        return value

    def named(self, step: Step) -> dict[str, Any]:
        """Return the name of what a call makes: each run's own, the same in all its attempts."""
        job = JOBS[step.kind]
        prefix = f"{self.pipeline}-{step.stage.replace('_', '-')}"[: job.longest - 13].strip("-")
        return {"join": [f"{prefix}-", {"run": "id"}]}

    def _got(self, place: str, path: str, stage: str) -> Any:
        kind, _, rest = place.partition(".")
        if kind == "Parameters" and rest in self.names:
            return {"parameter": self.names[rest]}
        if place == "Execution.PipelineExecutionId":
            return {"run": "id"}
        if place == "Execution.PipelineName":
            return self.pipeline
        if kind == "Each":
            return {"each": rest.removeprefix("item.")}
        name, _, rest = rest.partition(".")
        if kind == "Steps" and name in self.steps:
            return self._property(self.steps[name], rest, path, stage)
        return self.given(place, path)

    def _property(self, step: Step, rest: str, path: str, stage: str) -> Any:
        job = JOBS.get(step.kind)
        if job is not None and job.describe is None and rest == job.named:
            self.after.setdefault(stage, {})[step.stage] = None
            return self.named(step)
        typed = {} if step.stage in self.calls else outputs(step)
        if rest in typed:
            return {"ref": f"{step.stage}.{typed[rest]}"}
        if typed and (result := _RESULT.fullmatch(rest)):
            return {"ref": f"{step.stage}.{snake(result[1])}"}
        place = _place(step, rest)
        if place is None:
            return self.given(f"Steps.{step.name}.{rest}", path)
        if typed:
            self.untyped[step.stage] = f"{rest} is no output of it"
        asked = self.asked.setdefault(step.stage, {})
        output = _free(re.sub(r"\W+", "_", place.removeprefix("Payload.")), place, asked)
        asked[output] = place
        return {"ref": f"{step.stage}.{output}"}

    def given(self, place: str, path: str) -> dict[str, str]:
        """Return a parameter for a value that nothing here stands for."""
        name = self.names.get(place)
        if name is None:
            own = renamed([*self.names.values(), place.rpartition("Steps.")[2]])
            name = own[place.rpartition("Steps.")[2]]
            self.names[place] = name
            self.parameters[name] = {"description": f"{place} of the definition"}
        self.notes.append(
            Note(path, f"nothing stands for {place}; each run must be given the parameter {name}")
        )
        return {"parameter": name}

    def _joined(self, join: Mapping[str, Any], path: str, stage: str) -> Any:
        values = self.of(join.get("Values", []), f"{path}.Std:Join.Values", stage)
        between = self.of(join.get("On", ""), f"{path}.Std:Join.On", stage)
        parts: list[Any] = []
        for number, value in enumerate(values):
            if number and between:
                parts.append(between)
            inner = value["join"] if isinstance(value, dict) and "join" in value else [value]
            parts += [each if isinstance(each, dict) else _text(each) for each in inner]
        together: list[Any] = []
        for is_reference, group in groupby(parts, lambda part: isinstance(part, dict)):
            run = list(group)
            together += run if is_reference else ["".join(run)]
        literal = all(isinstance(part, str) for part in together)
        return "".join(together) if literal else {"join": together}

    def read(self, read: Mapping[str, Any], path: str, kind: str) -> Any:
        """Return what stands in a JSON file that a processing job writes: its stage's output."""
        place = str(read.get("Path", ""))
        file = read.get("PropertyFile", {})
        whole = file.get("Get", "") if isinstance(file, Mapping) else ""
        match = re.fullmatch(r"Steps\.(.+)\.PropertyFiles\.(.+)", str(whole))
        step = self.steps.get(match[1]) if match else None
        plain = re.sub(r"\[['\"](\w+)['\"]\]", r".\1", place.removeprefix("$").strip("."))
        if match and step is not None and re.fullmatch(r"[\w-]+([.][\w-]+|\[\d+\])*", plain):
            output = self._report(step, match[2], plain, kind)
            if output is not None:
                return {"ref": f"{step.stage}.{output}"}
        parameter = self.given(f"{whole or read.get('S3Uri')} {place}", path)
        self.parameters[parameter["parameter"]]["type"] = (
            "number" if kind == "numbers" else "string"
        )
        return parameter

    def _report(self, step: Step, file: str, place: str, kind: str) -> str | None:
        """Return the output of a processing job that is a value of a file that it writes."""
        files = {each["PropertyFileName"]: each for each in step.given.get("PropertyFiles", [])}
        if file not in files or step.kind != "Processing" or step.stage in self.calls:
            return None
        about = {
            "result": snake(files[file]["OutputName"]),
            "file": files[file]["FilePath"],
        }
        report = self.reports.setdefault(step.stage, {**about, "numbers": {}, "texts": {}})
        if {key: report[key] for key in about} != about:
            return None  # A stage has one report.
        output = _free(re.sub(r"\W+", "_", place), place, report[kind])
        report[kind][output] = place
        return output


def outputs(step: Step) -> Mapping[str, str]:
    """Return the outputs of a step's stage by what steps call them; none where it is a call."""
    is_call = step.kind == "Endpoint" and not step.parts
    return {} if is_call else TYPED.get(step.kind, {})


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _free(text: str, place: str, taken: Mapping[str, str]) -> str:
    """Return the name of an output, which no output of another place has."""
    name, number = snake(text), 2
    while taken.get(name, place) != place:
        name, number = f"{snake(text, 36)}_{number}", number + 1
    return name


def _place(step: Step, rest: str) -> str | None:
    """Return the place of a property in the responses of the step's call."""
    if step.kind == "Lambda":
        if match := _OUTPUT.fullmatch(rest):
            return f"Payload.{match[1]}"
        return rest if re.fullmatch(rf"Payload\.{_PLAIN.pattern}", rest) else None
    if step.kind == "Call":
        return _of_response(step, rest)
    if match := _RESULT.fullmatch(rest):
        outputs = step.arguments.get("ProcessingOutputConfig", {}).get("Outputs", [])
        names = [each.get("OutputName") for each in outputs]
        if match[1] in names:
            return f"ProcessingOutputConfig.Outputs[{names.index(match[1])}].S3Output.S3Uri"
    if step.kind == "Tuning":
        # The first of the summaries, sorted by their metric, is the best job.
        rest = rest.replace("TrainingJobSummaries[0].", "BestTrainingJob.")
    known = step.kind == "RegisterModel" or (step.kind in JOBS and JOBS[step.kind].describe)
    return rest if known and _PLAIN.fullmatch(rest) else None


def _of_response(step: Step, rest: str) -> str | None:
    """Return the place in a call's responses, which Step Functions writes with capitals."""
    operation = step.given.get("Poll", {}).get("operation", step.given["Operation"])
    small = ".".join(part[:1].lower() + part[1:] for part in rest.split("."))
    for place in (rest, small):
        if not list(misplaced("", step.given["Service"], operation, place)):
            return place
    return None
