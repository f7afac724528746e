"""A pipeline in a DAG of somebody's own, with tasks before and after it."""

from typing import Any

from airflow.sdk import DAG, task

from orchestration.airflow import task_group

with DAG("grouped", schedule=None):

    @task
    def before(dag_run: Any) -> str:
        return str(dag_run.conf["data"])

    @task
    def after(outputs: dict[str, Any]) -> str:
        return str(outputs["endpoint_name"])

    group = task_group(
        "served.yaml",
        group_id="inner",
        parameters={
            "bucket": "workspace",
            "data": before(),
            "image": "any",
            "role": "arn:aws:iam::123456789012:role/SageMakerExecution",
        },
    )
    after(group.outputs["deploy"])
