"""Requests for model packages that break the registry's rules, each of them once."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from orchestration.local import EmbeddedAws
from tests.local.breaking.hosting import model
from tests.local.conftest import IMAGE

_numbers = itertools.count()


def group(aws: EmbeddedAws) -> str:
    name = f"models-{next(_numbers)}"
    aws.client("sagemaker").create_model_package_group(ModelPackageGroupName=name)
    return name


def package(aws: EmbeddedAws, **more: Any) -> str:
    specification = {"Containers": [{"Image": IMAGE}]}
    request = {"InferenceSpecification": specification, **more}
    return str(aws.client("sagemaker").create_model_package(**request)["ModelPackageArn"])


def _twice(aws: EmbeddedAws) -> None:
    aws.client("sagemaker").create_model_package_group(ModelPackageGroupName=group(aws))


def _full(aws: EmbeddedAws) -> None:
    name = group(aws)
    package(aws, ModelPackageGroupName=name)
    aws.client("sagemaker").delete_model_package_group(ModelPackageGroupName=name)


def _named_twice(aws: EmbeddedAws) -> None:
    name = f"package-{next(_numbers)}"
    for description in ("one", "another"):
        package(aws, ModelPackageName=name, ModelPackageDescription=description)


def _token_twice(aws: EmbeddedAws) -> None:
    name, token = group(aws), f"token-{next(_numbers)}"
    for description in ("one", "another"):
        package(
            aws,
            ModelPackageGroupName=name,
            ClientToken=token,
            ModelPackageDescription=description,
        )


def _unapproved(aws: EmbeddedAws) -> None:
    arn = package(
        aws, ModelPackageGroupName=group(aws), ModelApprovalStatus="PendingManualApproval"
    )
    model(aws, PrimaryContainer={"ModelPackageName": arn})


BREAKING: dict[str, Callable[[EmbeddedAws], Any]] = {
    "model groups once": _twice,
    "model groups exist": lambda aws: package(aws, ModelPackageGroupName="nowhere"),
    "model groups are empty": _full,
    "groups of others are shared": lambda aws: aws.client("sagemaker").list_model_packages(
        ModelPackageGroupName="arn:aws:sagemaker:us-east-1:444455556666:model-package-group/m"
    ),
    "policies of groups exist": lambda aws: aws.client("sagemaker").get_model_package_group_policy(
        ModelPackageGroupName=group(aws)
    ),
    "packages or versions": lambda aws: package(
        aws, ModelPackageGroupName=group(aws), ModelPackageName="both"
    ),
    "packages have names": package,
    "tags of versions": lambda aws: package(
        aws, ModelPackageGroupName=group(aws), Tags=[{"Key": "team", "Value": "a"}]
    ),
    "packages once": _named_twice,
    "tokens of packages": _token_twice,
    "packages exist": lambda aws: aws.client("sagemaker").describe_model_package(
        ModelPackageName="nowhere"
    ),
    "approved packages": _unapproved,
}
