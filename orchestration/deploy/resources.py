"""The resources of a deployment as values, desired and current alike."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import unified_diff
from typing import Any, Literal, TypeAlias

from orchestration.backends.origins import bare
from orchestration.deploy.account import OWNER
from orchestration.deploy.aliases.model import Alias
from orchestration.deploy.events.missed import CaughtUp, Missed
from orchestration.deploy.monitoring.alarms import Alarm
from orchestration.deploy.monitoring.logs import Logging, LogGroup
from orchestration.deploy.permissions import AssumedRole
from orchestration.deploy.sources import SourceFolder
from orchestration.errors import DeployError
from orchestration.notices import Template

GROUP = "default"  # of schedules


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A role with one inline policy, both made by this package.

    Other policies that someone adds to the role are left alone.
    """

    name: str
    arn: str
    trust: Mapping[str, Any]
    policy: Mapping[str, Any]
    """Without a statement, the role has no policy: IAM takes none that is empty."""
    tags: Mapping[str, str] = field(default_factory=dict)

    def aspects(self) -> dict[str, Any]:
        """Return its parts for comparing and showing."""
        return {"trust": self.trust, "permissions": self.policy, "tags": dict(self.tags)}


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMachine:
    """A state machine of the STANDARD type."""

    name: str
    arn: str
    definition: Mapping[str, Any]
    role_arn: str
    tags: Mapping[str, str] = field(default_factory=dict)
    logging: Logging | None = None
    """``None``: left as someone set it."""
    tracing: bool | None = None
    """``None``: left as someone set it."""

    def aspects(self) -> dict[str, Any]:
        """Return its parts for comparing and showing."""
        logging = {} if self.logging is None else {"logging": self.logging.aspects()}
        tracing = {} if self.tracing is None else {"tracing": self.tracing}
        return {
            "definition": self.definition,
            "role": self.role_arn,
            **logging,
            **tracing,
            "tags": dict(self.tags),
        }

    def executed(self) -> dict[str, Any]:
        """Return the parts that a version holds, without the files that its definition carries."""
        parts = {**self.aspects(), "definition": bare(self.definition)}
        return {name: part for name, part in parts.items() if name != "tags"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A schedule of EventBridge Scheduler, in its default group.

    https://docs.aws.amazon.com/scheduler/latest/APIReference/API_CreateSchedule.html
    """

    name: str
    expression: str
    timezone: str
    target_arn: str
    role_arn: str
    input: Mapping[str, Any]
    """The input of the executions that it starts."""
    state: str = "ENABLED"
    start: str | None = None
    """The moment from which on it fires: ``2027-01-01T05:00:00Z``."""
    end: str | None = None
    """The moment after which it does not fire."""
    window_minutes: int | None = None
    """The flexible time window; without one, runs start at the time itself."""
    retry: Mapping[str, int] = field(default_factory=dict)
    caught_up: CaughtUp | None = None

    def aspects(self) -> dict[str, Any]:
        """Return its parts for comparing and showing."""
        return {
            "expression": self.expression,
            "timezone": self.timezone,
            "state": self.state,
            "start": self.start,
            "end": self.end,
            "window": self.window_minutes,
            "target": self.target_arn,
            "role": self.role_arn,
            "input": dict(self.input),
            "retry": dict(self.retry),
            **({} if self.caught_up is None else {"catch-up": self.caught_up.since}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A target of a rule of EventBridge."""

    id: str
    arn: str
    role_arn: str = ""
    """Empty: the target's own policy lets EventBridge in."""
    input: str | None = None
    """The JSON that it gets instead of the event."""
    template: Template | None = None
    """The template of what it gets."""

    def request(self) -> dict[str, Any]:
        """Return it as EventBridge takes it."""
        request: dict[str, Any] = {"Id": self.id, "Arn": self.arn}
        if self.role_arn:
            request["RoleArn"] = self.role_arn
        if self.input is not None:
            request["Input"] = self.input
        if self.template is not None:
            paths = dict(self.template.paths)
            request["InputTransformer"] = {
                "InputPathsMap": paths,
                "InputTemplate": self.template.text,
            }
        return request


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule of EventBridge, on the default bus."""

    name: str
    pattern: Mapping[str, Any]
    targets: tuple[Target, ...]
    state: str = "ENABLED"

    @property
    def target_arn(self) -> str:
        """The first target; empty if there is none."""
        return self.targets[0].arn if self.targets else ""

    def aspects(self) -> dict[str, Any]:
        """Return its parts for comparing and showing."""
        targets = [target.request() for target in self.targets]
        return {"pattern": self.pattern, "state": self.state, "targets": targets}


Resource: TypeAlias = (
    SourceFolder | Role | LogGroup | StateMachine | Alias | Schedule | Rule | Alarm | Missed
)
_KINDS = {
    SourceFolder: "source",
    Role: "role",
    LogGroup: "log group",
    StateMachine: "state machine",
    Alias: "alias",
    Schedule: "schedule",
    Rule: "rule",
    Alarm: "alarm",
    Missed: "runs for",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Companion:
    """The resources that clean up after executions, desired or current."""

    role: Role | None = None
    machine: StateMachine | None = None
    starter: Role | None = None
    """The role with which the rule and the sweep start the state machine."""
    rule: Rule | None = None
    sweep: Schedule | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanionNames:
    """The names of a companion's resources in an account."""

    name: str
    """The name of the state machine, the rule and the schedule of its sweeps."""
    machine_arn: str
    role: str
    starter: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignSource:
    """Data in a bucket of another account, read by one role."""

    account: str
    bucket: str
    """Its ARN."""
    objects: str
    """The ARNs of what is read there, as a pattern."""
    role: str
    """The ARN of DataSync's role; empty: the role of the state machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """The desired resources of a pipeline in an account."""

    pipeline: str
    sources: tuple[SourceFolder, ...]
    role: Role
    machine: StateMachine
    schedule_role: Role | None
    schedule: Schedule | None
    own_role: bool = False
    """True if ``role`` is the user's own: it says what that needs, and nothing of it is made."""
    companion: Companion = field(default_factory=Companion)
    notices: tuple[Rule, ...] = ()
    """The rules that tell how executions end."""
    transfer_role: Role | None = None
    """The role by which DataSync reads and writes."""
    batch_role: Role | None = None
    """The role by which S3 Batch Operations reads and writes."""
    trigger_role: Role | None = None
    trigger: Rule | None = None
    """The rule that starts executions after events."""
    log_group: LogGroup | None = None
    """The log group of the state machine's executions."""
    alarms: tuple[Alarm, ...] = ()
    foreign: tuple[ForeignSource, ...] = ()
    """Sources in other accounts, whose owners have to let the roles in."""
    assumed: tuple[AssumedRole, ...] = ()
    """Roles that requests are sent as, whose owners have to let the state machine's role in."""
    alias: Alias | None = None
    """The alias that starts runs; ``None``: the state machine itself does."""
    warnings: tuple[str, ...] = ()
    """Warnings about what the definition does not hold."""
    missed: Missed | None = None
    """The runs that the schedule has missed before it is made; ``None``: none are looked for."""

    @property
    def start_arn(self) -> str:
        """The ARN that starts runs."""
        return self.machine.arn if self.alias is None else self.alias.arn


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names of a pipeline's resources in an account."""

    machine_arn: str
    role: str
    schedule_role: str
    schedule: str
    companion: CompanionNames
    notices: tuple[str, ...] = ()
    """The names of the rules that may tell how executions end."""
    trigger: str = ""
    """The name of the rule that starts executions after events."""
    trigger_role: str = ""
    transfer_role: str | None = None
    batch_role: str | None = None
    log_group: str = ""
    """The name of the log group; empty: not read."""
    alarms: tuple[str, ...] = ()
    """The names of the alarms to read."""
    sources: tuple[SourceFolder, ...] = ()
    alias: str = ""
    """The name of the alias that starts runs; empty: the state machine itself does."""

    @property
    def start_arn(self) -> str:
        """The ARN that starts runs."""
        return f"{self.machine_arn}:{self.alias}" if self.alias else self.machine_arn


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """The current resources with a pipeline's names in an account."""

    sources: tuple[SourceFolder, ...] = ()
    role: Role | None = None
    machine: StateMachine | None = None
    machine_type: str = "STANDARD"
    schedule_role: Role | None = None
    schedule: Schedule | None = None
    companion: Companion = field(default_factory=Companion)
    notices: tuple[Rule, ...] = ()
    trigger_role: Role | None = None
    trigger: Rule | None = None
    transfer_role: Role | None = None
    batch_role: Role | None = None
    log_group: LogGroup | None = None
    alarms: tuple[Alarm, ...] = ()
    aliases: tuple[Alias, ...] = ()
    """The alias that is asked for, and those that deployments made."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing to create, update or delete."""

    before: Resource | None
    after: Resource | None

    @property
    def kind(self) -> Literal["create", "update", "delete"]:
        """The kind of change."""
        if self.before is None:
            return "create"
        return "update" if self.after is not None else "delete"

    @property
    def subject(self) -> Resource:
        """The resource after the change; for a deletion, before it."""
        if self.after is not None:
            return self.after
        if self.before is not None:
            return self.before
        raise DeployError("a change needs a resource before or after it")

    @property
    def resource(self) -> str:
        """The kind of resource: ``source``, ``role``, ``state machine``, ``schedule``, ``rule``."""
        return kind_of(self.subject)

    @property
    def name(self) -> str:
        """The resource's name."""
        subject = self.subject
        return subject.uri if isinstance(subject, SourceFolder) else subject.name

    @property
    def aspects(self) -> tuple[str, ...]:
        """The parts that differ."""
        before, after = aspects(self.before), aspects(self.after)
        return tuple(
            aspect
            for aspect in dict.fromkeys([*before, *after])
            if _missing_or(before, aspect) != _missing_or(after, aspect)
        )

    @property
    def summary(self) -> str:
        """Return one line: ``update state machine digits: definition, tags``."""
        parts = f": {', '.join(self.aspects)}" if self.kind == "update" else ""
        return f"{self.kind} {self.resource} {self.name}{parts}"

    @property
    def detail(self) -> str:
        """Return a unified diff of the two, as JSON."""
        title = f"{self.resource} {self.name}"
        before, after = _lines(aspects(self.before)), _lines(aspects(self.after))
        diff = unified_diff(before, after, f"{title} (now)", f"{title} (then)", lineterm="")
        return "\n".join(diff)


def kind_of(resource: Resource) -> str:
    """Return the kind of a resource: ``state machine``."""
    return _KINDS[type(resource)]


def owned(tags: Mapping[str, str], pipeline: str) -> bool:
    """Return whether a resource with these tags was deployed for the pipeline."""
    return tags.get(OWNER) == pipeline


def aspects(resource: Resource | None) -> dict[str, Any]:
    """Return the parts of a resource for comparing and showing; none has none."""
    if resource is None:
        return {}
    if isinstance(resource, SourceFolder):
        return {"digest": resource.sha256, "used by": list(resource.used_by)}
    return resource.aspects()


def _missing_or(aspects: Mapping[str, Any], name: str) -> tuple[bool, Any]:
    return name in aspects, aspects.get(name)


def _lines(aspects: Mapping[str, Any]) -> list[str]:
    return json.dumps(aspects, indent=2, ensure_ascii=False).splitlines() if aspects else []
