"""Mistakes in a trigger beyond its types."""

from __future__ import annotations

from collections.abc import Iterator

from orchestration.errors import Problem, near
from orchestration.pipeline.draft import Draft
from orchestration.pipeline.triggers import patterns, values
from orchestration.pipeline.triggers.model import EventValue, Trigger


def problems(draft: Draft) -> Iterator[Problem]:
    """Yield what is wrong with the trigger of a pipeline."""
    trigger = draft.trigger
    if trigger is None:
        return
    if trigger.event is not None:
        for problem in patterns.problems(trigger.event):
            yield problem.within("trigger.event")
    too_long = patterns.length_problems(trigger.spec().pattern)
    yield from (problem.within(f"trigger.{trigger.kind}") for problem in too_long)
    if trigger.pipeline == draft.name:
        yield Problem("trigger.pipeline", "is this very pipeline, which would start itself forever")
    if trigger.pipeline is not None and trigger.queue is not None:
        yield Problem(
            "trigger.queue", "is for events of EventBridge; Airflow knows of pipelines by assets"
        )
    for name, value in trigger.parameters.items():
        path = f"trigger.parameters.{name}"
        if name not in draft.parameters:
            yield Problem(path, f"there is no such parameter{near(name, draft.parameters)}")
        elif isinstance(value, EventValue):
            yield from _from_event(path, trigger, value.event, draft, name)
        else:
            declared = draft.parameters[name]
            if declared is not None and not declared.fits(value):
                yield Problem(path, f"is {value!r}, and the parameter is a {declared.type}")


def _from_event(
    path: str, trigger: Trigger, asked: str, draft: Draft, name: str
) -> Iterator[Problem]:
    kind, declared = trigger.kind, draft.parameters[name]
    if values.template(kind, asked) is None:
        if kind == "event":
            way = "; write a path such as detail.order.uri, or id, time, source, account, region"
        else:
            way = near(asked, values.named(kind))
        yield Problem(path, f"the event tells no {asked!r}{way}")
    elif declared is None or declared.type == "string" or kind == "event":
        return  # Everything can be text, and what stands at a path nobody knows.
    elif declared.type != "number" or asked not in values.NUMBERS:
        is_a = "number" if asked in values.NUMBERS else "text"
        yield Problem(path, f"{asked!r} is {is_a}, and the parameter is a {declared.type}")


def lacking(draft: Draft) -> tuple[str, ...]:
    """Return the parameters that a triggered run has no value for, unless others give one."""
    own = () if draft.trigger is None else draft.trigger.parameters
    return tuple(
        name
        for name, declared in draft.parameters.items()
        if draft.trigger is not None
        and declared is not None
        and declared.default is None
        and name not in own
    )


def warnings(draft: Draft) -> Iterator[Problem]:
    """Yield what probably starts too many runs, or fails each of them."""
    trigger = draft.trigger
    if trigger is None:
        return
    if missing := lacking(draft):
        yield Problem(
            "trigger.parameters",
            f"triggered runs have no value for {', '.join(missing)}; give each a default or a "
            "value here, or else give it to dag(…, parameters=…), which fails without, and to "
            "`orchestrate deploy`",
        )
    if trigger.s3 is not None and isinstance(draft.workspace, str):
        bucket, _, key = draft.workspace.removeprefix("s3://").partition("/")
        own, heard = f"{key}/" if key else "", trigger.s3.prefix
        if bucket == trigger.s3.bucket and (own.startswith(heard) or heard.startswith(own)):
            yield Problem(
                "trigger.s3.prefix",
                f"what a run writes into its workspace, {draft.workspace}, may start the next run; "
                "name a prefix outside it",
            )
