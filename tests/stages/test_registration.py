"""``model_registration`` and ``model_approval``, checked before anything runs."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from orchestration import Pipeline, PipelineError
from orchestration.backends import stepfunctions
from orchestration.deploy.account import Account
from orchestration.deploy.permissions import policy
from orchestration.graph import Call, all_steps
from tests import guides

REGISTER: dict[str, Any] = {
    "kind": "model_registration",
    "package_group": "prices",
    "model_data": "s3://bucket/model/",
    "image": "image:1",
}


def pipeline(**fields: Any) -> Pipeline:
    stages = {"register": {**REGISTER, **fields}}
    return Pipeline.parse({"name": "p", "workspace": "s3://bucket/runs", "stages": stages})


def requests(made: Pipeline) -> dict[str, Any]:
    steps = all_steps(made.lower().graph)
    return {s.name: s.operation.request for s in steps if isinstance(s, Call)}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"approval": "approved", "approve_when": {"equal": [{"run": "id"}, "x"]}},
            "stages.register.approve_when: every version is approved",
        ),
        (
            {"metadata": {"orchestration:run": "mine"}},
            "stages.register.metadata.orchestration:run: names with orchestration: are",
        ),
        ({"model_data": "model"}, "stages.register.model_data: expected an S3 URI"),
        (
            {"extra_request": {"CreateModelPackage": {"ModelApprovalStatus": "Approved"}}},
            "stages.register.extra_request: extra_request.CreateModelPackage.ModelApprovalStatus",
        ),
    ],
)
def test_mistakes_are_found_when_it_is_loaded(fields: Any, expected: str) -> None:
    with pytest.raises(PipelineError) as error:
        pipeline(**fields).lower()
    assert str(error.value.problems[0])[: len(expected)] == expected


def test_a_group_of_another_account_is_not_created() -> None:
    arn = "arn:aws:sagemaker:us-east-1:444455556666:model-package-group/prices"
    made = requests(pipeline(package_group=arn))
    assert "register.group" not in made
    assert made["register.create"]["ModelPackageGroupName"] == arn


def test_a_group_has_no_tag_of_a_run() -> None:
    tags = requests(pipeline())["register.group"]["Tags"]
    assert [tag["Key"] for tag in tags] == ["orchestration:pipeline"]


def allowed(made: Pipeline) -> dict[str, set[str]]:
    account = Account(id="123456789012", region="us-east-1", partition="aws")
    resources: dict[str, set[str]] = {}
    for each in policy(made.lower(), account, [{"role": "role"}])["Statement"]:
        for action in each["Action"]:
            resources.setdefault(action.partition(":")[2], set()).update(each["Resource"])
    return resources


def test_a_run_may_write_to_its_own_group() -> None:
    group = "arn:aws:sagemaker:us-east-1:123456789012:model-package-group/prices"
    actions = allowed(pipeline())
    assert actions["CreateModelPackageGroup"] == {group}
    assert group in actions["CreateModelPackage"]


def test_a_run_may_write_to_the_group_of_another_account() -> None:
    place = "arn:aws:sagemaker:us-east-1:444455556666"
    actions = allowed(pipeline(package_group=f"{place}:model-package-group/prices"))
    versions = f"{place}:model-package/prices/*"
    assert {f"{place}:model-package-group/prices", versions} <= actions["CreateModelPackage"]
    assert versions in actions["DescribeModelPackage"]


def test_what_the_guide_shows_is_rendered() -> None:
    whole, *parts = guides.shown(guides.REGISTRY, "yaml")
    assert len(parts) == 2
    for part in parts:
        shown = yaml.safe_load(whole)
        shown["stages"] |= yaml.safe_load(part)
        stepfunctions.render(Pipeline.parse(shown).lower())


def deployment(**fields: Any) -> Pipeline:
    stage = {"kind": "deployment", "instance_type": "ml.m5.large", **fields}
    return Pipeline.parse(
        {"name": "p", "workspace": "s3://bucket/runs", "stages": {"deploy": stage}}
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "stages.deploy.model_data: is needed; or a model_package, or a package_group"),
        (
            {"package_group": "prices", "image": "image:1"},
            "stages.deploy.image: the registered version has its own; remove this",
        ),
        (
            {"package_group": "prices", "model_package": "prices/1"},
            "stages.deploy.package_group: there is model_package already; remove one of them",
        ),
    ],
)
def test_a_deployment_knows_one_model(fields: Any, expected: str) -> None:
    with pytest.raises(PipelineError) as error:
        deployment(**fields).lower()
    assert str(error.value.problems[0]) == expected


def test_a_group_of_another_account_can_be_deployed_from() -> None:
    place = "arn:aws:sagemaker:us-east-1:444455556666"
    actions = allowed(deployment(package_group=f"{place}:model-package-group/prices"))
    assert f"{place}:model-package/prices/*" in actions["CreateModel"]
