"""Copies made by S3 Batch Operations: the objects, or the versions of objects, of a manifest.

A job's client token is derived from the run, so that every attempt gets the same job. Its end is
``Complete`` whether or not objects were copied: the counts of its tasks tell, and then a listing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from orchestration.catalog.partitions import partition_of
from orchestration.expressions import All, Any, Compare, Function, Result, Tree, apply, join
from orchestration.graph import (
    Call,
    Choose,
    ErrorPattern,
    Fold,
    Operation,
    Output,
    Path,
    Require,
    Retry,
    Step,
    Until,
)
from orchestration.refs import Expression
from orchestration.stages.copying.reports import FAILED, FailedTasks
from orchestration.stages.listing import listing, pages, total
from orchestration.stages.stage import Context
from orchestration.stages.values import Text

_PRIORITY: Final = 10
"""The service runs jobs of one account by their priorities; these are all equal."""
_MOST_PAGES: Final = 1000
"""Of a copy with more objects, these are the fewest that must be there."""
_JOB: Path = ("Job",)
_COUNTS: Path = (*_JOB, "ProgressSummary")
_REASON: Path = (*_JOB, "FailureReasons", 0)
# A job may not be found right after its creation:
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/troubleshooting-batch-operations.html
_NOT_YET: Final = Retry(
    errors=(
        ErrorPattern("NotFound"),
        ErrorPattern("NoSuchJob", "specified job does not exist"),
    )
)


@dataclass(frozen=True, kw_only=True)
class ManifestCopy:
    """The steps by which one stage has S3 copy what a manifest lists."""

    stage: str
    context: Context
    source: Text
    """The prefix that all keys of the manifest begin with."""
    manifest: Text
    versions: bool
    """True if the manifest has a column of version ids."""
    target: Text
    role: Tree
    options: Mapping[str, Tree]
    """Further fields of ``S3PutObjectCopy``."""
    decrypts: Tree
    """The KMS key of the source."""
    timeout_s: int
    after: tuple[str, ...] = ()

    def steps(self) -> tuple[Step, ...]:
        """Create the job, wait for its end, and compare its counts with what is there."""
        return (
            self._account(),
            self._etag(),
            self._created(),
            self._ended(),
            self._complete(),
            self._copied(),
            self._listed(),
            self._verified(),
        )

    def outputs(self) -> dict[str, Tree]:
        """Return what is known of the copies."""
        return {
            "location": self._location,
            "object_count": self._result("ended", "succeeded"),
            "total_bytes": self._result("verify", "bytes"),
        }

    @property
    def _location(self) -> Tree:
        """The prefix of the copies: the service puts the target before each whole key."""
        if isinstance(self.source, str) and not self.source.rstrip("/").count("/", len("s3://")):
            return self.target
        return join(self.target, "/", apply(Function.S3_KEY, self.source))

    def _name(self, step: str) -> str:
        return f"{self.stage}.{step}"

    def _result(self, step: str, output: str) -> Result:
        return Result(self._name(step), output)

    @property
    def _report(self) -> Expression[str]:
        # No stage has such a name, so that no listing of a stage's files meets reports.
        return self.context.location(f"{self.stage}.report")

    def _arn(self, uri: Text) -> Expression[str]:
        """Return the ARN of the bucket of a URI."""
        return join(
            f"arn:{partition_of(self.context.region)}:s3:::", apply(Function.S3_BUCKET, uri)
        )

    def _account(self) -> Call:
        return Call(
            name=self._name("account"),
            operation=Operation("sts", "GetCallerIdentity", {}),
            outputs={"account": Output(("Account",), kind="string")},
            after=self.after,
        )

    def _etag(self) -> Call:
        # Other than HeadObject, it gives the ETag as a manifest's location wants it: unquoted.
        request: dict[str, Tree] = {
            "Bucket": apply(Function.S3_BUCKET, self.manifest),
            "Key": apply(Function.S3_KEY, self.manifest),
            "ObjectAttributes": ["ETag"],
        }
        return Call(
            name=self._name("manifest"),
            operation=Operation("s3", "GetObjectAttributes", request),
            outputs={"etag": Output(("ETag",), kind="string")},
            # One after the other: two branches would be more states than both calls.
            after=(self._name("account"),),
        )

    def _created(self) -> Call:
        request: dict[str, Tree] = {
            "AccountId": self._result("account", "account"),
            "ClientRequestToken": self.context.resource_name(self.stage),
            "ConfirmationRequired": False,
            "Description": self.context.resource_name(self.stage),
            "Manifest": self._manifest(),
            "Operation": {"S3PutObjectCopy": self._copy()},
            "Priority": _PRIORITY,
            "Report": self._reported(),
            "RoleArn": self.role,
            "Tags": self.context.tag_list(self.stage),
        }
        return Call(
            name=self._name("job"),
            operation=Operation(
                "s3control", "CreateJob", request, decrypts=self.decrypts, reads=self.source
            ),
            outputs={"job": Output(("JobId",), kind="string")},
        )

    def _manifest(self) -> dict[str, Tree]:
        key = apply(Function.S3_KEY, self.manifest)
        return {
            "Spec": {
                "Format": "S3BatchOperations_CSV_20180820",
                "Fields": ["Bucket", "Key", *(["VersionId"] if self.versions else [])],
            },
            "Location": {
                "ObjectArn": join(self._arn(self.manifest), "/", key),
                "ETag": self._result("manifest", "etag"),
            },
        }

    def _copy(self) -> dict[str, Tree]:
        return {
            "TargetResource": self._arn(self.target),
            "TargetKeyPrefix": apply(Function.S3_KEY, self.target),
            **self.options,
        }

    def _reported(self) -> dict[str, Tree]:
        return {
            "Enabled": True,
            "Format": "Report_CSV_20180820",
            "Bucket": self._arn(self._report),
            "Prefix": apply(Function.S3_KEY, self._report),
            "ReportScope": "FailedTasksOnly",
        }

    def _ended(self) -> Call:
        job: dict[str, Tree] = {
            "AccountId": self._result("account", "account"),
            "JobId": self._result("job", "job"),
        }
        described = Operation("s3control", "DescribeJob", job)
        cancel = Operation(
            "s3control", "UpdateJobStatus", {**job, "RequestedJobStatus": "Cancelled"}
        )
        return Call(
            name=self._name("ended"),
            operation=described,
            retry=_NOT_YET,
            until=Until(
                poll=described,
                status=(*_JOB, "Status"),
                # What it came to is looked at together with the counts, by the next step.
                success=frozenset(["Complete", "Failed", "Cancelled"]),
                failure=frozenset(),
                stop=cancel,
                timeout_s=self.timeout_s,
                outputs={
                    "status": Output((*_JOB, "Status"), kind="string"),
                    "code": Output((*_REASON, "FailureCode"), kind="string", default=""),
                    "reason": Output((*_REASON, "FailureReason"), kind="string", default=""),
                    "succeeded": Output(
                        (*_COUNTS, "NumberOfTasksSucceeded"), kind="number", default=0
                    ),
                    "failed": Output((*_COUNTS, "NumberOfTasksFailed"), kind="number", default=0),
                },
            ),
        )

    @property
    def _told(self) -> tuple[str | Expression[object], ...]:
        """The job and the place of its report, as parts of a text."""
        job = self._result("job", "job")
        return ("S3 Batch Operations job ", job, ", report below ", self._report, "/job-", job)

    def _complete(self) -> Require:
        status, code, reason = (
            self._result("ended", name) for name in ("status", "code", "reason")
        )
        return Require(
            name=self._name("complete"),
            condition=Compare("eq", status, "Complete"),
            error=FAILED,
            cause=join(*self._told, ": ", status, " ", code, " ", reason),
        )

    def _copied(self) -> Choose:
        succeeded, failed = (self._result("ended", name) for name in ("succeeded", "failed"))
        return FailedTasks(
            name=self._name("copied"),
            report=self._report,
            job=self._result("job", "job"),
            failed=failed,
            cause=join(*self._told, ": objects copied: ", succeeded, ", not copied: ", failed),
            after=(self._name("complete"),),
        ).step()

    def _listed(self) -> Call:
        name = self._name("verify")
        objects = Result(name, "objects")
        folds = {
            "count": total(name, "count", apply(Function.COUNT, objects)),
            "bytes": total(name, "bytes", apply(Function.SUM, objects, "Size")),
            "more": Fold(start=False, then=Result(name, "truncated")),
        }
        return pages(listing(name, self.target, after=(self._name("copied"),)), _MOST_PAGES, folds)

    def _verified(self) -> Require:
        count, more = (self._result("verify", name) for name in ("count", "more"))
        succeeded = self._result("ended", "succeeded")
        beyond = All((Compare("eq", more, True), Compare("le", count, succeeded)))
        return Require(
            name=self._name("verified"),
            condition=All(
                (Compare("gt", count, 0), Any((Compare("eq", count, succeeded), beyond)))
            ),
            error="StagedDataDiffers",
            cause=join(
                *("the manifest's lines: ", succeeded, "; objects at the destination: ", count),
                "; a manifest must list each key once, and nothing else may lie there",
            ),
        )
