"""The records of a training job: tensors, profiles, TensorBoard, experiments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from orchestration.errors import Problem
from orchestration.stages.values import Model, Text, s3_problem


class Collection(Model):
    """Tensors that the Debugger saves together."""

    name: str = Field(min_length=1, max_length=256)
    """Name of the collection: ``losses``, ``gradients``."""
    parameters: dict[str, str] = {}
    """``save_interval: "100"``."""

    def request(self) -> dict[str, Any]:
        """One entry of ``CollectionConfigurations``."""
        entry: dict[str, Any] = {"CollectionName": self.name}
        return entry | ({"CollectionParameters": self.parameters} if self.parameters else {})


class Rule(Model):
    """A rule that watches a training job, evaluated in a processing job beside it."""

    name: str = Field(min_length=1, max_length=256)
    """Its name, unique in the job."""
    image: Text
    """The rule evaluator's, by its registry path."""
    parameters: dict[str, str] = {}
    """``rule_to_invoke: LossNotDecreasing``."""
    uri: Text | None = None
    """S3 URI of what the rule writes; by default SageMaker chooses one."""
    local_path: str | None = None
    """Folder of the container that the rule writes to; by default SageMaker's."""
    instance_type: str | None = None
    """Machine of the rule's processing job; by default SageMaker's choice."""
    volume_gib: int | None = Field(default=None, ge=0)
    """GiB of its volume; by default SageMaker's choice."""

    def request(self) -> dict[str, Any]:
        """A ``DebugRuleConfiguration``, or a ``ProfilerRuleConfiguration``."""
        optional = {
            "RuleParameters": self.parameters or None,
            "S3OutputPath": self.uri,
            "LocalPath": self.local_path,
            "InstanceType": self.instance_type,
            "VolumeSizeInGB": self.volume_gib,
        }
        given = {key: value for key, value in optional.items() if value is not None}
        return {"RuleConfigurationName": self.name, "RuleEvaluatorImage": self.image, **given}


class Debugger(Model):
    """Saves tensors of the training script, and watches them by rules.

    https://docs.aws.amazon.com/sagemaker/latest/dg/train-debugger.html
    """

    uri: Text | None = None
    """S3 URI of the tensors; by default that of the job's output."""
    local_path: str | None = None
    """Folder of the container that the tensors are written to; by default SageMaker's."""
    hook_parameters: dict[str, str] = Field(default={}, max_length=20)
    """Settings of the hook that saves tensors: ``save_interval``."""
    collections: tuple[Collection, ...] = Field(default=(), max_length=20)
    """The tensors to save; by default what the hook's own configuration names."""
    rules: tuple[Rule, ...] = Field(default=(), max_length=20)
    """Rules that watch the tensors."""

    def request(self, output: Text) -> dict[str, Any]:
        """Fields of ``CreateTrainingJob``; ``output`` is where the job's output goes."""
        hook: dict[str, Any] = {"S3OutputPath": output if self.uri is None else self.uri}
        if self.local_path is not None:
            hook["LocalPath"] = self.local_path
        if self.hook_parameters:
            hook["HookParameters"] = self.hook_parameters
        hook["CollectionConfigurations"] = [entry.request() for entry in self.collections]
        fields: dict[str, Any] = {"DebugHookConfig": hook}
        if self.rules:
            fields["DebugRuleConfigurations"] = [rule.request() for rule in self.rules]
        return fields


_INTERVALS_MS = (100, 200, 500, 1000, 5000, 60_000)


class Profiler(Model):
    """Monitors the use of the machines; ``enabled: false`` turns off even what is on by itself.

    https://docs.aws.amazon.com/sagemaker/latest/dg/train-profile-training-jobs.html
    """

    enabled: bool = True
    """``false``: SageMaker does not monitor the machines."""
    uri: Text | None = None
    """S3 URI of the profiles; by default that of the job's output."""
    interval_ms: int | None = Field(default=None, ge=100)
    """Milliseconds between two readings: 100, 200, 500, 1000, 5000 or 60000."""
    parameters: dict[str, str] = Field(default={}, max_length=20)
    """``ProfilingParameters``, as AWS names them."""
    rules: tuple[Rule, ...] = Field(default=(), max_length=20)
    """Rules that watch the profiles."""

    def request(self, output: Text) -> dict[str, Any]:
        """Fields of ``CreateTrainingJob``; ``output`` is where the job's output goes."""
        config: dict[str, Any] = {"DisableProfiler": not self.enabled}
        if self.enabled:
            config["S3OutputPath"] = output if self.uri is None else self.uri
        if self.interval_ms is not None:
            config["ProfilingIntervalInMilliseconds"] = self.interval_ms
        if self.parameters:
            config["ProfilingParameters"] = self.parameters
        fields: dict[str, Any] = {"ProfilerConfig": config}
        if self.rules:
            fields["ProfilerRuleConfigurations"] = [rule.request() for rule in self.rules]
        return fields

    def problems(self) -> Iterator[Problem]:
        """Yield its own errors."""
        if not self.enabled:
            for name in ("uri", "interval_ms", "parameters", "rules"):
                if getattr(self, name) != type(self).model_fields[name].default:
                    yield Problem(
                        f"profiler.{name}", "says how to profile while enabled is false; choose"
                    )
        else:
            yield from s3_problem("profiler.uri", self.uri)
            if self.interval_ms is not None and self.interval_ms not in _INTERVALS_MS:
                *most, last = map(str, _INTERVALS_MS)
                yield Problem(
                    "profiler.interval_ms",
                    f"expected {', '.join(most)} or {last}, got {self.interval_ms}",
                )


class TensorBoard(Model):
    """Copies what a script writes for TensorBoard to S3."""

    uri: Text
    """S3 URI that the event files are copied to."""
    local_path: str | None = None
    """Folder of the container that the script writes them to; by default SageMaker's."""

    def request(self) -> dict[str, Any]:
        """``TensorBoardOutputConfig``."""
        given = {"S3OutputPath": self.uri}
        return given | ({} if self.local_path is None else {"LocalPath": self.local_path})


class Experiment(Model):
    """The experiment that the job's metrics and artifacts are filed under."""

    name: Text | None = None
    """The experiment's name."""
    trial: Text | None = None
    """The trial's name."""
    display_name: Text | None = None
    """Of the job in the trial."""
    run: Text | None = None
    """The run's name."""

    def request(self) -> dict[str, Any]:
        """``ExperimentConfig``."""
        named = {
            "ExperimentName": self.name,
            "TrialName": self.trial,
            "TrialComponentDisplayName": self.display_name,
            "RunName": self.run,
        }
        return {key: value for key, value in named.items() if value is not None}
