"""What an SDK would send: a boto3 session that records its requests and answers without a network.

Everything above the wire is the SDK's and botocore's own; the answers are just enough for a
training job to be created.
"""

from __future__ import annotations

import functools
import io
import json
import tarfile
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

ACCOUNT = "123456789012"
BUCKET = f"sagemaker-us-west-2-{ACCOUNT}"
JOB = "job-x"
REGION = "us-west-2"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/SageMakerRole"
S3 = "s3://my-bucket/train"


@dataclass
class Recorder:
    """The requests and uploads of a session."""

    requests: list[dict[str, Any]] = field(default_factory=list)
    """Of ``CreateTrainingJob`` and ``CreateHyperParameterTuningJob``."""
    uploads: dict[str, bytes] = field(default_factory=dict)
    """By S3 URI."""
    answers: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """By operation, beyond those that every test needs."""

    @property
    def request(self) -> dict[str, Any]:
        """The one request."""
        (request,) = self.requests
        return request

    def session(self) -> Any:
        """A boto3 session that ends here."""
        import boto3
        import boto3.s3.transfer as transfer
        import botocore.session

        core = botocore.session.Session()
        core.set_config_variable("region", REGION)
        core.set_credentials("testing", "testing")
        core.register("provide-client-params", self._seen)
        core.register("before-call", self._answered)
        session = boto3.Session(botocore_session=core, region_name=REGION)
        # An SDK makes a class and a pool of threads for each archive that it uploads.
        factory = session.resource_factory
        factory.load_from_definition = _once_for_each_name(factory.load_from_definition)
        one_thread = functools.partial(transfer.TransferConfig, use_threads=False)
        vars(transfer)["TransferConfig"] = one_thread
        return session

    def _seen(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        if model.name in ("CreateTrainingJob", "CreateHyperParameterTuningJob"):
            self.requests.append(params)
        if model.name == "PutObject":
            body = params["Body"]
            content = body if isinstance(body, bytes) else body.read()
            if not isinstance(body, bytes):
                body.seek(0)
            content = content.encode() if isinstance(content, str) else content
            self.uploads[f"s3://{params['Bucket']}/{params['Key']}"] = content

    def _answered(self, model: Any, **_: Any) -> tuple[Any, dict[str, Any]]:
        from botocore.awsrequest import AWSResponse

        metadata = {"HTTPStatusCode": 200, "HTTPHeaders": {}, "RetryAttempts": 0}
        # A copy: botocore decodes policies in their place.
        answer = deepcopy({**_ANSWERS, **self.answers}.get(model.name, {}))
        response = AWSResponse("https://example.invalid", 200, {}, None)
        return response, {**answer, "ResponseMetadata": metadata}


def _once_for_each_name(load: Callable[..., Any]) -> Callable[..., Any]:
    """Let boto3 make the class of each resource once; only S3 has any here."""
    made: dict[str, Any] = {}

    def loaded(resource_name: str, **given: Any) -> Any:
        if resource_name not in made:
            made[resource_name] = load(resource_name=resource_name, **given)
        return made[resource_name]

    return loaded


_TRUST = json.dumps(
    {
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": "sagemaker.amazonaws.com"},
                "Action": "sts:AssumeRole",
            }
        ]
    }
)
_ANSWERS: dict[str, Mapping[str, Any]] = {
    "GetCallerIdentity": {"Account": ACCOUNT, "Arn": ROLE, "UserId": "me"},
    "GetRole": {"Role": {"Arn": ROLE, "AssumeRolePolicyDocument": _TRUST}},
    "SimulatePrincipalPolicy": {"EvaluationResults": [{"EvalDecision": "allowed"}]},
    "ListBuckets": {
        "Buckets": [{"Name": BUCKET, "CreationDate": datetime(2026, 1, 1, tzinfo=UTC)}]
    },
    "CreateTrainingJob": {
        "TrainingJobArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/{JOB}"
    },
    "CreateHyperParameterTuningJob": {
        "HyperParameterTuningJobArn": (
            f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:hyper-parameter-tuning-job/{JOB}"
        )
    },
    "DescribeTrainingJob": {"TrainingJobName": JOB, "TrainingJobStatus": "InProgress"},
}


@functools.lru_cache(maxsize=8)
def unpacked(archive: bytes) -> Mapping[str, bytes]:
    """The files of a ``.tar.gz``, by their names in it; most are asked for twice."""
    found = {}
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:*") as tar:
        for member in tar.getmembers():
            content = tar.extractfile(member)
            if content is not None:
                found[member.name.removeprefix("./")] = content.read()
    return found


def generation() -> int | None:
    """Which SDK is installed here, asked without importing it."""
    for name, found in (("sagemaker-train", 3), ("sagemaker", 2)):
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        return found
    return None
