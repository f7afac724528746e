"""States as a companion writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from orchestration.backends.jsonata import enclosed
from orchestration.backends.stepfunctions.integrations import services
from orchestration.cleanup import MACHINE, RUN
from orchestration.expressions import Json

State = dict[str, Json]

_NOTHING: Final = enclosed("''")
"""Empty text; the public validators refuse it as a literal."""

_PASSING: Final = ("ThrottlingException", "SdkClientException", "InternalServerErrorException")


def task(boto_name: str, operation: str, arguments: Json, *retries: State, **more: Json) -> State:
    """Return a state that calls an operation; errors that may pass are retried."""
    service = services.service(boto_name)
    names = [*(f"{service.prefix}.{error}" for error in _PASSING), service.unnamed]
    passing: State = {
        "ErrorEquals": [*names],
        "IntervalSeconds": 5,
        "BackoffRate": 2.0,
        "MaxAttempts": 5,
        "MaxDelaySeconds": 60,
        "JitterStrategy": "FULL",
    }
    return {
        "Type": "Task",
        "Resource": services.resource(boto_name, operation),
        "Arguments": arguments,
        "Retry": [*retries, passing],
        **more,
    }


def paged(name: str, listing: State, following: str) -> dict[str, State]:
    """Return a listing that is asked for page after page; it assigns ``page`` itself."""
    more = f"More{name.removeprefix('Find')}"
    again = choice(("$exists($page.NextToken)", name), default=following)
    return {name: {**listing, "Next": more}, more: again}


def pages(request: str) -> str:
    """Return the request of a listing, with the token of its next page."""
    return enclosed(f"$merge([{request}, $page])")


NEXT_PAGE: Final = enclosed(
    "$exists($states.result.NextToken) ? {'NextToken': $states.result.NextToken} : {}"
)
"""The value of ``page`` after a listing; after the last page the next listing begins anew."""


def choice(*rules: tuple[str, str], default: str) -> State:
    """Return a state that goes where the first condition that holds says."""
    written = [{"Condition": enclosed(condition), "Next": name} for condition, name in rules]
    return {"Type": "Choice", "Choices": [*written], "Default": default}


def caught(following: str, *errors: str, **more: Json) -> State:
    """Return a catcher; without names, of every error."""
    return {"ErrorEquals": [*(errors or ("States.ALL",))], **more, "Next": following}


def each(items: str, start: str, states: Mapping[str, Json], **more: Json) -> State:
    """Return a state that goes through a list."""
    return {
        "Type": "Map",
        "Items": enclosed(items),
        "MaxConcurrency": 5,
        "ItemProcessor": {"StartAt": start, "States": dict(states)},
        **more,
    }


def ended(output: str = _NOTHING) -> State:
    """Return the end of one element; its output is a problem, or empty."""
    return {"Type": "Pass", "Output": output, "End": True}


def recognised(
    noun: str, following: str, reading: State, *, gone: str, also: str = ""
) -> dict[str, Json]:
    """Return the states that pass by what is not the machine's, or belongs to a run that goes on.

    ``reading`` reads the tags of ``$<noun>``; ``gone`` is the condition that an error means that
    another companion has been here, ``also`` one more that the tags must meet.
    """
    item, done = noun.lower(), f"{noun}Done"
    tags = "$states.result.Tags"
    ours = f"{also}({tag(MACHINE, tags)} = $machine) and $not({tag(RUN, tags)} in $live)"
    first: State = {
        "Type": "Pass",
        "Assign": {item: enclosed("$states.input"), "polls": 0},
        "Next": f"Read{noun}Tags",
    }
    problem = f"${item}.name & ': ' & $states.input.Error & ': ' & $states.input.Cause"
    return {
        noun: first,
        f"Read{noun}Tags": {
            **reading,
            "Output": enclosed(ours),
            "Catch": [caught(f"{noun}Gone")],
            "Next": f"{noun}OfEndedRun",
        },
        f"{noun}OfEndedRun": choice(("$states.input", following), default=done),
        f"{noun}Gone": choice((gone, done), default=f"{noun}NotEnded"),
        f"{noun}NotEnded": ended(enclosed(problem)),
        done: ended(),
    }


def tag(key: str, of: str = "Tags") -> str:
    """Return the expression of a tag's value."""
    return f"{of}[Key = '{key}'].Value"


def alternatives(words: Iterable[str]) -> str:
    """Return a regular expression of the beginnings of names."""
    return f"/^({'|'.join(words)})/"
