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
from orchestration.local.engine.machines.rules import RULES as MACHINES
from orchestration.local.events.rules import EVENTS, SCHEDULES
from orchestration.local.fsx.rules import RULES as FSX
from orchestration.local.iam.rules import IAM
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
from orchestration.local.sns.rules import RULES as SNS
from orchestration.local.ssm.rules import RULES as SSM
from tests.local.breaking import (
    components,
    copies,
    events,
    file_systems,
    hosting,
    jobs,
    machines,
    messages,
    monitoring,
    objects,
    parameters,
    policies,
    registry,
    sessions,
    tuning,
)
from tests.local.conftest import BUCKET, prepare

Break = Callable[[EmbeddedAws], Any]
TABLES: Mapping[str, Mapping[str, Rule]] = {
    "events": EVENTS,
    "fsx": FSX,
    "iam": IAM,
    "s3": S3,
    "s3control": COPIES,
    "sagemaker": SAGEMAKER,
    "scheduler": SCHEDULES,
    "sns": SNS,
    "ssm": SSM,
    "stepfunctions": MACHINES,
    "sts": STS,
}
EXAMPLES: Mapping[str, Mapping[str, Break]] = {
    "events": events.EVENTS,
    "fsx": {rule: partial(file_systems.broken, rule) for rule in file_systems.BREAKING},
    "iam": policies.BREAKING,
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
    "scheduler": events.SCHEDULES,
    "sns": messages.BREAKING,
    "ssm": parameters.BREAKING,
    "stepfunctions": machines.BREAKING,
    "sts": sessions.BREAKING,
}
CASES = [(service, rule) for service, table in TABLES.items() for rule in table]
ALSO = [
    (service, what, rule, broken)
    for service, ways in (
        ("events", events.ALSO),
        ("iam", policies.ALSO),
        ("s3", objects.ALSO),
        ("sagemaker", {**jobs.ALSO, **hosting.ALSO, **components.ALSO}),
        ("scheduler", events.ALSO_SCHEDULES),
        ("sns", messages.ALSO),
        ("stepfunctions", machines.ALSO),
    )
    for what, (rule, broken) in ways.items()
]


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


@pytest.mark.parametrize(
    ("service", "rule", "broken"),
    [pytest.param(service, *way, id=f"{service}-{what}") for service, what, *way in ALSO],
)
def test_other_ways_to_break_a_rule_are_refused(
    account: EmbeddedAws, service: str, rule: str, broken: Break
) -> None:
    with pytest.raises(ClientError) as caught:
        broken(account)
    refused_by(TABLES[service][rule], caught.value)


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
