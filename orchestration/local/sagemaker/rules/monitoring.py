"""The rules of monitoring schedules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.local.account.rules import Rule

_REFUSED = "ValidationException"
_EXPRESSIONS = "model: ScheduleConfig.ScheduleExpression; code and wording assumed"

MONITORING: Final[Mapping[str, Rule]] = {
    "schedules once": Rule(
        "ResourceInUse",
        "Monitoring schedule {arn} already exists.",
        "model: CreateMonitoringSchedule; wording assumed",
    ),
    "schedules exist": Rule(
        "ResourceNotFound",
        "Could not find monitoring schedule {arn}.",
        "model: DescribeMonitoringSchedule; wording assumed",
    ),
    "schedules have one definition": Rule(
        _REFUSED,
        "A monitoring schedule must have either a MonitoringJobDefinition or a "
        "MonitoringJobDefinitionName with its MonitoringType.",
        "model: MonitoringScheduleConfig; code and wording assumed",
    ),
    "hours of schedules": Rule(
        _REFUSED,
        "{expression} is not a schedule of monitoring: hourly, daily, every n hours from an hour, "
        "or NOW.",
        _EXPRESSIONS,
    ),
    "windows of a single job": Rule(
        _REFUSED,
        "ScheduleExpression NOW requires DataAnalysisStartTime and DataAnalysisEndTime.",
        _EXPRESSIONS,
    ),
    "monitored endpoints exist": Rule(
        _REFUSED,
        "Could not find the endpoint {name} to monitor.",
        "issue: https://github.com/aws/sagemaker-python-sdk/issues/4873; code and wording assumed",
    ),
    "monitored endpoints capture": Rule(
        _REFUSED,
        "Endpoint {name} must capture data to be monitored.",
        "guide: https://docs.aws.amazon.com/sagemaker/latest/dg/model-monitor-data-capture.html; "
        "code and wording assumed",
    ),
}
