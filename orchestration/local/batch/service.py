"""The operations of S3 Control that concern jobs of S3 Batch Operations."""

from __future__ import annotations

import threading
import uuid

from typing_extensions import override

from orchestration.local.account import roles, storage
from orchestration.local.account.account import Account
from orchestration.local.account.protocol import Answer, JsonObject, Service, xml_answer
from orchestration.local.account.rules import broken
from orchestration.local.batch.jobs import Job
from orchestration.local.batch.rules import RULES

_NEEDED_BY_REPORTS = {"Bucket", "Format", "ReportScope"}


class BatchOperations(Service):
    """The jobs of an account."""

    name = "s3control"
    malformed = "InvalidRequest"

    def __init__(self, account: Account) -> None:
        self._account = account
        self._jobs: dict[str, Job] = {}
        self._tokens: dict[str, tuple[JsonObject, Job]] = {}
        self._lock = threading.Lock()
        super().__init__(
            {
                "CreateJob": self._create,
                "DescribeJob": lambda r: {"Job": self._job(r["JobId"]).description()},
                "ListJobs": self._list,
                "UpdateJobStatus": self._update,
                "GetJobTagging": self._tags,
                "PutJobTagging": self._tag,
            }
        )

    def state(self) -> JsonObject:
        """Return the jobs as in Describe responses."""
        return {"Jobs": [job.description() for job in list(self._jobs.values())]}

    @override
    def encoded(self, operation: str, response: JsonObject) -> Answer:
        return xml_answer(self.name, operation, response)

    def _create(self, request: JsonObject) -> JsonObject:
        _check(request, self._account.region)
        with self._lock:
            token = request["ClientRequestToken"]
            if token in self._tokens:
                earlier, job = self._tokens[token]
                if earlier != request:
                    raise broken(RULES, "tokens are for one request")
                return {"JobId": job.id}
            identifier = str(uuid.uuid4())
            arn = self._account.arn("s3", f"job/{identifier}")
            tags = {tag["Key"]: tag["Value"] for tag in request.get("Tags", [])}
            job = self._jobs[identifier] = Job(identifier, arn, request, tags)
            self._tokens[token] = (request, job)
        job.begin(self._account)
        return {"JobId": identifier}

    def _job(self, identifier: str) -> Job:
        if identifier not in self._jobs:
            raise broken(RULES, "jobs exist")
        return self._jobs[identifier]

    def _list(self, request: JsonObject) -> JsonObject:
        wanted = request.get("JobStatuses")
        jobs = [job for job in list(self._jobs.values()) if not wanted or job.status in wanted]
        first = int(request.get("NextToken", "0"))
        last = first + int(request.get("MaxResults", 1000))
        more = {"NextToken": str(last)} if last < len(jobs) else {}
        return {"Jobs": [job.summary() for job in jobs[first:last]], **more}

    def _update(self, request: JsonObject) -> JsonObject:
        job = self._job(request["JobId"])
        job.cancel(request["RequestedJobStatus"])
        return {"JobId": job.id, "Status": job.status}

    def _tags(self, request: JsonObject) -> JsonObject:
        tags = self._job(request["JobId"]).tags
        return {"Tags": [{"Key": key, "Value": value} for key, value in sorted(tags.items())]}

    def _tag(self, request: JsonObject) -> JsonObject:
        tags = {tag["Key"]: tag["Value"] for tag in request["Tags"]}
        self._job(request["JobId"]).tags = tags
        return {}


def _check(request: JsonObject, region: str) -> None:
    """Raise the service's error if a request for a job breaks a rule."""
    if ("Manifest" in request) == ("ManifestGenerator" in request):
        raise broken(RULES, "manifest or generator")
    spec = request.get("Manifest", {}).get("Spec", {})
    is_csv = spec.get("Format") == "S3BatchOperations_CSV_20180820"
    if not is_csv or "S3PutObjectCopy" not in request["Operation"]:
        raise broken(RULES, "copies only")
    if spec.get("Fields", [])[:2] != ["Bucket", "Key"]:
        raise broken(RULES, "fields of a manifest", fields=spec.get("Fields", []))
    report = request["Report"]
    if report["Enabled"] and not report.keys() >= _NEEDED_BY_REPORTS:
        raise broken(RULES, "reports have a place")
    if not roles.exists(request["RoleArn"]):
        raise broken(RULES, "roles exist", role=request["RoleArn"])
    target = request["Operation"]["S3PutObjectCopy"]["TargetResource"].rpartition(":")[2]
    there = storage.bucket_region(target)
    if there not in (None, region):
        raise broken(RULES, "copies are made where they go", region=there)
