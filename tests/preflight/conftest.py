"""An account in which a pipeline is healthy; each test breaks one thing of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

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


@pytest.fixture(scope="session")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws() as embedded:
        for bucket in ("workspace", "incoming"):
            embedded.client("s3").create_bucket(Bucket=bucket)
        role(embedded, ROLE, "s3:*", "ecr:*", "logs:*", "cloudwatch:*", "ec2:*", "fsx:*", "kms:*")
        yield embedded


@pytest.fixture
def found(aws: EmbeddedAws) -> Examine:
    """The findings about a pipeline, without those of other checks than the one asked for."""

    def look(checked: Pipeline, check: str = "", **parameters: Any) -> list[Finding]:
        _, findings = examine(checked, aws, parameters)
        return [each for each in findings if check in ("", each.check)]

    return look
