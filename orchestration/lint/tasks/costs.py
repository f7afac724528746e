"""Costs by the hour that nobody ends, and jobs that are paid twice.

Warnings: a definition may mean what it says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from orchestration.lint.findings import Finding
from orchestration.lint.flow import ends, reachable, successors
from orchestration.lint.handlers import catches_all, retries_failures
from orchestration.lint.machines import Machine, State
from orchestration.lint.tasks.resources import integration


@dataclass(frozen=True, slots=True)
class _Costly:
    """Something that costs until it is deleted."""

    words: str
    ends: frozenset[str]
    """The operations that delete or stop it."""
    always: bool = True
    """Warn too where nothing in the definition deletes it."""


_COSTLY: Final = {
    "sagemaker:CreateEndpoint": _Costly("an endpoint", frozenset({"DeleteEndpoint"}), False),
    "sagemaker:CreateNotebookInstance": _Costly(
        "a notebook instance", frozenset({"StopNotebookInstance", "DeleteNotebookInstance"}), False
    ),
    "sagemaker:CreateCluster": _Costly("a cluster", frozenset({"DeleteCluster"}), False),
    "fsx:CreateFileSystem": _Costly("a file system", frozenset({"DeleteFileSystem"})),
    "fsx:CreateFileSystemFromBackup": _Costly("a file system", frozenset({"DeleteFileSystem"})),
    "fsx:CreateFileCache": _Costly("a file cache", frozenset({"DeleteFileCache"})),
    "emr:RunJobFlow": _Costly("a cluster", frozenset({"TerminateJobFlows", "terminateCluster"})),
    "eks:CreateCluster": _Costly("a cluster", frozenset({"DeleteCluster"})),
    "eks:CreateNodegroup": _Costly("a group of nodes", frozenset({"DeleteNodegroup"}), False),
    "redshift:CreateCluster": _Costly("a cluster", frozenset({"DeleteCluster"}), False),
    "rds:CreateDBInstance": _Costly("a database", frozenset({"DeleteDBInstance"}), False),
    "rds:CreateDBCluster": _Costly("a database", frozenset({"DeleteDBCluster"}), False),
    "ec2:RunInstances": _Costly(
        "an instance", frozenset({"TerminateInstances", "StopInstances"}), False
    ),
    "bedrock:CreateProvisionedModelThroughput": _Costly(
        "provisioned throughput", frozenset({"DeleteProvisionedModelThroughput"}), False
    ),
}
_JOBS: Final = ("Training", "Processing", "Transform", "HyperParameterTuning", "Labeling")
_FRESH = re.compile(r"RetryCount|UUID|\$uuid|\$random|\$now|\$millis|EnteredTime|MathRandom")


def findings(machine: Machine) -> Iterator[Finding]:
    """Yield what a state machine may leave running or pay twice."""
    for state in machine.states.values():
        yield from _retried(state)
        costly = _costly(state)
        if costly is not None:
            yield from _left(state, costly)


def _api(state: State) -> str:
    used = integration(state)
    if used is None:
        return ""
    return f"{used.api[0]}:{used.api[1]}" if used.api is not None else used.resource


def _costly(state: State) -> _Costly | None:
    used, api = integration(state), _api(state)
    if used is not None and used.is_sdk and api.startswith("sagemaker:Create"):
        for kind in _JOBS:
            if api == f"sagemaker:Create{kind}Job":
                return _Costly(f"a {kind.lower()} job", frozenset({f"Stop{kind}Job"}))
    if api == "emr:RunJobFlow" and _ends_by_itself(state):
        return None
    return _COSTLY.get(api)


def _ends_by_itself(state: State) -> bool:
    """Return whether a cluster of EMR terminates after its steps."""
    request = state.fields.get("Parameters", state.fields.get("Arguments"))
    instances = request.get("Instances") if isinstance(request, Mapping) else None
    if not isinstance(instances, Mapping):
        return True  # Not known before it runs.
    return instances.get("KeepJobFlowAliveWhenNoSteps") is not True


def _left(state: State, costly: _Costly) -> Iterator[Finding]:
    """Yield a warning where a failure after a state leaves what it created."""
    after = [each for each in reachable(state) if each is not state or state in successors(state)]
    closing = {each for each in after if _closes(each, costly)}
    if not closing:
        if costly.always and not _closed_outside(state, costly):
            text = f"creates {costly.words}, and no state after it deletes or stops it, not even"
            yield Finding("uncaught-cost", state.path, f"{text} when a later one fails")
        return
    for each in sorted(_open(state, closing), key=lambda each: each.path):
        text = f"a failure here leaves {costly.words} of {state.name} running; catch States.ALL"
        names = " or ".join(sorted(closed.name for closed in closing))
        yield Finding("uncaught-cost", each.path, f"{text} and go to {names}")


def _open(state: State, closing: set[State]) -> set[State]:
    """Return the states between creation and deletion whose failure leads to no deletion.

    The creation itself is none, though a loop may lead to it again: where it fails, nothing is new.
    """
    between: set[State] = set()
    ahead = successors(state)
    while ahead:
        each = ahead.pop()
        if each is not state and each not in between and each not in closing:
            between.add(each)
            ahead += successors(each)
    relevant = {each for each in between if closing & reachable(each) or ends(each)}
    return {each for each in relevant if _may_leave(each) and not _is_caught(each, closing)}


def _may_leave(state: State) -> bool:
    """Return whether a state may fail, and what runs does not end with it."""
    request = state.fields.get("Parameters", state.fields.get("Arguments"))
    step = request.get("Step") if isinstance(request, Mapping) else None
    action = step.get("ActionOnFailure") if isinstance(step, Mapping) else None
    is_ending = action in ("TERMINATE_CLUSTER", "TERMINATE_JOB_FLOW")
    return state.type in ("Task", "Parallel", "Map") and not is_ending


def _is_caught(state: State, closing: set[State]) -> bool:
    if not closing & reachable(state):
        return True  # On a way where it is deleted already, or which was meant to keep it.
    for name in catches_all(state):
        target = state.machine.states.get(name)
        if target is not None and closing & reachable(target):
            return True
    return _is_caught_outside(state)


def _is_caught_outside(state: State) -> bool:
    """Return whether a state around catches what fails in here."""
    outer = state.machine.outer
    return outer is not None and any(True for _ in catches_all(outer))


def _closed_outside(state: State, costly: _Costly) -> bool:
    outer = state.machine.outer
    while outer is not None:
        if any(_closes(each, costly) for each in reachable(outer)):
            return True
        outer = outer.machine.outer
    return False


def _closes(state: State, costly: _Costly) -> bool:
    used = integration(state)
    if used is None:
        inside = (each for machine in state.inner for each in machine.states.values())
        return any(_closes(each, costly) for each in inside)
    return (used.api[1] if used.api is not None else used.action) in costly.ends


def _retried(state: State) -> Iterator[Finding]:
    """Yield a warning for a job that is retried under a name that exists by then."""
    used, api = integration(state), _api(state)
    if used is None or not used.pattern.startswith("sync") or not retries_failures(state):
        return
    name = _named(api)
    request = state.fields.get("Parameters", state.fields.get("Arguments"))
    if name is None or not isinstance(request, Mapping):
        return
    given = {key: value for key, value in request.items() if str(key).removesuffix(".$") == name}
    if given and not _FRESH.search(json.dumps(given, default=str)):
        fresh = "$$.State.RetryCount" if state.language == "JSONPath" else _COUNT
        text = f"a retry finds its own job under this {name}; put {fresh} into it, or retry only"
        where = f"{state.path}/Retry"
        yield Finding("retried-name", where, f"{text} what fails before the job exists")


_COUNT: Final = "$states.context.State.RetryCount"


def _named(api: str) -> str | None:
    """Return the field that names a job, where the service takes each name once."""
    for kind in _JOBS:
        if api == f"sagemaker:Create{kind}Job":
            return f"{kind}JobName"
    named = {
        "stepfunctions:StartExecution": "Name",
        "bedrock:CreateModelCustomizationJob": "JobName",
    }
    return named.get(api)
