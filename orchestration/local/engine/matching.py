"""The errors that a Retry or a Catch matches.

<https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html>

In moto 5.2.5 `States.ALL` also matches `States.Runtime`, and `States.TaskFailed` matches too
little. `test_wildcards_match_what_aws_says_they_match` fails without this module.

The documentation says that `States.ALL` does not match `States.DataLimitExceeded`; recordings of
2024 show it caught, and are followed here. Our own definitions rely on neither.
"""

from __future__ import annotations

from typing import Any

from moto.stepfunctions.parser.asl.component.common.error_name.error_equals_decl import (
    ErrorEqualsDecl,
)

from orchestration.local.engine.seams import replace


def matches(error: str | None, names: list[str]) -> bool:
    """Return whether an `ErrorEquals` matches an error; nothing matches one without a name."""
    if error is None or error == "States.Runtime":
        return False
    if error in names or "States.ALL" in names:
        return True
    return "States.TaskFailed" in names and error != "States.Timeout"


def _error_equals(self: Any, env: Any) -> None:
    error = env.stack.pop()
    name = None if error is None else error.error_name
    env.stack.append(matches(name, [known.error_name for known in self.error_names]))


def install() -> None:
    """Make the engine match with this module."""
    replace(ErrorEqualsDecl, "_eval_body", _error_equals)
