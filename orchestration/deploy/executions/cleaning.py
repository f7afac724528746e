"""The companion of a state machine, started from here, and the wait for its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from orchestration.backends.companion import SUFFIX

Sleep = Callable[[float], None]

POLL_S: Final = 5.0


def clean_up(states: Any, machine_arn: str, sleep: Sleep) -> str | None:
    """Let the companion stop and delete what ended executions have left; return why it could not.

    A state machine without a companion leaves nothing.
    """
    companion = f"{machine_arn}{SUFFIX}"
    try:
        states.describe_state_machine(stateMachineArn=companion)
    except states.exceptions.StateMachineDoesNotExist:
        return None
    arn = states.start_execution(stateMachineArn=companion, input="{}")["executionArn"]
    while (ended := states.describe_execution(executionArn=arn))["status"] == "RUNNING":
        sleep(POLL_S)
    if ended["status"] == "SUCCEEDED":
        return None
    return str(ended.get("cause") or ended["status"])
