"""The AWS clients of executions: one per service, over HTTP, so that calls are recorded."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Any

from orchestration.local.iam import principals
from orchestration.local.processes.environment import ACCESS_KEY, SECRET_KEY, endpoint_of

_ENDPOINT: list[str] = []
_ENFORCED: list[bool] = []


@dataclass(frozen=True)
class Assumed:
    """The `Credentials` of a task."""

    role: str
    machine: str
    """The ARN of the state machine, which the role's trust policy may ask for as `sts:ExternalId`.
    https://docs.aws.amazon.com/step-functions/latest/dg/concepts-cross-acct-sync-pattern.html
    """


def assumed(env: Any, state_credentials: Any) -> Assumed | None:
    """Return the role that a task assumes; None where it keeps that of its execution."""
    role, details = state_credentials.role_arn, env.aws_execution_details
    if role == details.role_arn:
        return None
    return Assumed(role, env.states.context_object.context_object_data["StateMachine"]["Id"])


@functools.cache
def client(service: str, region: str, role: str = "") -> Any:
    """Return a client of this embedded AWS that neither checks parameters nor retries.

    Where IAM is enforced, it acts as the role; without one, and elsewhere, as the account.
    """
    return _client(service, region, principals.session(role) if role and _ENFORCED else None)


def assuming(service: str, region: str, role: str, credentials: Assumed) -> Any:
    """Return a client that acts as a role that an execution assumes, from its own role."""
    made = client("sts", region, role).assume_role(
        RoleArn=credentials.role,
        RoleSessionName="states",
        ExternalId=credentials.machine,
    )["Credentials"]
    keys = (made["AccessKeyId"], made["SecretAccessKey"], made["SessionToken"])
    return _client(service, region, principals.Credentials(*keys))


def _client(service: str, region: str, own: principals.Credentials | None) -> Any:
    import boto3
    from botocore.config import Config
    from botocore.handlers import handle_copy_source_param

    connection = boto3.session.Session().client(
        service,
        region_name=region,
        endpoint_url=endpoint_of(service, _ENDPOINT[0]),
        aws_access_key_id=ACCESS_KEY if own is None else own.access_key,
        aws_secret_access_key=SECRET_KEY if own is None else own.secret_key,
        aws_session_token=None if own is None else own.token,
        config=Config(
            parameter_validation=False,
            retries={"total_max_attempts": 1},
            user_agent_extra="orchestration-local-step-functions",
            max_pool_connections=50,
            read_timeout=900,
        ),
    )
    # Step Functions passes the header on unchanged; botocore would encode it again.
    connection.meta.events.unregister(
        "before-parameter-build.s3.CopyObject", handle_copy_source_param
    )
    return connection


def installed() -> bool:
    """Return whether the engine is loaded; without it there is no state machine."""
    return bool(_ENDPOINT)


def enforced() -> bool:
    """Return whether calls of the engine's clients are those of roles, which IAM restricts."""
    return bool(_ENFORCED)


def _boto_client_for(region: str, service: str, state_credentials: Any = None) -> Any:
    return client(service, region, getattr(state_credentials, "role_arn", ""))


def install(endpoint_url: str, *, as_roles: bool = False) -> None:
    """Make the engine's integrations use these clients.

    moto 5.2.5 creates a new client for every call, with the environment's settings.
    `tests/local/engine/test_engine.py` fails when calls no longer arrive from here.
    """
    _ENDPOINT[:] = [endpoint_url]
    _ENFORCED[:] = [True] if as_roles else []
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith(
            "moto.stepfunctions."
        ) and "boto_client_for" in vars(module):
            vars(module)["boto_client_for"] = _boto_client_for
