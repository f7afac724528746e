"""Links of tasks to their jobs."""

from __future__ import annotations

import pytest
from airflow.serialization.serialized_objects import DagSerialization

from orchestration.airflow import dag
from orchestration.airflow.links import links
from orchestration.execution.effects import Request
from tests.airflow.conftest import Attempt, Run, TaskInstance
from tests.airflow.workflows import training, workflow
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
    assert links(request, "r-1", partition) == {
        "link_console": f"https://{domain}/sagemaker/home?region=r-1#/jobs/digits-1",
        "link_logs": f"https://{domain}/cloudwatch/home?region=r-1#logsV2:log-groups/log-group/"
        "$252Faws$252Fsagemaker$252FTrainingJobs$3FlogStreamNameFilter$3Ddigits-1$252F",
    }


def test_the_ui_knows_the_links_of_plain_and_mapped_tasks() -> None:
    again = DagSerialization.from_dict(DagSerialization.to_dict(dag(whole())))
    jobs = [task for task in again.tasks if task.task_type == "TrainingOperator"]
    assert {task.is_mapped for task in jobs} == {True, False}
    for task in jobs:
        assert {link.xcom_key for link in task.operator_extra_links} == {
            "link_console",
            "link_logs",
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


@pytest.mark.xdist_group("airflow")
def test_airflow_finds_the_links_when_a_task_ends(run: Run) -> None:
    ended = run(workflow(training("a.job")))
    assert ended.state == "success"
    assert "task operator extra link" not in ended.log
