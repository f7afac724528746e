"""The roles of the account, which moto keeps, and the services that may assume them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

# The services to which a pipeline hands a role.
_SERVICES = (
    "batchoperations.s3.amazonaws.com",
    "datasync.amazonaws.com",
    "events.amazonaws.com",
    "sagemaker.amazonaws.com",
    "scheduler.amazonaws.com",
    "states.amazonaws.com",
)


def exists(arn: str) -> bool:
    """Return whether a role exists."""
    return _role(arn) is not None


def trusts(arn: str, service: str) -> bool:
    """Return whether a role exists and lets a service assume it."""
    role = _role(arn)
    if role is None:
        return False
    document = json.loads(role.assume_role_policy_document)
    return any(_admits(statement, service) for statement in _list(document.get("Statement", [])))


def provide(arn: str) -> None:
    """Create a role that every service of a pipeline may assume, unless the role exists."""
    if _role(arn) is not None:
        return
    _, account, path = _parts(arn)
    folder, _, name = path.rpartition("/")
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": list(_SERVICES)},
                "Action": "sts:AssumeRole",
            }
        ],
    }
    _backend(account).create_role(
        name, json.dumps(trust), f"/{folder}/" if folder else "/", None, "", [], "3600"
    )


def _role(arn: str) -> Any:
    _, account, _ = _parts(arn)
    # A copy: another thread may create a role meanwhile.
    return next((role for role in [*_backend(account).roles.values()] if role.arn == arn), None)


def _parts(arn: str) -> tuple[str, str, str]:
    """Return the partition, the account, and the path and name of a role's ARN."""
    _, partition, _, _, account, resource = arn.split(":", 5)
    return partition, account, resource.removeprefix("role/")


def _backend(account: str) -> Any:
    from moto.iam.models import iam_backends

    return iam_backends[account]["aws"]


def _admits(statement: Any, service: str) -> bool:
    if statement.get("Effect") != "Allow" or not isinstance(statement.get("Principal"), dict):
        return False
    actions = {"sts:AssumeRole", "sts:*", "*"}.intersection(_list(statement.get("Action", [])))
    return bool(actions) and service in _services(statement["Principal"])


def _services(principal: Any) -> Iterator[str]:
    for service in _list(principal.get("Service", [])):
        yield str(service)


def _list(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else [value]
