"""The logging of executions: checked when a state machine is made, and done when it runs.

moto 5.2.5 takes any logging configuration and logs nothing; its sessions write records that its
own CloudWatch Logs can't read. `tests/local/engine/test_logging.py` fails without this module.
https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, cast

from moto.core.exceptions import AWSError
from moto.logs.models import logs_backends
from moto.stepfunctions.parser.asl.eval.event.logging import (
    CloudWatchLoggingConfiguration,
    CloudWatchLoggingSession,
)
from moto.stepfunctions.parser.backend.execution import Execution
from moto.stepfunctions.parser.models import StepFunctionsParserBackend

from orchestration.local.engine.seams import replace

_LEVELS = ("ALL", "ERROR", "FATAL", "OFF")


class InvalidLoggingConfiguration(AWSError):
    """The error for logging that goes nowhere."""

    TYPE = "InvalidLoggingConfiguration"
    STATUS = 400


def _check(configuration: Mapping[str, Any] | None) -> None:
    """Refuse what Step Functions refuses."""
    if not configuration or configuration.get("level", "OFF") == "OFF":
        return
    if configuration["level"] not in _LEVELS:
        raise InvalidLoggingConfiguration("Invalid Logging Configuration: unknown level.")
    destinations = configuration.get("destinations", [])
    if len(destinations) != 1:
        raise InvalidLoggingConfiguration(
            "Invalid Logging Configuration: Must specify exactly one Log Destination."
        )
    arn = str(destinations[0].get("cloudWatchLogsLogGroup", {}).get("logGroupArn", ""))
    if not arn.endswith(":*"):
        raise InvalidLoggingConfiguration(
            "Invalid Logging Configuration: The Log Destination must end with ':*'."
        )
    parts = CloudWatchLoggingConfiguration.extract_log_arn_parts_from(cast("Any", configuration))
    if parts is None or parts[2] not in logs_backends[parts[0]][parts[1]].groups:
        raise InvalidLoggingConfiguration(
            "Invalid Logging Configuration: Log Destination not found."
        )


class _Session(CloudWatchLoggingSession):
    """Writes the events of an execution to a log stream."""

    def publish_history_log(self, history_log: Any) -> None:
        at = datetime.fromisoformat(str(history_log["event_timestamp"]))
        record = {
            "id": str(history_log["id"]),
            "type": str(getattr(history_log["type"], "value", history_log["type"])),
            "details": history_log.get("details", {}),
            "previous_event_id": str(history_log["previous_event_id"]),
            "event_timestamp": str(round(at.timestamp() * 1000)),
            "execution_arn": history_log["execution_arn"],
        }
        group = self.configuration.log_group_name
        found = self._logs_client.groups.get(group)
        if found is None:  # Nobody hears of logs that can't be delivered.
            return
        stream = self.configuration.log_stream_name
        if stream not in found.streams:
            self._logs_client.create_log_stream(group, stream)
        event = {"timestamp": int(record["event_timestamp"]), "message": json.dumps(record)}
        self._logs_client.put_log_events(group, stream, [event])


def _session(machine: Any, execution_arn: str) -> _Session | None:
    settings: Any = {"includeExecutionData": False, **machine.loggingConfiguration}
    configuration = CloudWatchLoggingConfiguration.from_logging_configuration(machine.arn, settings)
    if configuration is None:
        return None
    _, _, tail = execution_arn.partition(":execution:")
    # An ARN has colons, which names of streams can't have.
    configuration.log_stream_name = f"states/{tail.replace(':', '/')}"  # type: ignore[misc]  # Final
    return _Session(execution_arn, configuration)


def install() -> None:
    """Make the engine check logging configurations, and log."""

    def checked(method: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            _check(kwargs.get(name))
            return method(self, *args, **kwargs)

        return call

    for operation, name in (
        ("create_state_machine", "loggingConfiguration"),
        ("update_state_machine", "logging_configuration"),
    ):
        stock = getattr(StepFunctionsParserBackend, operation)
        replace(StepFunctionsParserBackend, operation, checked(stock, name))
    create = Execution.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        logging = _session(kwargs["state_machine"], kwargs["exec_arn"])
        create(self, *args, **{**kwargs, "cloud_watch_logging_session": logging})

    replace(Execution, "__init__", init)
