"""The jobs of an account, and the operations on them."""

from __future__ import annotations

import threading
from collections.abc import Callable

from orchestration.local.account.protocol import JsonObject, Operation
from orchestration.local.sagemaker.checks.surroundings import check_tags
from orchestration.local.sagemaker.jobs.lifecycle import Job
from orchestration.local.sagemaker.responses import response_members
from orchestration.local.sagemaker.rules import refusal
from orchestration.local.sagemaker.tags import Tags


class Jobs:
    """The jobs of one kind, and the operations on them."""

    def __init__(self, kind: str, new_job: Callable[[JsonObject], Job], tags: Tags) -> None:
        self.kind = kind
        """`Training`, `Processing`, `Transform` or `HyperParameterTuning`."""
        self._word = kind.removeprefix("HyperParameter").lower()
        self._new_job = new_job
        self._tags = tags
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()

    def operations(self) -> dict[str, Operation]:
        """Return the operations by name."""
        return {
            f"Create{self.kind}Job": self._create,
            f"Describe{self.kind}Job": self._describe,
            f"Stop{self.kind}Job": self._stop,
            f"List{self.kind}Jobs": self._list,
        }

    def find(self, name: str) -> Job | None:
        """Return the job with a name, or None."""
        return self._jobs.get(name)

    def begin(self, request: JsonObject) -> Job:
        """Start a job; raises `ServiceError` where SageMaker would refuse it."""
        check_tags(request.get("Tags", []))
        job = self._new_job(request)
        with self._lock:
            if job.name in self._jobs:
                raise refusal(f"{self._word} names once", arn=job.arn)
            self._jobs[job.name] = job
        self._tags.add(job.arn, request.get("Tags", []))
        job.start()
        return job

    def owner_of(self, arn: str) -> Job | None:
        """Return the job with an ARN, or None."""
        return next((job for job in list(self._jobs.values()) if job.arn == arn), None)

    def under_way(self) -> list[Job]:
        """Return the jobs that have not ended, in the order of their beginnings."""
        return [job for job in list(self._jobs.values()) if job.ended is None]

    def close(self) -> None:
        """Ask all jobs to stop."""
        for job in list(self._jobs.values()):
            job.stop()

    def state(self) -> JsonObject:
        """Return all jobs as in Describe responses."""
        return {name: self._description(job) for name, job in sorted(self._jobs.items())}

    def _create(self, request: JsonObject) -> JsonObject:
        return {f"{self.kind}JobArn": self.begin(request).arn}

    def _get(self, request: JsonObject) -> Job:
        job = self._jobs.get(request[f"{self.kind}JobName"])
        if job is None:
            raise refusal("jobs exist")
        return job

    def _describe(self, request: JsonObject) -> JsonObject:
        return self._description(self._get(request))

    def _description(self, job: Job) -> JsonObject:
        status = job.status
        members = response_members(f"Describe{self.kind}Job")
        description = {key: value for key, value in job.request.items() if key in members}
        description |= {
            f"{self.kind}JobArn": job.arn,
            f"{self.kind}JobStatus": status,
            "CreationTime": job.created,
            "LastModifiedTime": job.modified,
            f"{self.kind}StartTime": job.started,
            f"{self.kind}EndTime": job.ended,
            "FailureReason": job.failure_reason,
            **job.describe(),
        }
        return {key: value for key, value in description.items() if value is not None}

    def _stop(self, request: JsonObject) -> JsonObject:
        job = self._get(request)
        if job.status not in ("InProgress", "Stopping"):
            raise refusal("jobs to stop run", kind=self._word, status=job.status)
        job.stop()
        return {}

    def _list(self, request: JsonObject) -> JsonObject:
        summaries = [
            self._summary(job)
            for job in sorted(self._jobs.values(), key=lambda job: job.created, reverse=True)
            if request.get("NameContains", "") in job.name
            and request.get("StatusEquals", job.status) == job.status
        ]
        if request.get("SortOrder") == "Ascending":
            summaries.reverse()
        start = int(request.get("NextToken", 0))
        end = start + request.get("MaxResults", 100)
        rest = {"NextToken": str(end)} if end < len(summaries) else {}
        return {f"{self.kind}JobSummaries": summaries[start:end], **rest}

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
