"""Histories of executions on the embedded AWS, and the size of what they carry."""

from __future__ import annotations

from typing import Any

from orchestration.local import EmbeddedAws


def history(aws: EmbeddedAws, name: str) -> list[dict[str, Any]]:
    """Return the events of the one execution of a state machine."""
    states = aws.client("stepfunctions")
    machines = states.list_state_machines()["stateMachines"]
    [arn] = [each["stateMachineArn"] for each in machines if each["name"].startswith(name)]
    [execution] = states.list_executions(stateMachineArn=arn)["executions"]
    pages = states.get_paginator("get_execution_history").paginate(
        executionArn=execution["executionArn"],
        # moto copies the whole history for each page.
        PaginationConfig={"PageSize": 1000},
    )
    return [event for page in pages for event in page["events"]]


def largest(events: list[dict[str, Any]]) -> int:
    """Return the bytes of the largest input, output or assigned variable."""
    return max(
        len(text.encode())
        for event in events
        for details in event.values()
        if isinstance(details, dict)
        for part in details.values()
        for text in ([part] if isinstance(part, str) else map(str, _values(part)))
    )


def _values(part: Any) -> list[Any]:
    return list(part.values()) if isinstance(part, dict) else []
