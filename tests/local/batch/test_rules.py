"""Every rule of S3 Batch Operations whose breach fails a job, broken once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestration.local import EmbeddedAws
from orchestration.local.batch.rules import FAILURES
from orchestration.local.run.executions import role
from tests.local.batch.copies import SOURCE, Copies
from tests.local.breaking.copies import Break, listed, reported, started


@pytest.fixture(scope="module")
def copies() -> Iterator[Copies]:
    with EmbeddedAws(time_scale=0.001) as aws:
        copies = Copies(aws)
        copies.put("one.csv", "one")
        yield copies


def _untrusted(copies: Copies) -> str:
    other = role(copies.aws, "NotBatch", "sagemaker.amazonaws.com")
    return copies.start(listed(copies), RoleArn=other)


def located(**location: Any) -> Break:
    def start(copies: Copies) -> str:
        manifest = listed(copies)
        return copies.start({**manifest, "Location": {**manifest["Location"], **location}})

    return start


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
    assert FAILED.keys() == FAILURES.keys()


@pytest.mark.parametrize("rule", FAILED)
def test_what_breaks_a_rule_fails_the_job(copies: Copies, rule: str) -> None:
    job = copies.end(FAILED[rule](copies))
    assert job["Status"] == "Failed"
    [failure] = job["FailureReasons"]
    assert failure["FailureCode"] == FAILURES[rule].error
    assert failure["FailureReason"].startswith(FAILURES[rule].message.split("{")[0])


@pytest.mark.parametrize("rule", FAILURES.values())
def test_every_rule_has_a_source(rule: Any) -> None:
    assert rule.source.startswith(("model: ", "guide: ", "issue: "))


def test_requests_have_the_form_of_the_model(copies: Copies) -> None:
    with pytest.raises(ClientError, match="InvalidRequest"):
        copies.start(listed(copies), RoleArn="arn:of-nothing-at-all")
