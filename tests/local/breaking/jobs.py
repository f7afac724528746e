"""Requests for training and processing jobs that break SageMaker's rules, each of them once."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

from orchestration.local import EmbeddedAws
from tests.local.conftest import (
    BUCKET,
    GROUP,
    IMAGE,
    ROLE,
    SUBNET,
    finished_training,
    training_request,
    wait,
)

ELSEWHERE = "bucket-in-ireland"
THEIRS = "bucket-of-another-account"
FOREIGN = "763104351884.dkr.ecr.eu-west-1.amazonaws.com/pytorch-training:2.9"
NETWORK = {"Subnets": [SUBNET], "SecurityGroupIds": [GROUP]}
_numbers = itertools.count()


def channel(name: str = "data", /, uri: str = f"s3://{BUCKET}/data", **more: Any) -> dict[str, Any]:
    source = {"S3DataType": "S3Prefix", "S3Uri": uri, **more.pop("source", {})}
    return {"ChannelName": name, "DataSource": {"S3DataSource": source}, **more}


def mounted(system: str = "fs-0123456789abcdef0") -> dict[str, Any]:
    source = {
        "FileSystemId": system,
        "FileSystemType": "FSxLustre",
        "FileSystemAccessMode": "ro",
        "DirectoryPath": "/fsx",
    }
    return {"ChannelName": "data", "DataSource": {"FileSystemDataSource": source}}


def cluster(**more: Any) -> dict[str, Any]:
    resources = {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10, **more}
    return {"ResourceConfig": {key: value for key, value in resources.items() if value is not None}}


def groups(*names: str, **more: Any) -> dict[str, Any]:
    listed = [
        {"InstanceGroupName": name, "InstanceType": "ml.m5.large", "InstanceCount": 1}
        for name in names
    ]
    return cluster(InstanceType=None, InstanceCount=None, InstanceGroups=listed, **more)


def image(uri: str) -> dict[str, Any]:
    return {"AlgorithmSpecification": {"TrainingImage": uri, "TrainingInputMode": "File"}}


def train(aws: EmbeddedAws, **more: Any) -> dict[str, Any]:
    request = training_request(f"breaking-{next(_numbers)}", f"s3://{BUCKET}/code.tar.gz", **more)
    aws.client("sagemaker").create_training_job(
        **{key: value for key, value in request.items() if value is not None}
    )
    return request


def process(aws: EmbeddedAws, **more: Any) -> dict[str, Any]:
    request = {
        "ProcessingJobName": f"breaking-{next(_numbers)}",
        "ProcessingResources": {
            "ClusterConfig": {
                "InstanceCount": 1,
                "InstanceType": "ml.m5.large",
                "VolumeSizeInGB": 10,
            }
        },
        "AppSpecification": {"ImageUri": IMAGE, "ContainerEntrypoint": ["true"]},
        "RoleArn": ROLE,
        **more,
    }
    aws.client("sagemaker").create_processing_job(**request)
    return request


def _training(**more: Any) -> Callable[[EmbeddedAws], Any]:
    return lambda aws: train(aws, **more)


def _processing(**more: Any) -> Callable[[EmbeddedAws], Any]:
    return lambda aws: process(aws, **more)


def transform(aws: EmbeddedAws, **more: Any) -> str:
    """Ask for a transform job of a model that does not load."""
    name = f"transforming-{next(_numbers)}"
    sagemaker = aws.client("sagemaker")
    sagemaker.create_model(ModelName=name, PrimaryContainer={"Image": IMAGE}, ExecutionRoleArn=ROLE)
    request = {
        "TransformJobName": name,
        "ModelName": name,
        "TransformInput": _transformed(f"s3://{BUCKET}/data"),
        "TransformOutput": {"S3OutputPath": f"s3://{BUCKET}/predictions"},
        "TransformResources": {"InstanceType": "ml.m5.large", "InstanceCount": 1},
        **more,
    }
    sagemaker.create_transform_job(**request)
    return name


def _transformed(uri: str) -> dict[str, Any]:
    return {"DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": uri}}}


def _transform(**more: Any) -> Callable[[EmbeddedAws], Any]:
    return lambda aws: transform(aws, **more)


def _transformed_twice(aws: EmbeddedAws) -> None:
    name = transform(aws)
    sagemaker = aws.client("sagemaker")
    ended = wait(
        lambda: sagemaker.describe_transform_job(TransformJobName=name),
        lambda job: job["TransformJobStatus"] != "InProgress",
    )
    assert ended["FailureReason"].startswith(
        "AlgorithmError: missing code/inference.py in the model; a container of your own is "
    )
    transform(aws, TransformJobName=name)


def _input(name: str, path: str = "/opt/ml/processing/input") -> dict[str, Any]:
    place = {"S3Uri": f"s3://{BUCKET}/data", "S3DataType": "S3Prefix", "LocalPath": path}
    return {"InputName": name, "S3Input": {**place, "S3InputMode": "File"}}


def _gzipped() -> dict[str, Any]:
    whole = _input("a")
    return {**whole, "S3Input": {**whole["S3Input"], "S3CompressionType": "Gzip"}}


def _output(name: str) -> dict[str, Any]:
    place = {"S3Uri": f"s3://{BUCKET}/out", "LocalPath": "/opt/ml/processing/out"}
    return {"OutputName": name, "S3Output": {**place, "S3UploadMode": "EndOfJob"}}


def _untrusted(aws: EmbeddedAws) -> None:
    statement = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}}
    trust = {"Version": "2012-10-17", "Statement": [{**statement, "Action": "sts:AssumeRole"}]}
    made = aws.client("iam").create_role(
        RoleName="of-lambda", AssumeRolePolicyDocument=json.dumps(trust)
    )
    train(aws, RoleArn=made["Role"]["Arn"])


def _other_zone(aws: EmbeddedAws) -> None:
    ec2, fsx = aws.client("ec2"), aws.client("fsx")
    zones = {each["AvailabilityZone"]: each for each in ec2.describe_subnets()["Subnets"]}
    here, there = (zones[f"{aws.region}{letter}"]["SubnetId"] for letter in "bc")
    system = fsx.create_file_system(
        FileSystemType="LUSTRE",
        StorageCapacity=1200,
        SubnetIds=[here],
        LustreConfiguration={"DeploymentType": "SCRATCH_2"},
    )["FileSystem"]["FileSystemId"]
    network = {"Subnets": [there], "SecurityGroupIds": [GROUP]}
    train(aws, InputDataConfig=[mounted(system)], VpcConfig=network)


def _trained_twice(aws: EmbeddedAws) -> None:
    name = train(aws)["TrainingJobName"]
    finished_training(aws, name)
    train(aws, TrainingJobName=name)


def _ended_processing(aws: EmbeddedAws, **more: Any) -> str:
    name = str(process(aws, **more)["ProcessingJobName"])
    sagemaker = aws.client("sagemaker")
    wait(
        lambda: sagemaker.describe_processing_job(ProcessingJobName=name),
        lambda job: job["ProcessingJobStatus"] != "InProgress",
    )
    return name


def _stopped_twice(aws: EmbeddedAws) -> None:
    name = _ended_processing(aws)
    aws.client("sagemaker").stop_processing_job(ProcessingJobName=name)


def _tagged(aws: EmbeddedAws) -> None:
    name = _ended_processing(aws, Tags=_tags(40))
    arn = aws.client("sagemaker").describe_processing_job(ProcessingJobName=name)
    more = [{"Key": f"more{number}", "Value": "x"} for number in range(11)]
    aws.client("sagemaker").add_tags(ResourceArn=arn["ProcessingJobArn"], Tags=more)


def _tags(count: int) -> list[dict[str, str]]:
    return [{"Key": f"key{number}", "Value": "x"} for number in range(count)]


def _add_to_nothing(aws: EmbeddedAws) -> None:
    arn = f"arn:aws:sagemaker:{aws.region}:123456789012:training-job/no-such-job"
    aws.client("sagemaker").add_tags(ResourceArn=arn, Tags=_tags(1))


SPOT = {"EnableManagedSpotTraining": True}
TIME = {"MaxRuntimeInSeconds": 3600}
TWICE = [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}]

BREAKING: dict[str, Callable[[EmbeddedAws], Any]] = {
    "role": _training(RoleArn="arn:aws:iam::123456789012:role/no-such-role"),
    "subnets exist": _training(VpcConfig={**NETWORK, "Subnets": ["subnet-0123456789abcdef9"]}),
    "security groups exist": _processing(
        NetworkConfig={"VpcConfig": {**NETWORK, "SecurityGroupIds": ["sg-0123456789abcdef9"]}}
    ),
    "tag keys of AWS": _training(Tags=[{"Key": "AWS:owner", "Value": "me"}]),
    "tag keys once": _training(Tags=TWICE),
    "tags at most": _tagged,
    "tagged resource exists": _add_to_nothing,
    "cluster is required": _training(ResourceConfig=None),
    "time is required": _training(StoppingCondition=None),
    "type or groups": _training(
        **cluster(InstanceGroups=groups("a")["ResourceConfig"]["InstanceGroups"])
    ),
    "count of a type": _training(**cluster(InstanceCount=0)),
    "groups have names": _training(**groups("a", "a")),
    "channels name groups": _training(
        **groups("a"), InputDataConfig=[channel(source={"InstanceGroupNames": ["b"]})]
    ),
    "all channels name groups": _training(
        **groups("a"),
        InputDataConfig=[channel(source={"InstanceGroupNames": ["a"]}), channel("other")],
    ),
    "wait needs spot": _training(StoppingCondition={**TIME, "MaxWaitTimeInSeconds": 7200}),
    "spot needs wait": _training(**SPOT, StoppingCondition={**TIME, "MaxWaitTimeInSeconds": 60}),
    "28 days": _training(StoppingCondition={"MaxRuntimeInSeconds": 28 * 86_400 + 1}),
    "pools and spot": _training(
        **SPOT,
        **cluster(KeepAlivePeriodInSeconds=60),
        StoppingCondition={**TIME, "MaxWaitTimeInSeconds": 3600},
    ),
    "pools and groups": _training(**groups("a", KeepAlivePeriodInSeconds=60)),
    "an hour of pool": _training(**cluster(KeepAlivePeriodInSeconds=3601)),
    "keys of local storage": _training(
        **cluster(InstanceType="ml.g5.xlarge", VolumeKmsKeyId="1234abcd")
    ),
    "training image's region": _training(**image(FOREIGN)),
    "channels once": _training(InputDataConfig=[channel(), channel()]),
    "objects in S3": _training(InputDataConfig=[channel(uri=f"s3://{BUCKET}/nothing/")]),
    "augmented manifests are piped": _training(
        InputDataConfig=[channel(source={"S3DataType": "AugmentedManifestFile"})]
    ),
    "compressed data is piped": _training(InputDataConfig=[channel(CompressionType="Gzip")]),
    "mounts need a VPC": _training(InputDataConfig=[mounted()]),
    "zone of the file system": _other_zone,
    "processing image's region": _processing(
        AppSpecification={"ImageUri": FOREIGN, "ContainerEntrypoint": ["true"]}
    ),
    "inputs once": _processing(ProcessingInputs=[_input("a"), _input("a", "/opt/ml/processing/a")]),
    "outputs once": _processing(ProcessingOutputConfig={"Outputs": [_output("a"), _output("a")]}),
    "local paths once": _processing(ProcessingInputs=[_input("a"), _input("b")]),
    "inputs below /opt/ml/processing": _processing(ProcessingInputs=[_input("a", "/opt/ml/data")]),
    "compressed inputs are piped": _processing(ProcessingInputs=[_gzipped()]),
    "batches are of records": _transform(BatchStrategy="MultiRecord"),
    "100 MB of payload": _transform(MaxPayloadInMB=60, MaxConcurrentTransforms=2),
    "filters are JSONPath": _transform(DataProcessing={"InputFilter": "features"}),
    "transform names once": _transformed_twice,
    "training names once": _trained_twice,
    "processing names once": lambda aws: process(aws, ProcessingJobName=_ended_processing(aws)),
    "jobs exist": lambda aws: aws.client("sagemaker").describe_training_job(
        TrainingJobName="no-such-job"
    ),
    "jobs to stop run": _stopped_twice,
}

ALSO: dict[str, tuple[str, Callable[[EmbeddedAws], Any]]] = {
    "a role that SageMaker may not assume": ("role", _untrusted),
    "a processing job's role": (
        "role",
        _processing(RoleArn="arn:aws:iam::123456789012:role/no-such-role"),
    ),
    "neither type nor groups": ("type or groups", _training(**cluster(InstanceType=None))),
    "a bucket that does not exist": (
        "objects in S3",
        _training(InputDataConfig=[channel(uri="s3://no-such-bucket/data")]),
    ),
    "a bucket of another region": (
        "objects in S3",
        _training(InputDataConfig=[channel(uri=f"s3://{ELSEWHERE}/data")]),
    ),
    "a bucket of another account": (
        "objects in S3",
        _training(InputDataConfig=[channel(uri=f"s3://{THEIRS}/data")]),
    ),
    "a transform of nothing": (
        "objects in S3",
        _transform(TransformInput=_transformed(f"s3://{BUCKET}/nothing/")),
    ),
    "a transform of a bucket of another region": (
        "objects in S3",
        _transform(TransformInput=_transformed(f"s3://{ELSEWHERE}/data")),
    ),
    "a transform of a bucket of another account": (
        "objects in S3",
        _transform(TransformInput=_transformed(f"s3://{THEIRS}/data")),
    ),
    "spot without a wait": ("spot needs wait", _training(**SPOT)),
}
"""Other ways to break a rule: what is wrong, and the rule."""
