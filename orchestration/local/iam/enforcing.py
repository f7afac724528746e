"""Enforcement: every call of a role's session is let through or refused by the role's policies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from orchestration.local.account.protocol import Request, ServiceError, answers_in_xml
from orchestration.local.iam.needs import action, needs
from orchestration.local.iam.principals import role_of
from orchestration.local.iam.scaling import PREFIX
from orchestration.local.policies.deciding import permits
from orchestration.local.policies.evaluation import Need

Tags = Callable[[str], Mapping[str, str]]
"""The tags of the resource with an ARN."""
_MACHINES = ("CreateStateMachine", "UpdateStateMachine")

_LOG_DELIVERY = (
    *(f"{verb}LogDelivery" for verb in ("Create", "Delete", "Get", "Update")),
    *("DescribeLogGroups", "DescribeResourcePolicies", "ListLogDeliveries", "PutResourcePolicy"),
)


class Enforcement:
    """The check of calls; the account's own calls are not restricted."""

    def __init__(self, tags: Tags) -> None:
        self._tags = tags

    def refusal(self, request: Request) -> ServiceError | None:
        """Return the error by which IAM refuses a call; None if it is allowed."""
        try:
            self._check(request)
        except ServiceError as error:
            return error
        return None

    def _check(self, request: Request) -> None:
        role = role_of(request.access_key)
        if role is not None:
            for need in self._refused(request, role):
                raise _refusal(request.service, role, need)
        if request.service == "stepfunctions" and request.operation in _MACHINES:
            _check_managed_rules(request)
            _check_log_delivery(request)

    def _refused(self, request: Request, role: str) -> Iterator[Need]:
        """Yield what a call needs and its role is not allowed."""
        try:
            wanted = needs(
                request.service,
                request.operation,
                request.parameters,
                request.account,
                request.region,
            )
        except LookupError:
            wanted = [Need(action(request.service, request.operation), "")]
        for need in wanted:
            tags = {
                f"aws:ResourceTag/{key}": value for key, value in self._tags(need.resource).items()
            }
            if not permits(role, Need(need.action, need.resource, {**tags, **need.context})):
                yield need


def _refusal(service: str, role: str, need: Need) -> ServiceError:
    name = role.rpartition("/")[2]
    account = role.split(":")[4]
    on = f" on resource: {need.resource}" if need.resource else ""
    text = (
        f"User: arn:aws:sts::{account}:assumed-role/{name}/service is not authorized to perform: "
        f"{need.action}{on} because no identity-based policy allows the {need.action} action"
    )
    if service == "application-autoscaling" and not need.action.startswith(PREFIX):
        # https://github.com/aws/aws-auto-scaling-custom-resource/issues/25
        missing = f"User is missing the following permissions: {need.action}"
        return ServiceError("ValidationException", missing)
    if service == "sns":
        return ServiceError("AuthorizationError", text, status=403)
    if answers_in_xml(service):
        return ServiceError("AccessDenied", text, status=403)
    rest = service in ("sagemaker-runtime", "scheduler", "lambda")
    return ServiceError("AccessDeniedException", text, status=403 if rest else 400)


def _check_managed_rules(request: Request) -> None:
    """Refuse a machine whose role may not have the rules that tell it of jobs' ends.

    https://docs.aws.amazon.com/step-functions/latest/dg/sagemaker-iam.html
    """
    role, definition = (request.parameters.get(each) for each in ("roleArn", "definition"))
    if not role or not definition:
        return
    for job in sorted(set(_waited(json.loads(definition)))):
        rule = f"StepFunctionsGetEventsForSageMaker{job}sRule"
        arn = f"arn:aws:events:{request.region}:{request.account}:rule/{rule}"
        for name in ("PutRule", "PutTargets", "DescribeRule"):
            if not permits(role, Need(f"events:{name}", arn)):
                raise ServiceError(
                    "AccessDeniedException",
                    f"'{role}' is not authorized to create managed-rule.",
                )


def _check_log_delivery(request: Request) -> None:
    """Refuse a machine that logs and whose role may not have its records delivered.

    https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html
    """
    role = request.parameters.get("roleArn")
    logging = request.parameters.get("loggingConfiguration") or {}
    if not role or logging.get("level", "OFF") == "OFF":
        return
    if not all([permits(role, Need(f"logs:{name}", "*")) for name in _LOG_DELIVERY]):
        raise ServiceError(
            "AccessDeniedException",
            "The state machine IAM Role is not authorized to access the Log Destination",
        )


def _waited(tree: Any) -> Iterator[str]:
    """Yield the kinds of jobs that a definition waits for by `.sync`: `TrainingJob`."""
    if isinstance(tree, dict):
        resource = str(tree.get("Resource", ""))
        if resource.endswith(".sync") and ":sagemaker:create" in resource:
            yield resource.rpartition(":create")[2].removesuffix(".sync")
        tree = list(tree.values())
    if isinstance(tree, list):
        for value in tree:
            yield from _waited(value)
