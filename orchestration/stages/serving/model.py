"""A model as SageMaker hosts it: files in S3 and the container that serves them.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateModel.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from orchestration.expressions import Function, Tree, apply, join
from orchestration.graph import ErrorPattern, Failure, Retry
from orchestration.stages.stage import Context
from orchestration.stages.values import Source, Text, Vpc

EXISTS: Final = ErrorPattern("ValidationException", "already existing")
# What was just created may not be visible yet: SageMaker reads it eventually consistently, and
# recommends to try again: botocore's text of CreateEndpoint, 1.43, November 2026.
MODEL_VISIBLE_LATER: Final = Retry(
    errors=(ErrorPattern("ValidationException", 'Could not find model "'),)
)

QUOTA: Final = Failure(
    error="EndpointQuotaExceeded",
    remedy=(
        "what served before serves on; ask Service Quotas for more instances for endpoint usage "
        "(an update needs both sets of them at a time, but for traffic: rolling)"
    ),
    only="ResourceLimitExceeded",
)
"""The failure of an endpoint for whose instances the account has no quota."""
_CHANNEL: Final = "code"
_FOLDER: Final = f"/opt/ml/additional-model-data-sources/{_CHANNEL}"
_MODEL: Final = "/opt/ml/model"
FOUND_BY: Final = ("SAGEMAKER_PROGRAM", "SAGEMAKER_SUBMIT_DIRECTORY", "PYTHONPATH")
"""The variables that code beside the model is found by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """A model of a stage, named after the stage and the run."""

    data: Text | None
    """Its files; without them, its code takes their place."""
    is_archive: bool
    image: Text
    environment: Mapping[str, Text] = field(default_factory=dict)
    vpc: Vpc | None = None
    is_isolated: bool = False
    source: Source | None = None
    """Code that lies beside the model."""
    package: Text | None = None
    """The version in the model registry that it is, instead of files and an image."""
    before: tuple[ServedModel, ...] = ()
    """The containers before its own, without what belongs to the whole model."""
    after: tuple[ServedModel, ...] = ()
    """Those after its own."""

    def containers(self, context: Context) -> list[dict[str, Any]]:
        """Return all containers, in the order in which a request passes them."""
        return [each.container(context) for each in (*self.before, self, *self.after)]

    def container(self, context: Context) -> dict[str, Any]:
        """Return the container that hosts it."""
        if self.package is not None:
            own = {"Environment": dict(self.environment)} if self.environment else {}
            return {"ModelPackageName": self.package, **own}
        container: dict[str, Any] = {"Image": self.image}
        if self.data is not None:
            container["ModelDataSource"] = {
                "S3DataSource": {
                    "S3Uri": self.data if self.is_archive else apply(Function.DIRECTORY, self.data),
                    "S3DataType": "S3Object" if self.is_archive else "S3Prefix",
                    "CompressionType": "Gzip" if self.is_archive else "None",
                }
            }
        if self.source is not None:
            files = _files(self.source, context)
            if self.data is None:
                container["ModelDataSource"] = files
            else:
                beside = {"ChannelName": _CHANNEL, **files}
                container["AdditionalModelDataSources"] = [beside]
        folder = _MODEL if self.data is None else _FOLDER
        environment = {**_finding(self.source, folder), **self.environment}
        if environment:
            container["Environment"] = environment
        return container

    def request(self, stage: str, context: Context) -> dict[str, Any]:
        """Return ``CreateModel``'s request."""
        request: dict[str, Any] = {
            "ModelName": context.resource_name(stage),
            **self._contained(context),
            "ExecutionRoleArn": context.role,
            "Tags": context.tag_list(stage),
        }
        if self.vpc is not None:
            request["VpcConfig"] = self.vpc.request()
        if self.is_isolated:
            request["EnableNetworkIsolation"] = True
        return request

    def _contained(self, context: Context) -> dict[str, Any]:
        containers = self.containers(context)
        if len(containers) == 1:
            return {"PrimaryContainer": containers[0]}
        return {"Containers": containers, "InferenceExecutionConfig": {"Mode": "Serial"}}


def _files(source: Source, context: Context) -> dict[str, Any]:
    """Return the code's files as a source of data of a model."""
    place: Tree = join(context.source(source), "/files/")
    data = {"S3Uri": place, "S3DataType": "S3Prefix", "CompressionType": "None"}
    return {"S3DataSource": data}


def _finding(source: Source | None, folder: str) -> dict[str, Text]:
    """Return the variables by which the containers of frameworks find code beside the model.

    Those of PyTorch, Hugging Face and MXNet look for the module on ``PYTHONPATH``, behind the
    model's own ``code/``; those of scikit-learn and XGBoost copy the folder that is submitted:
    aws/sagemaker-inference-toolkit, aws/sagemaker-containers, read in November 2026.
    """
    if source is None:
        return {}
    return {
        "SAGEMAKER_PROGRAM": source.entry_point,
        "SAGEMAKER_SUBMIT_DIRECTORY": folder,
        "PYTHONPATH": folder,
    }
