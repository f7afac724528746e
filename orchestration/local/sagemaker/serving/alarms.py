"""Alarms on metrics of endpoints and components: moto keeps them, real requests decide them.

An alarm's periods are shortened as all pauses are, and end at the moment it is looked at. Alarms on
other metrics have the state that `SetAlarmState` gave them.
"""

from __future__ import annotations

import datetime
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

from botocore.utils import parse_timestamp

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import ACCOUNT_ID, JsonObject, Request, Service
from orchestration.local.sagemaker.serving.requests import (
    BACKLOG,
    METRICS,
    Requests,
    statistic,
)

_COMPARED: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "GreaterThanThreshold": lambda value, threshold: value > threshold,
    "GreaterThanOrEqualToThreshold": lambda value, threshold: value >= threshold,
    "LessThanThreshold": lambda value, threshold: value < threshold,
    "LessThanOrEqualToThreshold": lambda value, threshold: value <= threshold,
}
_VARIANT = frozenset(["EndpointName", "VariantName"])
_ENDPOINT = (frozenset(["EndpointName"]),)
_COMPONENT: Final = "InferenceComponentName"
_DIMENSIONS = (_VARIANT, _VARIANT | {"EndpointConfigName"}, frozenset([_COMPONENT]))
"""https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch.html: the answers of a
component's new copies and of its old ones are one metric."""


class Alarms(Service):
    """CloudWatch: moto answers, after the states of alarms on endpoints are brought up to date."""

    name = "cloudwatch"

    def __init__(self, account: Account, requests_of: Callable[[str], Requests | None]) -> None:
        super().__init__({"DescribeAlarmHistory": self._history})
        self._account = account
        self._requests_of = requests_of
        self.requests_of_component: Callable[[str], Requests | None] = lambda _: None

    def handles(self, request: Request) -> bool:
        """Return whether moto 5.2.5 lacks the operation: it answers every other call."""
        return request.operation in self.operations

    def check(self, request: Request) -> None:
        """Bring the states up to date before they are read."""
        if request.operation == "DescribeAlarms":
            self.refresh()

    def _history(self, request: JsonObject) -> JsonObject:
        """Answer ``DescribeAlarmHistory``, of which only changes of state are simulated."""
        self.refresh()
        start = parse_timestamp(request.get("StartDate", 0))
        items = [
            {
                "AlarmName": alarm.name,
                "AlarmType": "MetricAlarm",
                "Timestamp": at,
                "HistoryItemType": "StateUpdate",
                "HistorySummary": f"Alarm updated from {before} to {after}",
            }
            for alarm in self._all()
            if request.get("AlarmName", alarm.name) == alarm.name
            for before, after, at in _changes(alarm)
            if before != after and at >= start
        ]
        return {"AlarmHistoryItems": sorted(items, key=itemgetter("Timestamp"), reverse=True)[:100]}

    def missing(self, names: Sequence[str]) -> list[str]:
        """Return those among some names that no alarm has."""
        known = {alarm.name for alarm in self._all()}
        return [name for name in names if name not in known]

    def tripped(self, names: Sequence[str]) -> list[str]:
        """Return the alarms among some that are in alarm now."""
        self.refresh()
        return [each.name for each in self._all() if each.name in names and _is_on(each)]

    def actions(self, endpoint: str) -> list[str]:
        """Return the actions of the alarms on an endpoint that are in alarm now."""
        self.refresh()
        return [
            action
            for alarm in self._all()
            if _is_on(alarm)
            and {each.name: each.value for each in alarm.dimensions} == {"EndpointName": endpoint}
            for action in alarm.alarm_actions
        ]

    def refresh(self) -> None:
        """Bring the states of all alarms on endpoints up to date."""
        for alarm in self._all():
            dimensions = {each.name: each.value for each in alarm.dimensions}
            known = _ENDPOINT if alarm.metric_name == BACKLOG else _DIMENSIONS
            if alarm.namespace != "AWS/SageMaker" or alarm.metric_name not in (*METRICS, BACKLOG):
                continue
            requests = self._requests(dimensions)
            if requests is None or frozenset(dimensions) not in known:
                continue
            state, reason = self._state(alarm, requests, dimensions)
            if state != alarm.state_value:
                alarm.update_state(reason, "{}", state)

    def _requests(self, dimensions: Mapping[str, str]) -> Requests | None:
        if _COMPONENT in dimensions:
            return self.requests_of_component(dimensions[_COMPONENT])
        return self._requests_of(dimensions.get("EndpointName", ""))

    def _all(self) -> list[Any]:
        from moto.cloudwatch.models import cloudwatch_backends

        return list(cloudwatch_backends[ACCOUNT_ID][self._account.region].alarms.values())

    def _state(
        self, alarm: Any, requests: Requests, dimensions: Mapping[str, str]
    ) -> tuple[str, str]:
        points = list(self._points(alarm, requests, dimensions))
        missing = alarm.treat_missing_data or "missing"
        if all(point is None for point in points):
            if missing == "ignore":
                return alarm.state_value, ""
            if missing == "missing":
                return "INSUFFICIENT_DATA", "no data points"
        breaches = _COMPARED[alarm.comparison_operator]
        count = sum(
            missing == "breaching" if point is None else breaches(point, alarm.threshold)
            for point in points
        )
        wanted = alarm.datapoints_to_alarm or alarm.evaluation_periods
        text = f"Threshold Crossed: {count} of {len(points)} data points {points} breached"
        return ("ALARM", text) if count >= wanted else ("OK", text)

    def _points(
        self, alarm: Any, requests: Requests, dimensions: Mapping[str, str]
    ) -> Iterator[float | None]:
        end, period = time.monotonic(), self._account.clock.pause(alarm.period)
        for number in range(alarm.evaluation_periods):
            start = end - (number + 1) * period
            if alarm.metric_name == BACKLOG:
                values = requests.waiting(start, start + period)
            else:
                values = requests.values(alarm.metric_name, dimensions, start, start + period)
            name = alarm.extended_statistic or alarm.statistic
            yield statistic(name, values) if values else None


def _changes(alarm: Any) -> Iterator[tuple[str, str, datetime.datetime]]:
    """Yield the states that an alarm left and entered, and when."""
    # Of each state that was left, moto keeps its name and when it was entered.
    states = [(each[3], each[4]) for each in alarm.history]
    states.append((alarm.state_value, alarm.state_updated_timestamp))
    for (before, _), (after, at) in itertools.pairwise(states):
        yield before, after, at.replace(tzinfo=datetime.UTC)


def _is_on(alarm: Any) -> bool:
    return bool(alarm.state_value == "ALARM")
