"""Permissions of operations, from AWS's service authorization reference.

``reference.jsonl`` beside this module is that reference, distilled by
``tools/permissions/distil.py``; its first line has date and source. A resource is as narrow as the
request says: parts of its ARN that no field of the request names are wildcards.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from orchestration.deploy.permissions.statements import Grant
from orchestration.graph import Operation

PASSING: Final = "iam:PassRole"
_TABLE: Final = Path(__file__).with_name("reference.jsonl")
_PART = re.compile(r"\{([A-Z]\w*)\}")
_ENDING = re.compile(r"(withoutleadingslash|name|arn|id)+$")
_PRINCIPALS: Final = {"ecs": "ecs-tasks"}
"""Services that take a role in the name of another one:
https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-iam-roles.html"""


@dataclass(frozen=True, slots=True)
class Row:
    """An operation in the reference."""

    prefix: str
    page: str
    action: str
    resources: tuple[str, ...]
    """ARNs of the resources that it is allowed on, with ``{TopicName}`` for a part of one."""
    dependent: tuple[str, ...]
    """Actions, of any service, that it needs besides."""

    @property
    def sid(self) -> str:
        """The name of its statement."""
        return re.sub(r"\W", "", self.prefix.title())


@cache
def row(service: str, operation: str) -> Row | None:
    """Return the row of an operation by botocore's names; ``None`` where there is none."""
    known = _service(service)
    if known is None or operation not in known["operations"]:
        return None
    words: list[str] = known["operations"][operation].split()
    types = known["resources"]
    return Row(
        prefix=known["prefix"],
        page=known["page"],
        action=next((word[1:] for word in words if word[0] == "="), operation),
        resources=tuple(types[word] for word in words if word[0] not in "=+"),
        dependent=tuple(word[1:] for word in words if word[0] == "+"),
    )


def grants(operation: Operation) -> tuple[Grant, ...]:
    """Return the permissions of an operation, but for roles; none where it has no row."""
    known = row(operation.service, operation.name)
    if known is None:
        return ()
    also = [action for action in known.dependent if action != PASSING]
    resources = [_narrow(arn, operation.request) for arn in known.resources]
    own = Grant(
        sid=known.sid,
        actions=(f"{known.prefix}:{known.action}", *_of(known.prefix, also)),
        resources=tuple(dict.fromkeys(resources)) or ("*",),
        source=known.page,
    )
    others = [action for action in also if action not in own.actions]
    return (own, *(_anywhere(action, known) for action in others))


def _anywhere(action: str, known: Row) -> Grant:
    return Grant(sid=f"{known.sid}Besides", actions=(action,), resources=("*",), source=known.page)


def passed(operation: Operation) -> Grant | None:
    """Return the permission to hand a role to an operation's service, for a role ``{role}``."""
    known = row(operation.service, operation.name)
    if known is None:
        return None
    principal = _PRINCIPALS.get(known.prefix, known.prefix)
    return Grant(
        sid=f"PassRoleTo{known.sid}",
        actions=(PASSING,),
        resources=("{role}",),
        condition={"StringEquals": {"iam:PassedToService": f"{principal}.amazonaws.com"}},
        source=known.page,
    )


def passes_role(operation: Operation) -> bool:
    """Return whether an operation hands on a role, whether or not its request names it."""
    known = row(operation.service, operation.name)
    return known is not None and PASSING in known.dependent


def _of(prefix: str, actions: Iterable[str]) -> Iterator[str]:
    return (action for action in actions if action.startswith(f"{prefix}:"))


def _narrow(arn: str, request: Mapping[str, Any]) -> str:
    """Return the ARN with the request's fields for its parts, wildcards for the others.

    A field with a whole ARN stands in its last part: it takes the place of all where its value is
    known, and otherwise may be one of any region and account.
    """
    fields = {_plain(name): name for name, value in request.items() if not _is_nested(value)}

    def part(match: re.Match[str]) -> str:
        field = fields.get(_plain(match[1]))
        return "*" if field is None else f"{{{field}}}"

    parts = _PART.findall(arn)
    last = fields.get(_plain(parts[-1]), "") if parts else ""
    if last.lower().endswith("arn"):
        typed = _PART.sub(lambda found: f"{{{last}}}" if found[1] == parts[-1] else "*", arn)
        return typed.replace("{region}", "*").replace("{account}", "*")
    return _PART.sub(part, arn)


def _plain(name: str) -> str:
    """Return a name without its ending: ``TopicArn`` and ``TopicName`` are ``topic``."""
    return _ENDING.sub("", name.lower())


def _is_nested(value: object) -> bool:
    return isinstance(value, Mapping | list | tuple)


def _service(name: str) -> Mapping[str, Any] | None:
    start = json.dumps({"service": name}, separators=(",", ":"))[:-1] + ","
    with _TABLE.open(encoding="utf-8") as table:
        for line in table:
            if line.startswith(start):
                service: Mapping[str, Any] = json.loads(line)
                return service
    return None
