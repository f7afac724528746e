"""Limits of Step Functions, reported before anything is deployed.

https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html (read November 2026)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from orchestration.backends.stepfunctions.calls import recognition
from orchestration.backends.stepfunctions.facts import facts, kind
from orchestration.backends.stepfunctions.integrations import services, spelling
from orchestration.backends.stepfunctions.names import MAX_NAME, Facts
from orchestration.checks.requests import texts_for_bytes
from orchestration.errors import Problem
from orchestration.expressions import Json
from orchestration.graph import (
    Call,
    ForEach,
    Operation,
    Output,
    Until,
    Wait,
    Workflow,
    all_steps,
    candidates,
)

MAX_DEFINITION: Final = 1_048_576
"""Characters of a definition."""
MAX_PAYLOAD: Final = 262_144
"""Bytes of a state's input, output or arguments."""
MAX_CONCURRENCY: Final = 40
"""Iterations of an inline Map at a time."""
MAX_SECONDS: Final = 99_999_999
"""The longest pause and time-out."""


def refused(workflow: Workflow) -> Iterator[Problem]:
    """Yield what a workflow asks for and no definition can express."""
    known = facts(workflow)
    for step in all_steps(workflow.graph):
        match step:
            case Call():
                yield from dict.fromkeys(p for each in candidates(step) for p in _call(each, known))
            case ForEach(max_concurrency=most) if not 1 <= most <= MAX_CONCURRENCY:
                message = f"max_concurrency is {most}; a Map state runs 1 to {MAX_CONCURRENCY}"
                yield Problem(step.name, f"{message} iterations at a time")
            case Wait(seconds=int() | float() as pause) if not 0 <= pause <= MAX_SECONDS:
                yield Problem(step.name, f"waits {pause} s; the limits are 0 and {MAX_SECONDS}")
            case _:
                pass


def sent(definition: Mapping[str, Json]) -> str:
    """Return a definition as the text that is sent, without a blank that says nothing."""
    return json.dumps(definition, ensure_ascii=False, separators=(",", ":"))


def exceeded(definition: Mapping[str, Json]) -> Iterator[Problem]:
    """Yield the limits that a definition exceeds."""
    for name, state in _states(definition):
        if len(name) > MAX_NAME:
            yield Problem(
                name, f"the name of a state has at most {MAX_NAME} characters; shorten it"
            )
        size = len(json.dumps(state.get("Arguments"), ensure_ascii=False).encode())
        if size > MAX_PAYLOAD:
            yield Problem(name, f"its request is {size} bytes long; the limit is {MAX_PAYLOAD}")
        assigned = state.get("Assign")
        for variable in assigned if isinstance(assigned, Mapping) else ():
            if len(variable) > MAX_NAME:
                message = f"variable {variable} has more than {MAX_NAME} characters"
                yield Problem(name, f"{message}; shorten the step's name")
    size = len(sent(definition))
    if size > MAX_DEFINITION:
        yield Problem("", f"{size} characters; a definition has at most {MAX_DEFINITION}")


def _call(step: Call, known: Facts) -> Iterator[Problem]:
    yield from _operation(step.name, step.operation, known)
    yield from _outputs(step.name, step.operation, step.outputs)
    patterns = (*recognition.answers(step), *step.retry.errors)
    for pattern in recognition.unclear(step.operation, patterns):
        yield Problem(step.name, _unclear(step.operation, pattern.code))
    if step.retry.backoff_rate < 1:
        yield Problem(
            step.name, f"retry.backoff_rate is {step.retry.backoff_rate}; it must be 1 or more"
        )
    if step.until is not None:
        yield from _until(step.name, step.until, known)
        for pattern in recognition.unclear(step.until.poll, step.until.absent):
            yield Problem(step.name, _unclear(step.until.poll, pattern.code))


def _until(name: str, until: Until, known: Facts) -> Iterator[Problem]:
    yield from _operation(name, until.poll, known)
    yield from _outputs(name, until.poll, until.outputs)
    if until.stop is not None:
        yield from _operation(name, until.stop, known)
    if until.person is not None:
        yield from _operation(name, until.person.token, known)
    if until.timeout_s > MAX_SECONDS:
        yield Problem(name, f"until.timeout_s is {until.timeout_s:g}; at most {MAX_SECONDS}")
    if until.gone is not None:
        for pattern in recognition.unclear(until.poll, (until.gone,)):
            yield Problem(name, _unclear(until.poll, pattern.code))
        lacking = sorted(key for key, output in until.outputs.items() if not output.optional)
        if lacking:
            yield Problem(name, f"may end as gone, so these need a default: {', '.join(lacking)}")


def _operation(name: str, operation: Operation, known: Facts) -> Iterator[Problem]:
    if operation.service not in services.known():
        message = f"Step Functions has no integration known here for service {operation.service!r}"
        yield Problem(name, f"{message}; the known ones are {', '.join(services.known())}")
    elif operation.name in services.service(operation.service).refuses:
        yield Problem(
            name, f"Step Functions has no integration for {operation.service}:{operation.name}"
        )
    asked = (operation.service, operation.name, operation.request)
    for path in texts_for_bytes(*asked, lambda value: kind(value, known) == "string"):
        # Recorded with S3's PutObject on AWS, November 2025: 9 characters were stored as 11 bytes.
        yield Problem(
            name,
            f"{path} is text, which Step Functions sends as JSON, in quotes; give JSON instead"
            " (an object, a list or a number), or run it on Airflow",
        )
    for path in spelling.unclear(operation):
        yield Problem(
            name,
            f"{path} is known only when the pipeline runs, and Step Functions has other names for"
            " its fields; write its fields out, with references for their values",
        )


def _outputs(name: str, operation: Operation, outputs: Mapping[str, Output]) -> Iterator[Problem]:
    for output in spelling.carried(operation, outputs):
        yield Problem(
            name,
            f"output {output} holds fields of {operation.service}:{operation.name} that Step"
            " Functions has other names for; take texts, numbers or columns out of it",
        )


def _unclear(operation: Operation, code: str) -> str:
    return (
        f"Step Functions does not tell {code} of {operation.service}:{operation.name} from other"
        " errors; name a part of its message too"
    )


def _states(value: Json) -> Iterator[tuple[str, Mapping[str, Json]]]:
    if isinstance(value, Mapping):
        states = value.get("States")
        if isinstance(states, Mapping):
            for name, state in states.items():
                if isinstance(state, Mapping):
                    yield name, state
                    yield from _states(state.get("Branches"))
                    yield from _states(state.get("ItemProcessor"))
    elif isinstance(value, list):
        for inner in value:
            yield from _states(inner)
