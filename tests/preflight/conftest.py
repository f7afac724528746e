"""An account in which a pipeline is healthy; each test breaks one thing of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from orchestration import Pipeline
from orchestration.local import EmbeddedAws
from orchestration.preflight import Finding, examine

ROLE = "arn:aws:iam::123456789012:role/jobs"
REGISTRY = "123456789012.dkr.ecr.us-east-1.amazonaws.com"
TRAINING = f"""\
name: NAME
parameters: {{bucket: {{default: workspace}}, role: {{default: "{ROLE}"}}}}
workspace: {{join: ["s3://", {{parameter: bucket}}, /work]}}
stages:
  train:
    kind: training_job
    image: {REGISTRY}/train:1
    entrypoint: [python3, train.py]
    channels: {{training: "s3://incoming/set"}}
    cluster: {{instance_type: ml.c5.xlarge, instance_count: 2}}
    max_runtime_s: 3600
"""
Examine = Callable[..., list[Finding]]


def pipeline(text: str = TRAINING, *changes: tuple[str, str], name: str = "healthy") -> Pipeline:
    """The pipeline with parts of its text replaced."""
    import yaml

    text = text.replace("NAME", name)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return Pipeline.parse(yaml.safe_load(text))


def trust(*services: str) -> str:
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": list(services)},
        "Action": "sts:AssumeRole",
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def allowing(*actions: str) -> str:
    statement = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def role(
    aws: EmbeddedAws, arn: str, *actions: str, service: str = "sagemaker.amazonaws.com"
) -> str:
    """Make a role that a service may assume and that may do these things."""
    name = arn.rpartition("/")[2]
    iam = aws.client("iam")
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust(service))
    if actions:
        iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=allowing(*actions))
    return arn


ALONE = "application/vnd.docker.distribution.manifest.v2+json"
INDEX = "application/vnd.oci.image.index.v1+json"


def push(aws: EmbeddedAws, tag: str, *architectures: str, **variables: str) -> None:
    """Put an image into the repository, or an index of one for each of several architectures."""
    if len(architectures) < 2:
        _push(aws, manifest(aws, *architectures, **variables), imageTag=tag)
        return
    members = [
        {
            "mediaType": ALONE,
            "size": 1,
            "digest": _push(aws, manifest(aws, each, **variables), imageTag=f"{tag}-{each}"),
            "platform": {"architecture": each, "os": "linux"},
        }
        for each in architectures
    ]
    _push(aws, {"schemaVersion": 2, "mediaType": INDEX, "manifests": members}, imageTag=tag)


def manifest(aws: EmbeddedAws, architecture: str = "amd64", **variables: str) -> dict[str, Any]:
    """Upload the configuration of an image, as Docker does, and return its manifest."""
    environment = [f"{name}={value}" for name, value in variables.items()]
    content = {"architecture": architecture, "os": "linux", "config": {"Env": environment}}
    config = json.dumps(content).encode()
    ecr, where = aws.client("ecr"), {"repositoryName": "train"}
    upload = ecr.initiate_layer_upload(**where)["uploadId"]
    ecr.upload_layer_part(
        **where, uploadId=upload, partFirstByte=0, partLastByte=len(config) - 1,
        layerPartBlob=config,
    )  # fmt: skip
    digest = f"sha256:{hashlib.sha256(config).hexdigest()}"
    ecr.complete_layer_upload(**where, uploadId=upload, layerDigests=[digest])
    own = {
        "mediaType": "application/vnd.docker.container.image.v1+json",
        "size": len(config),
        "digest": digest,
    }
    return {"schemaVersion": 2, "mediaType": ALONE, "config": own, "layers": [own]}


def _push(aws: EmbeddedAws, document: dict[str, Any], **named: str) -> str:
    made = aws.client("ecr").put_image(
        repositoryName="train",
        imageManifest=json.dumps(document),
        imageManifestMediaType=document["mediaType"],
        **named,
    )
    return str(made["image"]["imageId"]["imageDigest"])


class Stubbed:
    """The account, with answers of AWS in the place of one service's."""

    def __init__(
        self, aws: EmbeddedAws, service: str, *answers: tuple[str, dict[str, Any]]
    ) -> None:
        self._aws = aws
        self._service = service
        self._client = boto3.client(service, region_name="us-east-1")
        self._stub = Stubber(self._client)
        for operation, answer in answers:
            self._stub.add_response(operation, answer)
        self._stub.activate()

    def client(self, service_name: str, /) -> Any:
        """Return the client of a service."""
        return self._client if service_name == self._service else self._aws.client(service_name)


@pytest.fixture(scope="session")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws() as embedded:
        for bucket in ("workspace", "incoming"):
            embedded.client("s3").create_bucket(Bucket=bucket)
        embedded.client("ecr").create_repository(repositoryName="train")
        push(embedded, "1")
        role(embedded, ROLE, "s3:*", "ecr:*", "logs:*", "cloudwatch:*", "ec2:*", "fsx:*", "kms:*")
        yield embedded


@pytest.fixture
def found(aws: EmbeddedAws) -> Examine:
    """The findings about a pipeline, without those of other checks than the one asked for."""

    def look(
        checked: Pipeline, check: str = "", session: Any = aws, **parameters: Any
    ) -> list[Finding]:
        connection = parameters.pop("connection", None)
        _, findings = examine(checked, session, parameters, connection=connection)
        return [each for each in findings if check in ("", each.check)]

    return look
