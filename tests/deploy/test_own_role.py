"""A deployment under a role of one's own: nothing of it is made, and its needs are told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestration import Schedule
from orchestration.deploy import Deployment, Role, step_functions
from orchestration.errors import DeployError
from orchestration.local import EmbeddedAws
from tests.deploy import pipelines
from tests.deploy.permissions.policy import denied
from tests.deploy.pipelines import PARAMETERS

ARN = "arn:aws:iam::123456789012:role/platform/runner"
SERVICES = ("states.amazonaws.com", "scheduler.amazonaws.com", "events.amazonaws.com")
NIGHTLY = Schedule(cron="30 6 * * 1-5", timezone="Europe/Berlin")


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws() as embedded:
        embedded.client("s3").create_bucket(Bucket=PARAMETERS["bucket"])
        yield embedded


def trusted(aws: EmbeddedAws, *services: str) -> None:
    """The role, which trusts these services alone."""
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": list(services)},
        "Action": "sts:AssumeRole",
    }
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam = aws.client("iam")
    if "runner" in roles(aws):
        iam.update_assume_role_policy(RoleName="runner", PolicyDocument=document)
    else:
        iam.create_role(RoleName="runner", Path="/platform/", AssumeRolePolicyDocument=document)


def deploy(aws: EmbeddedAws, code: Path, name: str, options: Any = None, **more: Any) -> Deployment:
    pipeline = pipelines.digits(
        pipelines.source_folder(code), schedule=NIGHTLY, name=name, step_functions=options
    )
    return step_functions(pipeline, session=aws, parameters=PARAMETERS, **more)


def roles(aws: EmbeddedAws) -> list[str]:
    return [role["RoleName"] for role in aws.client("iam").list_roles()["Roles"]]


def test_one_role_serves_all_and_none_is_made(aws: EmbeddedAws, tmp_path: Path) -> None:
    trusted(aws, *SERVICES)
    before = roles(aws)
    done = deploy(aws, tmp_path, "served", role_arn=ARN)
    assert roles(aws) == before
    assert [change for change in done.changes if isinstance(change.subject, Role)] == []
    assert done.warnings == ()
    states = aws.client("stepfunctions")
    scheduler = aws.client("scheduler")
    for name in ("served", "served-companion"):
        arn = done.account.arn("states", f"stateMachine:{name}")
        assert states.describe_state_machine(stateMachineArn=arn)["roleArn"] == ARN
        assert scheduler.get_schedule(Name=name)["Target"]["RoleArn"] == ARN
    [target] = aws.client("events").list_targets_by_rule(Rule="served-companion")["Targets"]
    assert target["RoleArn"] == ARN
    assert deploy(aws, tmp_path, "served", role_arn=ARN).changes == ()


def test_the_pipeline_names_the_role_unless_the_command_does(
    aws: EmbeddedAws, tmp_path: Path
) -> None:
    trusted(aws, *SERVICES)
    before = roles(aws)
    done = deploy(aws, tmp_path, "described", {"role": ARN})
    assert roles(aws) == before
    machine = aws.client("stepfunctions").describe_state_machine(
        stateMachineArn=done.state_machine_arn
    )
    assert machine["roleArn"] == ARN
    again = deploy(aws, tmp_path, "described", role_arn=ARN)
    # The definition holds the pipeline's file, which names the role no more.
    assert [each.summary for each in again.changes] == [
        "update state machine described: definition"
    ]
    other = ARN.replace("runner", "other")
    with pytest.raises(DeployError, match="other does not exist"):
        deploy(aws, tmp_path, "described", {"role": ARN}, role_arn=other)


def test_its_needs_are_those_of_all_roles_that_it_stands_for(
    aws: EmbeddedAws, tmp_path: Path
) -> None:
    trusted(aws, *SERVICES)
    role = deploy(aws, tmp_path, "needy", role_arn=ARN, dry_run=True).desired.role
    generated = deploy(aws, tmp_path, "needy", dry_run=True).desired
    companion = generated.companion
    stood_for = (generated.role, generated.schedule_role, companion.role, companion.starter)
    needed = [s for r in stood_for if r is not None for s in r.policy["Statement"]]
    written = role.policy["Statement"]
    assert [{**s, "Sid": ""} for s in written] == [{**s, "Sid": ""} for s in needed]
    assert len({s["Sid"] for s in written}) == len(written)
    trusts = [s for r in stood_for if r is not None for s in r.trust["Statement"]]
    assert {s["Principal"]["Service"] for s in trusts} == set(SERVICES)
    assert all(s in role.trust["Statement"] for s in trusts)
    request = {"TrainingJobName": "needy-train-1"}
    call = ("sagemaker", "DescribeTrainingJob", request, "123456789012", "us-east-1")
    assert denied(dict(role.policy), *call) == []


@pytest.mark.parametrize(
    ("arn", "services", "problem"),
    [
        (ARN, SERVICES[:1], "does not trust scheduler.amazonaws.com"),
        (ARN, SERVICES[:2], "does not trust events.amazonaws.com"),
        (ARN.replace("runner", "other"), SERVICES, "does not exist"),
        (ARN.replace("platform/", ""), SERVICES, f"has the ARN {ARN}"),
        ("runner", SERVICES, "expected the ARN of a role, arn:aws:iam::123456789012:role/NAME"),
        (ARN.replace("123456789012", "210987654321"), SERVICES, "is not in account 123456789012"),
    ],
)
def test_a_role_that_can_not_serve_is_refused_before_anything_is_changed(
    aws: EmbeddedAws, tmp_path: Path, arn: str, services: tuple[str, ...], problem: str
) -> None:
    trusted(aws, *services)
    seen = len(aws.calls())
    with pytest.raises(DeployError, match=problem):
        deploy(aws, tmp_path, "refused", role_arn=arn)
    reads = ("Get", "Describe", "List", "Head")
    assert all(call.operation.startswith(reads) for call in aws.calls()[seen:])


def test_roles_that_were_made_before_stay_and_are_named(aws: EmbeddedAws, tmp_path: Path) -> None:
    trusted(aws, *SERVICES)
    deploy(aws, tmp_path, "moved")
    before = roles(aws)
    done = deploy(aws, tmp_path, "moved", role_arn=ARN)
    assert roles(aws) == before
    assert {change.summary.split(":")[0] for change in done.changes} == {
        "update state machine moved",
        "update schedule moved",
        "update state machine moved-companion",
        "update rule moved-companion",
        "update schedule moved-companion",
    }
    named = [name for name in before if any(f"role {name}, which" in w for w in done.warnings)]
    assert named == [name for name in before if name.startswith("moved-")]
    assert len(named) == 4
