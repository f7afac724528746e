"""What a run on this machine finds in its account."""

from __future__ import annotations

from orchestration import Pipeline
from orchestration.local import EmbeddedAws
from orchestration.local.run.preparation import prepare

ROLE = "arn:aws:iam::123456789012:role/teams/registry"


def test_a_role_of_the_account_that_a_run_assumes_is_there_for_it(aws: EmbeddedAws) -> None:
    register = {
        "kind": "model_registration",
        "package_group": "arn:aws:sagemaker:us-east-1:123456789012:model-package-group/prices",
        "model_data": "s3://registry/model",
        "image": "image:1",
        "registry_role": ROLE,
    }
    pipeline = Pipeline.parse(
        {
            "name": "assuming",
            "region": "us-east-1",
            "workspace": "s3://registry/runs",
            "role": "arn:aws:iam::123456789012:role/SageMaker",
            "stages": {"register": register},
        }
    )
    for _ in range(2):
        prepare(aws, pipeline, pipeline.lower(), {}, {})
    aws.client("sts").assume_role(RoleArn=ROLE, RoleSessionName="test")
