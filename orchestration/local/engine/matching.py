"""Which errors a Retry or a Catch matches.

<https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html>
"""

from __future__ import annotations

from typing import Any

from moto.stepfunctions.parser.asl.component.common.error_name.error_equals_decl import (
    ErrorEqualsDecl,
)

from orchestration.local.engine.seams import replace

# No wildcard matches them.
_NEVER_BY_ALL = ("States.Runtime", "States.DataLimitExceeded")


def matches(error: str, wanted: list[str]) -> bool:
    """Whether one of the names in an `ErrorEquals` stands for an error."""
    if error == "States.Runtime":
        return False
    if error in wanted:
        return True
    if error in _NEVER_BY_ALL:
        return False
    if "States.ALL" in wanted:
        return True
    return "States.TaskFailed" in wanted and error != "States.Timeout"


def _error_equals(self: Any, env: Any) -> None:
    error = env.stack.pop()
    env.stack.append(matches(error.error_name, [name.error_name for name in self.error_names]))


def install() -> None:
    """Make the engine match with this module."""
    replace(ErrorEqualsDecl, "_eval_body", _error_equals)
