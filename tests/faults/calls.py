"""The calls that the flagship makes, each with the errors that its service answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from orchestration.local import Fault
from tests.faults.flagship import topic

DENIED = "User: arn:aws:iam::123456789012:user/me is not authorized to perform this"
FOREVER = 100_000
"""Times that no run outlasts."""
_EXPORT = {"Type": "EXPORT_TO_REPOSITORY"}
_IMPORT = {"Type": "IMPORT_METADATA_FROM_REPOSITORY"}


@dataclass(frozen=True)
class Service:
    """What a service answers when a request is throttled, when it fails itself, when it refuses."""

    throttled: tuple[str, int]
    failed: str
    denied: tuple[str, int]


SERVICES = {
    "s3": Service(("SlowDown", 503), "InternalError", ("AccessDenied", 403)),
    "fsx": Service(
        ("ThrottlingException", 400), "InternalServerError", ("AccessDeniedException", 400)
    ),
    "sagemaker": Service(
        ("ThrottlingException", 400), "InternalFailure", ("AccessDeniedException", 400)
    ),
    "sagemaker-runtime": Service(
        ("ThrottlingException", 429), "InternalFailure", ("AccessDeniedException", 403)
    ),
    "application-autoscaling": Service(
        ("ThrottlingException", 400), "InternalServiceException", ("AccessDeniedException", 400)
    ),
    "s3control": Service(
        ("TooManyRequestsException", 400), "InternalServiceException", ("AccessDenied", 403)
    ),
    "sns": Service(("Throttling", 400), "InternalError", ("AuthorizationError", 403)),
}


@dataclass(frozen=True)
class Call:
    """A call of the flagship: what tells it from others, and what only it can be answered."""

    name: str
    service: str
    operation: str
    matching: Mapping[str, Any] = field(default_factory=dict)
    containing: str = ""
    exists: tuple[str, str] | None = None
    """Code and message where an earlier attempt of this run has made it already."""
    quota: tuple[str, str] | None = None
    fresh: bool = False
    """The call is made only where there is no endpoint yet."""

    def answered(self, code: str, message: str, **more: Any) -> Fault:
        """Answer this call with an error."""
        narrowed = {"matching": dict(self.matching), "containing": self.containing}
        return Fault(self.service, self.operation, code, message, **{**narrowed, **more})

    def throttled(self, times: int) -> Fault:
        """Answer that the rate is exceeded."""
        code, status = SERVICES[self.service].throttled
        return self.answered(code, "Rate exceeded", status=status, times=times)

    def failed(self, times: int = 1) -> Fault:
        """Answer with an internal failure."""
        code = SERVICES[self.service].failed
        return self.answered(code, "an internal failure", status=500, times=times)

    def lost(self) -> Fault:
        """Do what is asked for, and lose the response."""
        return replace(self.failed(), message="connection lost", after_effect=True)

    def denied(self) -> Fault:
        """Answer that it is not permitted."""
        code, status = SERVICES[self.service].denied
        return self.answered(code, DENIED, status=status, times=FOREVER)

    def moment(self) -> Fault:
        """Return what this call is recognised by."""
        return self.answered("", "")


_IN_USE = ("ResourceInUse", "Job name must be unique within an AWS account and region")
_LIMIT = ("ResourceLimitExceeded", "The account-level service limit of this resource is 0.")
_FSX_LIMIT = ("ServiceLimitExceeded", "The account-level service limit of this resource is 0.")


def _existing(what: str) -> tuple[str, str]:
    arn = f"arn:aws:sagemaker:us-east-1:123456789012:{what.replace(' ', '-')}/flagship"
    return "ValidationException", f'Cannot create already existing {what} "{arn}".'


CALLS = (
    Call("create file system", "fsx", "CreateFileSystem", quota=_FSX_LIMIT),
    Call("list data", "s3", "ListObjectsV2", {"Prefix": "set/"}),
    Call("poll file system", "fsx", "DescribeFileSystems"),
    Call(
        "link data",
        "fsx",
        "CreateDataRepositoryAssociation",
        {"FileSystemPath": "/data"},
        quota=_FSX_LIMIT,
    ),
    Call(
        "link results",
        "fsx",
        "CreateDataRepositoryAssociation",
        {"FileSystemPath": "/results"},
    ),
    Call("poll link", "fsx", "DescribeDataRepositoryAssociations"),
    Call("import", "fsx", "CreateDataRepositoryTask", _IMPORT, quota=_FSX_LIMIT),
    Call("poll task", "fsx", "DescribeDataRepositoryTasks", {"TaskIds": None}),
    Call("train", "sagemaker", "CreateTrainingJob", exists=_IN_USE),
    Call("poll training", "sagemaker", "DescribeTrainingJob"),
    Call(
        "mark",
        "fsx",
        "TagResource",
        matching={"Tags": [{"Key": "orchestration:keep-for-h", "Value": "24"}]},
    ),
    Call("export", "fsx", "CreateDataRepositoryTask", _EXPORT, quota=_FSX_LIMIT),
    Call(
        "unmark",
        "fsx",
        "TagResource",
        {"Tags": [{"Key": "orchestration:keep-for-h", "Value": "0"}]},
    ),
    Call("list tasks", "fsx", "DescribeDataRepositoryTasks", {"Filters": None}),
    Call("delete file system", "fsx", "DeleteFileSystem"),
    Call("list checkpoints", "s3", "ListObjectsV2", containing="/checkpoints/"),
    Call("evaluate", "sagemaker", "CreateProcessingJob", exists=_IN_USE, quota=_LIMIT),
    Call("poll evaluation", "sagemaker", "DescribeProcessingJob"),
    Call("read report", "s3", "GetObject", containing="/evaluation.json"),
    Call("create model", "sagemaker", "CreateModel", exists=_existing("model"), quota=_LIMIT),
    Call(
        "configure endpoint",
        "sagemaker",
        "CreateEndpointConfig",
        exists=_existing("endpoint configuration"),
        quota=_LIMIT,
    ),
    Call("look at endpoint", "sagemaker", "DescribeEndpoint"),
    Call(
        "create endpoint",
        "sagemaker",
        "CreateEndpoint",
        exists=_existing("endpoint"),
        quota=_LIMIT,
        fresh=True,
    ),
    Call("look at scaling", "application-autoscaling", "DescribeScalableTargets"),
    Call("update endpoint", "sagemaker", "UpdateEndpoint", quota=_LIMIT),
    Call("invoke endpoint", "sagemaker-runtime", "InvokeEndpoint"),
)
"""In the order in which they are made; :mod:`tests.faults.test_matrix` compares them with a run."""

LAST_CALLS = (
    Call("alarm", "sns", "Publish", {"TopicArn": topic("alarm")}),
    Call("record", "sns", "Publish", {"TopicArn": topic("record")}),
)
"""The calls of the stages after the end of a run: of one that failed, and of every run."""
