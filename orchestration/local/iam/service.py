"""IAM: moto answers, but for the simulation of policies, which is evaluated here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from orchestration.local.account.protocol import (
    Answer,
    Checked,
    JsonObject,
    Request,
    ServiceError,
    xml_answer,
)
from orchestration.local.iam import sizes
from orchestration.local.iam.principals import policies
from orchestration.local.policies.evaluation import Need, decision

_JOBS = "job/"
_SIMULATED = "SimulatePrincipalPolicy"
_CUSTOM = "SimulateCustomPolicy"
_STRICTEST = ("explicitDeny", "implicitDeny", "allowed")


class Iam(Checked):
    """IAM, whose checks of policies are those of moto, but for their size and the jobs they name.

    `SimulatePrincipalPolicy` and `SimulateCustomPolicy` are what moto 5.2.5 lacks: the policies of
    a role, or those that are given, are evaluated as on every call where IAM is enforced. Policies
    of resources, boundaries, and those of organizations are left out.
    """

    def __init__(self) -> None:
        super().__init__("iam", "ValidationError")
        self.operations |= {_SIMULATED: _simulated, _CUSTOM: _simulated_alone}

    def handles(self, request: Request) -> bool:
        """Return whether it is a simulation of policies; moto answers every other call."""
        return request.operation in self.operations

    def encoded(self, operation: str, response: JsonObject) -> Answer:
        """Encode a response as XML."""
        return xml_answer(self.name, operation, response)

    def check(self, request: Request) -> None:
        """Raise IAM's error for a request that moto would accept, and let policies name jobs.

        moto 5.2.5 refuses `arn:aws:s3:us-east-1:111122223333:job/*` (of S3's resources it knows
        only access points to have a region), and `test_the_role_of_a_copy_may_name_its_jobs` fails.
        """
        from moto.iam import policy_validation

        rules = policy_validation.SERVICE_TYPE_REGION_INFORMATION_ERROR_ASSOCIATIONS
        beginnings = rules["s3"]["valid_starting_values"]
        if _JOBS not in beginnings:
            beginnings.append(_JOBS)
        super().check(request)
        sizes.check(request)


def _simulated(request: JsonObject) -> JsonObject:
    """Return the decisions about each action on each resource.

    https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html
    """
    from orchestration.local.account import roles

    role = request["PolicySourceArn"]
    if not roles.exists(role):
        raise ServiceError("NoSuchEntity", f"No entity exists with ARN {role}", status=404)
    own = policies(role)
    return {"EvaluationResults": list(_results(own, request)), "IsTruncated": False}


def _simulated_alone(request: JsonObject) -> JsonObject:
    """Return the decision of policies that are nobody's.

    https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulateCustomPolicy.html
    """
    given = [json.loads(policy) for policy in request["PolicyInputList"]]
    return {"EvaluationResults": list(_results(given, request)), "IsTruncated": False}


def _missing(policies: list[Mapping[str, Any]], context: Mapping[str, str]) -> list[str]:
    """Return the condition keys of policies that no value is given for."""
    known = {name.lower() for name in context}
    return sorted(
        {
            key
            for policy in policies
            for statement in policy["Statement"]
            for pairs in statement.get("Condition", {}).values()
            for key in pairs
            if key.lower() not in known
        }
    )


def _results(own: list[Mapping[str, Any]], request: JsonObject) -> Iterator[JsonObject]:
    """Yield a result per action: the strictest decision, and inside those on each resource.

    AWS puts the template of the resource's ARN outside; here it is always `*`.
    https://docs.aws.amazon.com/IAM/latest/APIReference/API_EvaluationResult.html
    """
    context = {
        entry["ContextKeyName"]: entry["ContextKeyValues"][0]
        for entry in request.get("ContextEntries", ())
        if entry.get("ContextKeyValues")
    }
    missing = _missing(own, context)
    for action in request["ActionNames"]:
        decisions = {
            resource: decision(own, Need(action, resource, context))
            for resource in request.get("ResourceArns") or ["*"]
        }
        yield {
            "EvalActionName": action,
            "EvalResourceName": "*",
            "EvalDecision": next(each for each in _STRICTEST if each in decisions.values()),
            "MatchedStatements": [],
            "MissingContextValues": missing,
            "ResourceSpecificResults": [
                {
                    "EvalResourceName": resource,
                    "EvalResourceDecision": decided,
                    "MatchedStatements": [],
                    "MissingContextValues": missing,
                }
                for resource, decided in decisions.items()
                if resource != "*"
            ],
        }
