"""The data that an embedded AWS exchanges with its user: recorded calls and faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

JsonObject = dict[str, Any]

CAPACITY_REASON = (
    "CapacityError: Unable to provision requested ML compute capacity. "
    "Please retry using a different ML instance type."
)
JOB_OPERATION = "(job)"
INTERRUPTION = "(spot interruption)"
DAMAGE = "(damaged copy)"
LATE = "(late listing)"


@dataclass(frozen=True)
class RecordedCall:
    """One AWS API call as the server received it.

    `request` has botocore's member names whatever the wire format was. `origin` is `"direct"`,
    `"step-functions"`, `"airflow"`, `"job"` or `"client"` where the caller said so (its user
    agent), else None.
    """

    sequence: int
    service: str
    operation: str
    request: JsonObject
    status: int
    error_code: str | None = None
    origin: str | None = None
    region: str = ""
    """The region of the client, as its signature says it; S3 has one as well."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RecordedCall:
        """Restore a call from `to_json`."""
        return cls(**data)

    def to_json(self) -> JsonObject:
        """Return the fields of the call as a JSON object."""
        return asdict(self)


@dataclass(frozen=True)
class Fault:
    """A failure of the next matching calls, or of the next matching job.

    `after_effect` lets the call take effect and loses its response: the caller sees the error,
    the account has the change. `matching` is a subset of the request that must be equal, None in it
    stands for any value. `containing` is text that must occur in one of the request's values.
    `instance_type` narrows it to requests for such machines, alone or in a
    group. AWS clients retry statuses of 500 and above themselves.
    """

    service: str
    operation: str
    error_code: str
    message: str = ""
    status: int = 400
    times: int = 1
    after_effect: bool = False
    matching: Mapping[str, Any] | None = field(default=None)
    instance_type: str = ""
    delay_s: float = 0.0
    """Seconds of AWS for which a job waits for its instances before it fails."""
    containing: str = ""

    @classmethod
    def job(
        cls,
        name_contains: str,
        *,
        reason: str = "AlgorithmError: injected failure, exit code: 1",
        times: int = 1,
        operation: str = "",
    ) -> Fault:
        """Fail the next job whose name contains a text with `reason`, before it runs.

        `operation` narrows it to one kind of job, for example `CreateTrainingJob`.
        """
        return cls(
            service="sagemaker",
            operation=JOB_OPERATION,
            error_code=reason.split(":", 1)[0],
            message=reason,
            times=times,
            matching={"name": name_contains, "operation": operation},
        )

    @classmethod
    def capacity(
        cls,
        name_contains: str = "",
        *,
        instance_type: str = "",
        after_s: float = 0.0,
        times: int = 1,
    ) -> Fault:
        """Refuse instances to the next job whose name contains a text (`CapacityError`).

        `instance_type` narrows it to jobs that ask for such; they wait for `after_s` seconds of AWS
        (`Starting`, where they can be stopped) before they fail.
        """
        fault = cls.job(name_contains, reason=CAPACITY_REASON, times=times)
        return replace(fault, instance_type=instance_type, delay_s=after_s)

    @classmethod
    def interruption(cls, name_contains: str = "", *, times: int = 1) -> Fault:
        """Take the instances from the next managed spot job whose name contains a text.

        It begins again on others, with what it has in S3 under its `CheckpointConfig`; one that
        keeps checkpoints is interrupted once there are some.
        """
        return cls.job(name_contains, times=times, operation=INTERRUPTION)

    @classmethod
    def damage(cls, key_contains: str, *, times: int = 1) -> Fault:
        """Change a bit of the next object that S3 copies to a key which contains a text."""
        return cls("s3", DAMAGE, "", times=times, containing=key_contains)

    @classmethod
    def late(cls, execution_contains: str, *, times: int = 1) -> Fault:
        """Leave an execution whose ARN contains a text out of the next list of executions.

        Step Functions lists eventually consistently.
        https://docs.aws.amazon.com/step-functions/latest/apireference/API_ListExecutions.html
        """
        return cls("stepfunctions", LATE, "", times=times, containing=execution_contains)

    @classmethod
    def quota(cls, instance_type: str, *, limit: int = 0, times: int = 1000) -> Fault:
        """Refuse training jobs on an instance type: the account may have `limit` of them."""
        text = (
            f"The account-level service limit '{instance_type} for training job usage' is {limit} "
            f"Instances, with current utilization of {limit} Instances and a request delta of 1 "
            "Instances. Please use AWS Service Quotas to request an increase for this quota."
        )
        return cls(
            service="sagemaker",
            operation="CreateTrainingJob",
            error_code="ResourceLimitExceeded",
            message=text,
            times=times,
            instance_type=instance_type,
        )

    @classmethod
    def unseen(cls, operation: str, what: str, *, times: int = 1) -> Fault:
        """Refuse what names a resource that was just created, as it is not visible yet.

        SageMaker reads eventually consistently: `operation` is `CreateEndpoint` or `UpdateEndpoint`
        and `what` `endpoint configuration`, or they are `CreateEndpointConfig` and `model`.
        """
        kind = {"endpoint configuration": "endpoint-config"}.get(what, what)
        arn = f"arn:aws:sagemaker:us-east-1:123456789012:{kind}/new"
        return cls(
            service="sagemaker",
            operation=operation,
            error_code="ValidationException",
            message=f'Could not find {what} "{arn}".',
            times=times,
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Fault:
        """Restore a fault from `to_json`."""
        return cls(**data)

    def to_json(self) -> JsonObject:
        """Return the fields of the fault as a JSON object."""
        return {**asdict(self), "matching": dict(self.matching) if self.matching else None}

    def matches(self, service: str, operation: str, request: Mapping[str, Any]) -> bool:
        """Return whether this fault applies to a call."""
        return (
            (service, operation) == (self.service, self.operation)
            and _is_subset(self.matching or {}, request)
            and (not self.containing or any(self.containing in text for text in _texts(request)))
            and self._on(request)
        )

    def matches_job(
        self, operation: str, name: str, request: Mapping[str, Any] | None = None
    ) -> bool:
        """Return whether this fault applies to a job that `request` created."""
        if self.operation != JOB_OPERATION or not self._on(request or {}):
            return False
        matching = dict(self.matching or {})
        return matching["name"] in name and matching.get("operation", "") in ("", operation)

    def _on(self, request: Mapping[str, Any]) -> bool:
        return self.instance_type in ("", *_instance_types(request))


def _instance_types(tree: Any) -> Iterator[str]:
    """Yield every instance type in a request."""
    if isinstance(tree, Mapping):
        if "InstanceType" in tree:
            yield tree["InstanceType"]
        for value in tree.values():
            yield from _instance_types(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _instance_types(value)


def _texts(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, Mapping | list):
        for value in tree.values() if isinstance(tree, Mapping) else tree:
            yield from _texts(value)


def _is_subset(part: Any, whole: Any) -> bool:
    if part is None:
        return True
    if isinstance(part, Mapping):
        return isinstance(whole, Mapping) and all(
            key in whole and _is_subset(value, whole[key]) for key, value in part.items()
        )
    return bool(part == whole)
