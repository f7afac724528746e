"""Runs the pipeline on an embedded AWS, with the function of Lambda in it."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

from orchestration import Pipeline
from orchestration.local import EmbeddedAws
from orchestration.local.run import run

HERE = Path(__file__).parent
MODELS = "s3://incoming/models"
PARAMETERS = {
    "bucket": "workspace",
    "customers": "s3://incoming/customers",
    "models": MODELS,
    "image": "any",  # nothing is pulled
}
UPLOADS = {
    "s3://incoming/customers": HERE / "data/customers",
    MODELS: HERE / "data/models",
    **{f"{MODELS}/{name}/code": HERE / "src" for name in ("2026-10", "2026-11")},
}


def make_function(aws: EmbeddedAws) -> None:
    """Create the function and its role."""
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "lambda.amazonaws.com"},
        "Action": "sts:AssumeRole",
    }
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam = aws.client("iam")
    role = iam.create_role(RoleName="pick-model", AssumeRolePolicyDocument=document)["Role"]
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        files.write(HERE / "function/pick.py", "pick.py")
    aws.client("lambda").create_function(
        FunctionName="pick-model",
        Runtime="python3.12",
        Handler="pick.handler",
        Role=role["Arn"],
        Code={"ZipFile": archive.getvalue()},
    )


def main() -> None:
    with EmbeddedAws() as aws:
        make_function(aws)
        scoring = Pipeline.load(HERE / "scoring.yaml")
        report = run(scoring, aws=aws, parameters=PARAMETERS, uploads=UPLOADS)
        print(report.state, report.error, report.cause, report.outputs)


if __name__ == "__main__":
    main()
