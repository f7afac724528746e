"""Ways to host a model beside a fixed number of instances, and what is kept of its requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from orchestration.errors import Problem
from orchestration.stages.values import Model, Name, Seconds, Text

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


class ScheduledScaling(Model):
    """Bounds of the number of instances from a time of day or week on, until others are set.

    https://docs.aws.amazon.com/autoscaling/application/userguide/application-auto-scaling-scheduled-scaling.html
    """

    cron: str
    """Five fields: minute, hour, day of month, month, day of week: ``0 7 * * MON-FRI``."""
    timezone: str = "UTC"
    """IANA name: ``Europe/Berlin``."""
    min_instances: int | None = Field(default=None, ge=0, strict=True)
    """The fewest instances from then on; by default those of the ``autoscaling``."""
    max_instances: int | None = Field(default=None, ge=1, strict=True)
    """The most instances from then on; by default those of the ``autoscaling``."""

    @model_validator(mode="after")
    def _fires(self) -> Self:
        from orchestration.pipeline.schedules.cron import problems, zone_problems

        for problem in (*problems(self.cron), *zone_problems(self.timezone)):
            raise ValueError(f"{problem.field}: {problem.message}")
        return self

    @property
    def expression(self) -> str:
        """The schedule as AWS writes it, with six fields."""
        from orchestration.pipeline.schedules.cron import eventbridge

        return eventbridge(self.cron)


class Autoscaling(Model):
    """The number of instances follows the load, by target tracking, or the time of day.

    https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-auto-scaling.html
    """

    min_instances: int = Field(default=1, ge=0, strict=True)
    """The number that no decrease goes below; 0 is for ``asynchronous`` endpoints."""
    max_instances: int = Field(ge=1, strict=True)
    """The number that no increase goes above."""
    invocations_per_minute: float | None = Field(default=None, gt=0)
    """Requests to each instance in a minute that the number of instances is to lead to. Without
    it, only ``scheduled`` bounds change the number."""
    backlog_per_instance: float | None = Field(default=None, gt=0)
    """Instead, of an ``asynchronous`` endpoint: requests that wait, for each instance."""
    scheduled: dict[Name, ScheduledScaling] = Field(default={}, max_length=20)
    """Bounds from certain times on, by names: ``{morning: {cron: "0 7 * * *", min_instances: 4}}``.
    A deployment in between sets those above again, until the next of these times."""
    scale_in_cooldown_s: Seconds = 300
    """Seconds from one decrease to the next."""
    scale_out_cooldown_s: Seconds = 300
    """Seconds from one increase to the next."""

    def problems(self) -> Iterator[Problem]:
        """Yield what can't be scaled."""
        followed = (self.invocations_per_minute, self.backlog_per_instance)
        if followed == (None, None) and not self.scheduled:
            yield Problem("invocations_per_minute", "is needed; or scheduled bounds")
        if None not in followed:
            message = "the number follows invocations_per_minute already; remove one of them"
            yield Problem("backlog_per_instance", message)
        yield from _ordered(self.min_instances, self.max_instances)
        for name, scheduled in self.scheduled.items():
            for problem in _ordered(*self.bounds(scheduled)):
                yield problem.within(f"scheduled.{name}")

    def bounds(self, scheduled: ScheduledScaling) -> tuple[int, int]:
        """Return the fewest and the most instances from a scheduled time on."""
        least, most = scheduled.min_instances, scheduled.max_instances
        return (
            self.min_instances if least is None else least,
            self.max_instances if most is None else most,
        )

    @property
    def rests(self) -> bool:
        """True if there may be no instances, at least from some time on."""
        bounds = (self.bounds(scheduled)[0] for scheduled in self.scheduled.values())
        return 0 in (self.min_instances, *bounds)

    def resting(self) -> Iterator[str]:
        """Yield the fields that only an asynchronous endpoint has: it can do without instances."""
        if self.backlog_per_instance is not None:
            yield "backlog_per_instance"
        if self.min_instances == 0:
            yield "min_instances"
        for name, scheduled in self.scheduled.items():
            if scheduled.min_instances == 0:
                yield f"scheduled.{name}.min_instances"

    def policy(self, endpoint: Text) -> dict[str, Any] | None:
        """Return ``TargetTrackingScalingPolicyConfiguration``; ``None`` if no load is followed."""
        cooldowns = {
            "ScaleInCooldown": self.scale_in_cooldown_s,
            "ScaleOutCooldown": self.scale_out_cooldown_s,
        }
        if self.backlog_per_instance is not None:
            backlog = {
                "MetricName": "ApproximateBacklogSizePerInstance",
                "Namespace": "AWS/SageMaker",
                "Dimensions": [{"Name": "EndpointName", "Value": endpoint}],
                "Statistic": "Average",
            }
            return {
                "TargetValue": self.backlog_per_instance,
                "CustomizedMetricSpecification": backlog,
                **cooldowns,
            }
        if self.invocations_per_minute is None:
            return None
        metric = {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}
        return {
            "TargetValue": self.invocations_per_minute,
            "PredefinedMetricSpecification": metric,
            **cooldowns,
        }


def _ordered(least: int, most: int) -> Iterator[Problem]:
    if most < least:
        message = f"expected at least min_instances ({least}), got {most}"
        yield Problem("max_instances", message)
