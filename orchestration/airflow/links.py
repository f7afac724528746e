"""Links from a task to its job or file system in the AWS console."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.providers.common.compat.sdk import BaseOperatorLink, XCom

from orchestration.notices import CONSOLES

VERDICT = "verdict"
"""The output of a job that decides about evaluations, by its name in the request."""

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

    from orchestration.execution.effects import Started

_PAGES = {
    "CreateTrainingJob": ("TrainingJobName", "jobs", "TrainingJobs"),
    "CreateProcessingJob": ("ProcessingJobName", "processing-jobs", "ProcessingJobs"),
    "CreateTransformJob": ("TransformJobName", "transform-jobs", "TransformJobs"),
    # Its training jobs have the logs, in streams that begin with its name.
    "CreateHyperParameterTuningJob": ("HyperParameterTuningJobName", "hyper-tuning-jobs", None),
    "CreateEndpoint": ("EndpointName", "endpoints", None),
    "UpdateEndpoint": ("EndpointName", "endpoints", None),
}
"""The name in the request, the page in the console, the log group below ``/aws/sagemaker``."""


class _Link(BaseOperatorLink):
    """A link whose address the task leaves when it has started its job.

    The UI reads the XCom alone, so it needs no plugin, and shows the link while the job runs.
    """

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return what the task left: Airflow writes it once more when the task ends."""
        return XCom.get_value(ti_key=ti_key, key=self.xcom_key) or ""


class PageLink(_Link):
    """The page of a job or of an endpoint in SageMaker's console."""

    name = "SageMaker console"
    xcom_key = "link_console"


class FileSystemLink(_Link):
    """The page of a file system in FSx's console."""

    name = "FSx console"
    xcom_key = "link_file_system"


class LogLink(_Link):
    """The log streams of a job."""

    name = "CloudWatch logs"
    xcom_key = "link_logs"


class ReportLink(_Link):
    """The page about an evaluation, in S3's console."""

    name = "Evaluation report"
    xcom_key = "link_report"


def links(started: Started, region: str, partition: str) -> dict[str, str]:
    """Return the addresses of what a request starts, by the XComs that links read."""
    domain, request = CONSOLES.get(partition), started.request
    if domain is None:
        return {}
    if file_system := _file_system(started):
        address = f"https://{domain}/fsx/home?region={region}#file-system-details/{file_system}"
        return {FileSystemLink.xcom_key: address}
    if request.operation not in _PAGES:
        return {}
    field, page, group = _PAGES[request.operation]
    name = quote(str(request.parameters[field]), safe="")
    addresses = {
        PageLink.xcom_key: f"https://{domain}/sagemaker/home?region={region}#/{page}/{name}",
    }
    if group is not None:
        # The console's own encoding, twice over: of /aws/sagemaker/… and ?logStreamNameFilter=….
        addresses[LogLink.xcom_key] = (
            f"https://{domain}/cloudwatch/home?region={region}#logsV2:log-groups/log-group/"
            f"$252Faws$252Fsagemaker$252F{group}$3FlogStreamNameFilter$3D{name}$252F"
        )
    if report := _report(request.parameters):
        bucket, _, key = report.removeprefix("s3://").partition("/")
        address = f"https://{domain}/s3/object/{bucket}?region={region}&prefix={quote(key)}"
        addresses[ReportLink.xcom_key] = address
    return addresses


def _report(parameters: Mapping[str, Any]) -> str | None:
    """Return the S3 URI of the page that a job writes about an evaluation, if it does."""
    outputs = parameters.get("ProcessingOutputConfig", {}).get("Outputs", [])
    places = {each.get("OutputName"): each.get("S3Output", {}).get("S3Uri") for each in outputs}
    place = places.get(VERDICT)
    return None if place is None else f"{place}/report.html"


def _file_system(started: Started) -> str | None:
    """Return the id of the file system that a request creates or asks for."""
    match started.request.operation, started.response, started.request.parameters:
        case "CreateFileSystem", {"FileSystem": {"FileSystemId": str(identity)}}, _:
            return quote(identity, safe="")
        case "DescribeFileSystems", _, {"FileSystemIds": [str(identity)]}:
            return quote(identity, safe="")
        case _:
            return None
