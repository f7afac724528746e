"""Ways to host a model beside a fixed number of instances, and what is kept of its requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

from pydantic import Field

from orchestration.errors import Problem
from orchestration.stages.values import Model, Text

_BOTH: Final = ("Input", "Output")


class Serverless(Model):
    """No instances: SageMaker starts the model where requests come.

    https://docs.aws.amazon.com/sagemaker/latest/dg/serverless-endpoints.html
    """

    memory_mb: Literal[1024, 2048, 3072, 4096, 5120, 6144] = 2048
    """MiB of memory; SageMaker gives processors in proportion."""
    max_concurrency: int = Field(default=5, ge=1, le=200, strict=True)
    """Requests that are answered at a time; further ones are refused."""
    provisioned_concurrency: int | None = Field(default=None, ge=1, le=200, strict=True)
    """Requests for which the model is kept warm, which costs."""

    def request(self) -> dict[str, Any]:
        """Return ``ServerlessConfig``."""
        request = {"MemorySizeInMB": self.memory_mb, "MaxConcurrency": self.max_concurrency}
        if self.provisioned_concurrency is not None:
            request["ProvisionedConcurrency"] = self.provisioned_concurrency
        return request

    def problems(self) -> Iterator[Problem]:
        """Yield what SageMaker refuses."""
        warm = self.provisioned_concurrency
        if warm is not None and warm > self.max_concurrency:
            message = f"expected at most max_concurrency ({self.max_concurrency}), got {warm}"
            yield Problem("provisioned_concurrency", message)


class DataCapture(Model):
    """Requests and answers that an endpoint writes to S3, as lines of JSON.

    https://docs.aws.amazon.com/sagemaker/latest/dg/model-monitor-data-capture-endpoint.html
    """

    uri: Text
    """S3 URI of the prefix, which the model's role must be allowed to write to."""
    percent: int = Field(default=100, ge=1, le=100, strict=True)
    """The share of the requests."""
    capture: Literal["both", "input", "output"] = "both"
    """Requests, answers, or both."""
    kms_key: Text | None = None
    """The KMS key that encrypts them; by default the bucket's own encryption."""

    def request(self) -> dict[str, Any]:
        """Return ``DataCaptureConfig``; JSON and CSV are kept as text, all else in base64."""
        modes = _BOTH if self.capture == "both" else (self.capture.capitalize(),)
        request: dict[str, Any] = {
            "EnableCapture": True,
            "InitialSamplingPercentage": self.percent,
            "DestinationS3Uri": self.uri,
            "CaptureOptions": [{"CaptureMode": mode} for mode in modes],
            "CaptureContentTypeHeader": {
                "CsvContentTypes": ["text/csv"],
                "JsonContentTypes": ["application/json", "application/jsonlines"],
            },
        }
        return request if self.kms_key is None else {**request, "KmsKeyId": self.kms_key}


class Asynchronous(Model):
    """Requests wait in a queue, and their answers are written to S3.

    https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference.html
    """

    output_uri: Text
    """S3 URI of the prefix of the answers, which the model's role must be allowed to write to."""
    failure_uri: Text | None = None
    """S3 URI of the prefix of the answers that are errors."""
    max_concurrency: int | None = Field(default=None, ge=1, le=1000, strict=True)
    """Requests that each instance gets at a time; by default SageMaker chooses."""
    success_topic: Text | None = None
    """ARN of an SNS topic that is told of each answer."""
    error_topic: Text | None = None
    """ARN of an SNS topic that is told of each failure."""
    kms_key: Text | None = None
    """The KMS key that encrypts the answers; by default the bucket's own encryption."""

    def request(self) -> dict[str, Any]:
        """Return ``AsyncInferenceConfig``."""
        topics = _present(SuccessTopic=self.success_topic, ErrorTopic=self.error_topic)
        output = _present(
            S3OutputPath=self.output_uri,
            S3FailurePath=self.failure_uri,
            KmsKeyId=self.kms_key,
            NotificationConfig=topics or None,
        )
        client = _present(MaxConcurrentInvocationsPerInstance=self.max_concurrency)
        return {"OutputConfig": output, **({"ClientConfig": client} if client else {})}


def _present(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
