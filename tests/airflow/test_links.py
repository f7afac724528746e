"""Links of tasks to their jobs."""

from __future__ import annotations

import pytest
from airflow.serialization.serialized_objects import DagSerialization

from orchestration.airflow import dag
from orchestration.airflow.links import links
from orchestration.execution.effects import Request, Started
from orchestration.expressions import Json
from orchestration.graph import Graph
from tests.airflow.conftest import Attempt, Run, TaskInstance
from tests.airflow.workflows import file_system, training, workflow
from tests.backends.test_airflow import whole


@pytest.mark.parametrize(
    ("partition", "domain"),
    [
        ("aws", "console.aws.amazon.com"),
        ("aws-cn", "console.amazonaws.cn"),
        ("aws-us-gov", "console.amazonaws-us-gov.com"),
    ],
)
def test_a_job_is_linked_to_in_its_partition(partition: str, domain: str) -> None:
    request = Request("sagemaker", "CreateTrainingJob", {"TrainingJobName": "digits-1"})
    assert links(Started("train.job", request), "r-1", partition) == {
        "link_console": f"https://{domain}/sagemaker/home?region=r-1#/jobs/digits-1",
        "link_logs": f"https://{domain}/cloudwatch/home?region=r-1#logsV2:log-groups/log-group/"
        "$252Faws$252Fsagemaker$252FTrainingJobs$3FlogStreamNameFilter$3Ddigits-1$252F",
    }


def test_the_job_that_decides_is_linked_to_its_page() -> None:
    place: Json = {
        "OutputName": "verdict",
        "S3Output": {"S3Uri": "s3://bucket/runs/1/judge/verdict"},
    }
    asked: dict[str, Json] = {
        "ProcessingJobName": "digits-1",
        "ProcessingOutputConfig": {"Outputs": [place]},
    }
    request = Request("sagemaker", "CreateProcessingJob", asked)
    assert links(Started("judge.decide", request), "r-1", "aws")["link_report"] == (
        "https://console.aws.amazon.com/s3/object/bucket?region=r-1"
        "&prefix=runs/1/judge/verdict/report.html"
    )


CREATE = Request("fsx", "CreateFileSystem", {"StorageCapacity": 1200})
ASK = Request("fsx", "DescribeFileSystems", {"FileSystemIds": ["fs-0a1b"]})


@pytest.mark.parametrize(
    "started",
    [
        Started("data.create", CREATE, {"FileSystem": {"FileSystemId": "fs-0a1b"}}),
        Started("data.create_ready", ASK, {"FileSystems": []}),
    ],
    ids=["created", "waited for"],
)
def test_a_file_system_is_linked_to(started: Started) -> None:
    assert links(started, "eu-west-1", "aws") == {
        "link_file_system": "https://console.aws.amazon.com/fsx/home?region=eu-west-1"
        "#file-system-details/fs-0a1b"
    }


@pytest.mark.parametrize("response", [None, {}, {"FileSystem": {}}])
def test_a_file_system_without_an_id_has_no_link(response: Json) -> None:
    assert links(Started("data.create", CREATE, response), "eu-west-1", "aws") == {}


def test_the_ui_knows_the_links_of_plain_and_mapped_tasks() -> None:
    again = DagSerialization.from_dict(DagSerialization.to_dict(dag(whole())))
    jobs = [task for task in again.tasks if task.task_type == "TrainingOperator"]
    assert {task.is_mapped for task in jobs} == {True, False}
    for task in jobs:
        assert {link.xcom_key for link in task.operator_extra_links} == {
            "link_console",
            "link_logs",
        }
    systems = {
        task.task_id: {link.xcom_key for link in task.operator_extra_links}
        for task in again.tasks
        if task.task_type == "FileSystemOperator"
    }
    assert systems == {
        "a.fs.create": {"link_file_system"},
        "a.fs.create_ready": {"link_file_system"},
    }


def test_the_links_are_there_while_the_job_runs(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed: list[str] = []
    push = TaskInstance.xcom_push

    def noted(ti: TaskInstance, key: str, value: object) -> None:
        pushed.append(key)
        push(ti, key, value)

    monkeypatch.setattr(TaskInstance, "xcom_push", noted)
    attempt(training("train.job", job="base"))
    assert pushed == ["link_console", "link_logs", "train.job"]


def test_the_task_that_creates_a_file_system_leaves_its_link(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed: dict[str, object] = {}
    monkeypatch.setattr(
        TaskInstance, "xcom_push", lambda _, key, value: pushed.update({key: value})
    )
    attempt(file_system("data", Graph()).acquire)
    assert str(pushed["link_file_system"]).endswith("#file-system-details/fs-0123456789abcdef0")


@pytest.mark.xdist_group("airflow")
def test_airflow_finds_the_links_when_a_task_ends(run: Run) -> None:
    ended = run(workflow(training("a.job"), file_system("b.fs", Graph((training("b.job"),)))))
    assert ended.state == "success"
    assert "task operator extra link" not in ended.log
