"""Model groups of other accounts: both sides' policies allow the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestration import DeployError, Pipeline
from orchestration.deploy import desired
from orchestration.deploy.account import Account
from orchestration.deploy.identities import identities
from orchestration.deploy.other_accounts import warnings

OWN = Account(id="111122223333", region="us-east-1")
OWNER = "444455556666"
GROUP = f"arn:aws:sagemaker:us-east-1:{OWNER}:model-package-group/prices"
VERSIONS = f"arn:aws:sagemaker:us-east-1:{OWNER}:model-package/prices/*"
READ = ["sagemaker:DescribeModelPackage", "sagemaker:ListModelPackages"]
DEPLOYMENT: dict[str, Any] = {
    "kind": "deployment",
    "package_group": GROUP,
    "instance_type": "ml.m5.large",
}
EVALUATION: dict[str, Any] = {
    "kind": "checkpoint_evaluation",
    "model": "s3://bucket/m",
    "data": "s3://bucket/d",
    "image": "111122223333.dkr.ecr.us-east-1.amazonaws.com/x:1",
    "source": {"uri": "s3://bucket/code", "entry_point": "evaluate.py"},
    "instance_type": "ml.m5.large",
    "metric": "accuracy",
    "direction": "max",
    "champion": {"package_group": GROUP},
}


def pipeline(stage: dict[str, Any], account: str = OWN.id) -> Pipeline:
    return Pipeline.parse(
        {
            "name": "p",
            "region": "us-east-1",
            "workspace": "s3://bucket/runs",
            "role": f"arn:aws:iam::{account}:role/SageMaker",
            "parameters": {
                name: {} for name in ("registry", "version") if f"'{name}'" in str(stage)
            },
            "stages": {"stage": stage},
        }
    )


def policy_in(text: str) -> Any:
    assert text.startswith(f"model group prices belongs to account {OWNER}")
    return json.loads(text[text.index("{") :])


@pytest.mark.parametrize(
    ("stage", "actions"),
    [(DEPLOYMENT, ["sagemaker:CreateModel", *READ]), (EVALUATION, READ)],
)
def test_the_owner_is_told_to_allow_what_the_role_may(
    stage: dict[str, Any], actions: list[str]
) -> None:
    wanted = desired(pipeline(stage), OWN)
    [warning] = warnings(wanted)
    [statement] = policy_in(warning)["Statement"]
    assert statement["Principal"] == {"AWS": wanted.machine.role_arn}
    assert (statement["Action"], statement["Resource"]) == (actions, [GROUP, VERSIONS])
    allowed = [
        action
        for each in wanted.role.policy["Statement"]
        if VERSIONS in each["Resource"]
        for action in each["Action"]
    ]
    assert sorted(allowed) == actions


def test_each_who_runs_it_has_a_note_for_the_owner() -> None:
    principals = {
        each.who: policy_in(note)["Statement"][0]["Principal"]["AWS"]
        for each in identities(pipeline(DEPLOYMENT), OWN)
        for note in each.notes
        if GROUP in note
    }
    assert principals == {
        "machine": "arn:aws:iam::111122223333:role/p-us-east-1-states",
        "airflow": "arn:aws:iam::111122223333:root",
    }


ROLE = f"arn:aws:iam::{OWNER}:role/registry"
BY_ROLE = {**DEPLOYMENT, "registry_role": ROLE}


def test_a_role_that_is_assumed_gets_what_the_own_one_then_does_without() -> None:
    wanted = desired(pipeline(BY_ROLE), OWN)
    machine = wanted.role.policy["Statement"]
    [assuming] = [each for each in machine if each["Action"] == ["sts:AssumeRole"]]
    assert assuming["Resource"] == [ROLE]
    assert not any("sagemaker:ListModelPackages" in each["Action"] for each in machine)
    group, role = warnings(wanted)
    [shared] = policy_in(group)["Statement"]
    assert shared["Action"] == ["sagemaker:CreateModel", "sagemaker:DescribeModelPackage"]
    trust, permissions = policies_in(role)
    assert trust["Statement"][0]["Principal"] == {"AWS": wanted.machine.role_arn}
    assert [(each["Action"], each["Resource"]) for each in permissions["Statement"]] == [
        (["sagemaker:ListModelPackages"], [VERSIONS])
    ]


def policies_in(told: str) -> list[Any]:
    """Return the trust policy of a role and its permissions, as its owner is told them."""
    assert told.startswith(f"role registry of account {OWNER} is assumed")
    decoder, found, rest = json.JSONDecoder(), [], told
    while "{" in rest:
        rest = rest[rest.index("{") :]
        document, end = decoder.raw_decode(rest)
        found.append(document)
        rest = rest[end:]
    return found


def test_a_role_that_is_a_parameter_is_known_once_it_has_a_value() -> None:
    made = pipeline({**DEPLOYMENT, "registry_role": {"parameter": "registry"}})
    with pytest.raises(DeployError, match="parameter 'registry' has no value"):
        desired(made, OWN)
    assert [each.arn for each in desired(made, OWN, parameters={"registry": ROLE}).assumed] == [
        ROLE
    ]


def test_a_role_that_only_a_run_knows_is_one_of_the_account_of_the_group() -> None:
    made = pipeline({**DEPLOYMENT, "registry_role": {"parameter": "registry"}})
    wanted = desired(made, OWN, unrestricted=["registry"])
    [assuming] = [
        each for each in wanted.role.policy["Statement"] if each["Action"] == ["sts:AssumeRole"]
    ]
    assert assuming["Resource"] == [f"arn:aws:iam::{OWNER}:role/*"]


def test_a_role_that_only_a_run_knows_is_refused_where_no_account_is_known() -> None:
    stage = {
        "kind": "model_approval",
        "model_package": {"parameter": "version"},
        "registry_role": {"parameter": "registry"},
    }
    made = pipeline(stage)
    with pytest.raises(DeployError, match="stage stage: give registry_role a value, or name the"):
        desired(made, OWN, unrestricted=["registry", "version"])
    given = {"version": f"arn:aws:sagemaker:us-east-1:{OWNER}:model-package/prices/3"}
    wanted = desired(made, OWN, unrestricted=["registry"], parameters=given)
    assert f"arn:aws:iam::{OWNER}:role/*" in str(wanted.role.policy)


def test_each_who_runs_it_is_told_what_the_role_must_trust() -> None:
    principals = {
        each.who: policies_in(note)[0]["Statement"][0]["Principal"]["AWS"]
        for each in identities(pipeline(BY_ROLE), OWN)
        for note in each.notes
        if note.startswith("role ")
    }
    assert principals == {
        "machine": "arn:aws:iam::111122223333:role/p-us-east-1-states",
        "airflow": "arn:aws:iam::111122223333:root",
    }


def test_a_group_of_ones_own_account_needs_no_other_policy() -> None:
    own = Account(id=OWNER, region="us-east-1")
    assert list(warnings(desired(pipeline(DEPLOYMENT, OWNER), own))) == []
