"""Reports list the jobs of every kind that a workflow starts."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.expressions.evaluate import run_token
from orchestration.graph import job_name_fields
from orchestration.local.account.records import RecordedCall
from orchestration.local.run import report
from tests.pipeline.building import evaluation, job, pipeline

ACCOUNT: dict[str, Any] = {"sagemaker": {"TrainingJobs": {"p-train": {}}, "ProcessingJobs": {}}}
RUN = "p/run"


def sent(operation: str, name_field: str, name: str, error_code: str | None = None) -> RecordedCall:
    tags = {"orchestration:run": run_token(RUN), "orchestration:stage": "work"}
    return RecordedCall(
        sequence=1,
        service="sagemaker",
        operation=operation,
        request={name_field: name, "Tags": [{"Key": k, "Value": v} for k, v in tags.items()]},
        status=200 if error_code is None else 400,
        error_code=error_code,
    )


def jobs(call: RecordedCall, **name_fields: str) -> tuple[str, ...]:
    followed = report.Followed(identity=RUN, state="succeeded")
    [stage] = report.stages(["work"], followed, [call], ACCOUNT, name_fields)
    return stage.job_names


def test_the_jobs_of_a_workflow_are_named_by_its_calls() -> None:
    workflow = pipeline(job("train"), evaluation("evaluate", "train")).lower()
    assert job_name_fields(workflow.graph) == {
        "CreateTrainingJob": "TrainingJobName",
        "CreateProcessingJob": "ProcessingJobName",
    }


@pytest.mark.parametrize(("name", "listed"), [("p-train", ("p-train",)), ("p-refused", ())])
def test_a_job_is_reported_where_the_account_has_it(name: str, listed: tuple[str, ...]) -> None:
    call = sent("CreateTrainingJob", "TrainingJobName", name)
    assert jobs(call, CreateTrainingJob="TrainingJobName") == listed


@pytest.mark.parametrize(
    ("error_code", "listed"), [(None, ("p-transform",)), ("ValidationException", ())]
)
def test_a_job_that_the_account_does_not_list_is_reported_by_its_answer(
    error_code: str | None, listed: tuple[str, ...]
) -> None:
    call = sent("CreateTransformJob", "TransformJobName", "p-transform", error_code)
    assert jobs(call, CreateTransformJob="TransformJobName") == listed
