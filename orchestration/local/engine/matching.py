"""The errors that a Retry or a Catch matches.

<https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html>

In moto 5.2.5 `States.ALL` also matches the errors that AWS excludes from it.
`test_wildcards_match_what_aws_says_they_match` fails without this module.
"""

from __future__ import annotations

from typing import Any

from moto.stepfunctions.parser.asl.component.common.error_name.error_equals_decl import (
    ErrorEqualsDecl,
)

from orchestration.local.engine.seams import replace

# No wildcard matches them.
_NEVER_BY_ALL = ("States.Runtime", "States.DataLimitExceeded")


def matches(error: str, names: list[str]) -> bool:
    """Return whether an `ErrorEquals` matches an error."""
    if error == "States.Runtime":
        return False
    if error in names:
        return True
    if error in _NEVER_BY_ALL:
        return False
    if "States.ALL" in names:
        return True
    return "States.TaskFailed" in names and error != "States.Timeout"


def _error_equals(self: Any, env: Any) -> None:
    error = env.stack.pop()
    env.stack.append(matches(error.error_name, [name.error_name for name in self.error_names]))


def install() -> None:
    """Make the engine match with this module."""
    replace(ErrorEqualsDecl, "_eval_body", _error_equals)
