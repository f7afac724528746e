"""Tasks as steps: their requests by the API's own names, and what they wait for."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.backends.stepfunctions.integrations.spelling import spelled
from orchestration.checks.requests import operation_model
from orchestration.checks.shapes import Shape
from orchestration.importing.state_machines.data import plain, substituted
from orchestration.importing.state_machines.texts import as_text, is_structured
from orchestration.importing.steps.calls import JOBS, POLLS
from orchestration.lint.machines import State
from orchestration.lint.tasks.resources import integration

_MOST_HOURS: Final = 720
"""The longest that an approval waits for an answer."""
_NO_PERSON: Final = "no stage waits for a task token (approval waits for a person)"
_MESSENGERS: Final = (("sqs", "SendMessage"), ("lambda", "Invoke"))
"""The calls that carry questions to people beside topics, and work to programs as well."""
_ASKS: Final = re.compile(r"approv|review|confirm|human|manual|sign.?off|ask.?user", re.IGNORECASE)
"""Words by which questions to people are told from other work that returns a token."""
_KINDS: Final = {job.operation: kind for kind, job in JOBS.items()}


def step_of(state: State, request: Any) -> dict[str, Any] | str:
    """Return what a step says of a Task, or why none can."""
    resource = state.resource
    if (":lambda:" in resource and ":function:" in resource) or resource.startswith("${"):
        arn = substituted(resource)
        return {"Type": "Lambda", "FunctionArn": arn, "Arguments": request}
    used = integration(state)
    if used is None or used.api is None:
        return f"no stage does what {resource or 'it'} does"
    if used.pattern == "waitForTaskToken":
        return _asked(state, used.api, request)
    if not isinstance(request, Mapping) or not is_structured(request):
        return "its request is not known before a run"
    if used.api == ("lambda", "Invoke"):
        sent = _parsed(request.get("Payload", {}))
        if isinstance(sent, str | list) or "Std:Join" in plain(sent):
            return "what the function is sent is no object"
        rest = {k: v for k, v in request.items() if k not in ("FunctionName", "Payload")}
        return {
            "Type": "Lambda",
            "FunctionArn": request.get("FunctionName"),
            "Arguments": sent,
            **({"Rest": rest} if rest else {}),
        }
    model, texts = operation_model(*used.api), list[str]()
    shape = model.input_shape if model is not None else None
    named = _named(shape, request, "", texts)
    if len(named) < len(request):
        return f"{_doubled(shape, request)} of its request are one"
    if used.api[0] == "sagemaker" and used.api[1] in _KINDS:
        kind = _KINDS[used.api[1]]
        return {"Type": kind, "Arguments": named, "Texts": texts, "Awaited": bool(used.pattern)}
    poll = POLLS.get(used.api)
    if used.pattern and poll is None:
        return f"what {used.resource} waits for is not known here"
    call = {"Type": "Call", "Service": used.api[0], "Operation": used.api[1], "Arguments": named}
    return {**call, "Texts": texts, **({"Poll": poll} if used.pattern and poll is not None else {})}


def _doubled(shape: Shape | None, request: Mapping[str, Any]) -> str:
    """Return the fields of a request that have one name in the API."""
    own = {key: next(iter(_named(shape, {key: item}, "", []))) for key, item in request.items()}
    count = Counter(own.values())
    return " and ".join(key for key, name in own.items() if count[name] > 1)


def _asked(state: State, api: tuple[str, str], request: Any) -> dict[str, Any] | str:
    """Return the question that a Task publishes, for whose answer it waits."""
    if not isinstance(request, Mapping):
        return _NO_PERSON
    published = api == ("sns", "Publish") and "TopicArn" in request
    words = f"{state.name} {json.dumps(plain(request), default=str)}"
    if not published and not (api in _MESSENGERS and _ASKS.search(words)):
        return _NO_PERSON
    seconds = state.fields.get("TimeoutSeconds")
    hours = -(-seconds // 3600) if isinstance(seconds, int) else _MOST_HOURS
    hours = max(1, min(hours, _MOST_HOURS))
    question = request.get("Subject", f"{state.name}?") if published else f"{state.name}?"
    topic = {"TopicArn": request["TopicArn"]} if published else {}
    asked = {**topic, "Question": question, "Hours": hours}
    waits = {} if seconds == hours * 3600 else {"Waits": seconds}
    return {"Type": "Approval", "Arguments": asked, **waits}


def asks(state: State) -> bool:
    """Return whether a state, or one inside it, waits until somebody outside lets it go on."""
    inner = (each for machine in state.inner for each in machine.states.values())
    return (
        "waitForTaskToken" in state.resource
        or ":activity:" in state.resource
        or any(map(asks, inner))
    )


def renamed_by(step: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what a job is started with otherwise; the name in its request is taken out."""
    if step["Type"] == "Approval":
        text = "is taken for a question to a person, which `orchestrate approve` answers; "
        if "TopicArn" in step["Arguments"]:
            text += "it has words of its own, and nobody returns the task token"
        else:
            text += "nothing is sent, since nobody returns the task token: notify tells a topic"
        yield "Resource", text
    if "Waits" in step:
        seconds, hours = step["Waits"], step["Arguments"]["Hours"]
        text = (
            "no limit" if seconds is None else f"{seconds} s" if type(seconds) is int else seconds
        )
        yield "TimeoutSeconds", f"{text}: an answer is waited for {hours} h (answer_within_h)"
    for name in step.get("Texts", ()):
        text = "is JSON as text, in which what a run gives stands as text as it is: no number, and"
        yield name, f"{text} no quotation mark or line break in it"
    job = JOBS.get(step["Type"])
    if job is None or job.describe is None:
        return
    if job.stop is not None and job.named in step["Arguments"]:
        step["Arguments"] = {k: v for k, v in step["Arguments"].items() if k != job.named}
        yield job.named, "each run's job has a name of its own, derived from the run"
    if not step.get("Awaited", True):
        yield "Resource", "the stage waits for its end"


def _parsed(payload: Any) -> Any:
    """Return a payload that is written as JSON, as an object."""
    if isinstance(payload, str):
        try:
            return json.loads(payload)
        except ValueError:
            return payload
    return payload


def _named(shape: Shape | None, value: Any, path: str, texts: list[str]) -> Any:
    """Return a request with the API's names in the place of those of Step Functions.

    ``texts`` receives the places of JSON that is text there, with what only a run gives in it.
    """
    if shape is None or not is_structured(value):
        return value
    match shape.type_name:
        case "structure" if isinstance(value, Mapping) and not shape.metadata.get("document"):
            members = {spelled(name, shape.name): name for name in shape.members}
            made: dict[str, Any] = {}
            for key, item in value.items():
                own = str(key if key in shape.members else members.get(key, key))
                below = f"{path}.{key}" if path else str(key)
                made[own] = _named(shape.members.get(own), item, below, texts)
            return made
        case "list" if isinstance(value, list):
            return [
                _named(shape.member, item, f"{path}[{number}]", texts)
                for number, item in enumerate(value)
            ]
        case "string":
            text = as_text(value)
            texts += [] if isinstance(text, str) else [path]
            return text
        case "map" if isinstance(value, Mapping):
            return {
                key: _named(shape.value, item, f"{path}.{key}", texts)
                for key, item in value.items()
            }
        case _:
            return value
