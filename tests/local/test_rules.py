"""Every rule that the embedded AWS enforces, broken once: the error is that of its table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestration.local import EmbeddedAws
from orchestration.local.account.rules import Rule
from orchestration.local.batch.rules import RULES as COPIES
from orchestration.local.datasync.rules import RULES as TRANSFERS
from orchestration.local.fsx.rules import RULES as FSX
from orchestration.local.iam.rules import RULES as STS
from orchestration.local.s3.rules import RULES as S3
from orchestration.local.sagemaker.rules import RULES as SAGEMAKER
from orchestration.local.sagemaker.rules.components import COMPONENTS
from orchestration.local.sagemaker.rules.hosting import HOSTING
from orchestration.local.sagemaker.rules.jobs import JOBS
from orchestration.local.sagemaker.rules.monitoring import MONITORING
from orchestration.local.sagemaker.rules.registry import REGISTRY
from orchestration.local.sagemaker.rules.shared import SHARED
from orchestration.local.sagemaker.rules.tuning import TUNING
from tests.local.breaking import (
    components,
    copies,
    file_systems,
    hosting,
    jobs,
    monitoring,
    objects,
    registry,
    sessions,
    tuning,
)
from tests.local.conftest import BUCKET, prepare

Break = Callable[[EmbeddedAws], Any]
TABLES: Mapping[str, Mapping[str, Rule]] = {
    "fsx": FSX,
    "s3": S3,
    "s3control": COPIES,
    "sagemaker": SAGEMAKER,
    "sts": STS,
}
EXAMPLES: Mapping[str, Mapping[str, Break]] = {
    "fsx": {rule: partial(file_systems.broken, rule) for rule in file_systems.BREAKING},
    "s3": objects.BREAKING,
    "s3control": copies.BREAKING,
    "sagemaker": {
        **jobs.BREAKING,
        **tuning.BREAKING,
        **hosting.BREAKING,
        **components.BREAKING,
        **registry.BREAKING,
        **monitoring.BREAKING,
    },
    "sts": sessions.BREAKING,
}
CASES = [(service, rule) for service, table in TABLES.items() for rule in table]
ALSO = {**jobs.ALSO, **hosting.ALSO, **components.ALSO}


@pytest.fixture(scope="module")
def account() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.001) as aws:
        s3 = aws.client("s3")
        prepare(aws)
        s3.create_bucket(
            Bucket=jobs.ELSEWHERE, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"}
        )
        theirs = aws.client("s3", account="999988887777")
        theirs.create_bucket(Bucket=jobs.THEIRS)
        for bucket in (BUCKET, jobs.ELSEWHERE):
            s3.put_object(Bucket=bucket, Key="data/file", Body=b"x")
        theirs.put_object(Bucket=jobs.THEIRS, Key="data/file", Body=b"x")
        yield aws


@pytest.mark.parametrize("service", TABLES)
def test_every_rule_has_an_example(service: str) -> None:
    assert EXAMPLES[service].keys() == TABLES[service].keys()


def test_no_two_rules_of_sagemaker_have_one_name() -> None:
    tables = (SHARED, JOBS, TUNING, HOSTING, COMPONENTS, REGISTRY, MONITORING)
    assert len(SAGEMAKER) == sum(map(len, tables))


@pytest.mark.parametrize(("service", "rule"), CASES)
def test_what_breaks_a_rule_is_refused(account: EmbeddedAws, service: str, rule: str) -> None:
    with pytest.raises(ClientError) as caught:
        EXAMPLES[service][rule](account)
    refused_by(TABLES[service][rule], caught.value)


@pytest.mark.parametrize("what", ALSO)
def test_other_ways_to_break_a_rule_are_refused(account: EmbeddedAws, what: str) -> None:
    rule, broken = ALSO[what]
    with pytest.raises(ClientError) as caught:
        broken(account)
    refused_by(SAGEMAKER[rule], caught.value)


@pytest.mark.parametrize("what", objects.ALSO)
def test_copies_break_the_rules_of_objects(account: EmbeddedAws, what: str) -> None:
    rule, broken = objects.ALSO[what]
    with pytest.raises(ClientError) as caught:
        broken(account)
    refused_by(S3[rule], caught.value)


@pytest.mark.parametrize(("service", "rule"), CASES)
def test_every_rule_has_a_source(service: str, rule: str) -> None:
    assert TABLES[service][rule].source.startswith(("model: ", "guide: ", "issue: "))


def test_the_guide_tells_how_many_rules_there_are() -> None:
    guide = (Path(__file__).parents[2] / "docs/simulation.md").read_text("utf-8")
    told = re.search(r"over (\d+) rules of SageMaker, FSx, DataSync, S3 and S3", guide)
    assert told
    assert 0 < sum(map(len, (*TABLES.values(), TRANSFERS))) - int(told[1]) < 50


def refused_by(rule: Rule, error: ClientError) -> None:
    """Check the code, the status, and the words of the message before its first value."""
    words, *_ = rule.message.split("{")
    assert error.response["Error"]["Code"] == rule.error
    assert error.response["Error"]["Message"].startswith(words)
    assert error.response["ResponseMetadata"]["HTTPStatusCode"] == rule.status
