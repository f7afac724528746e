"""A model as SageMaker hosts it: files in S3 and the container that serves them.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateModel.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from orchestration.expressions import Function, apply
from orchestration.graph import ErrorPattern, Retry
from orchestration.stages.stage import Context
from orchestration.stages.values import Text, Vpc

EXISTS: Final = ErrorPattern("ValidationException", "already existing")
# What was just created may not be visible yet: SageMaker reads it eventually consistently, and
# recommends to try again: botocore's text of CreateEndpoint, 1.43, November 2026.
MODEL_VISIBLE_LATER: Final = Retry(
    errors=(ErrorPattern("ValidationException", 'Could not find model "'),)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """A model of a stage, named after the stage and the run."""

    data: Text
    is_archive: bool
    image: Text
    environment: Mapping[str, Text] = field(default_factory=dict)
    vpc: Vpc | None = None
    is_isolated: bool = False

    def request(self, stage: str, context: Context) -> dict[str, Any]:
        """Return ``CreateModel``'s request."""
        source = {
            "S3Uri": self.data if self.is_archive else apply(Function.DIRECTORY, self.data),
            "S3DataType": "S3Object" if self.is_archive else "S3Prefix",
            "CompressionType": "Gzip" if self.is_archive else "None",
        }
        container: dict[str, Any] = {
            "Image": self.image,
            "ModelDataSource": {"S3DataSource": source},
        }
        if self.environment:
            container["Environment"] = dict(self.environment)
        request: dict[str, Any] = {
            "ModelName": context.resource_name(stage),
            "PrimaryContainer": container,
            "ExecutionRoleArn": context.role,
            "Tags": context.tag_list(stage),
        }
        if self.vpc is not None:
            request["VpcConfig"] = self.vpc.request()
        if self.is_isolated:
            request["EnableNetworkIsolation"] = True
        return request
