"""Whoever deploys under the derived policy alone can deploy, change, and remove; not with less."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline, Schedule
from orchestration.deploy import step_functions
from orchestration.deploy.identities import Identity, identities
from orchestration.errors import DeployError
from orchestration.local import EmbeddedAws, RecordedCall
from orchestration.local.iam.needs import needs
from orchestration.local.policies.evaluation import allows
from tests.deploy import pipelines
from tests.deploy.pipelines import ACCOUNT, PARAMETERS

NAME = "deployer"
ARN = f"arn:aws:iam::{ACCOUNT.id}:role/{NAME}"
SCHEDULED = Schedule(cron="0 3 * * *")


def deployer(pipeline: Pipeline) -> Identity:
    every = identities(pipeline, ACCOUNT, parameters=PARAMETERS)
    return next(each for each in every if each.who == "deployer")


def allow(aws: EmbeddedAws, policy: dict[str, Any]) -> None:
    aws.client("iam").put_role_policy(
        RoleName=NAME, PolicyName="least", PolicyDocument=json.dumps(policy)
    )


def test_a_deployer_needs_its_whole_policy_and_nothing_more(tmp_path: Path) -> None:
    code = pipelines.source_folder(tmp_path)
    logged = {"logging": {"retention_days": None}, "alias": {"name": "live"}}
    scheduled = pipelines.digits(code, schedule=SCHEDULED, step_functions=logged)
    plain = pipelines.digits(code)
    resting = pipelines.resting(name="digits")
    policies = [deployer(pipeline).policy for pipeline in (scheduled, plain, resting)]
    with EmbeddedAws(enforce_iam=True) as aws:
        aws.client("s3").create_bucket(Bucket=PARAMETERS["bucket"])
        aws.provide(roles=[PARAMETERS["role"], ARN])
        session = aws.acting_as(ARN)
        recorded = [aws.calls(include_jobs=True)]
        for pipeline, policy in zip((scheduled, plain), policies[:2], strict=True):
            allow(aws, policy)
            step_functions(pipeline, session=session, parameters=PARAMETERS)
            recorded.append(aws.calls(include_jobs=True))
        assert step_functions(plain, session=session, parameters=PARAMETERS).changes == ()
        allow(aws, without(policies[1], "iam:GetRole"))
        with pytest.raises(DeployError, match="not authorized to perform: iam:GetRole"):
            step_functions(plain, session=session, parameters=PARAMETERS)
        # The role of a pipeline that calls nothing has no policy: IAM takes none that is empty.
        allow(aws, policies[2])
        step_functions(resting, session=session, parameters=PARAMETERS)
        assert step_functions(resting, session=session, parameters=PARAMETERS).changes == ()
        left = aws.client("iam").list_role_policies(RoleName="digits-us-east-1-states")
        assert left["PolicyNames"] == []
    made, changed = (
        superfluous(policy, after[len(before) :])
        for policy, before, after in zip(policies[:2], recorded, recorded[1:], strict=False)
    )
    assert made == []
    # Nothing new is made by a change that removes a schedule and turns logging off, and a pipeline
    # that is known by its name is looked for under no other.
    assert changed == ["PassRoleToScheduler", "SendCode", "FindStateMachines"]


def without(policy: dict[str, Any], action: str) -> dict[str, Any]:
    kept = [each for each in policy["Statement"] if action not in each["Action"]]
    return {**policy, "Statement": kept}


def superfluous(policy: dict[str, Any], calls: list[RecordedCall]) -> list[str]:
    """The statements without which every call is allowed as well."""
    wanted = [need for call in calls for need in _needs(call) if allows([policy], need)]
    statements = policy["Statement"]
    return [
        each["Sid"]
        for each in statements
        if all(
            allows([{"Statement": [other for other in statements if other is not each]}], need)
            for need in wanted
        )
    ]


def _needs(call: RecordedCall) -> list[Any]:
    try:
        return needs(call.service, call.operation, call.request, ACCOUNT.id, ACCOUNT.region)
    except LookupError:
        return []
