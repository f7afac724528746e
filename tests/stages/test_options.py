"""Options of every stage: tags, and further fields of each kind of request."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.errors import PipelineError
from orchestration.expressions import Parameter, Result
from orchestration.graph import Call, all_steps, operations

STAGES: dict[str, dict[str, Any]] = {
    "train": {
        "kind": "training_job",
        "image": "image",
        "cluster": {"instance_type": "ml.c5.xlarge"},
    },
    "evaluate": {
        "kind": "checkpoint_evaluation",
        "checkpoints": "s3://b/c/",
        "data": "s3://b/d",
        "image": "image",
        "source": {"entry_point": "e.py", "uri": "s3://b/code"},
        "instance_type": "ml.c5.xlarge",
        "metric": "m",
        "direction": "max",
    },
    "staging": {
        "kind": "data_staging",
        "source": "s3://b/d",
        "destination": {
            "kind": "fsx_lustre",
            "subnet": "subnet-0123456789abcdef0",
            "security_groups": ["sg-0123456789abcdef0"],
        },
    },
    "deploy": {
        "kind": "deployment",
        "model_data": "s3://b/m/",
        "image": "image",
        "instance_type": "ml.c5.xlarge",
    },
}
READER: dict[str, Any] = {
    "kind": "aws_call",
    "service": "sns",
    "operation": "Publish",
    "request": {"TopicArn": "arn:aws:sns:us-east-1:123456789012:n"},
}
OWN = "orchestration:"


def pipeline(name: str, **fields: Any) -> Pipeline:
    stages: dict[str, Any] = {name: {**STAGES[name], **fields}}
    if name == "staging":  # A file system needs a reader.
        request = {**READER["request"], "Message": {"ref": "staging.file_system_id"}}
        stages["reader"] = {**READER, "request": request}
    return Pipeline.parse(
        {
            "name": "tagged",
            "workspace": "s3://b/w",
            "role": "arn:aws:iam::123456789012:role/r",
            "parameters": {"team": {}},
            "tags": {"cost": "shared", "app": "x"},
            "stages": stages,
        }
    )


def requests(name: str, **fields: Any) -> dict[str, dict[str, Any]]:
    graph = pipeline(name, **fields).lower().graph
    calls = [step for step in all_steps(graph) if isinstance(step, Call)]
    return {o.name: dict(o.request) for call in calls for o in operations(call)}


def tags(request: dict[str, Any]) -> dict[str, Any]:
    return {tag["Key"]: tag["Value"] for tag in request["Tags"] if not tag["Key"].startswith(OWN)}


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("train", {"CreateTrainingJob"}),
        ("evaluate", {"CreateProcessingJob"}),
        ("staging", {"CreateFileSystem", "CreateDataRepositoryAssociation"}),
        ("deploy", {"CreateModel", "CreateEndpointConfig", "CreateEndpoint"}),
    ],
)
def test_all_that_a_stage_creates_has_its_tags(name: str, made: set[str]) -> None:
    own = {"cost": "mine", "team": {"parameter": "team"}}
    sent = requests(name, tags=own)
    assert made <= sent.keys()
    for operation in made:
        assert tags(sent[operation]) == {"cost": "mine", "app": "x", "team": Parameter("team")}


def test_a_tag_may_be_what_an_earlier_stage_gives() -> None:
    both = {
        "ask": {
            "kind": "aws_call",
            "service": "sts",
            "operation": "GetCallerIdentity",
            "results": {"account": "Account"},
        },
        "train": {**STAGES["train"], "tags": {"by": {"ref": "ask.account"}}},
    }
    data = {"name": "tagged", "workspace": "s3://b/w", "stages": both}
    [*_, train] = all_steps(Pipeline.parse(data).lower().graph)
    assert isinstance(train, Call)
    assert tags(dict(train.operation.request)) == {"by": Result("ask.call", "account")}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"aws:x": "y"}, r"train\.tags\.aws:x: tags that begin with aws:"),
        ({"orchestration:run": "y"}, r"train\.tags\.orchestration:run: "),
        ({"a": {"parameter": "tema"}}, r"train\.tags\.a: .*did you mean 'team'"),
        ({"a": {"ref": "nobody.x"}}, r"train\.tags\.a: there is no stage 'nobody'"),
        ({"a": 1}, r"train\.tags\.a: expected text or a reference, got 1"),
        ({str(n): "x" for n in range(48)}, r"train\.tags: "),
    ],
)
def test_wrong_tags_are_refused_with_their_place(given: dict[str, Any], message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        pipeline("train", tags=given)


@pytest.mark.parametrize(
    "stage",
    [
        {"kind": "data_staging", "source": "s3://b/d"},
        {"kind": "aws_call", "service": "sts", "operation": "GetCallerIdentity"},
    ],
)
def test_tags_that_nothing_would_have_are_refused(stage: dict[str, Any]) -> None:
    data = {"name": "t", "workspace": "s3://b/w", "stages": {"a": {**stage, "tags": {"b": "c"}}}}
    with pytest.raises(PipelineError, match=r"stages\.a\.tags: nothing that this stage creates"):
        Pipeline.parse(data)


def test_each_request_of_a_deployment_takes_fields_of_its_own() -> None:
    extra = {
        "CreateModel": {"EnableNetworkIsolation": True},
        "CreateEndpointConfig": {"KmsKeyId": {"parameter": "team"}},
        "CreateEndpoint": {"DeploymentConfig": {"AutoRollbackConfiguration": {}}},
        "UpdateEndpoint": {"RetainDeploymentConfig": True},
    }
    sent = requests("deploy", extra_request=extra)
    plain = requests("deploy")
    added = {name: {k: v for k, v in sent[name].items() if k not in plain[name]} for name in extra}
    assert added == {
        **extra,
        "CreateEndpointConfig": {"KmsKeyId": Parameter("team")},
    }


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"KmsKeyId": "k"}, r"extra_request\.KmsKeyId: is unknown; there is CreateEndpoint"),
        ({"CreateModle": {}}, r"extra_request\.CreateModle: .*did you mean 'CreateModel'"),
        (
            {"CreateModel": {"ExecutionRoleArn": "r"}},
            r"extra_request\.CreateModel\.ExecutionRoleArn is already set",
        ),
        ({"CreateModel": {"Rain": 1}}, "CreateModel Rain: is unknown"),
        (
            {"CreateEndpointConfig": {"DataCaptureConfig": {"InitialSamplingPercentage": "all"}}},
            r"DataCaptureConfig\.InitialSamplingPercentage",
        ),
    ],
)
def test_wrong_further_fields_are_refused(extra: dict[str, Any], message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        pipeline("deploy", extra_request=extra)
