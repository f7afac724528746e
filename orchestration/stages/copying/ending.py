"""The end of a transfer by DataSync: what runs is cancelled, and what was made is deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from orchestration.expressions import All, Compare, Item, Result, Tree, field
from orchestration.graph import (
    ANY_ERROR,
    Call,
    Choose,
    ErrorPattern,
    ForEach,
    Graph,
    Operation,
    Output,
    Recovery,
    Step,
    Until,
)

REFUSED: Final = "InvalidRequestException"
# The words that tools which manage DataSync in public rely on, Terraform's provider among them.
_NOT_FOUND: Final = ErrorPattern(REFUSED, "not found")
EXECUTION: Final = ("CurrentTaskExecutionArn",)
"""The most recent execution of a task."""
STATE: Final = {
    "execution": Output(EXECUTION, kind="string", default=""),
    "status": Output(("Status",), kind="string", default=""),
}


def described(execution: Tree) -> Operation:
    """Return the question how an execution does."""
    return Operation("datasync", "DescribeTaskExecution", {"TaskExecutionArn": execution})


def described_task(task: Tree) -> Operation:
    """Return the question how a task is, and which execution was its last."""
    return Operation("datasync", "DescribeTask", {"TaskArn": task})


def cleanup(stage: str) -> Graph:
    """Return the clean-up: it deletes every task on the run's own target, and both locations."""
    name = _namer(stage)
    target = Result(name("target"), "arn")
    filters: Tree = [{"Name": "LocationId", "Operator": "Equals", "Values": [target]}]
    # A task whose creation had no response was created all the same: it is one of these.
    tasks = Call(
        name=name("tasks"),
        operation=Operation("datasync", "ListTasks", {"Filters": filters}),
        outputs={
            "tasks": Output(
                ("Tasks",), kind="list", columns=("TaskArn",), texts=("TaskArn",), default=()
            )
        },
    )
    each = ForEach(
        name=name("ended"),
        items=Result(name("tasks"), "tasks"),
        body=Graph(_end(stage, field(Item(), "TaskArn"))),
        collect={"task": field(Item(), "TaskArn")},
        max_concurrency=1,
    )
    deleted = [
        Call(
            name=name(f"delete_{end}"),
            operation=Operation(
                "datasync", "DeleteLocation", {"LocationArn": Result(name(end), "arn")}
            ),
            recoveries=(Recovery(_NOT_FOUND, {}),),
            after=(name("ended"),),
        )
        for end in ("source", "target")
    ]
    return Graph((tasks, each, *deleted))


def _end(stage: str, task: Tree) -> tuple[Step, ...]:
    """Cancel what runs of a task, wait for its end, and delete the task."""
    name = _namer(stage)
    state = name("ended.state")
    execution = Result(state, "execution")
    cancel = Call(
        name=name("ended.cancel"),
        operation=Operation("datasync", "CancelTaskExecution", {"TaskExecutionArn": execution}),
        # It may be over by now.
        recoveries=(Recovery(ANY_ERROR, {}),),
    )
    over = Call(
        name=name("ended.over"),
        operation=described(execution),
        until=Until(
            poll=described(execution),
            status=("Status",),
            success=frozenset(["SUCCESS", "ERROR"]),
            failure=frozenset(),
            timeout_s=3600,
        ),
        after=(name("ended.cancel"),),
    )
    runs = All(
        (
            Compare("ne", execution, ""),
            Compare("ne", Result(state, "status"), "AVAILABLE"),
        )
    )
    return (
        Call(name=state, operation=described_task(task), outputs=STATE),
        Choose(
            name=name("ended.busy"),
            condition=runs,
            then=Graph((cancel, over)),
            otherwise=Graph(),
        ),
        Call(
            name=name("ended.delete"),
            operation=Operation("datasync", "DeleteTask", {"TaskArn": task}),
            recoveries=(Recovery(_NOT_FOUND, {}),),
            after=(name("ended.busy"),),
        ),
    )


def _namer(stage: str) -> Callable[[str], str]:
    return lambda step: f"{stage}.{step}"
