"""The model registry keeps versions by group, recognises repeated requests, and filters."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestration.local import EmbeddedAws
from tests.local.breaking.hosting import model
from tests.local.breaking.registry import group, package
from tests.local.conftest import put


def listed(aws: EmbeddedAws, name: str, **request: Any) -> list[int]:
    page = aws.client("sagemaker").list_model_packages(ModelPackageGroupName=name, **request)
    return [row["ModelPackageVersion"] for row in page["ModelPackageSummaryList"]]


def test_a_token_makes_one_version_however_often_it_is_sent(aws: EmbeddedAws) -> None:
    name = group(aws)
    arns = {package(aws, ModelPackageGroupName=name, ClientToken=f"of-{name}") for _ in range(2)}
    assert len(arns) == 1
    assert listed(aws, name) == [1]


def test_versions_are_filtered_sorted_and_never_numbered_twice(aws: EmbeddedAws) -> None:
    sagemaker, name = aws.client("sagemaker"), group(aws)
    statuses = ("Approved", "PendingManualApproval", "Approved")
    arns = [package(aws, ModelPackageGroupName=name, ModelApprovalStatus=s) for s in statuses]
    newest_first = {"SortBy": "CreationTime", "SortOrder": "Descending"}
    approved = {"ModelApprovalStatus": "Approved", **newest_first}
    assert listed(aws, name, **approved) == [3, 1]
    group_arn = sagemaker.describe_model_package_group(ModelPackageGroupName=name)
    assert listed(aws, group_arn["ModelPackageGroupArn"], MaxResults=2) == [1, 2]
    sagemaker.delete_model_package(ModelPackageName=arns[2])
    assert package(aws, ModelPackageGroupName=name).endswith("/4")


def test_an_update_changes_what_it_names_and_nothing_else(aws: EmbeddedAws) -> None:
    sagemaker = aws.client("sagemaker")
    arn = package(
        aws,
        ModelPackageGroupName=group(aws),
        ModelApprovalStatus="PendingManualApproval",
        CustomerMetadataProperties={"run": "1", "old": "x"},
    )
    sagemaker.update_model_package(
        ModelPackageArn=arn,
        CustomerMetadataProperties={"by": "ann"},
        CustomerMetadataPropertiesToRemove=["old"],
    )
    described = sagemaker.describe_model_package(ModelPackageName=arn)
    assert described["ModelApprovalStatus"] == "PendingManualApproval"
    assert described["CustomerMetadataProperties"] == {"run": "1", "by": "ann"}


def test_a_model_of_a_package_needs_the_files_that_the_package_names(aws: EmbeddedAws) -> None:
    uri = put(aws, "packages/weights", "x").removesuffix("weights")
    source = {"S3Uri": uri, "S3DataType": "S3Prefix", "CompressionType": "None"}
    specification = {"Containers": [{"Image": "i:1", "ModelDataSource": {"S3DataSource": source}}]}
    arn = package(
        aws,
        ModelPackageGroupName=group(aws),
        ModelApprovalStatus="Approved",
        InferenceSpecification=specification,
    )
    name = model(aws, PrimaryContainer={"ModelPackageName": arn})
    described = aws.client("sagemaker").describe_model(ModelName=name)
    assert described["PrimaryContainer"] == {"ModelPackageName": arn}
    aws.client("s3").delete_object(Bucket=uri.split("/")[2], Key="packages/weights")
    with pytest.raises(ClientError, match="Could not find model data"):
        model(aws, PrimaryContainer={"ModelPackageName": arn})


def test_accounts_have_registries_of_their_own_and_share_what_a_policy_names(
    aws: EmbeddedAws,
) -> None:
    sagemaker, theirs = aws.client("sagemaker"), aws.client("sagemaker", account="444455556666")
    name = group(aws)
    package(aws, ModelPackageGroupName=name)
    arn = theirs.create_model_package_group(ModelPackageGroupName=name)["ModelPackageGroupArn"]
    assert arn == f"arn:aws:sagemaker:us-east-1:444455556666:model-package-group/{name}"
    rows = theirs.list_model_packages(ModelPackageGroupName=name)["ModelPackageSummaryList"]
    assert rows == []
    statement = {
        "Effect": "Allow",
        "Principal": {"AWS": "arn:aws:iam::123456789012:root"},
        "Action": "sagemaker:ListModelPackages",
        "Resource": arn,
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    theirs.put_model_package_group_policy(ModelPackageGroupName=name, ResourcePolicy=policy)
    read = theirs.get_model_package_group_policy(ModelPackageGroupName=name)
    assert read["ResourcePolicy"] == policy
    assert sagemaker.list_model_packages(ModelPackageGroupName=arn)["ModelPackageSummaryList"] == []
    with pytest.raises(ClientError, match="allows the sagemaker:CreateModelPackage action"):
        package(aws, ModelPackageGroupName=arn)
    theirs.delete_model_package_group_policy(ModelPackageGroupName=name)
    with pytest.raises(ClientError, match="AccessDeniedException"):
        sagemaker.list_model_packages(ModelPackageGroupName=arn)
