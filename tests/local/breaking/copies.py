"""Requests for jobs of S3 Batch Operations that break its rules, each of them once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from orchestration.local import EmbeddedAws
from tests.local.batch.copies import Copies

MISSING = "arn:aws:iam::123456789012:role/Missing"
ELSEWHERE = "copies-elsewhere"
Break = Callable[[Copies], Any]


def listed(copies: Copies) -> dict[str, Any]:
    return copies.manifest(("one.csv",))


def started(**more: Any) -> Break:
    return lambda copies: copies.start(listed(copies), **more)


def described(**spec: Any) -> Break:
    def start(copies: Copies) -> str:
        manifest = listed(copies)
        return copies.start({**manifest, "Spec": {**manifest["Spec"], **spec}})

    return start


def reported(**report: Any) -> dict[str, Any]:
    usual = {"Enabled": True, "Format": "Report_CSV_20180820", "ReportScope": "FailedTasksOnly"}
    return {"Report": {**usual, **report}}


def _token_of_another(copies: Copies) -> None:
    for priority in (1, 2):
        copies.start(listed(copies), ClientRequestToken="taken", Priority=priority)


def _cancelled_after_its_end(copies: Copies) -> None:
    job = copies.start(listed(copies))
    copies.end(job)
    copies.cancel(job)


def _to_another_region(copies: Copies) -> None:
    place = {"LocationConstraint": "eu-west-1"}
    copies.s3.create_bucket(Bucket=ELSEWHERE, CreateBucketConfiguration=place)
    copies.start(listed(copies), copy={"TargetResource": f"arn:aws:s3:::{ELSEWHERE}"})


_BREAKING: Mapping[str, Break] = {
    "copies only": described(Format="S3InventoryReport_CSV_20161130"),
    "manifest or generator": lambda copies: copies.start(None),
    "fields of a manifest": described(Fields=["Key", "Bucket"]),
    "reports have a place": started(**reported()),
    "tokens are for one request": _token_of_another,
    "roles exist": started(RoleArn=MISSING),
    "copies are made where they go": _to_another_region,
    "jobs exist": lambda copies: copies.job("no-such-job"),
    "ended jobs stay as they are": _cancelled_after_its_end,
}


def _in_account(rule: str, aws: EmbeddedAws) -> None:
    _BREAKING[rule](_copies(aws))


@functools.cache
def _copies(aws: EmbeddedAws) -> Copies:
    copies = Copies(aws)
    copies.put("one.csv", "one")
    return copies


BREAKING: Mapping[str, Callable[[EmbeddedAws], None]] = {
    rule: functools.partial(_in_account, rule) for rule in _BREAKING
}
