"""What crosses between an embedded AWS and whoever drives it: recorded calls and faults."""

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


@dataclass(frozen=True)
class RecordedCall:
    """One AWS API call as it arrived on the wire.

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

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RecordedCall:
        """The call that `to_json` wrote down."""
        return cls(**data)

    def to_json(self) -> JsonObject:
        """A JSON object with the fields of the call."""
        return asdict(self)


@dataclass(frozen=True)
class Fault:
    """A failure that the next matching calls (or the next matching job) meet.

    `after_effect` lets the call take effect and loses its response: the caller sees the error,
    the account has the change. `matching` is a subset of the request that must be equal.
    `instance_type` narrows it to requests for such machines, alone or in a group. AWS clients retry
    statuses of 500 and above themselves.
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
    """Seconds of AWS that a job waits for its machines before it fails."""

    @classmethod
    def job(
        cls,
        name_contains: str,
        *,
        reason: str = "AlgorithmError: injected failure, exit code: 1",
        times: int = 1,
        operation: str = "",
    ) -> Fault:
        """The next job whose name contains a text fails with `reason` and runs nothing.

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
        """The next job whose name contains a text finds no instances (`CapacityError`).

        `instance_type` narrows it to jobs that ask for such; they wait for `after_s` seconds of AWS
        (`Starting`, where they can be stopped) before they fail.
        """
        fault = cls.job(name_contains, reason=CAPACITY_REASON, times=times)
        return replace(fault, instance_type=instance_type, delay_s=after_s)

    @classmethod
    def quota(cls, instance_type: str, *, limit: int = 0, times: int = 1000) -> Fault:
        """Training jobs on an instance type are refused: the account may have `limit` of them."""
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
    def from_json(cls, data: Mapping[str, Any]) -> Fault:
        """The fault that `to_json` wrote down."""
        return cls(**data)

    def to_json(self) -> JsonObject:
        """A JSON object with the fields of the fault."""
        return {**asdict(self), "matching": dict(self.matching) if self.matching else None}

    def matches(self, service: str, operation: str, request: Mapping[str, Any]) -> bool:
        """Whether a call is one that this fault is for."""
        return (
            (service, operation) == (self.service, self.operation)
            and _is_subset(self.matching or {}, request)
            and self._on(request)
        )

    def matches_job(
        self, operation: str, name: str, request: Mapping[str, Any] | None = None
    ) -> bool:
        """Whether a job is one that this fault is for; `request` is what asked for it."""
        if self.operation != JOB_OPERATION or not self._on(request or {}):
            return False
        wanted = dict(self.matching or {})
        return wanted["name"] in name and wanted.get("operation", "") in ("", operation)

    def _on(self, request: Mapping[str, Any]) -> bool:
        return self.instance_type in ("", *_instance_types(request))


def _instance_types(tree: Any) -> Iterator[str]:
    """Every instance type that a request names, wherever."""
    if isinstance(tree, Mapping):
        if "InstanceType" in tree:
            yield tree["InstanceType"]
        for value in tree.values():
            yield from _instance_types(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _instance_types(value)


def _is_subset(part: Any, whole: Any) -> bool:
    if isinstance(part, Mapping):
        return isinstance(whole, Mapping) and all(
            key in whole and _is_subset(value, whole[key]) for key, value in part.items()
        )
    return bool(part == whole)
