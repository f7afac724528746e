"""Every rule of S3 Batch Operations that the embedded AWS enforces, broken once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestration.local import EmbeddedAws
from orchestration.local.batch.rules import FAILURES, RULES
from orchestration.local.run.executions import role
from tests.local.batch.copies import SOURCE, Copies

MISSING = "arn:aws:iam::123456789012:role/Missing"
Break = Callable[[Copies], Any]


@pytest.fixture(scope="module")
def copies() -> Iterator[Copies]:
    with EmbeddedAws(time_scale=0.001) as aws:
        copies = Copies(aws)
        copies.put("one.csv", "one")
        yield copies


def listed(copies: Copies) -> dict[str, Any]:
    return copies.manifest(("one.csv",))


def started(**more: Any) -> Break:
    return lambda copies: copies.start(listed(copies), **more)


def described(**spec: Any) -> Break:
    def start(copies: Copies) -> str:
        manifest = listed(copies)
        return copies.start({**manifest, "Spec": {**manifest["Spec"], **spec}})

    return start


def _token_of_another(copies: Copies) -> None:
    for priority in (1, 2):
        copies.start(listed(copies), ClientRequestToken="taken", Priority=priority)


def _cancelled_after_its_end(copies: Copies) -> None:
    job = copies.start(listed(copies))
    copies.end(job)
    copies.cancel(job)


def _untrusted(copies: Copies) -> str:
    other = role(copies.aws, "NotBatch", "sagemaker.amazonaws.com")
    return copies.start(listed(copies), RoleArn=other)


def located(**location: Any) -> Break:
    def start(copies: Copies) -> str:
        manifest = listed(copies)
        return copies.start({**manifest, "Location": {**manifest["Location"], **location}})

    return start


def reported(**report: Any) -> dict[str, Any]:
    usual = {"Enabled": True, "Format": "Report_CSV_20180820", "ReportScope": "FailedTasksOnly"}
    return {"Report": {**usual, **report}}


BROKEN: dict[str, Break] = {
    "copies only": described(Format="S3InventoryReport_CSV_20161130"),
    "manifest or generator": lambda copies: copies.start(None),
    "fields of a manifest": described(Fields=["Key", "Bucket"]),
    "reports have a place": started(**reported()),
    "tokens are for one request": _token_of_another,
    "roles exist": started(RoleArn=MISSING),
    "jobs exist": lambda copies: copies.job("no-such-job"),
    "ended jobs stay as they are": _cancelled_after_its_end,
}
FAILED: dict[str, Break] = {
    "manifests can be read": _untrusted,
    "manifests exist": located(ObjectArn=f"arn:aws:s3:::{SOURCE}/none.csv"),
    "manifests are as described": located(ETag="00000000000000000000000000000000"),
    "manifests have lines": lambda copies: copies.start(copies.listed("only-a-bucket")),
    "one source bucket": lambda copies: copies.start(copies.listed("a,one\nb,one")),
    "reports can be written": started(**reported(Bucket="arn:aws:s3:::no-such-bucket")),
    "half of the tasks succeed": lambda copies: copies.start(
        copies.manifest(*[(f"none{number}",) for number in range(1001)])
    ),
}


def test_every_rule_is_tried() -> None:
    assert (BROKEN.keys(), FAILED.keys()) == (RULES.keys(), FAILURES.keys())


@pytest.mark.parametrize("rule", BROKEN)
def test_what_breaks_a_rule_is_refused(copies: Copies, rule: str) -> None:
    with pytest.raises(ClientError) as caught:
        BROKEN[rule](copies)
    error, words = caught.value.response["Error"], RULES[rule].message.split("{")[0]
    assert error["Code"] == RULES[rule].error
    assert error["Message"].startswith(words)


@pytest.mark.parametrize("rule", FAILED)
def test_what_breaks_another_rule_fails_the_job(copies: Copies, rule: str) -> None:
    job = copies.end(FAILED[rule](copies))
    assert job["Status"] == "Failed"
    [failure] = job["FailureReasons"]
    assert failure["FailureCode"] == FAILURES[rule].error
    assert failure["FailureReason"].startswith(FAILURES[rule].message.split("{")[0])


@pytest.mark.parametrize("rule", [*RULES.values(), *FAILURES.values()])
def test_every_rule_has_a_source(rule: Any) -> None:
    assert rule.source.startswith(("model: ", "guide: ", "issue: "))


def test_requests_have_the_form_of_the_model(copies: Copies) -> None:
    with pytest.raises(ClientError, match="InvalidRequest"):
        copies.start(listed(copies), RoleArn="arn:of-nothing-at-all")
