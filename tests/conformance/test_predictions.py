"""Predictions of a batch transform are scored alike on every driver, and no model is left."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestration import CheckpointEvaluation, Pipeline, Source
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import executions, run
from tests.conformance.test_processing_jobs import BY_STEPS, IMAGE, Reports, everywhere

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
CODE = HERE / "src_transform" / "inference.py"
BUCKET = "predicting"
OFFSETS = {"tried/epoch-0": "broken", "tried/epoch-1": "101", "tried/epoch-2": "100", "old": "101"}
"""What each model adds to the numbers of a record, which is right in nine of ten for 100."""
TRANSFORM = {
    "image": IMAGE,
    "instance_type": "ml.m5.large",
    "content_type": "text/csv",
    "accept": "text/csv",
    "split": "line",
    "strategy": "multi_record",
    "assemble": "line",
    "input_filter": "$[1:]",
    "join_input": True,
    "output_filter": "$[0,-1]",
}


def _packed(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, body in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            tar.addfile(entry, io.BytesIO(body))
    return packed.getvalue()


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.003) as embedded:
        s3 = embedded.client("s3")
        s3.create_bucket(Bucket=BUCKET)
        rows = "".join(f"{n + 100 + (n % 10 == 0)},{n}\n" for n in range(1, 21))
        s3.put_object(Bucket=BUCKET, Key="holdout/rows.csv", Body=rows.encode())
        for place, offset in OFFSETS.items():
            files = {"offset": offset.encode(), "code/inference.py": CODE.read_bytes()}
            for name, body in files.items():
                s3.put_object(Bucket=BUCKET, Key=f"{place}/{name}", Body=body)
            s3.put_object(Bucket=BUCKET, Key=f"{place}.tar.gz", Body=_packed(files))
        _serve(embedded)
        yield embedded


def _serve(aws: EmbeddedAws) -> None:
    """Serve the old model, and approve it in a registry."""
    sagemaker = aws.client("sagemaker")
    container: Any = {"Image": IMAGE, "ModelDataUrl": f"s3://{BUCKET}/old.tar.gz"}
    role = executions.role(aws, "Serving", "sagemaker.amazonaws.com")
    sagemaker.create_model(ModelName="live", ExecutionRoleArn=role, PrimaryContainer=container)
    variant: Any = {
        "VariantName": "main",
        "ModelName": "live",
        "InstanceType": "ml.m5.large",
        "InitialInstanceCount": 1,
    }
    sagemaker.create_endpoint_config(EndpointConfigName="live", ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName="live", EndpointConfigName="live")
    sagemaker.create_model_package_group(ModelPackageGroupName="sums")
    sagemaker.create_model_package(
        ModelPackageGroupName="sums",
        ModelApprovalStatus="Approved",
        InferenceSpecification={
            "Containers": [container],
            "SupportedContentTypes": ["text/csv"],
            "SupportedResponseMIMETypes": ["text/csv"],
        },
    )


def scored(**fields: Any) -> CheckpointEvaluation:
    given: dict[str, Any] = {
        "name": "judge",
        "data": f"s3://{BUCKET}/holdout",
        "image": IMAGE,
        "source": Source.at(HERE / "src_evaluation", "score.py"),
        "instance_type": "ml.m5.large",
        "transform": TRANSFORM,
        "metric": "accuracy",
        "direction": "max",
    }
    return CheckpointEvaluation.model_validate({**given, **fields})


def made(name: str, stage: CheckpointEvaluation) -> Pipeline:
    workspace = f"s3://{BUCKET}/runs"
    return Pipeline(name=name, region="us-east-1", workspace=workspace, stages=(stage,))


def shown(reports: Reports) -> dict[str, Any]:
    """Return what the runs show of the evaluation, equal but for the place of the page."""
    every: list[Any] = [dict(each.outputs or {})["judge"] for each in reports.values()]
    for each in every:
        each.pop("report", None)
        each.pop("report_link", None)
    assert every[1:] == every[:1] * (len(every) - 1)
    return dict(every[0])


def models(aws: EmbeddedAws) -> list[str]:
    return [*aws.state()["sagemaker"]["Models"]]


def test_predictions_of_every_checkpoint_are_scored_against_the_champion_s(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    stage = scored(
        checkpoints=f"s3://{BUCKET}/tried",
        checkpoint_prefix="epoch-",
        failures_allowed=1,
        slices={"half": {"minimum": 0.8}},
        champion={"endpoint": "live"},
    )
    reports = everywhere(made("beaten", stage), aws, airflow)
    assert {(each.state, each.cause) for each in reports.values()} == {("succeeded", None)}
    judged = shown(reports)
    assert judged["best_checkpoint"] == f"s3://{BUCKET}/tried/epoch-2/"
    assert (judged["best_metric"], judged["champion_metric"]) == (0.9, 0.1)
    assert (judged["outcome"], judged["champion"]) == ("promoted", f"s3://{BUCKET}/old.tar.gz")
    assert judged["interval_low"] > 0
    for each in reports.values():
        sent = [call.operation for call in each.calls]
        # The serving model predicts itself. What a transform that failed has left is not scored.
        assert (sent.count("CreateTransformJob"), sent.count("CreateProcessingJob")) == (4, 4)
    assert models(aws) == ["live"]
    again = run(made("beaten", stage), aws=aws, run_id="beaten-direct")
    assert (again.state, models(aws)) == ("succeeded", ["live"])


def test_a_model_that_cannot_predict_fails_the_run_and_is_deleted(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    stage = scored(checkpoints=f"s3://{BUCKET}/tried", checkpoint_prefix="epoch-0")
    lost = [
        Fault("sagemaker", name, "InternalFailure", "lost", status=500, after_effect=True)
        for name in ("CreateModel", "CreateTransformJob")
    ]
    for report in everywhere(made("broken", stage), aws, airflow, *lost).values():
        assert (report.state, report.error) == ("failed", "JobFailed")
    assert models(aws) == ["live"]


def test_predictions_of_a_second_try_are_scored(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    stage = scored(
        checkpoints=f"s3://{BUCKET}/tried",
        checkpoint_prefix="epoch-2",
        failures_allowed=0,
        retry={"attempts": 2},
    )
    pipeline = made("second", stage)
    failing = Fault.job("second-", times=1, operation="CreateTransformJob")
    reports = everywhere(pipeline, aws, airflow, failing)
    assert {(each.state, each.cause) for each in reports.values()} == {("succeeded", None)}
    judged = shown(reports)
    assert (judged["best_metric"], judged["outcome"]) == (0.9, "promoted")
    for each in reports.values():
        names = [
            call.request["TransformJobName"]
            for call in each.calls
            if call.operation == "CreateTransformJob" and not call.error_code
        ]
        assert [name.endswith("-2") for name in names] == [False, True]


def test_a_model_without_code_predicts_by_the_transform_s_own(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    aws.client("s3").put_object(Bucket=BUCKET, Key="bare/offset", Body=b"100")
    code = Source.at(CODE.parent, CODE.name)
    stage = scored(model=f"s3://{BUCKET}/bare", transform={**TRANSFORM, "source": code})
    judged = shown(everywhere(made("bare", stage), aws, airflow))
    assert (judged["best_metric"], judged["passed"]) == (0.9, True)
    assert models(aws) == ["live"]


def test_some_predict_and_the_best_passes_without_a_job_that_decides(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    stage = scored(
        checkpoints=f"s3://{BUCKET}/tried",
        checkpoint_prefix="epoch-",
        select={"last": 2},
        threshold={"value": 0.9},
    )
    judged = shown(everywhere(made("selected", stage), aws, airflow, backends=BY_STEPS))
    assert [each["metric"] for each in judged["results"]] == [0.1, 0.9]
    assert judged["passed"] is True
    assert models(aws) == ["live"]


def test_one_archive_predicts_beside_the_registered_version(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    stage = scored(
        model=f"s3://{BUCKET}/tried/epoch-2.tar.gz",
        transform={**TRANSFORM, "model_archive": True},
        champion={"package_group": "sums"},
    )
    judged = shown(everywhere(made("archive", stage), aws, airflow, backends=BY_STEPS))
    assert (judged["outcome"], judged["champion_metric"]) == ("promoted", 0.1)
    assert models(aws) == ["live"]
