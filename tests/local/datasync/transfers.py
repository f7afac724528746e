"""Transfers between two prefixes of the embedded S3, as DataSync's API takes them."""

from __future__ import annotations

import json
from typing import Any

from orchestration.local import EmbeddedAws
from tests.local.conftest import wait

BUCKET = "synced"
GROUP = "arn:aws:ec2:us-east-1:123456789012:security-group/sg-0123abcd"
SERVICE = "datasync.amazonaws.com"


def role(aws: EmbeddedAws, name: str, service: str = SERVICE) -> str:
    """Return the ARN of a new role that a service may assume."""
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
        ],
    }
    iam = aws.client("iam")
    made = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(trust))
    return str(made["Role"]["Arn"])


class Transfers:
    """What the tests need of DataSync in one account."""

    def __init__(self, aws: EmbeddedAws) -> None:
        self.aws, self.api, self.s3 = aws, aws.client("datasync"), aws.client("s3")
        self.s3.create_bucket(Bucket=BUCKET)
        self.role = role(aws, "DataSync")

    def put(self, *keys: str) -> None:
        for key in keys:
            self.s3.put_object(Bucket=BUCKET, Key=key, Body=key.encode())

    def keys(self, prefix: str) -> list[str]:
        listed = self.s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix)
        return [entry["Key"] for entry in listed.get("Contents", [])]

    def location(self, prefix: str, **more: Any) -> str:
        request = {
            "S3BucketArn": f"arn:aws:s3:::{BUCKET}",
            "Subdirectory": prefix,
            "S3Config": {"BucketAccessRoleArn": self.role},
            **more,
        }
        return str(self.api.create_location_s3(**request)["LocationArn"])

    def file_system(self, *, available: bool = True) -> str:
        """Return the ARN of a new file system, with a security group that reaches it."""
        self.aws.provide(subnets=["subnet-0123abcd"], security_groups=["sg-0123abcd"])
        fsx = self.aws.client("fsx")
        made = fsx.create_file_system(
            FileSystemType="LUSTRE",
            StorageCapacity=1200,
            SubnetIds=["subnet-0123abcd"],
            LustreConfiguration={"DeploymentType": "SCRATCH_2"},
        )["FileSystem"]
        if available:
            wait(
                lambda: fsx.describe_file_systems(FileSystemIds=[made["FileSystemId"]]),
                lambda described: described["FileSystems"][0]["Lifecycle"] == "AVAILABLE",
            )
        return str(made["ResourceARN"])

    def lustre(self, system: str, **more: Any) -> str:
        request = {"FsxFilesystemArn": system, "SecurityGroupArns": [GROUP], **more}
        return str(self.api.create_location_fsx_lustre(**request)["LocationArn"])

    def task(self, source: str, target: str, **more: Any) -> str:
        request: dict[str, Any] = {
            "SourceLocationArn": self.location(source),
            "DestinationLocationArn": self.location(target),
            "TaskMode": "ENHANCED",
            **more,
        }
        return str(self.api.create_task(**request)["TaskArn"])

    def start(self, task: str) -> str:
        return str(self.api.start_task_execution(TaskArn=task)["TaskExecutionArn"])

    def status(self, execution: str) -> str:
        return str(self.api.describe_task_execution(TaskExecutionArn=execution)["Status"])

    def ended(self, execution: str) -> dict[str, Any]:
        return wait(
            lambda: self.api.describe_task_execution(TaskExecutionArn=execution),
            lambda described: described["Status"] in ("SUCCESS", "ERROR"),
        )
