"""The requests that start a processing job, follow it and stop it.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateProcessingJob.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from orchestration.expressions import Tree, join
from orchestration.graph import Adopt, Alternative, Call, ErrorPattern, Operation, Output, Until
from orchestration.refs import Expression
from orchestration.stages.stage import Context
from orchestration.stages.values import ABSENT, ExtraRequest, Source, Text

ROOT: Final = "/opt/ml/processing"
INPUT: Final = f"{ROOT}/input"
OUTPUT: Final = f"{ROOT}/output"
USAGE: Final = "processing job usage"
"""The last words of the name of the quota that machines of one type count towards."""
_IN_USE = ErrorPattern("ResourceInUse")
_PROVISIONING_S = 3600
"""The service ends a job by itself; so much more covers provisioning and upload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A processing job as the parts of its request."""

    name: Expression[str]
    context: Context
    image: Text
    entrypoint: Sequence[Tree] = ()
    """Empty: the image's own."""
    arguments: Sequence[Tree] = ()
    inputs: Sequence[Mapping[str, Any]]
    outputs: Sequence[Mapping[str, Any]]
    output_kms_key: Text | None = None
    cluster: Mapping[str, Any]
    max_runtime_s: int
    tags: Sequence[Tree]
    environment: Mapping[str, Text] = field(default_factory=dict)
    network: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def request(self) -> dict[str, Any]:
        """Return ``CreateProcessingJob``'s request; ``ValueError`` where ``extra`` repeats it."""
        written: dict[str, Any] = {"Outputs": list(self.outputs)}
        if self.output_kms_key is not None:
            written["KmsKeyId"] = self.output_kms_key
        whole = {
            "ProcessingJobName": self.name,
            "RoleArn": self.context.role,
            "AppSpecification": self._container(),
            "ProcessingInputs": list(self.inputs),
            "ProcessingOutputConfig": written,
            "ProcessingResources": {"ClusterConfig": dict(self.cluster)},
            "StoppingCondition": {"MaxRuntimeInSeconds": self.max_runtime_s},
            "Tags": list(self.tags),
            "Environment": dict(self.environment),
            "NetworkConfig": dict(self.network),
        }
        optional = ("ProcessingInputs", "Environment", "NetworkConfig")
        whole = {key: value for key, value in whole.items() if key not in optional or value}
        if not self.outputs:
            del whole["ProcessingOutputConfig"]
        return ExtraRequest.merged(whole, dict(self.extra))

    def _container(self) -> dict[str, Any]:
        container: dict[str, Any] = {"ImageUri": self.image}
        if self.entrypoint:
            container["ContainerEntrypoint"] = list(self.entrypoint)
        if self.arguments:
            container["ContainerArguments"] = list(self.arguments)
        return container

    def alternative(self, label: Tree = "") -> Alternative:
        """Return the requests that start the job, look at it and stop it."""
        named = {"ProcessingJobName": self.name}
        return Alternative(
            label=label,
            operation=Operation("sagemaker", "CreateProcessingJob", self.request()),
            poll=Operation("sagemaker", "DescribeProcessingJob", named),
            stop=Operation("sagemaker", "StopProcessingJob", named),
        )

    def call(
        self, step: str, interval_s: float, outputs: Mapping[str, Output] | None = None
    ) -> Call:
        """Return the step that runs the job to its end."""
        own = self.alternative()
        return Call(
            name=step,
            operation=own.operation,
            adopt=Adopt(exists=_IN_USE, name_field="ProcessingJobName"),
            until=Until(
                poll=own.poll,
                status=("ProcessingJobStatus",),
                success=frozenset(["Completed"]),
                failure=frozenset(["Failed", "Stopped"]),
                reason=("FailureReason",),
                absent=ABSENT,
                interval_s=interval_s,
                timeout_s=self.max_runtime_s + _PROVISIONING_S,
                stop=own.stop,
                outputs=outputs or {},
            ),
        )


def read(name: str, uri: Tree, path: str | None = None, **more: Tree) -> dict[str, Any]:
    """Return an entry of ``ProcessingInputs``; further fields are those of its ``S3Input``."""
    place = {
        "S3Uri": uri,
        "LocalPath": f"{INPUT}/{name}" if path is None else path,
        "S3DataType": "S3Prefix",
        "S3InputMode": "File",
    }
    return {"InputName": name, "S3Input": {**place, **more}}


def code(source: Source, context: Context) -> dict[str, Any]:
    """Return the entry of ``ProcessingInputs`` that brings the code, file by file."""
    return read("code", join(context.source(source), "/files"))


def script(source: Source) -> str:
    """Return the path of the code's entry point in the container."""
    return f"{INPUT}/code/{source.entry_point}"


def written(name: str, uri: Tree, path: str, mode: str = "EndOfJob") -> dict[str, Any]:
    """Return an entry of the ``Outputs``."""
    place = {"S3Uri": uri, "LocalPath": path, "S3UploadMode": mode}
    return {"OutputName": name, "S3Output": place}
