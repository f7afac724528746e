"""The changes that bring an account to the desired state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar, cast

from orchestration.deploy.account import OWNER, refusal
from orchestration.deploy.aliases import settling, trials
from orchestration.deploy.aliases.model import starts
from orchestration.deploy.monitoring.alarms import Alarm
from orchestration.deploy.monitoring.composing import without_remains
from orchestration.deploy.monitoring.logs import LogGroup
from orchestration.deploy.own_role import without_roles
from orchestration.deploy.resources import (
    Change,
    Companion,
    Current,
    Desired,
    Role,
    Rule,
    Schedule,
    StateMachine,
    kind_of,
    owned,
)

_Tagged = TypeVar("_Tagged", bound=Role | StateMachine | LogGroup | Alarm)


def difference(desired: Desired, current: Current, *, adopt: bool = False) -> tuple[Change, ...]:
    """List the changes that bring an account to the desired state, in the order to make them.

    A resource of the same name that was not deployed for this pipeline is a
    :class:`~orchestration.errors.DeployError`, and so is a schedule with another target. With
    ``adopt``, resources that no pipeline owns are taken over; those of another pipeline never.
    """
    desired = without_remains(desired, current)
    if desired.own_role:
        current = without_roles(current)
    if problems := list(_strangers(desired, current, adopt=adopt)):
        raise refusal(f"pipeline {desired.pipeline} can't be deployed", problems)
    desired = trials.shared(desired, current, published=_published(desired, current))
    return tuple(_changes(desired, current))


def _published(desired: Desired, current: Current) -> bool:
    """Return whether the state machine becomes another version; for a carried file it does not."""
    now = current.machine
    if now is None:
        return True
    return replace(now, **_unasked(desired.machine)).executed() != desired.machine.executed()


def _copying(desired: Desired, current: Current) -> tuple[tuple[Role | None, Role | None], ...]:
    """Return the roles that copy data, as they are and as they should be."""
    return (
        (current.transfer_role, desired.transfer_role),
        (current.batch_role, desired.batch_role),
    )


def _copying_changes(desired: Desired, current: Current) -> Iterator[Change]:
    for now, wanted in _copying(desired, current):
        if wanted is not None:
            yield from _tagged(now, wanted)
        elif now is not None and owned(now.tags, desired.pipeline):
            yield Change(now, None)


def _changes(desired: Desired, current: Current) -> Iterator[Change]:
    lying = {folder.uri for folder in current.sources}
    for folder in desired.sources:
        if folder.uri not in lying:
            yield Change(None, folder)
    if not desired.own_role:
        yield from _tagged(current.role, desired.role)
    yield from _copying_changes(desired, current)
    if desired.log_group is not None:
        yield from _tagged(current.log_group, desired.log_group)
    yield from _tagged(current.machine, desired.machine)
    published = _published(desired, current)
    yield from settling.made(desired.alias, current.aliases, published=published)
    # A schedule is deleted before the role that it starts runs with, and created after it.
    if desired.schedule is None and current.schedule is not None:
        yield Change(current.schedule, None)
    if desired.schedule_role is None and current.schedule_role is not None:
        yield Change(current.schedule_role, None)
    # Whatever starts runs comes last, once all is there that watches them and cleans up.
    yield from _companion(desired.companion, _own_companion(desired, current))
    yield from _notices(desired, current)
    yield from _alarms(desired, current)
    if desired.missed is not None and desired.missed.times:
        yield Change(None, desired.missed)
    yield from _started(
        (current.schedule_role, desired.schedule_role), current.schedule, desired.schedule
    )
    yield from _trigger(desired, current)
    yield from settling.left(desired.alias, current.aliases)


def _alarms(desired: Desired, current: Current) -> Iterator[Change]:
    alarms = {alarm.name: alarm for alarm in current.alarms}
    for wanted in desired.alarms:
        yield from _tagged(alarms.pop(wanted.name, None), wanted)
    for left in alarms.values():
        if owned(left.tags, desired.pipeline):
            yield Change(left, None)


def _trigger(desired: Desired, current: Current) -> Iterator[Change]:
    """Yield the change of a rule after that of its role; where it goes, before."""
    role, rule = current.trigger_role, current.trigger
    if (
        desired.trigger is None
        and rule is not None
        and starts(rule.target_arn, desired.machine.arn)
    ):
        yield Change(rule, None)
    if desired.trigger_role is None and role is not None and owned(role.tags, desired.pipeline):
        yield Change(role, None)
    yield from _started((role, desired.trigger_role), rule, desired.trigger)


def _started(
    roles: tuple[Role | None, Role | None],
    now: Schedule | Rule | None,
    wanted: Schedule | Rule | None,
) -> Iterator[Change]:
    """Yield the change of a schedule or rule after that of its role.

    Where it comes to start by another alias, the role allows both until it does: what fires between
    two of these changes would be lost.
    """
    before, after = roles
    # Whoever may start the state machine itself may do so by each of its aliases.
    moved = now and wanted and not starts(now.target_arn, wanted.target_arn)
    both = trials.allowing(after, before) if moved else after
    if both is not None:
        yield from _tagged(before, both)
    if wanted is not None and wanted != now:
        yield Change(now, wanted)
    if both is not None and after is not None:
        yield from _tagged(both, after)


def _notices(desired: Desired, current: Current) -> Iterator[Change]:
    """Yield the rules to make, to change, and to delete; one of another machine stays."""
    before = {rule.name: rule for rule in current.notices}
    for rule in desired.notices:
        if before.get(rule.name) != rule:
            yield Change(before.get(rule.name), rule)
    wanted = {rule.name for rule in desired.notices}
    for name, rule in before.items():
        if name not in wanted and watches(rule, desired.machine.arn):
            yield Change(rule, None)


def watches(rule: Rule, machine_arn: str) -> bool:
    """Return whether a rule is about the ends of the executions of a state machine."""
    return bool(rule.pattern.get("detail", {}).get("stateMachineArn") == [machine_arn])


def _companion(desired: Companion, current: Companion) -> Iterator[Change]:
    """Yield what starts a companion after what it is; where it goes, before."""
    pairs = [
        (current.role, desired.role),
        (current.machine, desired.machine),
        (current.starter, desired.starter),
        (current.rule, desired.rule),
        (current.sweep, desired.sweep),
    ]
    for before, after in pairs:
        if isinstance(after, Role | StateMachine):
            yield from _tagged(cast("Role | StateMachine | None", before), after)
        elif after is not None and before != after:
            yield Change(before, after)
    for before, after in reversed(pairs):
        if before is not None and after is None:
            yield Change(before, None)


def _own_companion(desired: Desired, current: Current) -> Companion:
    """Return the current companion; of a pipeline that needs none, only if it had one."""
    machine = current.companion.machine
    if desired.companion.machine is None:
        had = machine is not None and owned(machine.tags, desired.pipeline)
        return current.companion if had else Companion()
    return current.companion


def _tagged(before: _Tagged | None, after: _Tagged) -> Iterator[Change]:
    if before is not None:
        # Tags set by others, such as for billing, stay.
        ours = {key: value for key, value in before.tags.items() if key in after.tags}
        before = replace(before, tags=ours, **_unasked(after))
    if before is None or before.aspects() != after.aspects():
        yield Change(before, after)


def _unasked(resource: _Tagged) -> dict[str, Any]:
    """Return the parts that nobody asks for as left out: someone else may set them."""
    return {part: None for part in ("logging", "tracing") if getattr(resource, part, "") is None}


def _foreign(
    resources: Iterable[Role | StateMachine | LogGroup | Alarm | None],
    pipeline: str,
    *,
    adopt: bool,
) -> Iterator[str]:
    """Yield the resources that are not this pipeline's; what nobody owns may be adopted."""
    for resource in resources:
        if resource is None or owned(resource.tags, pipeline):
            continue
        owner = resource.tags.get(OWNER)
        if owner is None and adopt:
            continue
        whose = f"that of {owner}; choose another name"
        if owner is None:
            whose = f"deploy with --adopt to take it over, or tag it {OWNER}={pipeline}"
        yield f"{kind_of(resource)} {resource.name} exists and is not this pipeline's: {whose}"


def _strangers(desired: Desired, current: Current, *, adopt: bool) -> Iterator[str]:
    name = desired.pipeline
    machine = current.machine
    if machine is not None and current.machine_type != "STANDARD":
        yield (
            f"state machine {machine.name} is of the type {current.machine_type}, which can't be "
            "changed; delete it, or choose another name"
        )
    companion = _own_companion(desired, current)
    copying = (now for now, wanted in _copying(desired, current) if wanted is not None)
    trigger, trigger_role = (
        (None, None) if desired.trigger is None else (current.trigger, current.trigger_role)
    )
    resources = (
        machine,
        companion.machine,
        current.role,
        current.schedule_role,
        trigger_role,
        *copying,
        companion.role,
        companion.starter,
        None if desired.log_group is None else current.log_group,
        *(current.alarms if desired.alarms else ()),
    )
    yield from _foreign(resources, name, adopt=adopt)
    for alias in current.aliases:
        if not (alias.made or adopt):
            yield (
                f"alias {alias.name} of state machine {name} exists and is not this pipeline's: "
                "deploy with --adopt to take it over, or choose another name"
            )
    for kind, started, target in (
        ("schedule", current.schedule, desired.machine),
        ("rule", trigger, desired.machine),
        ("schedule", companion.sweep, desired.companion.machine),
        ("rule", companion.rule, desired.companion.machine),
    ):
        if started is None or target is None or started.target_arn == "":
            continue
        if starts(started.target_arn, target.arn):
            continue
        # A schedule can't be tagged, so its target shows whose it is.
        yield (
            f"{kind} {started.name} exists and starts {started.target_arn}; rename it, or the "
            "pipeline"
        )
    wanted = {rule.name for rule in desired.notices}
    for rule in current.notices:
        if rule.name in wanted and not watches(rule, desired.machine.arn):
            yield (
                f"rule {rule.name} exists and is about something else; rename it, or the pipeline"
            )
