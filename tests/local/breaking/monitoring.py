"""Requests for monitoring schedules that break their rules, each of them once."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from orchestration.local import EmbeddedAws
from tests.local.breaking.hosting import endpoint
from tests.local.conftest import BUCKET, IMAGE, ROLE

_numbers = itertools.count()
_PREDICTIONS = {
    "BatchTransformInput": {
        "DataCapturedDestinationS3Uri": f"s3://{BUCKET}/captured",
        "DatasetFormat": {"Csv": {"Header": True}},
        "LocalPath": "/opt/ml/processing/input/predictions",
    }
}


def monitored(name: str) -> dict[str, Any]:
    return {"EndpointInput": {"EndpointName": name, "LocalPath": "/opt/ml/processing/input/data"}}


def config(watched: dict[str, Any] = _PREDICTIONS, **more: Any) -> dict[str, Any]:
    output = {"S3Uri": f"s3://{BUCKET}/reports", "LocalPath": "/opt/ml/processing/output"}
    cluster = {"InstanceCount": 1, "InstanceType": "ml.m5.xlarge", "VolumeSizeInGB": 20}
    definition = {
        "RoleArn": ROLE,
        "MonitoringInputs": [watched],
        "MonitoringOutputConfig": {"MonitoringOutputs": [{"S3Output": output}]},
        "MonitoringResources": {"ClusterConfig": cluster},
        "MonitoringAppSpecification": {"ImageUri": IMAGE},
    }
    return {"MonitoringJobDefinition": definition, **more}


def schedule(aws: EmbeddedAws, config: dict[str, Any]) -> str:
    name = f"schedule-{next(_numbers)}"
    aws.client("sagemaker").create_monitoring_schedule(
        MonitoringScheduleName=name, MonitoringScheduleConfig=config
    )
    return name


def _twice(aws: EmbeddedAws) -> None:
    aws.client("sagemaker").create_monitoring_schedule(
        MonitoringScheduleName=schedule(aws, config()), MonitoringScheduleConfig=config()
    )


def _at(expression: str) -> Callable[[EmbeddedAws], str]:
    when = {"ScheduleExpression": expression}
    return lambda aws: schedule(aws, config(ScheduleConfig=when))


BREAKING: dict[str, Callable[[EmbeddedAws], Any]] = {
    "schedules once": _twice,
    "schedules exist": lambda aws: aws.client("sagemaker").update_monitoring_schedule(
        MonitoringScheduleName="none", MonitoringScheduleConfig=config()
    ),
    "schedules have one definition": lambda aws: schedule(
        aws, config(MonitoringJobDefinitionName="another", MonitoringType="DataQuality")
    ),
    "hours of schedules": _at("cron(30 * ? * * *)"),
    "windows of a single job": _at("NOW"),
    "monitored endpoints exist": lambda aws: schedule(aws, config(monitored("nowhere"))),
    "monitored endpoints capture": lambda aws: schedule(aws, config(monitored(endpoint(aws)))),
}
