"""STS: moto answers, once a role's trust policy lets whoever assumes it."""

from __future__ import annotations

from typing_extensions import override

from orchestration.local.account.protocol import Request, Service
from orchestration.local.account.rules import broken
from orchestration.local.account.sharing import meant_for
from orchestration.local.iam.principals import role_of, trust
from orchestration.local.iam.rules import RULES
from orchestration.local.policies.evaluation import Need, allows

_ACTION = "sts:AssumeRole"


class Sts(Service):
    """STS, whose AssumeRole moto 5.2.5 answers for any role, also for one that does not exist."""

    name = "sts"

    def __init__(self) -> None:
        super().__init__({})

    @override
    def handles(self, request: Request) -> bool:
        return False

    @override
    def check(self, request: Request) -> None:
        """Refuse a role that is missing or does not trust the caller, be it the role's account."""
        if request.operation != "AssumeRole":
            return
        role, own = request.parameters["RoleArn"], role_of(request.access_key)
        external = request.parameters.get("ExternalId")
        context = {} if external is None else {"sts:ExternalId": external}
        statements = meant_for(own or request.account, trust(role))
        if not allows([{"Statement": statements}], Need(_ACTION, "", context)):
            raise broken(RULES, "roles trust who assumes them", caller=_named(request), role=role)


def _named(request: Request) -> str:
    role = role_of(request.access_key)
    if role is None:
        return f"arn:aws:iam::{request.account}:root"
    return f"arn:aws:sts::{role.split(':')[4]}:assumed-role/{role.rpartition('/')[2]}/service"
