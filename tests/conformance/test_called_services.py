"""The calls that ``docs/aws_calls.md`` shows are made the same on every backend."""

from __future__ import annotations

import io
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import On, run
from orchestration.local.run.executions import role
from tests.guides import AWS_CALLS, shown

pytestmark = pytest.mark.slow

JUDGE = """
def handler(event, context):
    assert event["answer"].startswith("s3://my-bucket/athena"), event
    return {"verdict": "enough" if event["minimum_rows"] == "10" else "too few"}
"""


def account(aws: EmbeddedAws) -> dict[str, str]:
    """Make what the calls name, and return the parameters of a run."""
    aws.client("ssm").put_parameter(Name="/features/minimum-rows", Value="10", Type="String")
    aws.client("glue").create_job(
        Name="prepare",
        Role=role(aws, "Glue", "glue.amazonaws.com"),
        Command={"Name": "glueetl", "ScriptLocation": "s3://my-bucket/code/prepare.py"},
    )
    ecs = aws.client("ecs")
    ecs.create_cluster(clusterName="features")
    ecs.register_task_definition(
        family="export",
        networkMode="awsvpc",
        requiresCompatibilities=["FARGATE"],
        cpu="256",
        memory="512",
        # moto asks each container for its memory.
        containerDefinitions=[{"name": "main", "image": "export", "memory": 512}],
    )
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("judge.py", JUDGE)
    aws.client("lambda").create_function(
        FunctionName="judge",
        Runtime="python3.11",
        Handler="judge.handler",
        Role=role(aws, "Judge", "lambda.amazonaws.com"),
        Code={"ZipFile": archive.getvalue()},
    )
    return {
        "day": "2026-11-22",
        "subnet": aws.client("ec2").describe_subnets()["Subnets"][0]["SubnetId"],
        "topic": aws.client("sns").create_topic(Name="news")["TopicArn"],
    }


@contextmanager
def ended_clusters(aws: EmbeddedAws) -> Iterator[None]:
    """Stand in for EMR, whose clusters moto never ends: end all that wait."""
    over = threading.Event()

    def end() -> None:
        emr = aws.client("emr")
        while not over.wait(0.2):
            clusters = emr.list_clusters(ClusterStates=["WAITING", "RUNNING"])["Clusters"]
            if clusters:
                emr.terminate_job_flows(JobFlowIds=[each["Id"] for each in clusters])

    thread = threading.Thread(target=end)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("on", ["direct", "step-functions", "airflow"])
def test_seven_services_are_called_as_the_guide_shows(
    on: On, airflow: LocalAirflow, tmp_path: Path
) -> None:
    path = tmp_path / "features.yaml"
    path.write_text(shown(AWS_CALLS, "yaml")[0], encoding="utf-8")
    pipeline = Pipeline.load(path)
    with EmbeddedAws(time_scale=0.003) as aws:
        parameters = account(aws)
        with ended_clusters(aws):
            report = run(pipeline, on=on, aws=aws, airflow=airflow, parameters=parameters)
    assert (report.state, report.error, report.cause) == ("succeeded", None, None)
    outputs: Any = report.outputs
    assert outputs["settings"]["minimum_rows"] == "10"
    assert outputs["prepare"]["seconds"] > 0
    assert outputs["judge"]["verdict"] == "enough"
    assert outputs["export"]["exit_code"] == 0
    assert outputs["tell"]["message"]
    operations = [call.operation for call in report.calls]
    starting = ("GetParameter", "StartJobRun", "RunJobFlow", "StartQueryExecution", "RunTask")
    assert [operations.count(name) for name in (*starting, "Publish")] == [1] * 6
    [task] = [call.request for call in report.calls if call.operation == "RunTask"]
    assert task["overrides"] == {
        "containerOverrides": [{"name": "main", "command": ["--day", "2026-11-22"]}]
    }
