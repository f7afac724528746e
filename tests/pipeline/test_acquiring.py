"""Waits for what a stage from outside acquires stand where a failure releases it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest

from orchestration import Pipeline, PipelineError
from orchestration.expressions import Compare, Result
from orchestration.graph import (
    Adopt,
    Call,
    Choose,
    ErrorPattern,
    Graph,
    Guarded,
    Operation,
    Output,
    Until,
    all_steps,
    upstream,
)
from orchestration.stages import Context, Fragment, Stage

NAMED = {"EndpointName": "e"}


def endpoint(name: str) -> Call:
    return Call(
        name=name,
        operation=Operation(
            "sagemaker", "CreateEndpoint", {**NAMED, "EndpointConfigName": "config"}
        ),
        until=Until(
            poll=Operation("sagemaker", "DescribeEndpoint", NAMED),
            status=("EndpointStatus",),
            success=frozenset(["InService"]),
            failure=frozenset(["Failed"]),
            outputs={"arn": Output(("EndpointArn",), kind="string")},
        ),
    )


def delete(name: str, endpoint: Any = "e") -> Call:
    operation = Operation("sagemaker", "DeleteEndpoint", {"EndpointName": endpoint})
    return Call(name=name, operation=operation)


def ask(name: str, endpoint: Any) -> Call:
    operation = Operation("sagemaker", "DescribeEndpoint", {"EndpointName": endpoint})
    return Call(name=name, operation=operation)


class Probe(Stage):
    """An endpoint that is tried and deleted, in a choice."""

    kind: Literal["probe"] = "probe"
    adopts: bool = False
    deletes_by_arn: bool = False

    def lower(self, context: Context) -> Fragment:
        make, arn = endpoint("probe.make"), Result("probe.make", "arn")
        if self.adopts:
            adopt = Adopt(exists=ErrorPattern("ResourceInUse"), name_field="EndpointName")
            make = replace(make, adopt=adopt)
        guard = Guarded(
            name="probe.guard",
            acquire=make,
            body=Graph((ask("probe.ask", arn), ask("probe.again", "e"))),
            cleanup=Graph((delete("probe.delete", arn if self.deletes_by_arn else "e"),)),
        )
        tried = Choose(
            name="probe.tried",
            condition=Compare("eq", context.pipeline, "p"),
            then=Graph((guard,)),
            otherwise=Graph(),
        )
        return Fragment(steps=(tried,), outputs={})


def lowered(**fields: Any) -> Graph:
    stages = [Probe(name="probe", **fields)]
    return Pipeline(name="p", workspace="s3://bucket/runs", stages=stages).lower().graph


def test_the_wait_begins_the_body_and_what_it_tells_is_read_from_it() -> None:
    (guard,) = (step for step in all_steps(lowered()) if isinstance(step, Guarded))
    assert guard.acquire.until is None
    ready = next(step for step in guard.body.steps if step.name == "probe.make_ready")
    assert isinstance(ready, Call)
    assert ready.only_asks
    before = upstream(guard.body)
    assert before["probe.ask"] == before["probe.again"] == {ready.name}
    asked = next(step for step in guard.body.steps if step.name == "probe.ask")
    assert isinstance(asked, Call)
    assert asked.operation.request == {"EndpointName": Result(ready.name, "arn")}


@pytest.mark.parametrize("fields", [{"adopts": True}, {"deletes_by_arn": True}])
def test_a_wait_that_cannot_be_moved_is_refused(fields: dict[str, bool]) -> None:
    with pytest.raises(PipelineError, match="nothing would release if the wait failed") as error:
        lowered(**fields)
    assert {problem.stage for problem in error.value.problems} == {"probe"}
