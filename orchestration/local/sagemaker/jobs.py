"""What all kinds of SageMaker jobs share: a name, a status, a thread that runs them to the end."""

from __future__ import annotations

import datetime
import functools
import threading
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestration.local.protocol import JsonObject, Operation, ServiceError, now

if TYPE_CHECKING:
    from orchestration.local.wiring import Account

# SageMaker cuts FailureReason here.
_LONGEST_REASON = 1024


class JobFailed(Exception):
    """A job ends as Failed, for the reason that the exception's text tells."""


class JobStopped(Exception):
    """A job was stopped; the exception's text is its secondary status."""


class Job(ABC):
    """One job. Its subclass says what it does in `run`."""

    kind = ""
    arn_word = ""

    def __init__(self, account: Account, request: JsonObject) -> None:
        self.account = account
        self.request = request
        self.name = str(request[f"{self.kind}JobName"])
        self.arn = account.arn("sagemaker", f"{self.arn_word}/{self.name.lower()}")
        self.directory = account.directory / self.arn_word / self.name
        self.created = now()
        self.modified = self.created
        self.started: datetime.datetime | None = None
        self.ended: datetime.datetime | None = None
        self.status = "InProgress"
        self.failure_reason: str | None = None
        self.stop_requested = threading.Event()
        self._thread = threading.Thread(target=self._run_to_the_end, daemon=True)

    @abstractmethod
    def run(self) -> None:
        """Do the job; raises `JobFailed` or `JobStopped` where it does not complete."""

    @abstractmethod
    def logs(self) -> str:
        """What the job has written so far."""

    @abstractmethod
    def describe(self) -> JsonObject:
        """The response of its Describe operation, without what all jobs have."""

    def enter(self, secondary_status: str, message: str = "") -> None:
        """The job has reached a new phase."""
        self.modified = now()

    def start(self) -> None:
        """Begin to run."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the job to end; a job that already ended stays as it is."""
        if self.status == "InProgress":
            self.status = "Stopping"
            self.enter("Stopping", f"Stopping the {self.kind.lower()} job")
            self.stop_requested.set()

    def _run_to_the_end(self) -> None:
        try:
            self._meet_injected_fault()
            self.run()
        except JobFailed as error:
            self._end("Failed", "Failed", str(error)[:_LONGEST_REASON])
        except JobStopped as error:
            self._end("Stopped", str(error))
        except ServiceError as error:
            self._end("Failed", "Failed", f"ClientError: {error}"[:_LONGEST_REASON])
        except Exception as error:
            # A job must end, whatever is wrong with this simulation.
            reason = f"InternalServerError: {type(error).__name__}: {error}"
            self._end("Failed", "Failed", reason[:_LONGEST_REASON])
        else:
            self._end("Completed", "Completed")

    def _meet_injected_fault(self) -> None:
        fault = self.account.faults.job_fault(f"Create{self.kind}Job", self.name, self.request)
        if fault is None:
            return
        # As on AWS, a job that waits for its machines can be stopped.
        if self.stop_requested.wait(self.account.clock.pause(fault.delay_s)):
            raise JobStopped("Stopped")
        raise JobFailed(fault.message)

    def _end(self, status: str, secondary_status: str, reason: str | None = None) -> None:
        self.ended = now()
        self.failure_reason = reason
        self.enter(secondary_status, reason or "")
        # Last: whoever polls the status finds everything else in place.
        self.status = status


class Jobs:
    """The jobs of one kind, and the operations on them."""

    def __init__(self, account: Account, job_class: type[Job]) -> None:
        self._account = account
        self._class = job_class
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()

    @property
    def kind(self) -> str:
        """`Training` or `Processing`."""
        return self._class.kind

    def operations(self) -> dict[str, Operation]:
        """The operations by their names."""
        return {
            f"Create{self.kind}Job": self._create,
            f"Describe{self.kind}Job": self._describe,
            f"Stop{self.kind}Job": self._stop,
            f"List{self.kind}Jobs": self._list,
        }

    def find(self, name: str) -> Job | None:
        """A job by its name."""
        return self._jobs.get(name)

    def owner_of(self, arn: str) -> Job | None:
        """The job that has an ARN."""
        return next((job for job in self._jobs.values() if job.arn == arn), None)

    def close(self) -> None:
        """Ask all jobs to end."""
        for job in list(self._jobs.values()):
            job.stop()

    def state(self) -> JsonObject:
        """All jobs as Describe tells them."""
        return {name: self._description(job) for name, job in sorted(self._jobs.items())}

    def _create(self, request: JsonObject) -> JsonObject:
        job = self._class(self._account, request)
        with self._lock:
            if job.name in self._jobs:
                word = self.kind.lower()
                article = f"{self.kind} job names must be unique within an AWS account and region"
                raise ServiceError(
                    "ResourceInUse",
                    f"{article}, and a {word} job with this name already exists ({job.arn})",
                )
            self._jobs[job.name] = job
        self._account.sagemaker.tags.add(job.arn, request.get("Tags", []))
        job.start()
        return {f"{self.kind}JobArn": job.arn}

    def _get(self, request: JsonObject) -> Job:
        job = self._jobs.get(request[f"{self.kind}JobName"])
        if job is None:
            raise ServiceError("ValidationException", "Requested resource not found.")
        return job

    def _describe(self, request: JsonObject) -> JsonObject:
        return self._description(self._get(request))

    def _description(self, job: Job) -> JsonObject:
        status = job.status
        members = response_members(f"Describe{self.kind}Job")
        told = {key: value for key, value in job.request.items() if key in members}
        told |= {
            f"{self.kind}JobArn": job.arn,
            f"{self.kind}JobStatus": status,
            "CreationTime": job.created,
            "LastModifiedTime": job.modified,
            f"{self.kind}StartTime": job.started,
            f"{self.kind}EndTime": job.ended,
            "FailureReason": job.failure_reason,
            **job.describe(),
        }
        return {key: value for key, value in told.items() if value is not None}

    def _stop(self, request: JsonObject) -> JsonObject:
        job = self._get(request)
        if job.status not in ("InProgress", "Stopping"):
            raise ServiceError(
                "ValidationException",
                f"The request was rejected because the {self.kind.lower()} job is in status "
                f"{job.status}.",
            )
        job.stop()
        return {}

    def _list(self, request: JsonObject) -> JsonObject:
        found = [
            self._summary(job)
            for job in sorted(self._jobs.values(), key=lambda job: job.created, reverse=True)
            if request.get("NameContains", "") in job.name
            and request.get("StatusEquals", job.status) == job.status
        ]
        if request.get("SortOrder") == "Ascending":
            found.reverse()
        return {f"{self.kind}JobSummaries": found[: request.get("MaxResults", 100)]}

    def _summary(self, job: Job) -> JsonObject:
        description = self._description(job)
        kind = self.kind
        members = (
            f"{kind}JobName",
            f"{kind}JobArn",
            f"{kind}JobStatus",
            "CreationTime",
            f"{kind}EndTime",
            "LastModifiedTime",
        )
        return {key: description[key] for key in members if key in description}


@functools.cache
def response_members(operation: str) -> frozenset[str]:
    """The members of an operation's response."""
    import botocore.session

    model: Any = botocore.session.Session().get_service_model("sagemaker")
    return frozenset(model.operation_model(operation).output_shape.members)


def read_log(path: Path) -> str:
    """A log file as text, empty where there is none yet."""
    return path.read_text(errors="replace") if path.exists() else ""
