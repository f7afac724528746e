"""The sizes of policies, of which IAM does not count the blanks.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from orchestration.local.account.protocol import Request
from orchestration.local.account.rules import broken
from orchestration.local.iam.rules import IAM

_INLINE: Final = {"Role": 10_240, "User": 2048, "Group": 5120}
"""All inline policies of one of these together."""
_MANAGED: Final = 6144
_TRUST: Final = 2048
"""By default; a quota that can be raised to 4096."""
_PUT: Final = {f"Put{kind}Policy": kind for kind in _INLINE}


def check(request: Request) -> None:
    """Raise IAM's error for a policy that is too long."""
    values, operation = request.parameters, request.operation
    if operation in _PUT:
        _check_inline(request, _PUT[operation])
    elif operation in ("CreatePolicy", "CreatePolicyVersion"):
        if _size(values["PolicyDocument"]) > _MANAGED:
            raise broken(IAM, "managed policies at most", most=_MANAGED)
    elif operation in ("CreateRole", "UpdateAssumeRolePolicy"):
        field = "AssumeRolePolicyDocument" if operation == "CreateRole" else "PolicyDocument"
        if _size(values[field]) > _TRUST:
            raise broken(IAM, "trust policies at most", most=_TRUST)


def _check_inline(request: Request, kind: str) -> None:
    values, most = request.parameters, _INLINE[kind]
    name = values[f"{kind}Name"]
    policies = {**_policies(request.account, kind, name)}
    policies[values["PolicyName"]] = values["PolicyDocument"]
    if sum(map(_size, policies.values())) > most:
        raise broken(IAM, "inline policies at most", most=most, kind=kind.lower(), name=name)


def _policies(account: str, kind: str, name: str) -> Mapping[str, str]:
    from moto.iam.models import iam_backends

    backend = iam_backends[account]["aws"]
    found = next(
        (each for each in [*getattr(backend, f"{kind.lower()}s").values()] if each.name == name),
        None,
    )
    policies: Mapping[str, str] = {} if found is None else found.policies
    return policies


def _size(document: str) -> int:
    # moto keeps some as they come in a URL.
    text = document if document.startswith("{") else unquote(document)
    return len(re.sub(r"\s", "", text))
