"""What each stage asks AWS for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from orchestration import PipelineError
from orchestration.expressions import Join, Json, Run, evaluate, join, parameter, run_id
from orchestration.expressions.evaluate import Values
from orchestration.graph import Call, ForEach, Guarded, Require, Workflow, all_steps
from tests.pipeline.building import (
    IMAGE,
    Data,
    deployment,
    evaluation,
    job,
    lustre,
    pipeline,
    reader,
)

ENV = Values(
    results={
        "fs.create": {"file_system_id": "fs-1"},
        "fs.available": {"mount_name": "fsx"},
        "evaluate.each": {
            "items": [
                {"checkpoint": "s3://c/1/", "metric": 0.5},
                {"checkpoint": "s3://c/2/", "metric": 0.9},
            ]
        },
    },
    parameters={"n": 3},
    run_token="0123456789ab",
    current={"Prefix": "p/train/checkpoints/epoch-1/"},
)


def request(workflow: Workflow, step: str) -> Any:
    """The request a step sends in a run."""
    [call] = [s for s in all_steps(workflow.graph) if s.name == step]
    assert isinstance(call, Call)
    return evaluate(call.operation.request, ENV)


def lowered(*stages: Data, **further: Any) -> Workflow:
    return pipeline(*stages, **further).lower()


def test_a_training_job_says_everything_a_user_said() -> None:
    vpc = {"subnets": ["subnet-0123456789abcdef0"], "security_groups": ["sg-0123456789abcdef0"]}
    stage = job(
        "train",
        cluster={"instance_type": "ml.p4d.24xlarge", "instance_count": 2, "volume_gib": 50},
        channels={"a": "s3://b/a", "c": {"kind": "s3", "uri": "s3://b/c", "input_mode": "Pipe"}},
        spot={"max_wait_s": 7200},
        max_runtime_s=3600,
        metrics={"loss": "loss=(.*)"},
        environment={"E": "1"},
        vpc=vpc,
        enable_network_isolation=True,
        encrypt_inter_container_traffic=True,
        extra_request={"OutputDataConfig": {"CompressionType": "NONE"}},
    )
    sent = request(lowered(stage, tags={"team": "vision"}), "train.job")
    assert sent["ResourceConfig"] == {
        "InstanceType": "ml.p4d.24xlarge",
        "InstanceCount": 2,
        "VolumeSizeInGB": 50,
    }
    assert sent["OutputDataConfig"]["CompressionType"] == "NONE"
    assert sent["StoppingCondition"] == {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 7200}
    assert sent["VpcConfig"] == {
        "Subnets": vpc["subnets"],
        "SecurityGroupIds": vpc["security_groups"],
    }
    assert [c["ChannelName"] for c in sent["InputDataConfig"]] == ["a", "c"]
    assert sent["EnableNetworkIsolation"] is sent["EnableInterContainerTrafficEncryption"] is True
    assert sent["EnableManagedSpotTraining"] is True
    assert sent["Environment"] == {"E": "1"}
    assert {"Key": "team", "Value": "vision"} in sent["Tags"]
    assert {"Key": "orchestration:run", "Value": "0123456789ab"} in sent["Tags"]


def test_names_and_places_are_those_of_the_run() -> None:
    sent = request(lowered(job("train")), "train.job")
    assert sent["TrainingJobName"] == "pipeline-train-0123456789ab"
    assert (
        sent["OutputDataConfig"]["S3OutputPath"] == "s3://bucket/pipeline/0123456789ab/train/output"
    )
    assert (
        sent["CheckpointConfig"]["S3Uri"] == "s3://bucket/pipeline/0123456789ab/train/checkpoints"
    )


def test_without_code_of_its_own_a_container_gets_plain_text() -> None:
    given = {"a": "x", "b": 1, "c": True, "d": {"parameter": "n"}}
    workflow = lowered(job("t", hyperparameters=given), parameters={"n": {"type": "number"}})
    assert request(workflow, "t.job")["HyperParameters"] == {
        "a": "x",
        "b": "1",
        "c": "True",
        "d": "3",
    }


def test_with_the_toolkit_values_are_json() -> None:
    source = {"entry_point": "train.py", "uri": "s3://code/x"}
    given = {"a": "x\n{{ y }}", "b": 1, "c": True, "d": {"parameter": "n"}}
    workflow = lowered(
        job("t", hyperparameters=given, source=source), parameters={"n": {"type": "number"}}
    )
    sent = request(workflow, "t.job")["HyperParameters"]
    assert [sent[name] for name in "abcd"] == ['"x\\n{{ y }}"', "1", "true", "3"]
    assert sent["sagemaker_submit_directory"] == '"s3://code/x/sourcedir.tar.gz"'


def test_a_job_is_stopped_by_the_name_it_was_started_with() -> None:
    [call] = [s for s in lowered(job("train")).graph.steps if isinstance(s, Call)]
    assert call.until is not None
    assert call.until.stop is not None
    names = [
        o.request["TrainingJobName"] for o in (call.operation, call.until.poll, call.until.stop)
    ]
    assert names == [Join(("pipeline-train-", Run()))] * 3


def test_the_service_gives_up_before_the_workflow_does() -> None:
    for stage, least in (
        (job("t", max_runtime_s=60), 60),
        (job("t", max_runtime_s=60, spot={"max_wait_s": 90}), 90),
    ):
        [call] = lowered(stage).graph.steps
        assert isinstance(call, Call)
        assert call.until is not None
        assert call.until.timeout_s > least


def test_a_mounted_file_system_is_a_directory_below_its_mount_name() -> None:
    sent = request(lowered(lustre("fs"), reader("train", "fs")), "train.job")
    assert sent["InputDataConfig"][0]["DataSource"] == {
        "FileSystemDataSource": {
            "FileSystemId": "fs-1",
            "FileSystemType": "FSxLustre",
            "DirectoryPath": "/fsx/data",
            "FileSystemAccessMode": "ro",
        }
    }


def test_a_new_file_system_is_deleted_by_the_guard() -> None:
    [guard] = lowered(lustre("fs"), reader("train", "fs")).graph.steps
    assert isinstance(guard, Guarded)
    *_, delete = guard.cleanup.steps
    assert isinstance(delete, Call)
    assert delete.operation.name == "DeleteFileSystem"
    assert evaluate(delete.operation.request, ENV) == {
        "FileSystemId": "fs-1",
        "ClientRequestToken": "fs-1",
    }


def test_a_new_file_system_without_a_reader_is_refused() -> None:
    with pytest.raises(PipelineError, match="creates a file system that no stage reads"):
        lowered(lustre("fs"))


def test_an_existing_file_system_is_neither_created_nor_deleted() -> None:
    destination = {"kind": "existing_fsx_lustre", "file_system_id": "fs-0123456789abcdef0"}
    stage = {"kind": "data_staging", "name": "fs", "destination": destination}
    workflow = lowered(stage, reader("train", "fs"))
    operations = {s.operation.name for s in all_steps(workflow.graph) if isinstance(s, Call)}
    assert operations == {"DescribeFileSystems", "CreateTrainingJob"}


def test_staging_to_s3_copies_each_object_below_the_target_and_verifies() -> None:
    stage = {"kind": "data_staging", "name": "stage", "source": "s3://source/data"}
    workflow = lowered(stage)
    env = Values({}, {}, "0123456789ab", {"Key": "data/a b.gz", "ETag": '"x"', "Size": 1})
    [loop] = [s for s in workflow.graph.steps if isinstance(s, ForEach)]
    copy, described = loop.body.steps
    assert isinstance(copy, Call)
    assert isinstance(described, Call)
    assert evaluate(described.operation.request, env) == {
        "Bucket": "source",
        "Key": "data/a b.gz",
        "ChecksumMode": "ENABLED",
    }
    assert evaluate(copy.operation.request, env) == {
        "Bucket": "bucket",
        "Key": "pipeline/0123456789ab/stage/a b.gz",
        "CopySource": "source/data/a%20b.gz",
        "CopySourceIfMatch": '"x"',
    }
    fails = {s.error for s in all_steps(workflow.graph) if isinstance(s, Require)}
    assert fails == {"SourceNotUsable", "StagedDataDiffers"}


def test_an_evaluation_runs_its_script_on_each_checkpoint() -> None:
    sent = request(lowered(job("train"), evaluation("evaluate", "train")), "evaluate.each.job")
    assert sent["AppSpecification"]["ContainerEntrypoint"] == [
        "python3",
        "/opt/ml/processing/input/code/evaluate.py",
    ]
    inputs = {i["InputName"]: i["S3Input"]["S3Uri"] for i in sent["ProcessingInputs"]}
    assert inputs == {
        "code": "s3://code/evaluate/files",
        "checkpoint": "s3://bucket/p/train/checkpoints/epoch-1/",
        "data": "s3://source/holdout",
    }


@pytest.mark.parametrize(
    ("direction", "value", "passed"),
    [("max", 0.9, True), ("max", 0.91, False), ("min", 0.5, True), ("min", 0.4, False)],
)
def test_the_threshold_is_met_by_the_best_one(direction: str, value: float, passed: bool) -> None:
    stage = evaluation("evaluate", "t", direction=direction, threshold={"value": value})
    workflow = lowered(job("t"), stage)
    [gate] = [s for s in workflow.graph.steps if s.name == "evaluate.gate"]
    assert isinstance(gate, Require)
    assert evaluate(gate.condition, ENV) is passed
    shown = workflow.outputs["evaluate"]
    assert isinstance(shown, dict)
    assert evaluate(shown["passed"], ENV) is passed
    assert evaluate(shown["best_checkpoint"], ENV) == f"s3://c/{2 if direction == 'max' else 1}/"


def test_a_deployment_fails_unless_its_own_configuration_serves() -> None:
    stages = [job("t"), evaluation("e", "t", None), deployment("d", "e")]
    fails = {s.error for s in all_steps(lowered(*stages).graph) if isinstance(s, Require)}
    assert {"EndpointRolledBack", "EndpointFailed", "EndpointNotUsable"} <= fails


def test_an_endpoint_outlives_the_run() -> None:
    stages = [job("t"), evaluation("e", "t", None), deployment("d", "e")]
    workflow = lowered(*stages)
    looked: dict[str, dict[str, Json]] = {
        "d.fingerprint": {"fingerprint": "f"},
        "d.look": {"variant": "main"},
        "e.each": dict(ENV.results["evaluate.each"]),
    }
    [create] = [s for s in all_steps(workflow.graph) if s.name == "d.create"]
    assert isinstance(create, Call)
    names = [
        (request["EndpointName"], request["EndpointConfigName"])
        for token in ("0123456789ab", "ba9876543210")
        for values in [replace(ENV, results={**ENV.results, **looked}, run_token=token)]
        for request in [cast(Any, evaluate(create.operation.request, values))]
    ]
    assert names[0] == names[1]
    assert names[0][0] == "pipeline-d"


def test_extra_fields_are_added_checked_and_never_override() -> None:
    sent = request(
        lowered(job("t", extra_request={"RetryStrategy": {"MaximumRetryAttempts": 2}})), "t.job"
    )
    assert sent["RetryStrategy"] == {"MaximumRetryAttempts": 2}
    with pytest.raises(PipelineError, match="RetryStrateg: is unknown; did you mean"):
        lowered(job("t", extra_request={"RetryStrateg": {}}))
    with pytest.raises(PipelineError, match="TrainingImage is already set"):
        lowered(job("t", extra_request={"AlgorithmSpecification": {"TrainingImage": IMAGE}}))


@pytest.mark.parametrize(
    "text", ["{{ x }}", "{% y %}", "$.z", "a'b\"c", "line\nbreak", "é ☃", "s3://"]
)
def test_text_of_a_user_comes_out_as_it_went_in(text: str) -> None:
    workflow = lowered(job("t", environment={"E": text}))
    [call] = workflow.graph.steps
    assert isinstance(call, Call)
    assert call.operation.request["Environment"] == {"E": text}


def test_a_workspace_may_be_a_reference() -> None:
    space = {"join": ["s3://", {"parameter": "b"}, "/x"]}
    workflow = lowered(job("t"), workspace=space, parameters={"b": {}})
    [call] = workflow.graph.steps
    assert isinstance(call, Call)
    assert call.operation.request["OutputDataConfig"] == {
        "S3OutputPath": join("s3://", parameter("b"), "/x/", run_id(), "/t/output")
    }
