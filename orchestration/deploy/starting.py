"""The roles of a deployment, and the schedules and events that start something."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from orchestration.backends.stepfunctions.beginning.overlapping import SKIPPED
from orchestration.deploy.account import Account
from orchestration.deploy.permissions import Statement, document, trust
from orchestration.deploy.resources import GROUP, Role, Schedule

# What could not be started is started late, but not so late that it overlaps the next one.
_RETRY: Final = {"MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 10}


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """The account and the tags with which the roles of a pipeline are made."""

    account: Account
    tags: Mapping[str, str]

    def role(
        self, name: str, policy: Mapping[str, Any], services: Mapping[str, str | list[str]]
    ) -> Role:
        """Return the role that services assume, each for the sources that match its pattern."""
        return Role(
            name=name,
            arn=self.account.role_arn(name),
            trust=trust(self.account, services),
            policy=policy,
            tags=self.tags,
        )

    def machine(
        self, name: str, policy: Mapping[str, Any], machine_arn: str, *, qualified: bool = False
    ) -> Role:
        """Return the role that a state machine runs under, and no other one.

        ``qualified``: executions are started by an alias. AWS does not say whether the source is
        then the alias or the state machine.
        """
        sources = [machine_arn, f"{machine_arn}:*"] if qualified else machine_arn
        return self.role(name, policy, {"states.amazonaws.com": sources})

    def starter(
        self,
        name: str,
        sid: str,
        machine_arn: str,
        services: Mapping[str, str],
        *,
        alias: str = "",
    ) -> Role:
        """Return the role with which services start a state machine, and do nothing else.

        To start it by an alias, IAM asks for the state machine; the alias is a condition.
        https://docs.aws.amazon.com/step-functions/latest/dg/auth-version-alias.html
        """
        by = ("ForAnyValue:StringEquals", "states:StateMachineQualifier", frozenset([alias]))
        starts = Statement(
            sid,
            frozenset(["states:StartExecution"]),
            frozenset([machine_arn]),
            (by,) if alias else (),
        )
        return self.role(name, document(starts), services)

    @property
    def schedules(self) -> str:
        """The ARN for which EventBridge Scheduler assumes a role: a group's, never a schedule's.

        https://docs.aws.amazon.com/scheduler/latest/UserGuide/cross-service-confused-deputy-prevention.html
        """
        return self.account.arn("scheduler", f"schedule-group/{GROUP}")


def ends(
    machine_arn: str, states: Iterable[str], *, without_skipped: bool = False
) -> dict[str, Any]:
    """Return the pattern of the events of executions that end in one of some states.

    An execution that was skipped for another one ends as a success. ``output`` is text, and null
    where it is too long for an event.
    https://docs.aws.amazon.com/step-functions/latest/dg/eventbridge-integration.html
    """
    detail: dict[str, Any] = {"status": list(states), "stateMachineArn": [machine_arn]}
    if without_skipped:
        detail["output"] = [{"anything-but": {"prefix": f'{{"{SKIPPED}"'}}, None]
    return {
        "source": ["aws.states"],
        "detail-type": ["Step Functions Execution Status Change"],
        "detail": detail,
    }


def schedule(
    name: str,
    machine_arn: str,
    starter: Role,
    expression: str,
    *,
    timezone: str = "UTC",
    input: Mapping[str, Any],
) -> Schedule:
    """Return a schedule that starts a state machine."""
    return Schedule(
        name=name,
        expression=expression,
        timezone=timezone,
        target_arn=machine_arn,
        role_arn=starter.arn,
        input=input,
        retry=_RETRY,
    )
