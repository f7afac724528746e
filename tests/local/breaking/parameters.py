"""Requests to the Parameter Store that break its rules, each of them once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orchestration.local import EmbeddedAws


def _put(value: str, **more: Any) -> Callable[[EmbeddedAws], None]:
    asked = {"Name": "/runs/best", "Value": value, "Type": "String", "Overwrite": True, **more}
    return lambda aws: aws.client("ssm").put_parameter(**asked)


BREAKING: dict[str, Callable[[EmbeddedAws], Any]] = {
    "names": _put("x", Name="/runs/the best"),
    "standard parameters at most": _put("x" * 4097),
    "advanced parameters at most": _put("x" * 8193, Tier="Advanced"),
}
