"""Integrations: what the ``Resource`` of a Task names.

Optimised ones: https://docs.aws.amazon.com/step-functions/latest/dg/integrate-optimized.html and
the pages of the services below it (read November 2026), in ``optimised.csv``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from orchestration.backends.stepfunctions.integrations import services
from orchestration.checks.requests import operation_model, operation_names
from orchestration.errors import near
from orchestration.lint.findings import Finding
from orchestration.lint.machines import State
from orchestration.lint.values import is_placeholder

_ARN = re.compile(
    r"arn:(?P<partition>[^:]+):states:(?P<region>[^:]*):(?P<account>[^:]*):(?P<rest>.*)"
)
_REST = re.compile(r"(?P<service>[^:]+):(?P<action>[^.]+?)(?:\.(?P<pattern>[^.]+))?", re.DOTALL)
_PARTITIONS = re.compile(r"aws(-[a-z-]+)?")
_KNOWN: Final = ("aws", "aws-cn", "aws-us-gov")
_NAMED: Final = ("activity:", "stateMachine:")
"""Resources with an ARN of their own, with region and account."""
_TOKEN: Final = "waitForTaskToken"  # noqa: S105 - the name of a pattern
RETIRED: Final = frozenset(
    {
        *("alexaforbusiness", "honeycode", "lookoutmetrics", "lookoutvision", "nimble"),
        *(
            "lookoutequipment",
            "mobile",
            "opsworks",
            "opsworkscm",
            "qldb",
            "qldbsession",
            "robomaker",
        ),
        *("worklink", "sms", "iotevents", "evidently", "elastictranscoder", "workdocs"),
    }
)
"""Services that AWS has closed, which botocore has no model of any more."""


@dataclass(frozen=True, slots=True)
class Integration:
    """An integration that a Task uses."""

    service: str
    """``aws-sdk:fsx`` or ``sagemaker``, as the resource names it."""
    action: str
    pattern: str
    api: tuple[str, str] | None
    """Botocore's names of the service and the operation, if the request is that of an API."""
    is_sdk: bool
    extra: frozenset[str] = frozenset()
    """Fields beside those of the API."""
    required: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    """All fields, where the request is not that of an API."""
    optional: frozenset[str] = frozenset()
    """Fields that the API requires, and the integration does not."""

    @property
    def resource(self) -> str:
        """The end of its resource."""
        return f"{self.service}:{self.action}{f'.{self.pattern}' if self.pattern else ''}"


@cache
def optimised() -> dict[tuple[str, str], dict[str, str]]:
    """Return the optimised integrations, by service and action."""
    text = resources.files(__package__).joinpath("optimised.csv").read_text(encoding="utf-8")
    return {(row["service"], row["action"]): row for row in csv.DictReader(text.splitlines())}


def integration(state: State) -> Integration | None:
    """Return the integration of a Task; none where it is not known before deploying, or wrong."""
    parts = _parts(state.resource)
    if parts is None:
        return None
    service, action, pattern = parts
    if service == "aws-sdk":
        name, _, operation = action.partition(":")
        boto = services.boto_name(name)
        api = (boto, _operation(boto, operation) or "")
        if operation_model(*api) is None:
            return None
        return Integration(f"aws-sdk:{name}", operation, pattern, api, is_sdk=True)
    row = optimised().get((service, action))
    if row is None:
        return None
    boto, _, operation = row["api"].partition(":")
    return Integration(
        service,
        action,
        pattern,
        (boto, operation) if operation else None,
        is_sdk=False,
        extra=frozenset(row["extra"].split()),
        required=frozenset(row["required"].split()),
        own=frozenset(row["own"].split()),
        optional=frozenset(row["optional"].split()),
    )


def _parts(resource: str) -> tuple[str, str, str] | None:
    arn = _ARN.fullmatch(resource)
    rest = _REST.fullmatch(arn["rest"]) if arn is not None else None
    if rest is None or is_placeholder(rest[0]) or rest[0].startswith(_NAMED):
        return None
    return rest["service"], rest["action"], rest["pattern"] or ""


def _operation(boto: str, action: str) -> str | None:
    """Return the operation of an action, whatever the API's name begins with."""
    wanted = action[:1].upper() + action[1:]
    names = operation_names(boto)
    return wanted if wanted in names else action if action in names else None


def findings(state: State) -> Iterator[Finding]:
    """Yield what is wrong with the resource of a Task."""
    resource, path = state.resource, f"{state.path}/Resource"
    if state.type != "Task" or not resource:
        return
    arn = _ARN.fullmatch(resource)
    if arn is None:
        yield from _other(resource, path)
        return
    if not _PARTITIONS.fullmatch(arn["partition"]) and not is_placeholder(arn["partition"]):
        text = f"there is no partition {arn['partition']}{near(arn['partition'], _KNOWN)}"
        yield Finding("unknown-integration", path, text)
    if arn["rest"].startswith(_NAMED):
        return
    parts = _parts(resource)
    if parts is not None and parts[2] and state.machine.is_express:
        text = f"Express executions have no .{parts[2]}; give the Map the ExecutionType STANDARD"
        yield Finding("wrong-pattern", path, text)
    if parts is None:
        if not is_placeholder(arn["rest"]):
            text = f"{resource} is unknown: expected arn:aws:states:::SERVICE:ACTION"
            yield Finding("unknown-integration", path, text)
    elif parts[0] == "aws-sdk":
        yield from _sdk(*parts[1:], path)
    else:
        yield from _optimised(*parts, path)


def _other(resource: str, path: str) -> Iterator[Finding]:
    known = resource.startswith(("arn:", "${", "{%")) or is_placeholder(resource)
    if resource.startswith("arn:") and len(resource.split(":")) < 6:
        yield Finding(
            "unknown-integration", path, f"expected an ARN, got {resource}, which has too few parts"
        )
    elif resource.startswith("arn:") and not is_placeholder(resource):
        service = resource.split(":")[2]
        if service not in ("lambda", "states", "apigateway"):
            text = (
                f"a Task calls a Lambda function, an activity or arn:aws:states:::…, no {service}"
            )
            yield Finding("unknown-integration", path, text)
        elif ":function:" in resource and resource.rpartition(".")[2] in (_TOKEN, "sync"):
            text = (
                "a function's own ARN has no pattern; call arn:aws:states:::lambda:invoke with it"
            )
            yield Finding("wrong-pattern", path, text)
    elif not known:
        text = (
            f"expected an ARN, got {resource!r}; an integration is arn:aws:states:::SERVICE:ACTION"
        )
        yield Finding("unknown-integration", path, text)


def _sdk(action: str, pattern: str, path: str) -> Iterator[Finding]:
    name, _, operation = action.partition(":")
    boto = services.boto_name(name)
    names = operation_names(boto)
    if name in RETIRED:
        return
    if not names:
        close = near(name, services.names())
        text = f"aws-sdk has no service {name}{close if 'did you mean' in close else ''}"
        yield Finding("unknown-integration", path, text)
        return
    actions = {services.camel(each) for each in names} - _refused(boto)
    if operation not in actions:
        text = f"aws-sdk has no action {operation or '(none)'} of {name}{near(operation, actions)}"
        yield Finding("unknown-integration", path, text)
    if pattern not in ("", _TOKEN):
        text = f"aws-sdk integrations have no .{pattern}; poll the job, or use an optimised one"
        yield Finding("wrong-pattern", path, text)


def _refused(boto: str) -> set[str]:
    return {services.camel(each) for each in services.service(boto).refuses}


def _optimised(service: str, action: str, pattern: str, path: str) -> Iterator[Finding]:
    known = optimised()
    actions = [name for each, name in known if each == service]
    if not actions:
        every = {each for each, _ in known}
        hint = near(service, every)
        if "did you mean" not in hint:
            hint = f"; for other services write aws-sdk:{service}:{action}"
        yield Finding("unknown-integration", path, f"there is no integration {service}{hint}")
    elif action not in actions:
        hint = near(action, actions)
        if "did you mean" not in hint:
            hint += f"; others are called as aws-sdk:{service}:{action}"
        text = f"{service} has no optimised integration {action}{hint}"
        yield Finding("unknown-integration", path, text)
    else:
        patterns = known[service, action]["patterns"].split()
        if pattern and pattern not in patterns:
            has = ", ".join(f".{each}" for each in patterns) or "none"
            text = f"{service}:{action} has no .{pattern}; its patterns: {has}"
            yield Finding("wrong-pattern", path, text)
