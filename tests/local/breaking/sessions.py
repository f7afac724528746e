"""Requests for sessions of roles that break STS's rules, each of them once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orchestration.local import EmbeddedAws

BREAKING: dict[str, Callable[[EmbeddedAws], Any]] = {
    "roles trust who assumes them": lambda aws: aws.client("sts").assume_role(
        RoleArn="arn:aws:iam::444455556666:role/nobody", RoleSessionName="test"
    ),
}
