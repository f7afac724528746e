"""All rules over one definition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestration.lint import (
    choices,
    data,
    fields,
    flow,
    handlers,
    inputs,
    machines,
    nested,
    reading,
    scopes,
)
from orchestration.lint.findings import Finding
from orchestration.lint.languages import templates
from orchestration.lint.machines import Machine, State
from orchestration.lint.scopes import Scope
from orchestration.lint.tasks import costs, requests, resources
from orchestration.lint.tasks.responses import Fields
from orchestration.lint.values import is_placeholder


def lint(text: str, *, is_yaml: bool = False) -> list[Finding]:
    """Return all findings of a definition: those of the file first, then as it stands there."""
    value, findings = reading.read(text, is_yaml=is_yaml)
    if value is not None and not any(f.rule == "not-a-state-machine" for f in findings):
        findings += check(value)
    return findings


def check(definition: Mapping[str, Any]) -> list[Finding]:
    """Return all findings of a definition that is read already."""
    top = machines.read(definition)
    return list(dict.fromkeys(_findings(top)))


def _findings(top: Machine) -> Iterator[Finding]:
    everywhere, known, given = flow.by_name(top), scopes.scopes(top), inputs.inputs(top)
    for machine in machines.machines(top):
        yield from fields.of_machine(machine)
        yield from flow.findings(machine, everywhere)
        for state in machine.states.values():
            yield from _state(state, known.get(state), given.get(state))
        yield from costs.findings(machine)
    yield from flow.duplicates(top)


def _state(state: State, scope: Scope | None, given: Fields) -> Iterator[Finding]:
    yield from fields.of_state(state)
    yield from handlers.findings(state)
    yield from choices.findings(state)
    yield from nested.findings(state)
    yield from resources.findings(state)
    yield from requests.findings(state)
    yield from requests.of_reader(state)
    yield from data.token_findings(state)
    yield from scopes.naming(state)
    yield from _times(state)
    if scope is None:
        return  # It is never reached, which is reported.
    yield from scopes.shadowing(state, scope)
    for text in templates.texts(state):
        if isinstance(text, Finding):
            yield text
        else:
            yield from data.findings(text, scope, given)


def _times(state: State) -> Iterator[Finding]:
    heartbeat, timeout = (state.fields.get(f"{n}Seconds") for n in ("Heartbeat", "Timeout"))
    path = f"{state.path}/HeartbeatSeconds"
    if isinstance(heartbeat, int) and isinstance(timeout, int) and heartbeat >= timeout:
        text = f"is {heartbeat}; it must be less than TimeoutSeconds, {timeout}"
        yield Finding("heartbeat", path, text)
    sends = state.resource.endswith(".waitForTaskToken") or ":activity:" in state.resource
    is_known = bool(state.resource) and not is_placeholder(state.resource)
    if heartbeat is not None and is_known and not sends:
        text = "nobody sends heartbeats for this task; remove it, or set TimeoutSeconds"
        yield Finding("unused-heartbeat", path, text)
