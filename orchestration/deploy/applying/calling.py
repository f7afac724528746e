"""Calls that may be repeated: what is there already, and roles that are not known yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# A new role or policy reaches other services within seconds, rarely a minute; until then they
# refuse it. https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html
_NOT_YET = (
    "is authorized to assume the provided role",
    "is not authorized to create managed-rule",
    "is not authorized to access the Log Destination",
    "must allow AWS EventBridge Scheduler to assume the role",
)
_PAUSES_S = (1, 2, 4, 8, 15, 15, 15)

Sleep = Callable[[float], None]


def unless(code: str, call: Callable[..., Any], **request: Any) -> bool:
    """Make a call; return False if it failed with this error."""
    from botocore.exceptions import ClientError

    try:
        call(**request)
    except ClientError as error:
        if error.response["Error"]["Code"].removesuffix("Exception") == code:
            return False
        raise
    return True


def once_known(sleep: Sleep, code: str, call: Callable[..., Any], **request: Any) -> bool:
    """Call like :func:`unless`, and retry for a minute while a new role is not usable yet."""
    from botocore.exceptions import ClientError

    for pause_s in _PAUSES_S:
        try:
            return unless(code, call, **request)
        except ClientError as error:
            if not any(text in error.response["Error"]["Message"] for text in _NOT_YET):
                raise
            sleep(pause_s)
    return unless(code, call, **request)
