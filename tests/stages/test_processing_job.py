"""``processing_job``: its request, its outputs, and what is refused before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import Pipeline, PipelineError, ProcessingJob
from orchestration.backends import stepfunctions
from orchestration.graph import Call, Read, Require, all_steps

IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/x:1"
SKLEARN = "683313688378.dkr.ecr.us-east-1.amazonaws.com"
SOURCE = {"uri": "s3://bucket/code", "entry_point": "features.py"}
FEATURES: dict[str, Any] = {
    "kind": "processing_job",
    "framework": {"name": "sklearn", "version": "1.4-2"},
    "source": SOURCE,
    "inputs": {"raw": {"parameter": "data"}, "more": {"uri": "s3://bucket/more"}},
    "results": {"train": {}, "train_large": {"uri": "s3://bucket/large"}, "facts": {}},
    "cluster": {"instance_type": "ml.m5.large", "instance_count": 2},
}
REPORT = {"result": "facts", "numbers": {"rows": "counts.rows"}}


def pipeline(region: str | None = "us-east-1", **stages: Any) -> Pipeline:
    return Pipeline.parse(
        {
            "name": "p",
            **({} if region is None else {"region": region}),
            "workspace": "s3://bucket/runs",
            "parameters": {"data": {"default": "s3://bucket/raw"}},
            "stages": stages,
        }
    )


def changed(**fields: Any) -> dict[str, Any]:
    whole = {**FEATURES, **fields}
    return {name: value for name, value in whole.items() if value is not None}


def problems(**fields: Any) -> list[str]:
    with pytest.raises(PipelineError) as error:
        pipeline(features=changed(**fields))
    return [str(problem) for problem in error.value.problems]


def request(**fields: Any) -> Any:
    made = pipeline(features=changed(**fields))
    [call] = [step for step in all_steps(made.lower().graph) if isinstance(step, Call)]
    return call.operation.request


def test_a_script_runs_in_the_framework_s_image_over_its_inputs() -> None:
    sent = request(arguments=["--split", "0.2"])
    assert sent["AppSpecification"] == {
        "ImageUri": f"{SKLEARN}/sagemaker-scikit-learn:1.4-2-cpu-py3",
        "ContainerEntrypoint": ["python3", "/opt/ml/processing/input/code/features.py"],
        "ContainerArguments": ["--split", "0.2"],
    }
    places = {each["InputName"]: each["S3Input"]["LocalPath"] for each in sent["ProcessingInputs"]}
    root = "/opt/ml/processing/input"
    assert places == {"code": f"{root}/code", "raw": f"{root}/raw", "more": f"{root}/more"}
    written = {
        each["OutputName"]: each["S3Output"]["LocalPath"]
        for each in sent["ProcessingOutputConfig"]["Outputs"]
    }
    assert written["train_large"] == "/opt/ml/processing/output/train_large"


def test_spark_starts_its_script_with_its_own_program() -> None:
    sent = request(framework={"name": "spark", "version": "3.5"})
    assert sent["AppSpecification"]["ContainerEntrypoint"][0] == "smspark-submit"
    assert "/sagemaker-spark-processing:3.5-cpu" in sent["AppSpecification"]["ImageUri"]


def test_a_container_runs_its_own_program() -> None:
    sent = request(framework=None, source=None, image=IMAGE)
    assert sent["AppSpecification"] == {"ImageUri": IMAGE}
    assert [each["InputName"] for each in sent["ProcessingInputs"]] == ["raw", "more"]


def test_networks_keys_and_tags_reach_the_request() -> None:
    sent = request(
        vpc={"subnets": ["subnet-0123abcd"], "security_groups": ["sg-0123abcd"]},
        enable_network_isolation=True,
        encrypt_inter_container_traffic=True,
        output_kms_key="alias/results",
        cluster={"instance_type": "ml.m5.large", "volume_kms_key": "alias/disks"},
        tags={"team": "search"},
        extra_request={"ExperimentConfig": {"ExperimentName": "features"}},
    )
    assert sent["NetworkConfig"]["EnableNetworkIsolation"] is True
    assert sent["NetworkConfig"]["EnableInterContainerTrafficEncryption"] is True
    assert sent["ProcessingOutputConfig"]["KmsKeyId"] == "alias/results"
    assert sent["ProcessingResources"]["ClusterConfig"]["VolumeKmsKeyId"] == "alias/disks"
    assert {"Key": "team", "Value": "search"} in sent["Tags"]
    assert sent["ExperimentConfig"] == {"ExperimentName": "features"}


def test_results_are_outputs_of_which_none_is_the_prefix_of_another() -> None:
    outputs: Any = pipeline(features=FEATURES).lower().outputs["features"]
    assert list(outputs) == ["job_name", "train", "train_large", "facts"]
    assert outputs["train_large"] == "s3://bucket/large"
    assert str(outputs["train"].parts[-1]).endswith("/features/train/files")


def test_a_report_gives_typed_outputs_and_a_gate() -> None:
    threshold = {"number": "rows", "direction": "max", "value": 10}
    report = {**REPORT, "texts": {"note": "note"}, "threshold": threshold}
    made = pipeline(features=changed(report=report)).lower()
    steps = {step.name: step for step in all_steps(made.graph)}
    read = steps["features.report"]
    assert isinstance(read, Read)
    kinds = {name: (output.path, output.kind) for name, output in read.outputs.items()}
    assert kinds == {"rows": (("counts", "rows"), "number"), "note": (("note",), "string")}
    assert isinstance(steps["features.gate"], Require)
    assert {"rows", "note", "passed"} <= set(made.outputs["features"])  # type: ignore[arg-type]  # a mapping


def test_outputs_are_references_by_their_names() -> None:
    stage = ProcessingJob.model_validate({"name": "features", **FEATURES})
    assert repr(stage.outputs.train) == "<reference to features.train>"
    with pytest.raises(AttributeError, match="no output 'trian'"):
        _ = stage.outputs.trian


def test_every_cluster_of_the_fallbacks_is_a_job_of_its_own() -> None:
    cluster = {
        "instance_type": "ml.p3.2xlarge",
        "instance_count": 2,
        "fallbacks": [
            {"instance_type": "ml.g5.xlarge"},
            {"instance_type": "ml.m5.large", "instance_count": 4},
        ],
    }
    made = pipeline(features=changed(cluster=cluster, framework=None, image=IMAGE))
    [call] = [step for step in all_steps(made.lower().graph) if isinstance(step, Call)]
    assert call.fallback is not None
    sent: list[Any] = [other.operation.request for other in call.fallback.alternatives]
    clusters = [each["ProcessingResources"]["ClusterConfig"] for each in sent]
    assert [(c["InstanceType"], c["InstanceCount"]) for c in clusters] == [
        ("ml.g5.xlarge", 2),
        ("ml.m5.large", 4),
    ]
    assert [each["ProcessingJobName"].parts[-1] for each in sent] == ["-b", "-c"]


def test_jobs_wait_for_capacity_and_quotas_where_that_is_asked_for() -> None:
    features = changed(framework=None, image=IMAGE, wait_for_capacity_h=6)
    evaluate = {
        "kind": "checkpoint_evaluation",
        "checkpoints": "s3://bucket/checkpoints",
        "data": "s3://bucket/holdout",
        "image": IMAGE,
        "source": {"uri": "s3://bucket/code", "entry_point": "evaluate.py"},
        "instance_type": "ml.m5.large",
        "metric": "accuracy",
        "direction": "max",
        "wait_for_capacity_h": 0.5,
    }
    made = pipeline(features=features, evaluate=evaluate)
    calls = [step for step in all_steps(made.lower().graph) if isinstance(step, Call)]
    waits = [call.fallback for call in calls if call.fallback is not None]
    assert [(each.label, each.wait_s, each.pause_s) for each in waits] == [
        ("2 x ml.m5.large", 21_600, 900),
        ("1 x ml.m5.large", 1_800, 900),
    ]
    message = (
        "The account-level service limit 'ml.m5.large for processing job usage' is 4 Instances, "
        "with current utilization of 4 Instances and a request delta of 1 Instances."
    )
    assert all(each.refused("ResourceLimitExceeded", message) for each in waits)
    stepfunctions.render(made.lower())


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"framework": None}, "image: is needed; or a framework, not both"),
        ({"image": IMAGE}, "image: is needed; or a framework, not both"),
        (
            {"framework": {"name": "sklearn", "version": "1.4-3"}},
            "framework.version: sklearn has no '1.4-3' for training; did you mean '1.4-2'?",
        ),
        (
            {"framework": {"name": "sklearn", "version": "1.4-2", "model_dir": False}},
            "framework.model_dir: only training scripts receive this; remove it",
        ),
        ({"source": None}, "source: is needed: sklearn's image runs nothing by itself"),
        (
            {"source": {"uri": "s3://bucket/code.tar.gz", "entry_point": "features.py"}},
            "source: is an archive, which a processing job does not unpack; give it a directory",
        ),
        (
            {"inputs": {"code": "s3://bucket/raw"}},
            "inputs.code: is how the source gets there; choose another name",
        ),
        (
            {"inputs": {f"i{number}": "s3://bucket/raw" for number in range(10)}},
            "inputs: has 10 entries; the most is 9, the code being one more",
        ),
        (
            {"results": {f"r{number}": {} for number in range(11)}},
            "results: has 11 entries; the most is 10",
        ),
        ({"inputs": {"raw": "bucket/raw"}}, "inputs.raw.uri: expected an S3 URI, got 'bucket/raw'"),
        (
            {"inputs": {"raw": {"uri": "s3://bucket/raw", "path": "/data"}}},
            "inputs.raw.path: expected a folder below /opt/ml/processing/, got '/data'",
        ),
        (
            {"results": {"a": {}, "b": {"path": "/opt/ml/processing/output/a"}}},
            "results.b.path: /opt/ml/processing/output/a is the folder of results.a, too",
        ),
        (
            {"results": {"job_name": {}}},
            "results: two outputs of the stage are called 'job_name'; rename one",
        ),
        (
            {"report": {**REPORT, "result": "fact"}},
            "report.result: there is no result 'fact'; did you mean 'facts'?",
        ),
        (
            {"report": {"result": "facts"}},
            "report.numbers: name a number or a text to read: {accuracy: metrics.accuracy}",
        ),
        (
            {
                "report": {
                    **REPORT,
                    "threshold": {"number": "row", "direction": "max", "value": 1},
                }
            },
            "report.threshold.number: the report has no number 'row'; did you mean 'rows'?",
        ),
        (
            {"extra_request": {"RoleArn": "arn:aws:iam::123456789012:role/other"}},
            "extra_request: extra_request.RoleArn is already set by the stage's own fields",
        ),
    ],
)
def test_mistakes_are_found_when_it_is_loaded(fields: Any, expected: str) -> None:
    found = problems(**fields)
    assert any(problem.startswith(f"stages.features.{expected}") for problem in found), found


def test_an_unknown_machine_is_refused_by_the_request_s_own_rules() -> None:
    [problem] = problems(cluster={"instance_type": "ml.m5.lage"}, framework=None, image=IMAGE)
    assert "did you mean 'ml.m5.large'?" in problem


def test_a_framework_s_image_needs_the_region() -> None:
    with pytest.raises(PipelineError, match="give the pipeline region: us-west-2"):
        pipeline(None, features=FEATURES)


def test_a_result_that_nobody_named_is_refused() -> None:
    join = {**changed(inputs={"lines": {"ref": "features.tain"}}), "results": {}}
    with pytest.raises(PipelineError, match=r"no output 'tain'; did you mean 'train'\?"):
        pipeline(features=FEATURES, join=join)
