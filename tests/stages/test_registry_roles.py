"""Roles by which stages read and write the registries of other accounts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from orchestration import Pipeline, PipelineError
from orchestration.backends import stepfunctions
from orchestration.expressions import Parameter
from orchestration.graph import Call, all_steps, operations
from orchestration.graph.codec import decode, encode

ROLE = "arn:aws:iam::444455556666:role/registry"
GROUP = "arn:aws:sagemaker:us-east-1:444455556666:model-package-group/prices"
VERSION = "arn:aws:sagemaker:us-east-1:444455556666:model-package/prices/1"
IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/x:1"
STAGES: Mapping[str, dict[str, Any]] = {
    "register": {
        "kind": "model_registration",
        "package_group": GROUP,
        "model_data": "s3://bucket/model",
        "image": IMAGE,
    },
    "decide": {"kind": "model_approval", "model_package": VERSION},
    "deploy": {"kind": "deployment", "package_group": GROUP, "instance_type": "ml.m5.large"},
    "evaluate": {
        "kind": "checkpoint_evaluation",
        "model": "s3://bucket/m",
        "data": "s3://bucket/d",
        "image": IMAGE,
        "source": {"uri": "s3://bucket/code", "entry_point": "evaluate.py"},
        "instance_type": "ml.m5.large",
        "metric": "accuracy",
        "direction": "max",
        "champion": {"package_group": GROUP},
    },
}
REGISTRY = {
    "register": {"CreateModelPackage", "DescribeModelPackage", "ListModelPackages"},
    "decide": {"UpdateModelPackage"},
    "deploy": {"ListModelPackages"},
    "evaluate": {"DescribeModelPackage", "ListModelPackages"},
}


def pipeline(stage: str, role: Any = ROLE, **fields: Any) -> Pipeline:
    described = {**STAGES[stage], **fields}
    if stage == "evaluate":
        described["champion"] = {**described["champion"], "registry_role": role}
    else:
        described["registry_role"] = role
    return Pipeline.parse(
        {
            "name": "p",
            "region": "us-east-1",
            "workspace": "s3://bucket/runs",
            "role": "arn:aws:iam::111122223333:role/SageMaker",
            "parameters": {"registry": {}},
            "stages": {stage: described},
        }
    )


def calls(made: Pipeline) -> list[Call]:
    return [step for step in all_steps(made.lower().graph) if isinstance(step, Call)]


def tasks(machine: Any) -> Iterator[dict[str, Any]]:
    for state in machine["States"].values():
        if state["Type"] == "Task":
            yield state
        for inner in (*state.get("Branches", ()), state.get("ItemProcessor")):
            if inner is not None:
                yield from tasks(inner)


@pytest.mark.parametrize("stage", STAGES)
def test_the_role_is_assumed_for_the_requests_to_the_registry_alone(stage: str) -> None:
    made = pipeline(stage)
    sent = [each for call in calls(made) for each in operations(call)]
    assert {each.name for each in sent if each.assumes == ROLE} == REGISTRY[stage]
    assert {each.assumes for each in sent} <= {ROLE, None}
    rendered = list(tasks(stepfunctions.render(made.lower())))
    as_role = {task["Resource"].rpartition(":")[2] for task in rendered if "Credentials" in task}
    assert as_role == {name[0].lower() + name[1:] for name in REGISTRY[stage]}
    assert {task["Credentials"]["RoleArn"] for task in rendered if "Credentials" in task} == {ROLE}


def test_a_role_may_be_a_parameter() -> None:
    made = pipeline("deploy", {"parameter": "registry"})
    [look] = [call for call in calls(made) if call.operation.name == "ListModelPackages"]
    assert look.operation.assumes == Parameter("registry")
    assert decode(encode(look)) == look
    [task] = [t for t in tasks(stepfunctions.render(made.lower())) if "Credentials" in t]
    assert task["Credentials"]["RoleArn"].startswith("{%")


@pytest.mark.parametrize(
    ("stage", "role", "fields", "expected"),
    [
        ("decide", "registry", {}, "registry_role: expected arn:aws:iam::<account>:role/<name>"),
        (
            "register",
            ROLE,
            {"package_group": "prices"},
            "package_group: is of the role's account; name it by its ARN, "
            "arn:aws:sagemaker:<region>:444455556666:model-package-group/prices",
        ),
        (
            "deploy",
            ROLE.replace("4444", "9999"),
            {},
            "registry_role: is of account 999955556666, and the group of account 444455556666",
        ),
        (
            "deploy",
            ROLE.replace("arn:aws:", "arn:aws-cn:"),
            {},
            "registry_role: is of partition aws-cn, and the group of partition aws",
        ),
        (
            "deploy",
            ROLE,
            {"package_group": None, "model_package": VERSION},
            "registry_role: only a package_group is read; remove this",
        ),
        (
            "evaluate",
            ROLE,
            {"champion": {"endpoint": "prices"}},
            "champion.registry_role: only a package_group is read; remove this",
        ),
    ],
)
def test_roles_that_cannot_be_assumed_are_refused(
    stage: str, role: str, fields: dict[str, Any], expected: str
) -> None:
    with pytest.raises(PipelineError) as error:
        pipeline(stage, role, **fields).lower()
    assert f"stages.{stage}.{expected}" in str(error.value)
