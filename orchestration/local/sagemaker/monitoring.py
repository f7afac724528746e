"""Monitoring schedules, which are kept and checked: none of them ever starts a job."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from typing_extensions import override

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject, Operation, now
from orchestration.local.sagemaker.checks.surroundings import check_image, check_role, not_simulated
from orchestration.local.sagemaker.rules import refusal
from orchestration.local.sagemaker.serving.models import EndpointConfigs, Resources
from orchestration.local.sagemaker.tags import Tags

_HOUR: Final = r"([01]?\d|2[0-3])"
_EVERY: Final = r"(0?[1-9]|1\d|2[0-4])"
_EXPRESSION: Final = re.compile(rf"cron\(0 (\*|{_HOUR}(/{_EVERY})?) \? \* \* \*\)|NOW")
_DEFINITION: Final = "MonitoringJobDefinition"
_CONFIG: Final = "MonitoringScheduleConfig"


class MonitoringSchedules(Resources):
    """The monitoring schedules of an account."""

    def __init__(
        self,
        account: Account,
        tags: Tags,
        endpoints: Callable[[], JsonObject],
        configs: EndpointConfigs,
    ) -> None:
        super().__init__(
            account,
            tags,
            noun="MonitoringSchedule",
            rules="schedules",
            arn_word="monitoring-schedule",
        )
        self._endpoints = endpoints
        self._configs = configs

    @override
    def operations(self) -> dict[str, Operation]:
        kept = super().operations()
        return {
            **{name: kept[name] for name in kept if not name.startswith("List")},
            "UpdateMonitoringSchedule": self._update,
        }

    @override
    def check(self, request: JsonObject) -> None:
        """Check when the schedule starts what, as whom, and what there is to monitor."""
        config = request[_CONFIG]
        _check_hours(config.get("ScheduleConfig", {}))
        if (_DEFINITION in config) == (f"{_DEFINITION}Name" in config):
            raise refusal("schedules have one definition")
        if _DEFINITION not in config:
            not_simulated([f"{_DEFINITION}Name"])
        definition = config[_DEFINITION]
        check_role(definition["RoleArn"])
        image = definition["MonitoringAppSpecification"]["ImageUri"]
        check_image(self._account, image, "processing image's region")
        for name in _monitored(request):
            self._check_endpoint(name)

    def _check_endpoint(self, name: str) -> None:
        endpoint = self._endpoints().get(name)
        if endpoint is None:
            raise refusal("monitored endpoints exist", name=name)
        config = self._configs.find(endpoint["EndpointConfigName"])
        capture = config.get("DataCaptureConfig", {})
        # Capture is on where the configuration does not say otherwise.
        if not capture or not capture.get("EnableCapture", True):
            raise refusal("monitored endpoints capture", name=name)

    def _update(self, request: JsonObject) -> JsonObject:
        with self._lock:
            made = self.get(self._name(request))
            self.check(request)
            self._created[self._name(request)] = {**made, **request, "LastModifiedTime": now()}
        return {"MonitoringScheduleArn": made["MonitoringScheduleArn"]}

    @override
    def _description(self, made: JsonObject) -> JsonObject:
        # SageMaker has a schedule Pending for a moment first.
        described = {"MonitoringScheduleStatus": "Scheduled", **super()._description(made)}
        described.setdefault("LastModifiedTime", described["CreationTime"])
        if "MonitoringType" in made[_CONFIG]:
            described["MonitoringType"] = made[_CONFIG]["MonitoringType"]
        for name in _monitored(made):
            described["EndpointName"] = name
        return described


def _check_hours(config: JsonObject) -> None:
    # The schema requires an expression of a ScheduleConfig; without either, the service picks one.
    expression = config.get("ScheduleExpression")
    if expression is None:
        return
    if not _EXPRESSION.fullmatch(expression):
        raise refusal("hours of schedules", expression=expression)
    if expression == "NOW" and not {"DataAnalysisStartTime", "DataAnalysisEndTime"} <= set(config):
        raise refusal("windows of a single job")


def _monitored(request: JsonObject) -> Iterator[str]:
    """Yield the endpoints whose captured data a schedule compares."""
    for each in request[_CONFIG].get(_DEFINITION, {}).get("MonitoringInputs", []):
        if "EndpointInput" in each:
            yield each["EndpointInput"]["EndpointName"]
