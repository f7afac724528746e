"""Things that can't be looked at because a service, a download or Airflow does not answer."""

from __future__ import annotations

import json
import sys
from typing import Any

import boto3
import pytest
from botocore.config import Config

from orchestration.local import EmbeddedAws
from orchestration.preflight import examine
from orchestration.runs.airflow import Api
from tests.preflight.conftest import REGISTRY, TRAINING, Examine, Stubbed, pipeline
from tests.preflight.test_networks import STAGED

NOBODY = "http://127.0.0.1:9"
INSIDE = (
    "max_runtime_s: 3600",
    "max_runtime_s: 3600\n    vpc: {subnets: [subnet-00000001], security_groups: [sg-00000001]}",
)
FAST = ("ml.c5.xlarge", "ml.p4d.24xlarge")


class Silent:
    """The account, one service of which nobody answers for."""

    def __init__(self, aws: EmbeddedAws, service: str) -> None:
        self._aws = aws
        self._client = boto3.client(
            service,
            region_name="us-east-1",
            endpoint_url=NOBODY,
            config=Config(retries={"total_max_attempts": 1}),
        )

    def client(self, service_name: str, /) -> Any:
        """Return the client of a service."""
        own = self._client.meta.service_model.service_name == service_name
        return self._client if own else self._aws.client(service_name)


def test_a_service_that_does_not_answer_is_told_with_the_error(
    aws: EmbeddedAws, found: Examine
) -> None:
    findings = found(pipeline(TRAINING, INSIDE, FAST), session=Silent(aws, "ec2"))
    [groups] = [each for each in findings if each.check == "efa"]
    assert (groups.severity, groups.what, groups.mend) == (
        "not checked",
        "could not check security groups sg-00000001: ec2:DescribeSecurityGroups failed",
        "see the error, and run the doctor again",
    )
    assert NOBODY in groups.why
    subnet = {"own": "subnet-00000001", "job": "subnet-00000001", "group": "sg-00000001"}
    staged = found(pipeline(STAGED), "file systems", Silent(aws, "ec2"), **subnet)
    assert "could not check the security groups of the file system: " in {
        each.what.partition("ec2:")[0] for each in staged
    }


def test_a_layer_that_can_not_be_downloaded_is_told(aws: EmbeddedAws, found: Examine) -> None:
    manifest = {"config": {"digest": f"sha256:{'0' * 64}"}}
    session = Stubbed(
        aws,
        "ecr",
        ("batch_get_image", {"images": [{"imageManifest": json.dumps(manifest)}]}),
        ("get_download_url_for_layer", {"downloadUrl": f"{aws.endpoint_url}/nobody/layer"}),
    )
    [finding] = found(pipeline(), "images", session)
    assert (finding.severity, finding.why) == ("not checked", "its address answers 404")
    assert finding.what.startswith(f"could not check image {REGISTRY}/train:1: ")


@pytest.mark.parametrize(
    ("api", "what", "mend"),
    [
        (Api(NOBODY, "of-nobody"), f"Airflow at {NOBODY}/api/v2 can't be reached", "ask again"),
        (None, "Airflow is not installed here", "(--url)"),
    ],
)
def test_an_airflow_that_does_not_answer_or_is_not_here_is_told(
    aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch, api: Api | None, what: str, mend: str
) -> None:
    monkeypatch.setitem(sys.modules, "airflow", None)
    _, findings = examine(pipeline(), aws, {}, connection="aws_default", airflow=api)
    [finding] = [each for each in findings if each.check == "connections"]
    assert (finding.severity, mend in finding.mend) == ("not checked", True)
    assert finding.what.startswith(f"could not check connection aws_default: {what}")
